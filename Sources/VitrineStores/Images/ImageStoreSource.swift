public import VitrineCache
public import VitrineCore
public import VitrineImaging
public import VitrinePipeline

/// A picture of a store as a source of thumbnails, for loading at any size by a `ImagePipeline`: at the service's
/// priorities, cancellable, made once for all who ask, and kept in its caches as far as a request wants that.
///
/// <!-- prelude: let store = ImageStore() -->
/// ```swift
/// var request = ImageRequest(try store.source("Bodensee.jpg"), size: .fit(400), scale: 2)
/// request.cacheLevels = .memory               // nothing on disk beside the store
/// pipeline.start(request)
///     .onPreview { view.image = $0 }          // the store's thumbnail
///     .onImage { view.show($0) }
/// ```
///
/// Sizes up to half of the stored thumbnail's are made from that. Calls block: make them from a thread that may block.
public struct ImageStoreSource: ImageSource {
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
    public func identity() throws(ImagePipelineError) -> CacheKey { try original.identity() }

    /// The store's thumbnail, if there is one of this picture.
    public func placeholder(_ request: RenderRequest) throws -> Image? {
        guard let small = store.blocking.pairedThumbnail(name, path) else { return try original.placeholder(request) }
        var request = request
        request.allowsUpscaling = false
        return try ImageFileSource(path: small).image(request)
    }

    public func image(_ request: RenderRequest) throws -> Image { try source(for: [request]).image(request) }

    public func images(_ requests: [RenderRequest]) throws -> [Image] {
        try source(for: requests).images(requests)
    }

    private var original: ImageFileSource { ImageFileSource(path: path) }

    /// The thumbnail's file where all requests are as good from that.
    private func source(for requests: [RenderRequest]) -> ImageFileSource {
        let blocking = store.blocking
        guard let small = blocking.pairedThumbnail(name, path),
            requests.allSatisfy({ blocking.shows(small, insteadOf: path, at: $0.resizer) })
        else { return original }
        return ImageFileSource(path: small)
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

    /// Returns the picture at a size, made by a pipeline.
    ///
    /// - Parameters:
    ///   - name: The picture's.
    ///   - size: The size of the result, in points.
    ///   - scale: Pixels for each point. Default 1.
    ///   - cacheLevels: Which levels of the pipeline's cache may be used. Default: both.
    ///   - priority: How urgent it is. Default normal.
    ///   - pipeline: Makes and keeps the image. Default: the shared one.
    /// - Throws: ``StoreError/invalidName(_:reason:)`` and ``StoreError/notFound(name:)``; `ImagePipelineError`;
    ///   `CancellationError` when the task is cancelled, which ends the work if nobody else waits for it.
    public func image(
        _ name: String, size: ImageResizer, scale: Double = 1, cacheLevels: CacheLevels = .all,
        priority: Priority = .normal, by pipeline: ImagePipeline = .shared
    ) async throws -> Image {
        let source = try source(name)
        guard await exists(name) else { throw StoreError.notFound(name: name) }
        var request = ImageRequest(source, size: size, scale: scale, priority: priority)
        request.cacheLevels = cacheLevels
        return try await pipeline.image(for: request)
    }
}
