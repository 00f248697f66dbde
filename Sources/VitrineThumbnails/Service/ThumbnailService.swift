import Logging
public import VitrineCache
public import VitrineCore
public import VitrineImaging

/// Thumbnails of anything: made once, the most urgent first, and kept in memory and on disk.
///
/// ```swift
/// let service = ThumbnailService()
/// let image = try await service.thumbnail(for: ImageSource(path: path), size: PixelSize(256))
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
/// ### Asking
/// - ``thumbnail(for:size:scale:mode:priority:)``
/// - ``enqueue(_:)-(ThumbnailRequest)``
/// - ``enqueue(_:)-(ThumbnailGroup)``
/// - ``cachedThumbnail(for:size:scale:mode:allowsUpscaling:)``
///
/// ### On the calling thread
/// - ``execute(_:)``
/// - ``executeIfCachedOnDiskOrEnqueue(_:)``
///
/// ### Ahead of time
/// - ``precache(_:size:scale:mode:allowsUpscaling:)``
///
/// ### Caches
/// - ``hasMemoryCache(for:)``
/// - ``hasDiskCache(for:)``
/// - ``clear(_:)``
/// - ``thumbnails``
/// - ``placeholders``
public final class ThumbnailService: Sendable {
    /// How it was configured.
    public let configuration: Configuration
    /// The thumbnails in memory and on disk, for direct access (R98).
    public let thumbnails: Cache<Image>
    /// The placeholders in memory and on disk, used with ``Configuration/cachesPlaceholders``.
    public let placeholders: Cache<Image>

    struct State {
        var board = ThumbnailBoard()
        /// Requests whose source is being asked who it is.
        var identifications: [ObjectIdentifier: (id: Int, turn: Turn)] = [:]
        var placeholders: [ObjectIdentifier: FlightSubscription<CacheKey, Image?>] = [:]
        var statistics = ThumbnailStatistics()
    }

    /// The threads that look at the caches. Not the shared ones, on which callers may wait for what is done here.
    static let looking = BlockingExecutor(threads: max(2, ProcessorCount.active), name: "vitrine-look")
    /// The threads that end requests where no other may block.
    static let ending = BlockingExecutor(threads: 2, name: "vitrine-end")

    let state = Locked(State())
    let siblings = SiblingIndex()
    let crew: Crew
    /// Calls for thumbnails.
    let making: WorkQueue
    /// Looks at the caches.
    let lookups: WorkQueue
    /// Calls for identities.
    let identifying: WorkQueue
    /// Calls for placeholders.
    let placing: WorkQueue
    let placeholderFlights = SingleFlight<CacheKey, Image?>()
    let log = Log.logger("thumbnails")

    /// A service. Opens nothing: that happens when the caches are first used.
    public init(_ configuration: Configuration = .standard) {
        var configuration = configuration
        configuration.concurrency = max(1, configuration.concurrency)
        self.configuration = configuration
        thumbnails = configuration.cache("Thumbnails")
        placeholders = configuration.cache("Placeholders")
        crew = Crew(
            idleLimit: configuration.concurrency, stuckLimit: configuration.maximumStuckCalls,
            timeLimit: configuration.timeLimit, grace: configuration.grace)
        making = WorkQueue(
            limit: configuration.concurrency, reserved: configuration.concurrency > 1 ? [.low: 1] : [:])
        lookups = WorkQueue(limit: Self.looking.threads)
        identifying = WorkQueue(limit: 4)
        placing = WorkQueue(limit: 2)
    }

    // MARK: Asking

    /// Takes a request in. One that was enqueued before, has ended, or belongs to a group is passed over, with a word
    /// in the log.
    ///
    /// A thumbnail that is in memory is told before this returns, unless the source first has to be asked who it is and
    /// the caller is on the main actor or in a task, where nothing may block.
    public func enqueue(_ request: ThumbnailRequest) {
        guard request.begin(in: self, byGroup: false) else {
            return log.warning("A request was not enqueued: it was before, has ended, or belongs to a group")
        }
        admit(request)
    }

    /// Takes the requests of a group in, by its own rules (R99).
    public func enqueue(_ group: some ThumbnailGroup) { GroupRun(group, self).proceed() }

    /// The thumbnail of a source.
    ///
    /// - Parameters:
    ///   - source: What it is made from.
    ///   - size: The box, in points.
    ///   - scale: Pixels for each point.
    ///   - mode: How the picture is brought to the box.
    ///   - priority: How urgent it is.
    /// - Throws: ``ThumbnailError``; `CancellationError` when the calling task is cancelled, which is the end of the
    ///   request.
    public func thumbnail(
        for source: any ThumbnailSource, size: PixelSize, scale: Double = 1, mode: ImageResizer.Mode = .aspectFit,
        priority: Priority = .normal
    ) async throws -> Image {
        try Task.checkCancellation()
        let request = ThumbnailRequest(source, size: size, scale: scale, mode: mode)
        request.queuePriority = priority
        enqueue(request)
        return try await withTaskCancellationHandler {
            try await request.value
        } onCancel: {
            request.cancel()
        }
    }

    /// How many thumbnails are made at once, for the time being; at least 1. Fewer leave room for something that has to
    /// stay smooth, such as a list that is scrolled. What runs goes on. At first ``Configuration/concurrency``.
    public var concurrency: Int {
        get { making.limit }
        set { making.limit = newValue }
    }

    /// What the service has done so far.
    public var statistics: ThumbnailStatistics { state.withLock { $0.statistics } }

    // MARK: For tests

    /// The effective priority of the work for a thumbnail; nil when there is none.
    package func workPriority(ofKey key: CacheKey) -> Priority? {
        state.withLock { state in state.board.jobs.values.first { $0.key == key }?.turn.priority.value }
    }

    /// The key of a request's thumbnail, for a source whose identity is known.
    package func key(of request: ThumbnailRequest, identity: CacheKey) -> CacheKey { request.spec.key(for: identity) }

    /// What waits for, and has, a place at the sources.
    package var slots: WorkQueue.Counts { making.counts }

    /// How many calls of sources were given up and have not come back.
    package var stuckCalls: Int { crew.stuckCount }

    /// Whether nothing waits or runs, and nothing is remembered of what did.
    package var isIdle: Bool {
        state.withLock { $0.board.isEmpty && $0.identifications.isEmpty && $0.placeholders.isEmpty }
            && [making, lookups, identifying, placing].allSatisfy { $0.counts == .init(queued: 0, running: 0) }
    }

    /// Returns when nothing waits or runs any more.
    package func waitUntilIdle() async {
        while !isIdle {
            for queue in [identifying, placing, lookups, making] { await queue.waitUntilIdle() }
            await Task.yield()
        }
    }

    /// Starts no further call for thumbnails until told to.
    package func setSuspended(_ isSuspended: Bool) {
        if isSuspended { making.suspend() } else { making.resume() }
    }
}

extension ThumbnailService.Configuration {
    /// A cache of the service's.
    fileprivate func cache(_ kind: String) -> Cache<Image> {
        var cache = CacheConfiguration(root: root)
        cache.memoryCapacity = memoryCapacity
        cache.diskCapacity = diskCapacity
        cache.memoryPressure = memoryPressure
        cache.executor = ThumbnailService.looking
        cache.levels = []
        if usesMemoryCache { cache.levels.formUnion(.memory) }
        if usesDiskCache { cache.levels.formUnion(.disk) }
        return Cache(name: name.map { "\(kind)_\($0)" } ?? kind, configuration: cache)
    }

    /// The levels the service has.
    var options: ThumbnailCacheOptions {
        var options: ThumbnailCacheOptions = []
        if usesMemoryCache { options.insert(.memory) }
        if usesDiskCache { options.insert(.disk) }
        return options
    }
}
