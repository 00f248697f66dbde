extension Image {
    /// The picture as the bytes of a file.
    ///
    /// Nothing but pixels is written unless ``EncodeOptions/metadata`` says so. A format without alpha gets the picture
    /// over white; ``flattened(over:)`` first gives it another background.
    ///
    /// ```swift
    /// let bytes = try thumbnail.encoded(as: .automatic(quality: 0.75))
    /// ```
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` when the quality is not a number;
    ///   ``ImageError/encodingFailed(format:reason:)`` when this build has no encoder or the encoder refuses.
    public func encoded(as format: OutputFormat, options: EncodeOptions = .init()) throws(ImageError) -> [UInt8] {
        try encoded(as: format, options: options, registry: .standard)
    }

    /// The picture as the bytes of a file no larger than `maximumBytes`, at the best quality that allows it.
    ///
    /// Encodes up to nine times. Quality is sought between 0 and the one in `format`, to within 1/128.
    ///
    /// - Throws: ``ImageError/encodingFailed(format:reason:)`` when even quality 0, or a lossless format, is larger;
    ///   otherwise as ``encoded(as:options:)``.
    public func encoded(
        as format: OutputFormat, maximumBytes: Int, options: EncodeOptions = .init()
    ) throws(ImageError) -> [UInt8] {
        try encoded(as: format, maximumBytes: maximumBytes, options: options, registry: .standard)
    }

    /// ``encoded(as:options:)`` with encoders of the caller's choice.
    package func encoded(
        as format: OutputFormat, options: EncodeOptions, registry: EncoderRegistry
    ) throws(ImageError) -> [UInt8] {
        let quality = try Image.checkedQuality(format)
        return try registry.encoder(for: format.imageFormat(for: self)).encode(self, quality: quality, options: options)
    }

    /// ``encoded(as:maximumBytes:options:)`` with encoders of the caller's choice.
    package func encoded(
        as format: OutputFormat, maximumBytes: Int, options: EncodeOptions, registry: EncoderRegistry
    ) throws(ImageError) -> [UInt8] {
        let best = try Image.checkedQuality(format)
        let kind = format.imageFormat(for: self)
        let encoder = try registry.encoder(for: kind)
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

    /// Whether every pixel is opaque, whatever ``alpha`` says. Looks at pixels only if it must.
    package var isFullyOpaque: Bool {
        if alpha == .opaque { return true }
        return withUnsafeBytes { bytes in
            for y in 0..<height {
                let row = bytes.baseAddress! + y &* bytesPerRow
                var all: UInt32 = 0xff00_0000
                for x in 0..<width { all &= PixelMath.load(row + x &* 4) }
                if all != 0xff00_0000 { return false }
            }
            return true
        }
    }
}

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
