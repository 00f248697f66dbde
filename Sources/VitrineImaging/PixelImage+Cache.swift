import VitrineCore

extension PixelImage: CacheableValue {
    /// The JPEG quality of cached opaque images: 0.95, at which one more encoding is invisible.
    package static let cacheQuality = 0.95

    /// Decodes an image of any supported format, at full size, within the default limits. Blocks. Translucent pixels
    /// become premultiplied.
    ///
    /// - Throws: ``ImageError``.
    public init(cacheBytes: [UInt8]) throws {
        self = try ImageDecoder().decode(.bytes(cacheBytes, name: "cached image"))
    }

    /// Encodes the image as lossless PNG if any pixel is translucent, and as JPEG of quality 0.95 otherwise.
    /// Blocks.
    ///
    /// Builds without a JPEG encoder always use PNG.
    ///
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``.
    public func cacheBytes() throws -> [UInt8] { try encoded(as: PixelImage.cacheFormat(quality: PixelImage.cacheQuality)) }

    /// Returns the format of cached images; see ``cacheBytes()``.
    ///
    /// - Parameter quality: Of JPEG, 0 to 1.
    package static func cacheFormat(quality: Double) -> OutputFormat {
        Codecs.standard.writtenFormats.contains(.jpeg) ? .automatic(quality: quality) : .png
    }

    /// The bytes of memory that the pixels occupy.
    public var cacheCost: Int { byteCount }

    /// A weak reference to the pixels, which live as long as any unchanged copy of the image.
    public static var weakReference: (@Sendable (PixelImage) -> (@Sendable () -> PixelImage?)?)? {
        { image in
            image.storage.remember()
            let (width, height, bytesPerRow, alpha) = (image.width, image.height, image.bytesPerRow, image.alpha)
            return { [weak storage = image.storage] in
                storage.map {
                    PixelImage(width: width, height: height, bytesPerRow: bytesPerRow, alpha: alpha, storage: $0)
                }
            }
        }
    }
}
