import VitrineCore
import VitrineImaging
import VitrineNetwork

/// The specification of a result, without its source: pixels, mode, upscaling, processors and file format.
struct ResultSpec: Hashable, Sendable {
    var size: PixelSize
    var mode: ImageResizer.Mode
    var allowsUpscaling: Bool
    var processors: [ImageProcessor] = []
    /// The file format on disk; nil for the cache's own.
    var format: OutputFormat?

    /// The key of a source's image.
    func key(for identity: CacheKey) -> CacheKey {
        // Every lookup in memory makes this key: short texts without interpolation need no memory of their own.
        let sizeName = size == .zero ? "0x0" : String(size.width) + "x" + String(size.height)
        var key = identity.appending(sizeName, mode.identifier)
        if !allowsUpscaling { key = key.appending("no-upscaling") }
        for processor in processors { key = key.appending(processor.identifier) }
        if let format { key = key.appending("format", format.identifier) }
        return key
    }

    /// Encodes results for the disk; nil for the cache's own encoder.
    var encoding: (@Sendable (PixelImage) throws -> [UInt8])? {
        guard let format else { return nil }
        return { image in try image.encoded(as: format) }
    }

    func render(limits: ImageLimits, cancellation: CancellationToken) -> RenderRequest {
        RenderRequest(
            size: size, mode: mode, allowsUpscaling: allowsUpscaling, limits: limits, cancellation: cancellation)
    }

    /// Whether an image made by this rule can be reduced to one of `other`: it shows the whole picture, and does not
    /// hide that the picture is small from one that may not grow. One of a format may have lost details.
    func mayServe(_ other: ResultSpec) -> Bool {
        guard processors.isEmpty, format == nil else { return false }
        switch mode {
        case .stretch, .crop: return false
        case .fit, .fill, .limit, .none: break
        }
        guard other.mode != .none, self != other else { return false }
        let growsNever = mode == .limit || mode == .none || !allowsUpscaling
        return growsNever || (other.allowsUpscaling && other.mode != .limit)
    }

    /// Whether the box alone rules out that a picture of this rule has twice the pixels of one of `other`.
    func isLarge(for other: ResultSpec) -> Bool {
        mode == .none || mode == .limit || size.longestSide >= 2 * other.size.longestSide
    }

    /// The image of this rule, made from a larger one that ``mayServe(_:)``; nil unless that has twice the pixels
    /// in both directions, below which reducing it once more would be seen.
    func reduced(_ larger: PixelImage) throws(ImageError) -> PixelImage? {
        let resizer = ImageResizer(size: size, mode: mode, allowsUpscaling: allowsUpscaling)
        let target = try resizer.targetSize(for: larger.size)
        guard larger.width >= 2 * target.width, larger.height >= 2 * target.height else { return nil }
        return try resizer.resize(larger).processed(by: processors)
    }
}

extension ImagePipelineError {
    /// An error a source has thrown.
    init(thrown error: any Error, source: String) {
        switch error {
        case let error as ImagePipelineError: self = error
        case let error as ImageError: self = ImagePipelineError(error, source: source)
        case is CancellationError: self = .cancelled(source: source)
        default: self = .underlying(source: source, error: error)
        }
    }
}

extension ImagePipelineError {
    /// Whether the server says that there is no such content any more.
    var isGone: Bool {
        guard case .underlying(_, let error as NetworkError) = self, case .status(_, let head) = error else {
            return false
        }
        return head.status == 404 || head.status == 410
    }
}

extension CacheKey {
    /// The part of a source's identity that people know it by: a file's path, else all of it.
    var sourceName: String {
        let parts = parts
        return parts.count > 1 && parts[0] == "file" ? parts[1] : description
    }
}
