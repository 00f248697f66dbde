import DequeModule

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The threads behind ``BlockingExecutor``, which outlive it until they have done their work.
///
/// Unchecked: a lock type. Every property is touched under `monitor` only.
final class ThreadPool: @unchecked Sendable {
    enum Work {
        case closure(@Sendable () -> Void)
        case job(UnownedJob, BlockingExecutor)

        func perform() {
            switch self {
            case .closure(let body): body()
            case .job(let job, let executor): job.runSynchronously(on: executor.asUnownedTaskExecutor())
            }
        }
    }

    private let monitor = Monitor()
    private let limit: Int
    private let name: String
    private let onThreadEnd: (@Sendable () -> Void)?
    private var waiting = Deque<Work>()
    private var members: [pthread_t] = []
    private var idleCount = 0
    private var isStopping = false
    private var aliveCount = 0

    init(limit: Int, name: String, onThreadEnd: (@Sendable () -> Void)?) {
        self.limit = limit
        self.name = name
        self.onThreadEnd = onThreadEnd
    }

    func submit(_ work: Work) {
        monitor.lock()
        if isStopping {
            monitor.unlock()
            work.perform()
            return
        }
        waiting.append(work)
        if waiting.count <= idleCount {
            monitor.unlock()
            monitor.signal()
            return
        }
        var hasThread = true
        if aliveCount < limit {
            // Under the lock: starting a thread is rare and takes about 20 µs.
            if Thread.start(name: name, body: { self.work() }) {
                aliveCount += 1
            } else {
                hasThread = aliveCount > 0
            }
        }
        // Without any thread (the process is at its limit) a blocked caller is better than lost work.
        let stranded = hasThread ? nil : waiting.popLast()
        monitor.unlock()
        stranded?.perform()
    }

    /// Lets the threads end once nothing waits.
    func stop() {
        monitor.lock()
        isStopping = true
        monitor.unlock()
        monitor.broadcast()
    }

    func waitUntilStopped() {
        monitor.lock()
        let isMember = members.contains { pthread_equal($0, pthread_self()) != 0 }
        precondition(!isMember, "A BlockingExecutor cannot be shut down from one of its own threads.")
        while aliveCount > 0 { monitor.wait() }
        monitor.unlock()
    }

    private func work() {
        monitor.lock()
        members.append(pthread_self())
        monitor.unlock()
        // Each piece of work is released at the end of its turn, outside the lock: what it captured may submit more
        // when it goes, and it may hold the last reference to the executor.
        while let next = self.next() { next.perform() }
        onThreadEnd?()
        monitor.lock()
        members.removeAll { pthread_equal($0, pthread_self()) != 0 }
        aliveCount -= 1
        monitor.unlock()
        monitor.broadcast()
    }

    /// Waits for work; nil when there is none and will be none.
    private func next() -> Work? {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if let next = waiting.popFirst() { return next }
            if isStopping { return nil }
            idleCount += 1
            monitor.wait()
            idleCount -= 1
        }
    }
}
