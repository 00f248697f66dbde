import Dispatch

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The processor time of one thread, which other threads can read while it runs.
struct ThreadClock: Sendable {
    #if canImport(Glibc) || canImport(Musl)
    private let clock: clockid_t?

    /// The clock of the calling thread (pthread_getcpuclockid(3)).
    static var current: ThreadClock {
        var clock = clockid_t()
        return ThreadClock(clock: pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : nil)
    }

    /// Seconds of processor time; nil when the thread has ended.
    var seconds: Double? {
        var time = timespec()
        guard let clock, clock_gettime(clock, &time) == 0 else { return nil }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
    #elseif canImport(Darwin)
    private let thread: thread_t

    static var current: ThreadClock { ThreadClock(thread: pthread_mach_thread_np(pthread_self())) }

    var seconds: Double? {
        var info = thread_basic_info()
        var count = mach_msg_type_number_t(MemoryLayout<thread_basic_info>.size / MemoryLayout<integer_t>.size)
        let code = withUnsafeMutablePointer(to: &info) { pointer in
            pointer.withMemoryRebound(to: integer_t.self, capacity: Int(count)) {
                thread_info(thread, thread_flavor_t(THREAD_BASIC_INFO), $0, &count)
            }
        }
        guard code == KERN_SUCCESS else { return nil }
        return Double(info.user_time.seconds) + Double(info.system_time.seconds)
            + Double(info.user_time.microseconds + info.system_time.microseconds) / 1e6
    }
    #endif
}
