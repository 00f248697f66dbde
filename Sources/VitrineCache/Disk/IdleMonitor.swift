import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Looks now and then whether something has become idle: read transactions that were kept open, a log that nobody
/// writes to. One thread for all caches of the process, which sleeps while there is nothing to look at.
enum IdleMonitor {
    /// Given the time in coarse nanoseconds; returns whether to look again.
    typealias Check = @Sendable (Int64) -> Bool

    /// Time from one look to the next, in nanoseconds.
    static let interval: Int64 = 10_000_000
    private static let checks = Locked<[Check]>([])
    private static let executor = BlockingExecutor(threads: 1, name: "vitrine-idle")

    /// Calls a check again and again until it returns false. What it does must be short.
    static func watch(_ check: @escaping Check) {
        let isFirst = checks.withLock { checks in
            checks.append(check)
            return checks.count == 1
        }
        if isFirst { executor.submit { run() } }
    }

    private static func run() {
        var isDone = false
        while !isDone {
            // Woken early by a signal it only looks early.
            var pause = timespec(tv_sec: 0, tv_nsec: Int(interval))
            nanosleep(&pause, nil)
            let time = DiskEngine.coarseTime()
            let known = checks.withLock { $0 }
            let kept = known.filter { $0(time) }
            isDone = checks.withLock { checks in
                checks = kept + checks.dropFirst(known.count)
                return checks.isEmpty
            }
        }
    }
}
