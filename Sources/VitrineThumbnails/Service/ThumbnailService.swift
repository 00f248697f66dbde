import Logging
public import VitrineCache
public import VitrineCore
public import VitrineImaging

/// Thumbnails of anything, made once, by urgency, and kept in memory and on disk.
///
/// ```swift
/// let service = ThumbnailService()
/// let image = try await service.thumbnail(for: ImageSource(path: path), size: PixelSize(256))
/// ```
public final class ThumbnailService: Sendable {
    /// How it was configured.
    public let configuration: Configuration
    /// The thumbnails in memory and on disk, for direct access (R98).
    public let thumbnails: Cache<Image>
    /// The placeholders in memory and on disk, used with ``Configuration/cachesPlaceholders``.
    public let placeholders: Cache<Image>

    let log = Log.logger("thumbnails")

    /// A service. Opens nothing: that happens when the caches are first used.
    public init(_ configuration: Configuration = .standard) {
        self.configuration = configuration
        thumbnails = Cache(name: "Thumbnails", configuration: CacheConfiguration(root: configuration.root))
        placeholders = Cache(name: "Placeholders", configuration: CacheConfiguration(root: configuration.root))
    }

    /// Takes a request in. One that was enqueued before, or belongs to a group, is passed over with a word in the log.
    public func enqueue(_ request: ThumbnailRequest) {
        guard request.begin(in: self, byGroup: false) else { return }
        BlockingExecutor.shared.submit {
            request.finish(
                Result { try request.source.thumbnail(request.spec.render(limits: .standard, cancellation: .init())) }
                    .mapError { ThumbnailError(thrown: $0, source: "source") })
        }
    }

    /// Takes the requests of a group in, by its own rules (R99).
    public func enqueue(_ group: some ThumbnailGroup) {}

    /// The thumbnail of a source.
    ///
    /// - Throws: ``ThumbnailError``; `CancellationError` when the calling task is cancelled.
    public func thumbnail(
        for source: any ThumbnailSource, size: PixelSize, scale: Double = 1, mode: ImageResizer.Mode = .aspectFit,
        priority: Priority = .normal
    ) async throws -> Image {
        let request = ThumbnailRequest(source, size: size, scale: scale, mode: mode)
        request.queuePriority = priority
        enqueue(request)
        return try await withTaskCancellationHandler {
            try await request.value
        } onCancel: {
            request.cancel()
        }
    }

    /// The thumbnail in memory, at once; nil if there is none, or its source is not known without blocking.
    public func cachedThumbnail(
        for source: any ThumbnailSource, size: PixelSize, scale: Double = 1, mode: ImageResizer.Mode = .aspectFit,
        allowsUpscaling: Bool = true
    ) -> Image? { nil }

    /// Makes a thumbnail on the calling thread, which may block (R95).
    @discardableResult
    public func execute(_ request: ThumbnailRequest) throws(ThumbnailError) -> Image {
        enqueue(request)
        return try request.blocking.value()
    }

    /// Executes a request whose thumbnail is on disk, and enqueues others (R95). Blocks.
    public func executeIfCachedOnDiskOrEnqueue(_ request: ThumbnailRequest) { enqueue(request) }

    /// Whether a request's thumbnail is on disk, and the request and the service may use it.
    public func hasDiskCache(for request: ThumbnailRequest) async -> Bool { false }

    /// Whether a request's thumbnail is in memory, and the request and the service may use it.
    public func hasMemoryCache(for request: ThumbnailRequest) async -> Bool { false }

    /// Puts thumbnails on disk, at the lowest priority (R107).
    public func precache(
        _ sources: some Sequence<any ThumbnailSource>, size: PixelSize, scale: Double = 1,
        mode: ImageResizer.Mode = .aspectFit, allowsUpscaling: Bool = true
    ) -> Precaching { Precaching(total: 0) }

    /// Removes thumbnails and placeholders from the levels whose write bits are given.
    public func clear(_ levels: CacheLevels = .all) async throws(CacheError) {
        try await thumbnails.removeAll(levels: levels)
        try await placeholders.removeAll(levels: levels)
    }

    /// What the service has done so far.
    public var statistics: ThumbnailStatistics { ThumbnailStatistics() }

    func priorityDidChange(_ request: ThumbnailRequest) {}
    func leave(_ request: ThumbnailRequest) {}
    func makeWantedPlaceholder(of request: ThumbnailRequest) {}
}
