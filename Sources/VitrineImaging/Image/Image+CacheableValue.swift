public import VitrineCore

extension Image: CacheableValue {
    /// The JPEG quality that opaque pictures are cached with: 0.95, at which one more encoding is not seen. Formats
    /// with an encoder of their own choose theirs.
    public static let cacheQuality = 0.95

    /// Decodes a picture of any supported format, at full size, within the default limits. Blocks. Pixels that are not
    /// opaque come back premultiplied.
    ///
    /// - Throws: ``ImageError``.
    public init(cacheBytes: [UInt8]) throws {
        self = try ImageDecoder().decode(.bytes(cacheBytes, name: "cached image"))
    }

    /// The picture as a file (R63): PNG, without loss, if any pixel is not opaque or there is no JPEG encoder in this
    /// build; JPEG of ``cacheQuality`` otherwise. Blocks.
    ///
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``.
    public func cacheBytes() throws -> [UInt8] { try encoded(as: Image.cacheFormat(quality: Image.cacheQuality)) }

    /// How a cache keeps pictures: PNG if any pixel is not opaque or there is no JPEG encoder in this build, JPEG
    /// otherwise.
    ///
    /// - Parameter quality: Of JPEG, 0 to 1.
    package static func cacheFormat(quality: Double) -> OutputFormat {
        EncoderRegistry.standard.formats.contains(.jpeg) ? .automatic(quality: quality) : .png
    }

    /// The memory that the pixels occupy (R19).
    public var cacheCost: Int { byteCount }

    /// A picture is alive while its pixels are: any copy that was not changed keeps them (R20).
    public static var weakReference: (@Sendable (Image) -> (@Sendable () -> Image?)?)? {
        { image in
            image.storage.remember()
            let (width, height, bytesPerRow, alpha) = (image.width, image.height, image.bytesPerRow, image.alpha)
            return { [weak storage = image.storage] in
                storage.map {
                    Image(width: width, height: height, bytesPerRow: bytesPerRow, alpha: alpha, storage: $0)
                }
            }
        }
    }
}
