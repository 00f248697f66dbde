#if canImport(Photos)
public import Photos
import VitrineCore
import VitrineImaging

/// A photo or video of the user's photo library on Apple platforms.
///
/// Photos are asked for at the size that is wanted; iCloud's are loaded only where ``allowsNetwork`` says so. The
/// program needs the user's permission (`NSPhotoLibraryUsageDescription`).
public struct PhotoAssetSource: BlockingImageSource {
    /// The photo or video.
    public let asset: PHAsset
    /// Whether assets may be loaded from iCloud. Default: true.
    public var allowsNetwork = true

    /// The source of an asset.
    public init(_ asset: PHAsset) { self.asset = asset }

    /// The asset's local identifier, and when it was last edited.
    public func identity() throws(ImagePipelineError) -> CacheKey { key }

    public var knownIdentity: CacheKey? { key }

    private var key: CacheKey {
        CacheKey("photo", asset.localIdentifier)
            .appending("\(asset.modificationDate?.timeIntervalSinceReferenceDate ?? 0)")
    }

    /// The image that the library has at once, at any size.
    public func preview(_ request: RenderRequest) throws -> PixelImage? {
        let options = options(network: false)
        options.deliveryMode = .fastFormat
        return try? image(request, options)
    }

    /// The image, or the video's poster.
    ///
    /// - Throws: ``ImagePipelineError``: ``ImagePipelineError/unreadable(source:reason:)`` where the library gives
    ///   none.
    public func image(_ request: RenderRequest) throws -> PixelImage {
        let options = options(network: allowsNetwork)
        options.deliveryMode = .highQualityFormat
        return try image(request, options)
    }

    private func options(network: Bool) -> PHImageRequestOptions {
        let options = PHImageRequestOptions()
        options.isSynchronous = true
        options.isNetworkAccessAllowed = network
        options.version = .current
        return options
    }

    private func image(_ request: RenderRequest, _ options: PHImageRequestOptions) throws -> PixelImage {
        if request.cancellation.isCancelled { throw ImagePipelineError.cancelled(source: asset.localIdentifier) }
        let own = PixelSize(width: asset.pixelWidth, height: asset.pixelHeight)
        // A crop is cut from an image that covers it.
        var covering = request.resizer
        if case .crop = request.mode { covering.mode = .fill }
        let wanted = try covering.targetSize(for: own)
        options.resizeMode = wanted == own ? .none : .exact
        var found: PixelImage?
        var problem: (any Error)?
        let number = PHImageManager.default().requestImage(
            for: asset, targetSize: CGSize(width: wanted.width, height: wanted.height),
            contentMode: .aspectFill, options: options
        ) { picture, details in
            found = picture.flatMap { PixelImage($0) }
            problem = details?[PHImageErrorKey] as? any Error
        }
        // Synchronous requests have ended by now; the number lets a late one be taken back.
        if request.cancellation.isCancelled { PHImageManager.default().cancelImageRequest(number) }
        guard let found else {
            throw ImagePipelineError.unreadable(
                source: asset.localIdentifier, reason: problem.map { "\($0)" } ?? "the photo library has no image")
        }
        return try request.resizer.resize(found)
    }
}
#endif
