import Foundation
import NIOCore
package import VitrineCache
package import VitrineCore
package import VitrineImaging
package import VitrinePipeline

/// Makes the images of URLs, each once, and keeps them in memory and on disk.
///
/// ```swift
/// let renderer = Renderer(configuration)
/// let rendering = try await renderer.image(for: url, format: .webp)
/// ```
///
/// - Equal requests share one load and one render. Several sizes of a source that wait together share one load and one
///   decode.
/// - A result is fresh as long as its source. Afterwards it is used while the source is asked whether it has changed,
///   for ``Configuration/staleWhileRevalidate``; a source with equal bytes confirms it without a render.
/// - Errors are kept for seconds, so that a source that fails is not asked for each request.
/// - AVIF and JPEG XL that take longer than ``Configuration/encodeDeadline`` are answered in another format, and made
///   in the background for the next request.
/// - Work whose last request is cancelled stops.
package final class Renderer: Sendable {
    /// How long errors are kept.
    package struct FailureLifetimes: Sendable, Hashable {
        /// 404 and 410. Default: 10 seconds.
        package var missing: Duration = .seconds(10)
        /// 5xx of sources, and their timeouts. Default: 5 seconds.
        package var unavailable: Duration = .seconds(5)
        /// Sources that cannot be decoded or exceed a limit, and sources that are not allowed. Default: 10 seconds.
        package var unusable: Duration = .seconds(10)

        /// Creates the defaults.
        package init() {}

        func lifetime(of error: RequestError) -> Duration? {
            switch error.status {
            case 404, 410: missing
            case 403, 413, 422: unusable
            case 502, 504: unavailable
            default: nil
            }
        }
    }

    /// The configuration.
    package struct Configuration: Sendable {
        /// The directory of the caches.
        package var cacheRoot: String
        /// The memory of results. Default: 64 MB.
        package var resultMemory: ByteCount = .megabytes(64)
        /// The memory of decoded images that tiles are cut from; 0 for none. Default: 64 MB.
        package var tileMemory: ByteCount = .megabytes(64)
        /// The disk space of results. 0 keeps none. Default: 2 GB.
        package var resultDisk: ByteCount = .gigabytes(2)
        /// The disk space of sources. 0 keeps none. Default: 2 GB.
        package var sourceDisk: ByteCount = .gigabytes(2)
        /// The sources.
        package var sources = SourceTable.Configuration()
        /// The settings of all results.
        package var settings = RenderSettings()
        /// The limits on work under way.
        package var admission = Admission.Limits()
        /// The limits of each decode.
        package var limits = ImageLimits.standard
        /// Where decoders run. It becomes the isolation of the process, `Isolation.standard`. Default: always in
        /// workers.
        package var isolation = Isolation.always
        /// Whether workers with an incomplete sandbox are refused: true sets `WorkerPool.requiresCompleteSandbox`.
        package var requiresSandbox = false
        /// How long errors are kept.
        package var failures = FailureLifetimes()
        /// How long a result whose time has passed is used while its source is asked. Default: 1 minute.
        package var staleWhileRevalidate: Duration = .seconds(60)
        /// How long a result whose time has passed is used while its source fails. Default: 1 day.
        package var staleIfError: Duration = .seconds(86_400)
        /// The least time for which a source is not asked again, even against the rules of its server. Results of
        /// sources that must not be stored are not kept in any case. Default: 5 seconds.
        package var minimumFreshness: Duration = .seconds(5)
        /// How long the encoder of a negotiated AVIF or JPEG XL may take before another format is answered; nil for no
        /// limit. Default: 500 milliseconds.
        package var encodeDeadline: Duration? = .milliseconds(500)
        /// How many of these are completed in the background at once. Default: 2.
        package var backgroundEncodes = 2
        /// How long decoding and processing may take. Default: 30 seconds.
        package var renderTimeLimit: Duration = .seconds(30)
        /// The time of day.
        package var clock = WallClock.system

        /// Creates the defaults.
        package init(cacheRoot: String) { self.cacheRoot = cacheRoot }
    }

    /// The number of processors that the process may use, by its affinity and the quota of its control group.
    static let processors = System.coreCount

    /// The configuration.
    package let configuration: Configuration
    /// The limits on work under way, and how much there is.
    package let admission: Admission
    /// The results by source, options and format.
    package var results: ValueCache<RenderedImage> { cache.values }
    /// The results that other nodes share; nil for none.
    package var remote: RemoteResults? { cache.remote }
    /// The bytes of sources under the rules of HTTP.
    package let originals: ValueCache<[UInt8]>
    /// Makes the images. Its statistics count decodes.
    package let pipeline: ImagePipeline
    let sources: SourceTable
    let groups: SourceGroups
    let work: SharedWork<CacheKey, Made>
    let cache: ResultCache
    let encoder: ResultEncoder
    let tiles: TileRenderer
    let fence: PurgeFence
    private let blocking: BlockingExecutor
    private let settingsName: String
    private let watermarkName: String

    /// The result of shared work for all its requests.
    struct Made: Sendable {
        var image: RenderedImage
        var isConfirmed = false
        var times = Rendering.Times()
        var origin = Rendering.Origin.made
        var isStale = false
    }

    /// Creates a renderer.
    package convenience init(_ configuration: Configuration) { self.init(configuration, continuing: nil) }

    /// Creates a renderer that shares the caches, places and work of another one, whose sizes and directory it keeps.
    package init(_ configuration: Configuration, continuing old: Renderer?, remote: RemoteResults? = nil) {
        self.configuration = configuration
        Isolation.standard = configuration.isolation
        // The variable VITRINE_WORKER_SANDBOX may require it as well.
        if configuration.requiresSandbox { WorkerPool.requiresCompleteSandbox = true }
        settingsName = Self.name(of: configuration.settings)
        watermarkName = Self.watermarkName(of: configuration.settings)
        fence = old?.fence ?? PurgeFence()
        blocking = old?.blocking ?? BlockingExecutor(threads: 2 * Self.processors + 2, name: "vitrine-serve")
        let results = old?.results
            ?? Self.values("Results", memory: configuration.resultMemory, disk: configuration.resultDisk, configuration)
        originals = old?.originals
            ?? Self.values("Sources", memory: 0, disk: configuration.sourceDisk, configuration)
        let admission = old?.admission ?? Admission(configuration.admission)
        self.admission = admission
        work = old?.work ?? SharedWork { admission.overloaded }
        let isSameMemory = old?.configuration.tileMemory == configuration.tileMemory
        let bands = old.flatMap { isSameMemory ? $0.tiles.bands : nil }
            ?? TileBands(capacity: configuration.tileMemory.bytes) { admission.overloaded }
        cache = ResultCache(configuration, values: results, fence: fence, remote: old?.remote ?? remote)
        encoder = ResultEncoder(configuration, cache: cache, continuing: old?.encoder)
        var making = ImagePipeline.Configuration(
            name: "Server", root: configuration.cacheRoot, concurrency: max(2, Self.processors))
        (making.usesMemoryCache, making.usesDiskCache) = (false, false)
        making.limits = configuration.limits
        making.timeLimit = configuration.renderTimeLimit
        let isSameWork = old?.configuration.limits == configuration.limits
            && old?.configuration.renderTimeLimit == configuration.renderTimeLimit
        pipeline = old.flatMap { isSameWork ? $0.pipeline : nil } ?? ImagePipeline(making)
        sources = SourceTable(
            configuration.sources, originals: originals, fence: fence, clock: configuration.clock, executor: blocking)
        tiles = TileRenderer(
            bands, configuration: configuration, sources: sources, cache: cache, encoder: encoder,
            admission: admission)
        let failures = cache.failures
        groups = SourceGroups(
            sources, pipeline: pipeline, admission: admission, settings: configuration.settings,
            limits: configuration.limits, executor: blocking
        ) { key, error, version in
            failures.add(error, for: key, version: version)
        }
    }

    private static func values<Value: CacheableValue>(
        _ name: String, memory: ByteCount, disk: ByteCount, _ configuration: Configuration
    ) -> ValueCache<Value> {
        var cache = CacheConfiguration(root: configuration.cacheRoot)
        cache.memoryCapacity = memory
        cache.diskCapacity = disk
        cache.clock = configuration.clock
        if disk.bytes == 0 { cache.levels = .memory }
        return ValueCache(name: name, configuration: cache)
    }

    // MARK: Requests

    /// Returns the image of a URL.
    ///
    /// - Parameters:
    ///   - url: The parsed URL.
    ///   - format: The format that the client prefers, where the URL names none; nil for the source's own.
    ///   - alternative: A format that the client accepts as well and that takes less time than AVIF and JPEG XL; nil
    ///     for JPEG, or PNG for translucent images.
    ///   - priority: How urgent it is.
    ///   - deadline: When the request ends with 504, or with 503 if it waited in queues most of the time; nil for
    ///     never.
    /// - Throws: ``RequestError``; 499 `cancelled` if the task was cancelled.
    package func image(
        for url: ImageURL, format: ImageFormat? = nil, alternative: ImageFormat? = nil, priority: RequestPriority = .normal,
        deadline: ContinuousClock.Instant? = nil
    ) async throws(RequestError) -> Rendering {
        for wanted in [url.options.format, format, alternative] {
            guard let wanted, !EncodingPlan.writable.contains(wanted) else { continue }
            throw RequestError(400, code: "unsupported-format", reason: "images are not written as \(wanted)")
        }
        let source = try sources.source(url.source)
        let job = RenderJob(
            kind: .image, options: url.options, format: url.options.format == nil ? format : nil, source: source,
            key: key(of: source, url.options, format))
        return try await rendering(of: job, alternative: alternative, priority: priority, deadline: deadline)
    }

    /// Returns the description of a source, as JSON of an ``ImageSummary``, which is cached like an image.
    ///
    /// Of the options, only the page and the second count.
    ///
    /// - Throws: As ``image(for:format:alternative:priority:deadline:)``.
    package func infoDocument(
        for url: ImageURL, priority: RequestPriority = .normal, deadline: ContinuousClock.Instant? = nil
    ) async throws(RequestError) -> Rendering {
        let source = try sources.source(url.source)
        var options = ProcessingOptions()
        (options.page, options.second, options.cacheBuster) =
            (url.options.page, url.options.second, url.options.cacheBuster)
        let job = RenderJob(
            kind: .summary, options: options, format: nil, source: source,
            key: source.key.appending("info-1").appending(options.resultName))
        return try await rendering(of: job, alternative: nil, priority: priority, deadline: deadline)
    }

    /// Returns the description of a source: size, format, placeholders, colours, Exif.
    ///
    /// - Throws: As ``image(for:format:alternative:priority:deadline:)``.
    package func info(
        for url: ImageURL, priority: RequestPriority = .normal, deadline: ContinuousClock.Instant? = nil
    ) async throws(RequestError) -> ImageSummary {
        let document = try await infoDocument(for: url, priority: priority, deadline: deadline)
        let data = Data(document.image.bytes.readableBytesView)
        guard let summary = try? JSONDecoder().decode(ImageSummary.self, from: data) else {
            throw RequestError(422, code: "undecodable", reason: "the image cannot be described")
        }
        return summary
    }

    /// Returns the header of a source, as JSON of a ``SourceFacts``, which is cached like an image.
    ///
    /// Of the options, only the page counts.
    ///
    /// - Throws: As ``image(for:format:alternative:priority:deadline:)``.
    package func headerDocument(
        for url: ImageURL, priority: RequestPriority = .normal, deadline: ContinuousClock.Instant? = nil
    ) async throws(RequestError) -> Rendering {
        let source = try sources.source(url.source)
        var options = ProcessingOptions()
        options.page = url.options.page
        let job = RenderJob(
            kind: .header, options: options, format: nil, source: source,
            key: source.key.appending("header-1").appending(options.resultName))
        return try await rendering(of: job, alternative: nil, priority: priority, deadline: deadline)
    }

    /// Where the result of a URL is kept.
    struct ResultPlace: Sendable {
        let key: CacheKey
        /// The key of a source of the disk; nil for other sources.
        let localSource: CacheKey?
    }

    /// Where the result of a URL is kept, for ``freshResult(at:)``.
    func place(for url: ImageURL, format: ImageFormat?) throws(RequestError) -> ResultPlace {
        let source = try sources.source(url.source)
        return ResultPlace(key: key(of: source, url.options, format), localSource: source.isLocal ? source.key : nil)
    }

    /// The result if it is in memory and fresh. Does not wait.
    func freshResult(at place: ResultPlace) -> RenderedImage? {
        guard var image = results[place.key], let end = freshUntil(image, place) else { return nil }
        image.source.freshUntil = end
        return image
    }

    /// The result if it is on disk and fresh, and if the system has its bytes in memory. Does not wait.
    ///
    /// - Parameter known: The head that the last result of the place had.
    func freshResidentResult(
        at place: ResultPlace, known: StoredHead?
    ) -> (head: StoredHead, image: RenderedImage)? {
        guard configuration.resultDisk.bytes > 0 else { return nil }
        return results.withResidentBytes(forKey: place.key) { bytes in
            let found = known.flatMap { $0.begins(bytes) ? $0 : nil } ?? (try? StoredHead(bytes))
            guard let head = found, let end = freshUntil(head.image, place) else { return nil }
            var image = head.image.holding(ByteBuffer(bytes: bytes[head.count...]))
            image.source.freshUntil = end
            return ((head, image), image)
        }
    }

    /// Until when a result is fresh; nil if it is not. That of a file is, as long as the file counts as unchanged.
    private func freshUntil(_ image: RenderedImage, _ place: ResultPlace) -> Duration? {
        if image.source.freshUntil > configuration.clock.now { return image.source.freshUntil }
        return place.localSource.flatMap { sources.end(ofVersion: image.source.version, of: $0) }
    }

    private func key(
        of source: SourceTable.Source, _ options: ProcessingOptions, _ format: ImageFormat?
    ) -> CacheKey {
        let format = options.format == nil ? format?.rawValue ?? "own" : "named"
        var name = options.resultName
        if options.watermark != nil { name += "/" + watermarkName }
        return source.key.appending("image-1").appending(name).appending(format).appending(settingsName)
    }

    /// The settings that change results, so that another configuration makes them anew.
    private static func name(of settings: RenderSettings) -> String {
        let formats = settings.formatQuality.map { "\($0.key)\($0.value)" }.sorted().joined(separator: ",")
        let flags = [settings.stripsMetadata, settings.keepsCopyright, settings.isProgressive].map { $0 ? "1" : "0" }
        // Names of earlier results stay what they were.
        let isStandard = settings.maximumSide == ImageLimits.standard.maximumOutputSide
        return "q\(settings.quality),\(formats),\(flags.joined())" + (isStandard ? "" : ",s\(settings.maximumSide)")
    }

    private static func watermarkName(of settings: RenderSettings) -> String {
        guard let mark = settings.watermark else { return "none" }
        let version = mark.withUnsafeBytes { ContentVersion.text(of: Array($0)) }
        return "\(mark.size),\(version),\(settings.watermarkOpacity)"
    }

    private func rendering(
        of job: RenderJob, alternative: ImageFormat?, priority: RequestPriority, deadline: ContinuousClock.Instant?
    ) async throws(RequestError) -> Rendering {
        let stored = await storedRendering(of: job, alternative)
        let now = configuration.clock.now
        if let stored, stored.image.source.freshUntil > now { return stored }
        if let stored, !job.source.isLocal, now - stored.image.source.freshUntil <= configuration.staleWhileRevalidate {
            refresh(job, stored.image)
            var stale = stored
            stale.isStale = true
            return stale
        }
        do throws(RequestError) {
            if let failure = await recentFailure(of: job) { throw failure }
            let job = job.beginning(at: fence)
            let key = workKey(of: job, alternative)
            let (made, isShared) = try await work.value(for: key, priority: priority, deadline: deadline) {
                [self] (priority: SharedPriority) async throws(RequestError) in
                try await make(job, stored: stored?.image, alternative: alternative, priority: priority)
            }
            let origin: Rendering.Origin = made.isConfirmed ? .confirmed : isShared ? .coalesced : made.origin
            return Rendering(image: made.image, origin: origin, isStale: made.isStale, times: made.times)
        } catch {
            guard var stale = stored, error.status >= 500,
                now - stale.image.source.freshUntil <= configuration.staleIfError
            else { throw error }
            stale.isStale = true
            return stale
        }
    }

    /// The result in memory or on disk, whether its time has passed or not.
    private func storedRendering(of job: RenderJob, _ alternative: ImageFormat?) async -> Rendering? {
        if let image = results[job.key] { return Rendering(image: image, origin: .memory) }
        if job.format == .avif || job.format == .jxl,
            let image = results[job.provisionalKey(alternative)], image.source.freshUntil > configuration.clock.now
        {
            return Rendering(image: image, origin: .memory)
        }
        guard configuration.resultDisk.bytes > 0 else { return nil }
        // A disk that cannot be read is a miss.
        let image = (try? await results.value(forKey: job.key, depth: .disk)) ?? nil
        return image.map { Rendering(image: $0, origin: .disk) }
    }

    /// An error of the last seconds that the job would have as well. A file that was replaced since has none.
    private func recentFailure(of job: RenderJob) async -> RequestError? {
        guard let failure = keptFailure(of: job) else { return nil }
        guard job.source.isLocal, let version = (try? await sources.localVersion(of: job.source)) ?? nil else {
            return failure.error
        }
        let isOfAnother = failure.version.map { $0 != version } ?? (failure.error == .sourceNotFound)
        return isOfAnother ? nil : failure.error
    }

    private func keptFailure(of job: RenderJob) -> RecentFailures.Failure? {
        if let failure = cache.failures.failure(for: job.source.key) { return failure }
        // Bytes that are answered as they are need not be an image.
        if !job.options.isRaw || job.kind == .summary {
            let passed = job.kind == .image ? Array(job.options.skipProcessing) : []
            for key in [job.source.contentKey, job.contentKey] {
                if let failure = cache.failures.failure(for: key, excluding: passed) { return failure }
            }
        }
        return cache.failures.failure(for: job.key)
    }

    /// Asks in the background whether a source has changed.
    private func refresh(_ job: RenderJob, _ stored: RenderedImage) {
        guard keptFailure(of: job) == nil, !encoder.background.isRunning(job.key) else { return }
        let job = job.beginning(at: fence)
        work.start(for: job.key.appending("refresh"), priority: .low) {
            [self] (priority: SharedPriority) async throws(RequestError) in
            try await make(job, stored: stored, alternative: nil, priority: priority, isRefresh: true)
        }
    }

    // MARK: Care

    /// Work under way: results that are being made, and sources that are being loaded.
    package var workCount: (results: Int, sources: Int) { (work.count, groups.count) }

    /// The requests that wait for the result of a URL.
    package func waiters(for url: ImageURL, format: ImageFormat? = nil) throws(RequestError) -> Int {
        let source = try sources.source(url.source)
        let epoch = fence.epoch(of: source.tags), key = key(of: source, url.options, format)
        return work.waiters(for: epoch == 0 ? key : key.appending("purge \(epoch)"))
    }

    /// Returns when no band is on its way to the disk.
    package func whenTilesAreStored() async { await tiles.bands.whenStored() }

    /// Cancels all work, whose requests end with 503, and returns when all results are on disk.
    package func shutDown() async {
        work.cancelAll()
        tiles.bands.work.cancelAll()
        tiles.bands.surveys.cancelAll()
        try? await results.flush()
        try? await originals.flush()
    }
}
