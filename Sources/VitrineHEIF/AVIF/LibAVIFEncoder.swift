#if SystemCodecs
import VitrineImageCore
import CVitrineAVIF

/// Writes AVIF through libavif: 8 bits, full-range Y′CbCr with BT.601 coefficients, marked as sRGB.
///
/// Chroma has half the resolution below a quality of 0.9 and the full one from there on. Alpha is kept, with half the
/// quantizer of the colours. Metadata travels as items of the file.
package struct LibAVIFEncoder: ImageEncoding {
    package let format = ImageFormat.avif
    /// From 0 (slow, small) to 10 (fast).
    package let speed: Int

    /// - Parameter speed: Clamped to 0…10. At the default of 8 a 200-pixel thumbnail takes some milliseconds.
    package init(speed: Int = 8) {
        self.speed = max(0, min(10, speed))
    }

    /// AV1's quantizer, 63 (worst) to 0 (best), for a quality from 0 to 1.
    ///
    /// The curve is bent towards JPEG's: 0.75 becomes 22, 0.5 becomes 37. On one photo at 200 pixels the likeness is
    /// that of libjpeg at 0.4 and 0.95, and 3 to 4 dB better in between.
    package static func quantizer(for quality: Double) -> Int {
        let loss = 1 - max(0, min(1, quality))
        let root = loss.squareRoot()
        // loss^0.75, without a power function.
        return Int((63 * root * root.squareRoot()).rounded())
    }

    /// - Throws: ``ImageError/encodingFailed(format:reason:)``.
    package func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        let input = try EncoderInput(image, as: .avif, maximumSide: 65_535, options: options)
        return try input.file(release: { cavif_free($0) }) { addresses, count, reason in
            var encoding = cavif_encoding()
            encoding.rgba = addresses.rgba
            encoding.width = UInt32(image.width)
            encoding.height = UInt32(image.height)
            encoding.stride = UInt32(addresses.bytesPerRow)
            encoding.has_alpha = image.hasAlpha ? 1 : 0
            encoding.quantizer = Int32(LibAVIFEncoder.quantizer(for: quality))
            encoding.speed = Int32(speed)
            encoding.full_chroma = quality >= 0.9 ? 1 : 0
            encoding.exif = addresses.exif
            encoding.exif_count = addresses.exifCount
            encoding.xmp = addresses.xmp
            encoding.xmp_count = addresses.xmpCount
            return cavif_encode(&encoding, &count, &reason)
        }
    }
}
#endif
