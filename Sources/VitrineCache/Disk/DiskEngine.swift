import Logging
import VitrineCore

/// The disk engine of all formats in one directory: one database, one writing thread.
///
/// - Reads take a connection from the pool of the generation, on the caller's thread.
/// - Writes go through the queue to the thread of `executor`.
/// - ``GenerationStore`` opens, replaces and locks the generation in use.
final class DiskEngine: Sendable {
    /// Its capacity and time to live are those of formats, not of the engine.
    let configuration: DiskCache.Configuration
    let layout: DiskLayout
    /// The registered formats.
    let formats: FormatRegistry
    /// The generation in use.
    let generations: GenerationStore
    let queue: WriteQueue
    let hits = HitRecorder()
    let log = Log.logger("cache")
    private let executor = BlockingExecutor(threads: 1, name: "vitrine-cache")

    /// - Parameters:
    ///   - directory: Its own directory.
    ///   - configuration: Options of all formats.
    ///   - total: The most bytes all formats may count together.
    ///   - hadFormatDirectories: Whether each format had a directory in it before.
    init(
        directory: String, configuration: DiskCache.Configuration, total: FormatRegistry.Total,
        hadFormatDirectories: Bool = false
    ) {
        self.configuration = configuration
        layout = DiskLayout(directory: directory)
        formats = FormatRegistry(total: total, log: log)
        generations = GenerationStore(
            layout, configuration: configuration, formats: formats, hadFormatDirectories: hadFormatDirectories,
            log: log)
        queue = WriteQueue(
            entries: configuration.writeBehind.entries, bytes: configuration.writeBehind.bytes.bytes)
    }

    /// Called when the cache's object is deallocated. Queued writes and collected access times are still written.
    func retire() {
        guard generations.current != nil, !isReadOnly else { return }
        onWriter { engine in engine.writeHits() }
    }

    /// Whether nothing may be written.
    var isReadOnly: Bool { generations.isReadOnly }

    /// Nanoseconds since 1970.
    var now: Int64 { configuration.clock.nanoseconds }

    // MARK: Formats

    /// Registers a format, replacing one with the same name. Opens nothing. A capacity below the stored size is
    /// enforced when the cache is opened, or soon if it is open.
    func register(_ format: DiskFormat) {
        formats.add(format)
        guard generations.current != nil, !isReadOnly else { return }
        onWriter { engine in engine.enforce(format) }
    }

    /// Unregisters a format. Its entries stay. The total stays until the next change, because queued writes are still
    /// written.
    func unregister(_ format: DiskFormat) { formats.remove(format) }

    // MARK: The writing thread

    /// Adds an operation, suspending while the queue is full.
    func enqueue(_ operation: Operation, forKey key: EntryKey) async {
        while true {
            var replaced: Operation?
            if tryEnqueue(operation, forKey: key, replacing: &replaced) { return }
            await queue.waitForSpace(for: operation)
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
        let promise = AsyncPromise<Swift.Result<Result, CacheError>>()
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
}
