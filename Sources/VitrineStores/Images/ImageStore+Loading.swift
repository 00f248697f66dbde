public import VitrineCache
public import VitrineCore
public import VitrineImaging
public import VitrinePipeline

extension ImageStore.Blocking {
    /// The blocking form of ``ImageStore/image(_:as:)``.
    public func image(_ name: String, as version: ImageStore.Version = .original) throws(StoreError) -> PixelImage {
        guard store.keeps(version) else {
            let path = try files.regularFile(name)
            return try decode(.file(path), name: name, path: path)
        }
        return try decode(.bytes(try load(name, as: .thumbnail), name: name), name: name, path: nil)
    }

    /// The error of an image that cannot be decoded. One that was deleted meanwhile is not found.
    private func failure(_ error: ImageError, name: String, path: String?) -> StoreError {
        if let path, !FilePath.exists(path) { return .notFound(name: name) }
        return StoreError(error, name: name)
    }

    /// The path of the thumbnail that belongs to the image at a path; nil for none.
    func pairedThumbnail(_ name: String, _ path: String) -> String? {
        guard store.keeps(.thumbnail), let small = try? store.thumbnails.path(of: name),
            ThumbnailPair.isPair(path, small)
        else { return nil }
        return small
    }

    /// Whether a thumbnail shows the same as the image would at this size.
    func shows(_ small: String, insteadOf path: String, at resizer: ImageResizer) -> Bool {
        guard let info = try? ImageInfo(of: .file(path), limits: configuration.limits),
            let target = try? resizer.targetSize(for: info.size),
            let thumbnail = try? ImageInfo(of: .file(small), limits: configuration.limits).size
        else { return false }
        return target.width * 2 <= thumbnail.width && target.height * 2 <= thumbnail.height
    }

    /// The blocking form of ``ImageStore/load(_:as:)``.
    public func load(_ name: String, as version: ImageStore.Version = .original) throws(StoreError) -> [UInt8] {
        let path = try files.regularFile(name)
        guard store.keeps(version) else { return try files.load(name) }
        let small = try store.thumbnails.path(of: name)
        if ThumbnailPair.isPair(path, small), let bytes = try? thumbnails.load(name),
            ThumbnailPair.isPair(path, small)
        {
            return bytes
        }
        return try makeThumbnail(name, path)
    }

    /// Makes a thumbnail of the image that is there, and keeps it unless the image is replaced meanwhile.
    private func makeThumbnail(_ name: String, _ path: String) throws(StoreError) -> [UInt8] {
        let stamp = ThumbnailPair.modified(path)
        let bytes: [UInt8]
        do throws(ImageError) {
            let format = try ImageInfo(of: .file(path), limits: configuration.limits).format
            let image = try PreparedImage.thumbnail(of: path, configuration, cancellation)
            guard let made = try PreparedImage.thumbnail(of: image, format, configuration) else { return [] }
            bytes = made
        } catch {
            throw failure(error, name: name, path: path)
        }
        // A store that cannot be written to has its thumbnails made each time.
        try? keep(bytes, as: name, path: path, stamp: stamp)
        return bytes
    }

    private func keep(
        _ bytes: [UInt8], as name: String, path: String, stamp: Duration?
    ) throws(StoreError) {
        guard let stamp else { return }
        try thumbnails.makeDirectory()
        let writer = try thumbnails.writer(name, replacing: true)
        try files.named(name) { () throws(FileError) in
            try writer.write(bytes)
            try writer.setModified(stamp)
        }
        try ThumbnailPair.whileLocked(store) { () throws(StoreError) in
            guard ThumbnailPair.modified(path) == stamp else { return }
            try files.named(name) { () throws(FileError) in try writer.place() }
        }
    }

    /// - Parameter path: The file of the input, if there is one.
    private func decode(_ input: ImageInput, name: String, path: String?) throws(StoreError) -> PixelImage {
        do throws(ImageError) {
            return try ImageDecoder(limits: configuration.limits).decode(
                input, cancellation: cancellation ?? CancellationToken())
        } catch {
            throw failure(error, name: name, path: path)
        }
    }
}

/// An image of a store as a source for an `ImagePipeline`. See ``ImageStore/source(_:)``.
package struct ImageStoreSource: BlockingImageSource {
    /// The store of the image.
    package let store: ImageStore
    /// The name of the image.
    package let name: String
    private let path: String

    /// Creates a source for an image, which may be missing.
    ///
    /// - Throws: ``StoreError/invalidName(_:reason:)``.
    package init(_ store: ImageStore, name: String) throws(StoreError) {
        self.store = store
        self.name = name
        path = try store.path(of: name)
    }

    /// The file's own identity: another one as soon as the image is replaced or edited.
    package func identity() throws(ImagePipelineError) -> CacheKey { try original.identity() }

    /// The store's thumbnail, if there is one of this image.
    package func preview(_ request: RenderRequest) throws -> PixelImage? {
        guard let small = store.blocking.pairedThumbnail(name, path) else { return try original.preview(request) }
        var request = request
        request.allowsUpscaling = false
        return try ImageFileSource(path: small).image(request)
    }

    package func image(_ request: RenderRequest) throws -> PixelImage { try source(for: [request]).image(request) }

    package func images(_ requests: [RenderRequest]) throws -> [PixelImage] {
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
    /// Returns an image of the store as a source for an `ImagePipeline`, which makes any size.
    ///
    /// <!-- prelude: let store = ImageStore() -->
    /// ```swift
    /// var request = ImageRequest(try store.source("Bodensee.jpg"), resizing: .fit(400), scale: 2)
    /// request.cacheLevels = .memory               // nothing on disk beside the store
    /// pipeline.start(request)
    ///     .onPreview { view.image = $0 }          // the store's thumbnail
    ///     .onImage { view.show($0) }
    /// ```
    ///
    /// Sizes up to half of the thumbnail's are made from the thumbnail. The calls of the source block.
    ///
    /// - Throws: ``StoreError/invalidName(_:reason:)``. A missing image is reported when the source is used.
    public func source(_ name: String) throws(StoreError) -> some BlockingImageSource {
        try ImageStoreSource(self, name: name)
    }

    /// Returns the image at a size, made by a pipeline.
    ///
    /// - Parameters:
    ///   - name: The name of the image.
    ///   - resizing: The rule for the size of the result.
    ///   - scale: Pixels for each unit of the size. Default 1.
    ///   - cacheLevels: The levels of the pipeline's cache to use. Default: both.
    ///   - priority: The priority. Default normal.
    ///   - pipeline: The pipeline. Default: the shared one.
    /// - Throws: ``StoreError/invalidName(_:reason:)``, ``StoreError/notFound(name:)``, `ImagePipelineError`, or
    ///   `CancellationError` if the task is cancelled.
    public func image(
        _ name: String, resizing: ImageResizer, scale: Double = 1, cacheLevels: CacheLevels = .all,
        priority: RequestPriority = .normal, by pipeline: ImagePipeline = .shared
    ) async throws -> PixelImage {
        let source = try source(name)
        guard await exists(name) else { throw StoreError.notFound(name: name) }
        var request = ImageRequest(source, resizing: resizing, scale: scale, priority: priority)
        request.cacheLevels = cacheLevels
        return try await pipeline.image(for: request)
    }
}
