/// Fills squares with their mean colour.
struct PixelateProcessor: ImageProcessing {
    let block: Int

    var identifier: String { "pixelate(\(block))" }

    func process(_ image: Image) throws(ImageError) -> Image {
        try ProcessorCheck.value(block, in: 1...65_535, "pixelate block")
        if block == 1 { return image }
        var result = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        let width = result.width, height = result.height, stride = result.bytesPerRow
        result.withUnsafeMutableBytes { bytes in
            let base = bytes.baseAddress!
            for top in Swift.stride(from: 0, to: height, by: block) {
                for left in Swift.stride(from: 0, to: width, by: block) {
                    Self.fill(
                        base + top * stride + left * 4, width: min(block, width - left),
                        height: min(block, height - top), stride: stride)
                }
            }
        }
        return result
    }

    private static func fill(_ base: UnsafeMutableRawPointer, width: Int, height: Int, stride: Int) {
        var red: UInt64 = 0, green: UInt64 = 0, blue: UInt64 = 0, alpha: UInt64 = 0
        for y in 0..<height {
            let row = base + y &* stride
            for x in 0..<width {
                let pixel = UInt64(PixelMath.load(row + x &* 4))
                red &+= pixel & 255
                green &+= pixel >> 8 & 255
                blue &+= pixel >> 16 & 255
                alpha &+= pixel >> 24
            }
        }
        let count = UInt64(width * height), half = count / 2
        let r = (red &+ half) / count, g = (green &+ half) / count, b = (blue &+ half) / count
        let a = (alpha &+ half) / count
        let mean = UInt32(truncatingIfNeeded: a << 24 | b << 16 | g << 8 | r)
        for y in 0..<height {
            let row = base + y &* stride
            for x in 0..<width { PixelMath.store(mean, row + x &* 4) }
        }
    }
}
