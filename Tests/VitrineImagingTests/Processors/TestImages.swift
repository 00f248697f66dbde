import VitrineImaging

/// Small pictures whose pixels a test states.
enum TestImages {
    /// Pixels from colours, row by row.
    static func image(_ rows: [[PixelColor]], alpha: PixelImage.Alpha = .opaque) -> PixelImage {
        PixelImage(width: rows[0].count, height: rows.count, alpha: alpha) { pixels in
            var at = 0
            for color in rows.joined() {
                for channel in [color.red, color.green, color.blue, color.alpha] {
                    pixels[at] = channel
                    at += 1
                }
            }
        }
    }

    /// Opaque greys, row by row.
    static func gray(_ rows: [[UInt8]]) -> PixelImage { image(rows.map { $0.map { PixelColor(white: $0) } }) }

    /// The first channel of every pixel, row by row.
    static func reds(_ image: PixelImage) -> [[UInt8]] {
        image.withUnsafeBytes { bytes in
            (0..<image.height).map { y in (0..<image.width).map { bytes[y * image.bytesPerRow + $0 * 4] } }
        }
    }

    /// The fourth channel of every pixel, row by row.
    static func alphas(_ image: PixelImage) -> [[UInt8]] {
        image.withUnsafeBytes { bytes in
            (0..<image.height).map { y in (0..<image.width).map { bytes[y * image.bytesPerRow + $0 * 4 + 3] } }
        }
    }

    /// A picture of slopes that wrap around, the one the hash vectors were computed for.
    static func slopes(width: Int, height: Int, alpha: Bool = false) -> PixelImage {
        PixelImage(width: width, height: height, alpha: alpha ? .straight : .opaque) { pixels in
            for y in 0..<height {
                for x in 0..<width {
                    let at = (y * width + x) * 4
                    pixels[at] = UInt8((x * 9 + y * 2) & 255)
                    pixels[at + 1] = UInt8((x * 3 + y * 11) & 255)
                    pixels[at + 2] = UInt8((255 - x * 5 - y * 4) & 255)
                    pixels[at + 3] = alpha ? UInt8(min(255, x * 8 + y * 4)) : 255
                }
            }
        }
    }

    /// The same pixels in rows with bytes between them that belong to no pixel.
    static func padded(_ image: PixelImage, by padding: Int) -> PixelImage {
        let stride = image.width * 4 + padding
        let storage = PixelStorage(zeroedByteCount: stride * image.height)
        image.withUnsafeBytes { source in
            for y in 0..<image.height {
                for i in 0..<image.width * 4 { storage.bytes[y * stride + i] = source[y * image.bytesPerRow + i] }
            }
        }
        return PixelImage(
            width: image.width, height: image.height, bytesPerRow: stride, alpha: image.alpha, storage: storage)
    }
}
