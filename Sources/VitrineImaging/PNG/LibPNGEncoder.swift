#if SystemCodecs
import CVitrinePNG

/// Writes PNG files by libpng: 8 bits a sample, grey or with a palette where that loses nothing, with an sRGB chunk.
package struct LibPNGEncoder: ImageEncoding {
    /// zlib's compression level, 0 (none) to 9 (smallest). Default 6.
    package var level: Int

    package init(level: Int = 6) {
        self.level = min(max(level, 0), 9)
    }

    package var format: ImageFormat { .png }

    package func encode(_ image: Image, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        let pixels = PNGPixels(image, allChannels: options.writesAllChannels)
        let exif = options.metadata?.exif.flatMap { $0.isEmpty ? nil : $0 }
        // C strings end at a zero byte: without one libpng would read on.
        let xmp = options.metadata?.xmp.map { Array($0.prefix { $0 != 0 }) + [0] }
        var output = cpng_output()
        let status = pixels.bytes.withUnsafeBufferPointer { bytes in
            Self.with(pixels.palette) { palette in
                Self.with(exif) { exifBytes in
                    Self.with(xmp) { xmpBytes in
                        var input = cpng_input()
                        input.pixels = bytes.baseAddress
                        input.bytes_per_row = pixels.width * pixels.channels
                        input.width = UInt32(clamping: pixels.width)
                        input.height = UInt32(clamping: pixels.height)
                        input.channels = Int32(pixels.channels)
                        input.palette = palette?.baseAddress
                        input.palette_count = Int32((palette?.count ?? 0) / 4)
                        input.palette_transparent_count = Int32(pixels.transparentCount)
                        input.level = Int32(level)
                        input.interlaced = options.isProgressive ? 1 : 0
                        input.exif = exifBytes?.baseAddress
                        input.exif_count = exifBytes?.count ?? 0
                        input.xmp = UnsafeRawPointer(xmpBytes?.baseAddress)?.assumingMemoryBound(to: CChar.self)
                        input.xmp_count = max(0, (xmpBytes?.count ?? 1) - 1)
                        return cpng_encode(&input, &output)
                    }
                }
            }
        }
        guard status == 0, let bytes = output.bytes else {
            let message = withUnsafeBytes(of: &output.message) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            throw .encodingFailed(format: .png, reason: message.isEmpty ? "out of memory" : message)
        }
        defer { cpng_free(bytes) }
        return [UInt8](UnsafeBufferPointer(start: bytes, count: output.count))
    }

    /// The memory of an optional array.
    private static func with<R>(_ bytes: [UInt8]?, _ body: (UnsafeBufferPointer<UInt8>?) -> R) -> R {
        guard let bytes else { return body(nil) }
        return bytes.withUnsafeBufferPointer { body($0) }
    }
}
#endif
