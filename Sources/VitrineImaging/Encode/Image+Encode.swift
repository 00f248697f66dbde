extension Image {
    /// Returns the image as the bytes of a file.
    ///
    /// Metadata is written only if ``EncodeOptions/metadata`` holds it. A format without alpha gets the image over
    /// white; ``flattened(over:)`` gives it another background.
    ///
    /// ```swift
    /// let bytes = try thumbnail.encoded(as: .automatic(quality: 0.75))
    /// ```
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` if the quality is not a number;
    ///   ``ImageError/encodingFailed(format:reason:)`` if this build has no encoder or the encoder fails.
    public func encoded(as format: OutputFormat, options: EncodeOptions = .init()) throws(ImageError) -> [UInt8] {
        try encoded(as: format, options: options, registry: .standard)
    }

    /// Returns the image as the bytes of a file of at most `maximumBytes`, at the best quality that fits.
    ///
    /// Encodes up to nine times. The quality lies between 0 and the one in `format`, to within 1/128.
    ///
    /// - Throws: ``ImageError/encodingFailed(format:reason:)`` if even quality 0, or a lossless format, is larger;
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

    /// Whether every pixel is opaque, also where ``alpha`` allows others. Reads pixels only if ``alpha`` does.
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

/// A file format to write, with its quality.
///
/// Qualities go from 0 (smallest) to 1 (best) and are clamped.
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
    public static let defaultQuality = 0.8

    /// Returns the file format of an encoded `image`; ``automatic(quality:prefersWebP:)`` depends on its pixels.
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
