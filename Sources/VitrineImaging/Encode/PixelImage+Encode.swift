extension PixelImage {
    /// Returns the image as the bytes of a file.
    ///
    /// A format without alpha gets the image over white; ``ImageProcessor/background(_:)`` gives it another background.
    ///
    /// ```swift
    /// let bytes = try thumbnail.encoded(as: .automatic(quality: 0.75))
    /// ```
    ///
    /// - Parameters:
    ///   - format: The file format, with its quality.
    ///   - maximumBytes: The most bytes of the file. The result has the best quality that fits, between 0 and the one
    ///     in `format`, to within 1/128; the image is encoded up to nine times. Default nil: any number of bytes.
    ///   - isProgressive: Whether the file can be shown before it is complete: several scans in JPEG, Adam7 in PNG.
    ///     Other formats ignore it. Default false.
    ///   - metadata: Metadata to write. Default nil: none, all metadata is stripped.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` if the quality is not a number;
    ///   ``ImageError/encodingFailed(format:reason:)`` if this build has no encoder, the encoder fails, or even quality
    ///   0, or a lossless format, has more than `maximumBytes`.
    public func encoded(
        as format: OutputFormat, maximumBytes: Int? = nil, isProgressive: Bool = false, metadata: ImageMetadata? = nil
    ) throws(ImageError) -> [UInt8] {
        let options = EncodeOptions(isProgressive: isProgressive, metadata: metadata)
        guard let maximumBytes else { return try encoded(as: format, options: options) }
        return try encoded(as: format, maximumBytes: maximumBytes, options: options, codecs: .standard)
    }

    /// Encodes with all options, and with codecs of the caller's choice.
    package func encoded(
        as format: OutputFormat, options: EncodeOptions, codecs: Codecs = .standard
    ) throws(ImageError) -> [UInt8] {
        let quality = try PixelImage.checkedQuality(format)
        return try codecs.encoder(for: format.imageFormat(for: self)).encode(self, quality: quality, options: options)
    }

    /// Encodes to at most `maximumBytes`.
    package func encoded(
        as format: OutputFormat, maximumBytes: Int, options: EncodeOptions, codecs: Codecs
    ) throws(ImageError) -> [UInt8] {
        let best = try PixelImage.checkedQuality(format)
        let kind = format.imageFormat(for: self)
        let encoder = try codecs.encoder(for: kind)
        let first = try encoder.encode(self, quality: best, options: options)
        if first.count <= maximumBytes { return first }
        let tooLarge = ImageError.encodingFailed(
            format: kind, reason: "no quality gives \(maximumBytes) bytes or fewer")
        guard kind != .png && kind != .gif else { throw tooLarge }
        var found = try encoder.encode(self, quality: 0, options: options)
        guard found.count <= maximumBytes else { throw tooLarge }
        var low = 0.0, high = best
        for _ in 0..<7 {
            let middle = (low + high) / 2
            let bytes = try encoder.encode(self, quality: middle, options: options)
            if bytes.count <= maximumBytes {
                found = bytes
                low = middle
            } else {
                high = middle
            }
        }
        return found
    }

    private static func checkedQuality(_ format: OutputFormat) throws(ImageError) -> Double {
        let quality = format.quality ?? 1
        guard !quality.isNaN else { throw .invalidRequest(reason: "a quality must be a number") }
        return max(0, min(1, quality))
    }
}

/// A file format to write, with its quality.
///
/// Qualities go from 0 (smallest) to 1 (best) and are clamped. Default 0.8.
public enum OutputFormat: Sendable, Hashable {
    /// JPEG, without alpha.
    case jpeg(quality: Double = OutputFormat.defaultQuality)
    /// PNG, lossless.
    case png
    /// Lossy WebP.
    case webp(quality: Double = OutputFormat.defaultQuality)
    /// AVIF.
    case avif(quality: Double = OutputFormat.defaultQuality)
    /// JPEG XL, written by a worker process.
    case jxl(quality: Double = OutputFormat.defaultQuality)
    /// GIF, of at most 256 colours.
    case gif
    /// PNG, or WebP if preferred, if any pixel is not opaque; JPEG otherwise.
    case automatic(quality: Double = OutputFormat.defaultQuality, prefersWebP: Bool = false)

    /// The default quality: 0.8.
    @usableFromInline package static let defaultQuality = 0.8

    /// Returns the file format of an encoded `image`; ``automatic(quality:prefersWebP:)`` depends on its pixels.
    package func imageFormat(for image: PixelImage) -> ImageFormat {
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

    /// The format and its quality as a part of keys.
    package var identifier: String {
        let name =
            switch self {
            case .jpeg: "jpeg"
            case .png: "png"
            case .webp: "webp"
            case .avif: "avif"
            case .jxl: "jxl"
            case .gif: "gif"
            case .automatic(_, let prefersWebP): prefersWebP ? "automatic-webp" : "automatic"
            }
        return quality.map { "\(name),\($0)" } ?? name
    }

    /// The quality, not clamped; nil for lossless formats.
    package var quality: Double? {
        switch self {
        case .jpeg(let quality), .webp(let quality), .avif(let quality), .jxl(let quality),
            .automatic(let quality, _):
            quality
        case .png, .gif: nil
        }
    }
}
