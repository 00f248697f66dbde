#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import Logging
public import VitrineCache
import VitrineCore
public import VitrineImaging

/// Thumbnails of anything: made once, the most urgent first, and kept in memory and on disk.
///
/// ```swift
/// let image = try await ImagePipeline.shared.image(for: url)
/// let small = try await ImagePipeline.shared.image(for: ImageRequest(.file("lake.jpg"), size: .fit(256)))
/// ```
///
/// - **Everything is made once.** Requests of one source, size and mode share the work (R91). Requests of one source at
///   several sizes that wait together are one call of the source. A thumbnail that has at least twice the pixels of one
///   that is wanted stands in for the source.
/// - **The most urgent first.** Work is as urgent as the most urgent request for it, at any moment (R92). At most
///   ``Configuration/concurrency`` calls of sources run at once; looking at the caches does not wait for these.
/// - **What nobody wants stops.** The last request to go stops the work and gives its place to the next (R93).
/// - **A source cannot take the service along.** One that throws, hangs or does not stop costs its own requests, which
///   end with an error; its place is taken by the next.
/// - **No stale pictures.** The identity of a source changes with its content; what was kept under the old one is left
///   to eviction.
///
/// Requests keep their service: one that is let go of while requests wait goes on until the last has ended.
///
/// ## Topics
/// ### Images
/// - ``image(for:)``
/// - ``start(_:)-(ImageRequest)``
/// - ``start(_:)-(ImageTaskGroup)``
/// - ``cachedImage(for:)``
/// ### On the calling thread
/// - ``execute(_:)``
/// - ``executeIfOnDisk(_:)``
/// ### Ahead of time
/// - ``prefetch(_:)``
/// ### Caches
/// - ``contains(_:at:)``
/// - ``removeAll(levels:)``
/// - ``cache``
/// - ``placeholders``
/// - ``originals``
public final class ImagePipeline: Sendable {
    /// How it was configured.
    public let configuration: Configuration
    /// The thumbnails in memory and on disk, for direct access (R98).
    public let cache: Cache<Image>
    /// The placeholders in memory and on disk, used with ``Configuration/cachesPlaceholders``.
    public let placeholders: Cache<Image>
    /// The original bytes of URLs, kept on disk under the rules of HTTP.
    public let originals: Cache<Data>

    struct State {
        var board = RequestScheduler()
        /// Requests whose source is being asked who it is.
        var identifications: [ObjectIdentifier: (id: Int, turn: QueueSlot)] = [:]
        var placeholders: [ObjectIdentifier: FlightSubscription<CacheKey, Image?>] = [:]
        var statistics = PipelineStatistics()
    }

    /// The threads that look at the caches. Not the shared ones, on which callers may wait for what is done here.
    static let looking = BlockingExecutor(threads: max(2, ProcessorCount.active), name: "vitrine-look")
    /// The threads that end requests where no other may block.
    static let ending = BlockingExecutor(threads: 2, name: "vitrine-end")

    let state = Locked(State())
    let siblings = DerivedSizeIndex()
    let crew: ForeignCallPool
    private static let current = Locked<ImagePipeline?>(nil)

    /// The pipeline for everybody in the program. May be replaced at any time: work that has begun stays with the one
    /// before. Default: one with ``Configuration/standard``.
    public static var shared: ImagePipeline {
        get {
            current.withLock { current in
                let pipeline = current ?? ImagePipeline()
                current = pipeline
                return pipeline
            }
        }
        set {
            let before = current.withLock { current in
                defer { current = newValue }
                return current
            }
            // Released here, outside the lock.
            _ = before
        }
    }

    /// Calls for images.
    let making: WorkQueue
    /// Looks at the caches.
    let lookups: WorkQueue
    /// Calls for identities.
    let identifying: WorkQueue
    /// Calls for placeholders.
    let placing: WorkQueue
    /// Decodes of previews while a URL is transferred. Few at a time: images go first.
    let previewing = WorkQueue(limit: 2)
    let placeholderFlights = SingleFlight<CacheKey, Image?>()
    let log = Log.logger("thumbnails")

    /// A service. Opens nothing: that happens when the caches are first used.
    public init(_ configuration: Configuration = .standard) {
        var configuration = configuration
        configuration.concurrency = max(1, configuration.concurrency)
        self.configuration = configuration
        cache = configuration.cache("Thumbnails", of: Image.self)
        placeholders = configuration.cache("Placeholders", of: Image.self)
        originals = configuration.cache("Originals", of: Data.self)
        crew = ForeignCallPool(
            idleLimit: configuration.concurrency, stuckLimit: configuration.maximumAbandonedThreads,
            timeLimit: configuration.timeLimit, grace: configuration.grace)
        making = WorkQueue(
            limit: configuration.concurrency, reserved: configuration.concurrency > 1 ? [.low: 1] : [:])
        lookups = WorkQueue(limit: Self.looking.threads)
        identifying = WorkQueue(limit: 4)
        placing = WorkQueue(limit: 2)
    }

    // MARK: Asking

    /// Starts a request.
    ///
    /// An image that is in memory is there when this returns, unless the identity of its source has to be looked up
    /// first and the caller is on the main actor or in a task, where nothing may block.
    ///
    /// - Returns: The task, which need not be kept: the work continues without it.
    @discardableResult
    public func start(_ request: ImageRequest) -> ImageTask {
        let task = ImageTask(request)
        start(task)
        return task
    }

    /// Starts a task that was made before. Tasks that were started before, have ended, or belong to a group are ignored
    /// with a warning.
    public func start(_ task: ImageTask) {
        guard task.begin(in: self, byGroup: false) else {
            return log.warning("A task was not started: it was started before, has ended, or belongs to a group")
        }
        admit(task)
    }

    /// Starts the tasks of a group, by the group's own rules.
    public func start(_ group: some ImageTaskGroup) { GroupRun(group, self).proceed() }

    /// Returns the image of a request.
    ///
    /// - Throws: ``ImagePipelineError``; `CancellationError` when the calling task is cancelled, which cancels the
    ///   request.
    public func image(for request: ImageRequest) async throws -> Image {
        try Task.checkCancellation()
        let task = start(request)
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// Returns the image at a URL.
    ///
    /// - Parameters:
    ///   - url: A picture, or a document or film for its first page or poster.
    ///   - size: The size of the result. Default: that of the image.
    /// - Throws: As ``image(for:)``.
    public func image(for url: URL, size: ImageResizer = .none) async throws -> Image {
        try await image(for: ImageRequest(url, size: size))
    }

    /// How many thumbnails are made at once, for the time being; at least 1. Fewer leave room for something that has to
    /// stay smooth, such as a list that is scrolled. What runs goes on. At first ``Configuration/concurrency``.
    public var concurrency: Int {
        get { making.limit }
        set { making.limit = newValue }
    }

    /// What the service has done so far.
    public var statistics: PipelineStatistics { state.withLock { $0.statistics } }

    // MARK: For tests

    /// The effective priority of the work for a thumbnail; nil when there is none.
    package func workPriority(ofKey key: CacheKey) -> Priority? {
        state.withLock { state in state.board.jobs.values.first { $0.key == key }?.turn.priority.value }
    }

    /// The key of a request's thumbnail, for a source whose identity is known.
    package func key(of request: ImageRequest, identity: CacheKey) -> CacheKey { request.spec.key(for: identity) }

    /// What waits for, and has, a place at the sources.
    package var slots: WorkQueue.Counts { making.counts }

    /// How many calls of sources were given up and have not come back.
    package var stuckCalls: Int { crew.stuckCount }

    /// Whether nothing waits or runs, and nothing is remembered of what did.
    package var isIdle: Bool {
        state.withLock { $0.board.isEmpty && $0.identifications.isEmpty && $0.placeholders.isEmpty }
            && [making, lookups, identifying, placing, previewing].allSatisfy { $0.counts == .init(queued: 0, running: 0) }
    }

    /// Returns when nothing waits or runs any more.
    package func waitUntilIdle() async {
        while !isIdle {
            for queue in [identifying, placing, lookups, previewing, making] { await queue.waitUntilIdle() }
            await Task.yield()
        }
    }

    /// Starts no further call for thumbnails until told to.
    package func setSuspended(_ isSuspended: Bool) {
        if isSuspended { making.suspend() } else { making.resume() }
    }
}

extension ImagePipeline.Configuration {
    /// A cache of the service's.
    fileprivate func cache<Value: CacheableValue>(_ kind: String, of type: Value.Type) -> Cache<Value> {
        var cache = CacheConfiguration(root: root)
        cache.memoryCapacity = memoryCapacity
        cache.diskCapacity = diskCapacity
        cache.memoryPressure = memoryPressure
        cache.clock = clock
        cache.executor = ImagePipeline.looking
        cache.levels = []
        if usesMemoryCache { cache.levels.formUnion(.memory) }
        if usesDiskCache { cache.levels.formUnion(.disk) }
        return Cache(name: name.map { "\(kind)_\($0)" } ?? kind, configuration: cache)
    }

    /// The levels the service has.
    var options: CacheLevels {
        var options: CacheLevels = []
        if usesMemoryCache { options.insert(.memory) }
        if usesDiskCache { options.insert(.disk) }
        return options
    }
}
