#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Gives the calling thread its share of the processor.
enum ThreadPriority {
    /// Sets the share for the rest of the thread's life. Without privileges a thread cannot raise it again.
    static func set(_ priority: ExecutionPriority) {
        #if canImport(Darwin)
        let quality: qos_class_t =
            switch priority {
            case .background: QOS_CLASS_BACKGROUND
            case .low: QOS_CLASS_UTILITY
            case .normal: QOS_CLASS_DEFAULT
            case .high: QOS_CLASS_USER_INITIATED
            }
        pthread_set_qos_class_self_np(quality, 0)
        #else
        // Linux knows nice values of threads, and 0 for the calling one (setpriority(2), "C library/kernel
        // differences"; sched(7)). Threads inherit it, so that 0 has to be set as well. Refused where the program may
        // not: the thread then stays as it is.
        guard current != nice(priority) else { return }
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, nice(priority))
        #endif
    }

    #if !canImport(Darwin)
    private static func nice(_ priority: ExecutionPriority) -> Int32 {
        switch priority {
        case .background: 10
        case .low: 5
        case .normal: 0
        case .high: -5
        }
    }

    /// The calling thread's nice value.
    static var current: Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }
    #endif
}
