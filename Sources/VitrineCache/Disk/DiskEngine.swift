import Logging
import Synchronization
import VitrineCore
import VitrineDatabase

/// The disk engine of all formats in one directory: one database, one writing thread, one set of locks.
///
/// - Reads take a connection from the pool of the generation, on the caller's thread.
/// - Writes go through the queue to the thread of `executor`.
/// - Opening, replacing or changing a generation requires `locking`, which also holds the lock among processes. `state`
///   is locked after it, never before.
final class DiskEngine: Sendable {
    struct State {
        var generation: Generation?
        var writer: DiskWriter?
        /// The lock among processes while a thread of this one has it.
        var lock: ProcessLock?
        /// When the link was last looked at, in coarse nanoseconds.
        var checked: Int64 = 0
        /// Whether the system has refused the last attempt to write. See ``isReadOnly``.
        var isRefused = false
    }

    /// The link is looked at so often by reads, in nanoseconds: another process may have removed everything.
    static let checkInterval: Int64 = 100_000_000

    /// Its capacity and time to live are those of formats, not of the engine.
    let configuration: DiskCache.Configuration
    let layout: DiskLayout
    /// Whether the directory had one for each format in the layout before.
    let hadFormatDirectories: Bool
    let queue: WriteQueue
    let hits = HitRecorder()
    /// The counters of operations without a registered format.
    let counters = Counters()
    /// The size of all formats.
    let sizes = SizeBroadcast()
    let log = Log.logger("cache")
    private let total: Locked<Total>
    private let limit: Atomic<Int>
    let state: Locked<State>
    let locking = Locked<ProcessLock?>(nil)
    private let formats = Locked<[Int64: DiskFormat]>([:])
    private let executor = BlockingExecutor(threads: 1, name: "vitrine-cache")

    /// The most bytes all formats may count together.
    enum Total {
        case exactly(Int)
        /// This, and as much as any one format may count.
        case atLeast(Int)
    }

    /// - Parameters:
    ///   - directory: Its own directory.
    ///   - configuration: Options of all formats.
    ///   - total: The most bytes all formats may count together.
    ///   - hadFormatDirectories: Whether each format had a directory in it before.
    init(
        directory: String, configuration: DiskCache.Configuration, total: Total, hadFormatDirectories: Bool = false
    ) {
        self.configuration = configuration
        self.total = Locked(total)
        limit = Atomic(Self.limit(total, []))
        self.hadFormatDirectories = hadFormatDirectories
        layout = DiskLayout(directory: directory)
        queue = WriteQueue(
            entries: configuration.writeBehind.entries, bytes: configuration.writeBehind.bytes.bytes)
        state = Locked(State())
    }

    deinit {
        state.withLock { $0.generation }?.retire()
    }

    /// Called when the cache's object is deallocated. Queued writes and collected access times are still written.
    func retire() {
        guard state.withLock({ $0.generation != nil }), !isReadOnly else { return }
        onWriter { engine in engine.writeHits() }
    }

    /// Whether nothing may be written: the configuration says so, or the system has refused the last attempt and the
    /// permissions are still missing. A file system that is read-only for a moment is written again afterwards.
    var isReadOnly: Bool {
        if configuration.isReadOnly { return true }
        guard state.withLock({ $0.isRefused }) else { return false }
        guard layout.mayBeWritten else { return true }
        state.withLock { $0.isRefused = false }
        return false
    }

    /// Nanoseconds since 1970.
    var now: Int64 { configuration.clock.now.nanosecondsClamped }

    // MARK: Formats

    /// The formats that are registered.
    var registered: [DiskFormat] { formats.withLock { Array($0.values) } }

    /// The registered format with this number.
    func registered(_ id: Int64) -> DiskFormat? { formats.withLock { $0[id] } }

    /// Registers a format, replacing one with the same name. Opens nothing. A capacity below the stored size is
    /// enforced when the cache is opened, or soon if it is open.
    func register(_ format: DiskFormat) {
        formats.withLock { $0[format.id] = format }
        updateTotal()
        guard state.withLock({ $0.generation != nil }), !isReadOnly else { return }
        onWriter { engine in engine.enforce(format) }
    }

    /// Unregisters a format. Its entries stay. The total stays until the next change, because queued writes are still
    /// written.
    func unregister(_ format: DiskFormat) {
        formats.withLock { formats in
            if formats[format.id] === format { formats[format.id] = nil }
        }
    }

    /// The most bytes all formats may count together.
    var totalLimit: Int { limit.load(ordering: .relaxed) }

    func setTotalLimit(_ bytes: Int) {
        total.withLock { $0 = .exactly(bytes) }
        updateTotal()
    }

    /// Follows a change of the formats or of their limits.
    func updateTotal() {
        // One at a time, so that the last one has seen all changes.
        total.withLock { limit.store(Self.limit($0, registered), ordering: .relaxed) }
    }

    private static func limit(_ total: Total, _ formats: [DiskFormat]) -> Int {
        switch total {
        case .exactly(let bytes): bytes
        case .atLeast(let bytes): formats.reduce(bytes) { max($0, $1.limit.load(ordering: .relaxed)) }
        }
    }

    // MARK: The writing thread

    /// Adds an operation, suspending while the queue is full.
    func enqueue(_ operation: Operation, forKey key: EntryKey) async {
        while true {
            var replaced: Operation?
            if tryEnqueue(operation, forKey: key, replacing: &replaced) { return }
            await queue.waitForRoom(for: operation)
        }
    }

    /// Adds an operation if there is room now, without waiting.
    ///
    /// - Parameter replaced: Gets the operation it takes the place of, to be released outside of all locks.
    func tryEnqueue(_ operation: Operation, forKey key: EntryKey, replacing replaced: inout Operation?) -> Bool {
        switch queue.add(operation, forKey: key, replacing: &replaced) {
        case .full: return false
        case .queued: return true
        case .queuedFirst:
            startDraining()
            return true
        }
    }

    /// Adds an operation, blocking while the queue is full.
    ///
    /// - Parameter epoch: `queue.epoch` when the operation was requested. It is dropped if everything was removed since.
    func enqueueBlocking(_ operation: Operation, forKey key: EntryKey, since epoch: Int? = nil) {
        if queue.addBlocking(operation, forKey: key, since: epoch) == .queuedFirst { startDraining() }
    }

    /// Runs something on the writing thread after all that was queued before.
    func onWriter(_ body: @escaping @Sendable (DiskEngine) -> Void) {
        if queue.add(job: { body(self) }) == .queuedFirst { startDraining() }
    }

    /// Runs something on the writing thread after all that was queued before, and waits for it.
    func onWriterAndWait<Result: Sendable>(
        _ body: @escaping @Sendable (DiskEngine) throws(CacheError) -> Result
    ) throws(CacheError) -> Result {
        let promise = Promise<Swift.Result<Result, CacheError>>()
        onWriter { engine in
            promise.fulfill(Swift.Result { () throws(CacheError) in try body(engine) })
        }
        return try promise.wait().get()
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

    /// Records and logs lost writes, for the next flush of each format.
    func fail(_ error: CacheError, lost: [EntryKey]) {
        for key in lost {
            key.format.counters.add { $0.dropped += 1 }
            key.format.failure.withLock { $0 = $0 ?? error }
        }
        log.warning("disk cache dropped \(lost.count) writes", metadata: ["error": "\(error)"])
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
