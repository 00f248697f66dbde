/// The kind of file to write, with its quality.
///
/// Qualities go from 0 (smallest) to 1 (best) and are clamped.
public enum OutputFormat: Sendable, Hashable {
    case jpeg(quality: Double = OutputFormat.defaultQuality)
    case png
    case webp(quality: Double = OutputFormat.defaultQuality)
    case avif(quality: Double = OutputFormat.defaultQuality)
    case jxl(quality: Double = OutputFormat.defaultQuality)
    case gif
    /// PNG, or WebP if preferred, when any pixel is not opaque; JPEG otherwise.
    case automatic(quality: Double = OutputFormat.defaultQuality, prefersWebP: Bool = false)

    /// The quality where none is named: 0.8.
    public static let defaultQuality = 0.8

    /// JPEG at the quality the caches this library descends from write: 0.75.
    public static let ancestorJPEG = OutputFormat.jpeg(quality: 0.75)

    /// The format that `image` is written in.
    public func imageFormat(for image: Image) -> ImageFormat {
        switch self {
        case .jpeg: .jpeg
        case .png: .png
        case .webp: .webp
        case .avif: .avif
        case .jxl: .jxl
        case .gif: .gif
        case .automatic(_, let prefersWebP): image.isFullyOpaque ? .jpeg : prefersWebP ? .webp : .png
        }
    }

    /// The quality as given; nil for formats that have none.
    public var quality: Double? {
        switch self {
        case .jpeg(let quality), .webp(let quality), .avif(let quality), .jxl(let quality),
            .automatic(let quality, _):
            quality
        case .png, .gif: nil
        }
    }
}
