#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import Logging
public import VitrineCache
import VitrineCore
public import VitrineImaging

/// Loads images of any source, and caches them in memory and on disk.
///
/// ```swift
/// let image = try await ImagePipeline.shared.image(for: url)
/// let small = try await ImagePipeline.shared.image(for: ImageRequest(.file("lake.jpg"), resizing: .fit(256)))
/// ```
///
/// - **Identical requests are coalesced.** Requests of one source, size and mode share the work. Requests of one source
///   at several sizes that wait together are one call of the source. An image may be derived from a cached one with at
///   least twice the pixels.
/// - **Urgent requests come first.** Work has the highest priority of its requests, at any moment. At most
///   ``Configuration/concurrency`` calls of sources run at once. Cache lookups do not wait for these.
/// - **Cancellation reaches the work.** The last request that is cancelled stops the work and frees its slot.
/// - **A source cannot block the pipeline.** If it throws, hangs or does not stop, only its own requests
///   fail, and the next source gets its slot.
/// - **No stale images.** The identity of a source changes with its content. Results of the old content are left
///   to eviction.
///
/// Requests retain their pipeline. A pipeline without other references works until the last request has ended.
///
/// ## Topics
/// ### Images
/// - ``image(for:)``
/// - ``start(_:)-(ImageRequest)``
/// - ``start(_:resizing:)``
/// - ``start(_:)-(ImageTaskSequence)``
/// - ``cachedImage(for:)``
/// ### Animations and clips
/// - ``animation(for:)``
/// - ``clip(for:)``
/// ### On the calling thread
/// - ``execute(_:)``
/// ### Ahead of time
/// - ``prefetch(_:)``
/// ### Caches
/// - ``contains(_:at:)``
/// - ``removeAll(levels:)``
/// - ``cache``
/// - ``originals``
public final class ImagePipeline: Sendable {
    /// The configuration.
    public let configuration: Configuration
    /// The cache of images, for direct access.
    public let cache: ValueCache<PixelImage>
    /// The cache of the previews that sources have, used with ``Configuration/cachesPreviews``.
    package let sourcePreviews: ValueCache<PixelImage>
    /// The original bytes of URLs, kept on disk under the rules of HTTP.
    public let originals: ValueCache<Data>
    /// The cache of clips.
    package let clips: ValueCache<Data>

    struct State {
        var scheduler = RequestScheduler()
        /// Requests that wait for the identity of their source.
        var identifications: [ObjectIdentifier: SourceCaller.Call] = [:]
        var statistics = PipelineStatistics()
    }

    /// The threads for cache lookups. Callers may wait for them on the shared threads, so these are separate.
    static let lookupExecutor = BlockingExecutor(threads: max(2, ProcessorCount.active), name: "vitrine-look")
    /// The threads that end requests where no other may block.
    static let endingExecutor = BlockingExecutor(threads: 2, name: "vitrine-end")

    let state = Locked(State())
    let store: ResultStore
    let caller: SourceCaller
    let sourcePreviewMaker: SourcePreviewMaker
    let transferPreviewMaker: TransferPreviewMaker
    let animationOpener: AnimationOpener
    private static let current = Locked<ImagePipeline?>(nil)

    /// The pipeline that the program shares. It may be replaced at any time: running work stays with the previous one.
    /// Default: one with the default configuration.
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

    /// Cache lookups.
    let lookups: WorkQueue
    let log = Log.logger("pipeline")

    /// Creates a pipeline. Its caches are opened when they are first used.
    public init(_ configuration: Configuration = Configuration()) {
        var configuration = configuration
        configuration.concurrency = max(1, configuration.concurrency)
        self.configuration = configuration
        cache = configuration.cache("Thumbnails", of: PixelImage.self)
        sourcePreviews = configuration.cache("SourcePreviews", of: PixelImage.self)
        originals = configuration.cache("Originals", of: Data.self)
        clips = configuration.cache("Clips", of: Data.self)
        store = ResultStore(cache, configuration: configuration, log: log)
        caller = SourceCaller(configuration)
        sourcePreviewMaker = SourcePreviewMaker(sourcePreviews, configuration: configuration, caller: caller)
        transferPreviewMaker = TransferPreviewMaker(limits: configuration.limits, log: log)
        animationOpener = AnimationOpener(limits: configuration.limits)
        lookups = WorkQueue(limit: Self.lookupExecutor.threads)
    }

    // MARK: Requests

    /// Starts a request.
    ///
    /// The task has ended when this returns if the image is in memory and the identity of the source is known. Finding
    /// the identity of a file may block, so the main actor and tasks do not wait for it.
    ///
    /// - Returns: The task, which need not be kept: the work continues without it.
    @discardableResult
    public func start(_ request: ImageRequest) -> ImageTask {
        let task = ImageTask(request)
        start(task)
        return task
    }

    /// Starts a request for the image at a URL.
    ///
    /// - Parameters:
    ///   - url: An image, or a document or video for its first page or poster.
    ///   - resizing: The rule for the size of the result. Default: the size of the image.
    /// - Returns: The task, as of ``start(_:)-(ImageRequest)``.
    @discardableResult
    public func start(_ url: URL, resizing: ImageResizer = .none) -> ImageTask { start(ImageRequest(url, resizing: resizing)) }

    /// Starts a task that was made before. Tasks that were started before, have ended, or belong to a group are ignored
    /// with a warning.
    public func start(_ task: ImageTask) {
        guard task.begin(in: self, byGroup: false) else {
            return log.warning("A task was not started: it was started before, has ended, or belongs to a group")
        }
        admit(task)
    }

    /// Starts the tasks of a sequence, one after another.
    public func start(_ sequence: ImageTaskSequence) { run(sequence) }

    /// Starts the tasks of a group, by the group's own rules.
    package func run(_ group: some ImageTaskGroup) { GroupRun(group, self).proceed() }

    /// Returns the image of a request.
    ///
    /// - Throws: ``ImagePipelineError``; `CancellationError` when the calling task is cancelled, which cancels the
    ///   request.
    public func image(for request: ImageRequest) async throws -> PixelImage {
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
    ///   - url: An image, or a document or video for its first page or poster.
    ///   - resizing: The rule for the size of the result. Default: the size of the image.
    /// - Throws: As ``image(for:)``.
    public func image(for url: URL, resizing: ImageResizer = .none) async throws -> PixelImage {
        try await image(for: ImageRequest(url, resizing: resizing))
    }

    /// The number of calls of sources at once; at least 1. A lower number leaves processor time for other work, such as
    /// scrolling. Running calls continue. Initially ``Configuration/concurrency``.
    public var concurrency: Int {
        get { caller.making.limit }
        set { caller.making.limit = newValue }
    }

    /// Statistics since the pipeline was created.
    public var statistics: PipelineStatistics { state.withLock { $0.statistics } }

    /// Ends the helper programs that draw pages and frames and have nothing to do, with the documents they have open.
    /// Later calls start new ones. Without this call they end after 30 idle seconds.
    public static func endIdleHelpers() {
        PDFWorkers.shared.endIdleWorkers()
        VideoWorkers.shared.endIdleWorkers()
    }

    // MARK: For tests

    /// The effective priority of the work for an image; nil without work.
    package func workPriority(ofKey key: CacheKey) -> RequestPriority? {
        state.withLock { state in state.scheduler.jobs.values.first { $0.key == key }?.slot.priority.value }
    }

    /// The key of a request's image, for a source whose identity is known.
    package func key(of request: ImageRequest, identity: CacheKey) -> CacheKey { request.spec.key(for: identity) }

    /// The numbers of calls that wait for, and occupy, a slot.
    package var slots: WorkQueue.Counts { caller.making.counts }

    /// The number of abandoned calls of sources that have not returned.
    package var stuckCalls: Int { caller.pool.stuckCount }

    /// Whether nothing waits or runs, and no state of earlier work is left.
    package var isIdle: Bool {
        state.withLock { $0.scheduler.isEmpty && $0.identifications.isEmpty } && sourcePreviewMaker.isIdle
            && queues.allSatisfy { $0.counts == .init(queued: 0, running: 0) }
    }

    /// Returns when the pipeline is idle.
    package func waitUntilIdle() async {
        while !isIdle {
            for queue in queues { await queue.waitUntilIdle() }
            await Task.yield()
        }
    }

    private var queues: [WorkQueue] { [caller.identifying, caller.placing, lookups, transferPreviewMaker.queue, caller.making] }

    /// Suspends or resumes calls of sources for images.
    package func setSuspended(_ isSuspended: Bool) {
        if isSuspended { caller.making.suspend() } else { caller.making.resume() }
    }
}

extension ImagePipeline.Configuration {
    /// Creates a cache of the pipeline.
    fileprivate func cache<Value: CacheableValue>(_ kind: String, of type: Value.Type) -> ValueCache<Value> {
        var cache = CacheConfiguration(root: root)
        cache.memoryCapacity = memoryCapacity
        cache.diskCapacity = diskCapacity
        cache.memoryPressure = memoryPressure
        cache.clock = clock
        cache.mapsDatabase = mapsDiskCache
        cache.executor = ImagePipeline.lookupExecutor
        cache.levels = []
        if usesMemoryCache { cache.levels.formUnion(.memory) }
        if usesDiskCache { cache.levels.formUnion(.disk) }
        return ValueCache(name: name.map { "\(kind)_\($0)" } ?? kind, configuration: cache)
    }

    /// The levels that the pipeline uses.
    var options: CacheLevels {
        var options: CacheLevels = []
        if usesMemoryCache { options.insert(.memory) }
        if usesDiskCache { options.insert(.disk) }
        return options
    }
}

/// Statistics of an ``ImagePipeline`` since its creation.
public struct PipelineStatistics: Sendable, Hashable {
    /// Requests served by a source; several may have shared one call.
    public var made = 0
    /// Requests served from memory.
    public var fromMemory = 0
    /// Requests served from disk.
    public var fromDisk = 0
    /// Requests served by reducing a larger image of the same source.
    package var fromDerived = 0
    /// Requests served by thumbnails that programs share, as those of the desktop.
    package var fromShared = 0
    /// Requests that were cancelled.
    public var cancelled = 0
    /// Requests that ended with an error.
    public var failed = 0
    /// Loads of remote sources that were started.
    package var loads = 0
    /// Calls of sources that were started.
    public var calls = 0
    /// Results that were discarded, as their last request had been cancelled.
    package var discarded = 0

    init() {}
}

/// The origin of an image.
enum Origin: Sendable {
    case source
    case memory
    case disk
    case derived
    case shared
}

extension PipelineStatistics {
    mutating func count(_ origin: Origin) {
        switch origin {
        case .source: made += 1
        case .memory: fromMemory += 1
        case .disk: fromDisk += 1
        case .derived: fromDerived += 1
        case .shared: fromShared += 1
        }
    }

    mutating func count(_ error: ImagePipelineError) {
        if error.isCancellation { cancelled += 1 } else { failed += 1 }
    }
}
