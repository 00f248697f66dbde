import DequeModule

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A small pool of threads for blocking work, such as files, SQLite and codecs, which must not block the cooperative
/// pool.
///
/// ```swift
/// let digest = await BlockingExecutor.shared.run { FileName.sha256(path) }
/// ```
///
/// The pool is also a `TaskExecutor`, so whole tasks can prefer it. Work starts in the order of submission. Threads
/// start on demand and have 2 MiB of stack.
///
/// When the executor is deinitialized, its threads finish all submitted work and then end.
public final class BlockingExecutor: TaskExecutor {
    /// The shared pool. It has one thread per processor, and at least two.
    public static let shared = BlockingExecutor(threads: max(2, ProcessorCount.active), name: "vitrine")

    /// The maximum number of threads.
    package let threads: Int
    private let pool: ThreadPool

    /// Creates a pool of its own, for work that must not wait behind other work or needs a limited number of threads.
    ///
    /// - Parameters:
    ///   - threads: The maximum number of threads. Values below 1 count as 1.
    ///   - name: The name of the threads in debuggers, at most 15 bytes.
    ///   - onThreadEnd: Called on each thread before it ends, for libraries that release state per thread.
    public init(threads: Int, name: String = "vitrine", onThreadEnd: (@Sendable () -> Void)? = nil) {
        self.threads = max(1, threads)
        pool = ThreadPool(limit: self.threads, name: name, onThreadEnd: onThreadEnd)
    }

    deinit {
        pool.stop()
    }

    /// Runs a blocking body on one of the threads and returns its result.
    ///
    /// The body always runs, even if the calling task is cancelled meanwhile. A long body polls a
    /// ``CancellationToken``.
    ///
    /// - Throws: The error of the body.
    public func run<T: Sendable, E: Error>(
        _ body: @escaping @Sendable () throws(E) -> T
    ) async throws(E) -> T {
        let result: Result<T, E> = await withCheckedContinuation { continuation in
            submit { continuation.resume(returning: Result(catching: body)) }
        }
        return try result.get()
    }

    /// Runs a blocking body on one of the threads, without waiting for it.
    ///
    /// - Parameter body: The work.
    package func submit(_ body: @escaping @Sendable () -> Void) {
        pool.submit(.closure(body))
    }

    /// Waits for all submitted work and ends the threads, at the end of a program or a test.
    ///
    /// Work that is submitted later runs on the submitting thread. A call on one of the pool's own threads traps,
    /// because it would wait for itself.
    package func shutdown() {
        pool.stop()
        pool.waitUntilStopped()
    }

    /// Runs a job of the concurrency runtime on one of the threads, as a `TaskExecutor` does.
    public func enqueue(_ job: consuming ExecutorJob) {
        // The record keeps the executor alive until the job has run.
        pool.submit(.job(UnownedJob(job), self))
    }
}

/// The threads of a ``BlockingExecutor``. They outlive it until they have finished their work.
///
/// Unchecked: a lock type. Every property is accessed under `monitor` only.
private final class ThreadPool: @unchecked Sendable {
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

    /// Ends the threads once no work is waiting.
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
        // Each piece of work is released after it ran, outside the lock: its captures may submit more work in their
        // deinitializers, and may hold the last reference to the executor.
        while let next = self.next() { next.perform() }
        onThreadEnd?()
        monitor.lock()
        members.removeAll { pthread_equal($0, pthread_self()) != 0 }
        aliveCount -= 1
        monitor.unlock()
        monitor.broadcast()
    }

    /// Waits for work. Returns nil when the pool is stopping and no work is left.
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

/// Starts detached POSIX threads.
package enum Thread {
    /// The stack size of each thread, in bytes. Codecs and SQLite need more than musl's default of 128 KiB.
    private static let stackSize = 2 << 20

    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Starts a thread.
    ///
    /// - Returns: Whether it started: false when the system allows no more threads.
    package static func start(name: String, body: @escaping @Sendable () -> Void) -> Bool {
        var attributes = pthread_attr_t()
        guard pthread_attr_init(&attributes) == 0 else { return false }
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stackSize)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let context = Unmanaged.passRetained(Body(name: name, run: body))
        #if canImport(Darwin)
        var handle: pthread_t?
        let status = pthread_create(&handle, &attributes, { Thread.main($0) }, context.toOpaque())
        #else
        var handle = pthread_t()
        let status = pthread_create(&handle, &attributes, { $0.flatMap { Thread.main($0) } }, context.toOpaque())
        #endif
        if status != 0 { context.release() }
        return status == 0
    }

    private static func main(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
        let name = String(decoding: body.name.utf8.prefix(15), as: UTF8.self)
        #if canImport(Darwin)
        pthread_setname_np(name)
        #else
        // pthread_setname_np is a GNU extension that Swift does not import from the C library. This file of the kernel
        // (proc(5)) has the same effect. A failure only leaves the thread without a name.
        let descriptor = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        if descriptor >= 0 {
            _ = name.withCString { write(descriptor, $0, strlen($0)) }
            close(descriptor)
        }
        #endif
        body.run()
        return nil
    }
}
