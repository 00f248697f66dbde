#if LibWebP
import CWebP

/// Writes WebP through libwebp.
///
/// Lossy, by quality, with lossless alpha; or lossless, when made so. Quality 1 is libwebp's quality 100, which is
/// still lossy. Metadata travels in `EXIF` and `XMP ` chunks (RFC 9649 §2.7.1).
package struct LibWebPEncoder: ImageEncoding {
    package let format = ImageFormat.webp
    /// Whether every pixel is kept, colours under transparent ones included; quality is then ignored.
    package let lossless: Bool
    /// From 0 (fast) to 6 (small).
    package let effort: Int

    /// - Parameter effort: Clamped to 0…6. 4 is the library's own default. One photo at 200 pixels and quality 0.75:
    ///   2.0 ms and 1,616 bytes at 4, 0.5 ms and 2,196 bytes at 0.
    package init(lossless: Bool = false, effort: Int = 4) {
        self.lossless = lossless
        self.effort = max(0, min(6, effort))
    }

    /// - Throws: ``ImageError/encodingFailed(format:reason:)``, for one when a side is longer than 16,383 pixels.
    package func encode(_ image: Image, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        guard image.size.longestSide <= 16_383 else {
            throw .encodingFailed(format: .webp, reason: "a side is longer than 16383 pixels")
        }
        let pixels = image.alpha == .premultiplied ? image.converted(to: .straight) : image
        let exif = options.metadata?.exif ?? []
        let xmp = options.metadata?.xmp ?? []
        var count = 0
        var reason: UnsafePointer<CChar>?
        let bytes = pixels.withUnsafeBytes { base in
            exif.withUnsafeBufferPointer { exif in
                xmp.withUnsafeBufferPointer { xmp in
                    var encoding = cwebp_encoding()
                    encoding.rgba = base.bindMemory(to: UInt8.self).baseAddress
                    encoding.width = Int32(image.width)
                    encoding.height = Int32(image.height)
                    encoding.stride = Int32(pixels.bytesPerRow)
                    encoding.has_alpha = image.hasAlpha ? 1 : 0
                    // For lossless, the quality says how hard to try.
                    encoding.quality = lossless ? 75 : Float(quality * 100)
                    encoding.method = Int32(effort)
                    encoding.lossless = lossless ? 1 : 0
                    encoding.exif = exif.isEmpty ? nil : exif.baseAddress
                    encoding.exif_count = exif.count
                    encoding.xmp = xmp.isEmpty ? nil : xmp.baseAddress
                    encoding.xmp_count = xmp.count
                    return cwebp_encode(&encoding, &count, &reason)
                }
            }
        }
        guard let bytes else {
            throw .encodingFailed(format: .webp, reason: reason.map { String(cString: $0) } ?? "libwebp refused")
        }
        defer { cwebp_free(bytes) }
        return [UInt8](UnsafeBufferPointer(start: bytes, count: count))
    }
}
#endif
