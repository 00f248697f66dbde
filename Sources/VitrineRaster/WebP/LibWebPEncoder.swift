#if SystemCodecs
import VitrineImageCore
import CVitrineWebP

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
    package func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        let input = try EncoderInput(image, as: .webp, maximumSide: 16_383, options: options)
        return try input.file(release: { cwebp_free($0) }) { addresses, count, reason in
            var encoding = cwebp_encoding()
            encoding.rgba = addresses.rgba
            encoding.width = Int32(image.width)
            encoding.height = Int32(image.height)
            encoding.stride = Int32(addresses.bytesPerRow)
            encoding.has_alpha = image.hasAlpha ? 1 : 0
            // For lossless, the quality says how hard to try.
            encoding.quality = lossless ? 75 : Float(quality * 100)
            encoding.method = Int32(effort)
            encoding.lossless = lossless ? 1 : 0
            encoding.exif = addresses.exif
            encoding.exif_count = addresses.exifCount
            encoding.xmp = addresses.xmp
            encoding.xmp_count = addresses.xmpCount
            return cwebp_encode(&encoding, &count, &reason)
        }
    }
}
#endif
