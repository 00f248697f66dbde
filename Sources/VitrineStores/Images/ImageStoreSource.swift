public import VitrineCore
public import VitrineImaging
public import VitrineThumbnails

/// A picture of a store as a source of thumbnails, for loading at any size by a `ThumbnailService`: at the service's
/// priorities, cancellable, made once for all who ask, and kept in its caches as far as a request wants that.
///
/// ```swift
/// let request = ThumbnailRequest(try store.source("Bodensee.jpg"), size: PixelSize(400), scale: 2)
///     .onPlaceholder { view.image = $0 }      // the store's thumbnail
///     .onThumbnail { view.show($0) }
/// request.cacheOptions = .memory              // nothing on disk beside the store
/// service.enqueue(request)
/// ```
///
/// Sizes up to half of the stored thumbnail's are made from that. Calls block: make them from a thread that may block.
public struct ImageStoreSource: ThumbnailSource {
    /// Where the picture is.
    public let store: ImageStore
    /// What it is found by.
    public let name: String
    private let path: String

    /// A picture of a store, which need not be there yet.
    ///
    /// - Throws: ``StoreError/invalidName(_:reason:)``.
    public init(_ store: ImageStore, name: String) throws(StoreError) {
        self.store = store
        self.name = name
        path = try store.path(of: name)
    }

    /// The file's own identity: another one as soon as the picture is replaced or edited.
    public func identity() throws(ThumbnailError) -> CacheKey { try original.identity() }

    /// The store's thumbnail, if there is one of this picture.
    public func placeholder(_ request: RenderRequest) throws -> Image? {
        guard let small = store.blocking.pairedThumbnail(name, path) else { return try original.placeholder(request) }
        var request = request
        request.allowsUpscaling = false
        return try ImageSource(path: small).thumbnail(request)
    }

    public func thumbnail(_ request: RenderRequest) throws -> Image { try source(for: [request]).thumbnail(request) }

    public func thumbnails(_ requests: [RenderRequest]) throws -> [Image] {
        try source(for: requests).thumbnails(requests)
    }

    private var original: ImageSource { ImageSource(path: path) }

    /// The thumbnail's file where all requests are as good from that.
    private func source(for requests: [RenderRequest]) -> ImageSource {
        let blocking = store.blocking
        guard let small = blocking.pairedThumbnail(name, path),
            requests.allSatisfy({ blocking.shows(small, insteadOf: path, at: $0.resizer) })
        else { return original }
        return ImageSource(path: small)
    }
}

extension ImageStore {
    /// A picture as a source of thumbnails; see ``ImageStoreSource``.
    ///
    /// - Throws: ``StoreError/invalidName(_:reason:)``. Whether there is a picture by this name shows when the source
    ///   is used.
    public func source(_ name: String) throws(StoreError) -> ImageStoreSource {
        try ImageStoreSource(self, name: name)
    }

    /// The picture at a size, by a service: made once, however many ask, and kept in the service's caches where asked.
    ///
    /// - Parameters:
    ///   - name: The picture's.
    ///   - size: The box, in points.
    ///   - scale: Pixels for each point. Default 1.
    ///   - mode: How the picture is brought to the box. Default: fitted into it.
    ///   - cacheOptions: Which levels of the service's caches may be used. Default: both.
    ///   - priority: How urgent it is. Default normal.
    ///   - service: Whose threads and caches are used.
    /// - Throws: ``StoreError/invalidName(_:reason:)`` and ``StoreError/notFound(name:)``; `ThumbnailError`;
    ///   `CancellationError` when the task is cancelled, which ends the work if nobody else waits for it.
    public func image(
        _ name: String, size: PixelSize, scale: Double = 1, mode: ImageResizer.Mode = .aspectFit,
        cacheOptions: ThumbnailCacheOptions = .all, priority: Priority = .normal, by service: ThumbnailService
    ) async throws -> Image {
        let source = try source(name)
        guard await exists(name) else { throw StoreError.notFound(name: name) }
        try Task.checkCancellation()
        let request = ThumbnailRequest(source, size: size, scale: scale, mode: mode)
        request.queuePriority = priority
        request.cacheOptions = cacheOptions
        service.enqueue(request)
        return try await withTaskCancellationHandler {
            try await request.value
        } onCancel: {
            request.cancel()
        }
    }
}
