/// A small pool of threads for work that blocks: files, SQLite, codecs. Keeps such work off the cooperative pool.
///
/// ```swift
/// let bytes = try await BlockingExecutor.shared.run { () throws(FileError) in try FileContents.read(path) }
/// ```
///
/// It is a `TaskExecutor` as well, so whole tasks can prefer it. Work starts in the order in which it was submitted;
/// who needs priorities or a limit puts a ``WorkQueue`` in front. Threads are started when they are first needed and
/// have 2 MiB of stack.
///
/// When the last reference goes, the threads finish what was submitted and end; nothing is lost.
public final class BlockingExecutor: TaskExecutor {
    /// The pool everyone shares: as many threads as processors, at least two.
    public static let shared = BlockingExecutor(threads: max(2, ProcessorCount.active), name: "vitrine")

    /// How many threads the pool has at most.
    public let threads: Int
    private let pool: ThreadPool

    /// A pool of its own, for work that must not wait behind others' or whose number is limited by threads.
    ///
    /// - Parameters:
    ///   - threads: How many at most; values below 1 count as 1.
    ///   - name: What debuggers show, at most 15 bytes.
    ///   - onThreadEnd: Called on each thread as its last act, for libraries with per-thread state to release.
    public init(threads: Int, name: String = "vitrine", onThreadEnd: (@Sendable () -> Void)? = nil) {
        self.threads = max(1, threads)
        pool = ThreadPool(limit: self.threads, name: name, onThreadEnd: onThreadEnd)
    }

    deinit {
        pool.stop()
    }

    /// Runs a blocking body on one of the threads and returns what it returns.
    ///
    /// The body is always run, also when the calling task is cancelled meanwhile; a long one polls a
    /// ``CancellationToken``.
    ///
    /// - Throws: What the body throws.
    public func run<T: Sendable, E: Error>(
        _ body: @escaping @Sendable () throws(E) -> T
    ) async throws(E) -> T {
        let result: Result<T, E> = await withCheckedContinuation { continuation in
            submit { continuation.resume(returning: Result(catching: body)) }
        }
        return try result.get()
    }

    /// Runs a blocking body on one of the threads, sooner or later.
    public func submit(_ body: @escaping @Sendable () -> Void) {
        pool.submit(.closure(body))
    }

    /// Ends the threads after what was submitted and waits for them. Only for the end of a program or a test: work
    /// submitted later runs on the submitting thread. Traps on one of the pool's own threads, where it could not end.
    public func shutdown() {
        pool.stop()
        pool.waitUntilStopped()
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        // The record keeps the executor alive until the job has run.
        pool.submit(.job(UnownedJob(job), self))
    }
}
