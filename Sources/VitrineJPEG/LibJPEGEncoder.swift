#if SystemCodecs
import VitrineImageCore
import CVitrineJPEG

/// Encodes JPEG by libjpeg-turbo, with Huffman tables made for the image.
package struct LibJPEGEncoder: ImageEncoding {
    /// From this quality on chroma keeps its resolution (4:4:4); below it is halved both ways (4:2:0).
    package static let fullChromaQuality = 0.9

    package init() {}

    package var format: ImageFormat { .jpeg }

    /// The whole file. Alpha is composed over white; Exif and XMP are written if the options have them.
    ///
    /// - Parameter quality: From 0 to 1; the library's 1 to 100. A value that is not a number counts as 0.
    /// - Throws: ``ImageError/encodingFailed(format:reason:)`` when a side is more than 65,500 pixels, when Exif is
    ///   more than 65,527 or XMP more than 65,504 bytes (each must fit into one segment), or when memory runs out.
    package func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        var picture = cjpeg_picture()
        picture.width = UInt32(clamping: image.width)
        picture.height = UInt32(clamping: image.height)
        picture.bytes_per_row = image.bytesPerRow
        picture.alpha =
            switch image.alpha {
            case .opaque: CJPEG_OPAQUE
            case .straight: CJPEG_STRAIGHT
            case .premultiplied: CJPEG_PREMULTIPLIED
            }
        let quality = quality > 0 ? min(1, quality) : 0
        picture.quality = Int32(max(1, (quality * 100).rounded()))
        picture.full_chroma = quality >= LibJPEGEncoder.fullChromaQuality ? 1 : 0
        picture.progressive = options.isProgressive ? 1 : 0
        return try encode(picture, image: image, metadata: options.metadata ?? ImageMetadata())
    }

    private func encode(
        _ picture: cjpeg_picture, image: PixelImage, metadata: ImageMetadata
    ) throws(ImageError) -> [UInt8] {
        var bytes: UnsafeMutablePointer<UInt8>?
        var size = 0
        var message = [CChar](repeating: 0, count: 256)
        let status = image.withUnsafeBytes { pixels in
            (metadata.exif ?? []).withUnsafeBufferPointer { exif in
                (metadata.xmp ?? []).withUnsafeBufferPointer { xmp in
                    var picture = picture
                    picture.pixels = pixels.baseAddress?.assumingMemoryBound(to: UInt8.self)
                    picture.exif = metadata.exif == nil ? nil : exif.baseAddress
                    picture.exif_size = exif.count
                    picture.xmp = metadata.xmp == nil ? nil : xmp.baseAddress
                    picture.xmp_size = xmp.count
                    return cjpeg_encode(&picture, &bytes, &size, &message)
                }
            }
        }
        guard status == CJPEG_OK, let bytes else {
            let reason = message.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
            throw .encodingFailed(format: .jpeg, reason: reason.isEmpty ? "no memory" : reason)
        }
        defer { cjpeg_free(bytes) }
        return [UInt8](UnsafeBufferPointer(start: bytes, count: size))
    }
}
#endif
