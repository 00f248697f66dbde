import Logging
import Synchronization
import VitrineCore
import VitrineDatabase

/// What a disk cache does, shared by its asynchronous and blocking faces.
///
/// - Reads take a connection out of the generation's pool, on the caller's thread.
/// - Writes go through the queue to one thread of the cache's own (`executor`).
/// - Whoever opens, replaces or changes a generation holds `locking`, and with it the lock among processes. `state` is
///   taken after it, never the other way round.
final class DiskEngine: Sendable {
    struct State {
        var generation: Generation?
        var writer: DiskWriter?
        /// The lock among processes while a thread of this one has it.
        var lock: ProcessLock?
        /// When the link was last looked at, in coarse nanoseconds.
        var checked: Int64 = 0
        /// There is no permission to write, or no wish to.
        var isReadOnly: Bool
    }

    /// The link is looked at so often by reads, in nanoseconds: another process may have removed everything.
    static let checkInterval: Int64 = 100_000_000

    let configuration: DiskCache.Configuration
    let layout: DiskLayout
    let queue: WriteQueue
    let hits = HitRecorder()
    let counters = Counters()
    let sizes = SizeBroadcast()
    let log = Log.logger("cache")
    let limit: Atomic<Int>
    let failure = Locked<CacheError?>(nil)
    let state: Locked<State>
    let locking = Locked<ProcessLock?>(nil)
    private let executor = BlockingExecutor(threads: 1, name: "vitrine-cache")

    init(directory: String, configuration: DiskCache.Configuration) {
        self.configuration = configuration
        layout = DiskLayout(directory: directory)
        queue = WriteQueue(
            entries: configuration.writeBehind.entries, bytes: configuration.writeBehind.bytes.bytes)
        limit = Atomic(configuration.capacity.bytes)
        state = Locked(State(isReadOnly: configuration.isReadOnly))
    }

    deinit {
        state.withLock { $0.generation }?.retire()
    }

    /// The cache's object has gone: what is queued is still written, and the uses that were collected.
    func retire() {
        guard state.withLock({ $0.generation != nil && !$0.isReadOnly }) else { return }
        onWriter { engine in engine.writeHits() }
    }

    var capacity: ByteCount { ByteCount(limit.load(ordering: .relaxed)) }

    /// Nanoseconds since 1970.
    var now: Int64 { configuration.clock.now.nanosecondsClamped }

    // MARK: The writing thread

    /// Adds an operation, suspending while the queue is full.
    func enqueue(_ operation: Operation, forKey key: CacheKey) async {
        while true {
            switch queue.add(operation, forKey: key) {
            case .queued: return
            case .queuedFirst: return startDraining()
            case .full: await queue.waitForRoom(for: operation)
            }
        }
    }

    /// Adds an operation, blocking while the queue is full.
    func enqueueBlocking(_ operation: Operation, forKey key: CacheKey) {
        if queue.addBlocking(operation, forKey: key) == .queuedFirst { startDraining() }
    }

    /// Runs something on the writing thread after all that was queued before.
    func onWriter(_ body: @escaping @Sendable (DiskEngine) -> Void) {
        if queue.add(job: { body(self) }) == .queuedFirst { startDraining() }
    }

    /// Runs something on the writing thread after all that was queued before, and waits for it.
    func onWriterAndWait<Result: Sendable>(
        _ body: @escaping @Sendable (DiskEngine) throws(CacheError) -> Result
    ) throws(CacheError) -> Result {
        let outcome = Outcome<Swift.Result<Result, CacheError>>()
        onWriter { engine in
            outcome.set(Swift.Result { () throws(CacheError) in try body(engine) })
        }
        return try outcome.wait().get()
    }

    func startDraining() {
        executor.submit { self.drain() }
    }

    private func drain() {
        while let work = queue.take() {
            switch work {
            case .batch(let batch):
                write(batch)
                queue.finish()
            case .job(let job): job()
            }
        }
    }

    // MARK: Errors

    /// Remembers and logs what was lost.
    func fail(_ error: CacheError, lost: Int) {
        counters.add { $0.dropped += lost }
        failure.withLock { $0 = $0 ?? error }
        log.warning("disk cache dropped \(lost) writes", metadata: ["error": "\(error)"])
    }

    /// The module's error for one from below.
    static func error(_ error: any Error, path: String) -> CacheError {
        switch error {
        case let error as CacheError: error
        case let error as FileError: .file(error)
        case let error as DatabaseError: .database(error)
        default: .file(.untrusted(path: path, reason: "\(error)"))
        }
    }
}
