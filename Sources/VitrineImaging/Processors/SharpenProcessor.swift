/// Unsharp masking.
struct SharpenProcessor: ImageProcessing {
    let amount: Double
    let radius: Double

    var identifier: String { "sharpen(\(amount),\(radius))" }

    func process(_ image: Image) throws(ImageError) -> Image {
        try ProcessorCheck.value(amount, in: 0...10, "sharpen amount")
        try ProcessorCheck.value(radius, in: 0...500, "sharpen radius")
        if amount == 0 || radius == 0 { return image }
        let source = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        var result = source
        GaussianBlur(sigma: radius).apply(to: &result)
        let amount = Int32((amount * 256).rounded())
        let width = result.width, height = result.height
        let sourceStride = source.bytesPerRow, stride = result.bytesPerRow
        source.withUnsafeBytes { original in
            result.withUnsafeMutableBytes { blurred in
                for y in 0..<height {
                    let from = original.baseAddress! + y &* sourceStride, to = blurred.baseAddress! + y &* stride
                    for x in 0..<width {
                        let pixel = PixelMath.load(from + x &* 4)
                        PixelMath.store(Self.sharpen(pixel, PixelMath.load(to + x &* 4), amount), to + x &* 4)
                    }
                }
            }
        }
        return result
    }

    @inline(__always)
    private static func sharpen(_ pixel: UInt32, _ blurred: UInt32, _ amount: Int32) -> UInt32 {
        let alpha = Int32(pixel >> 24), blurredAlpha = Int32(blurred >> 24)
        guard alpha > 0, blurredAlpha > 0 else { return pixel }
        var result = pixel & 0xff00_0000
        var shift: UInt32 = 0
        while shift < 24 {
            let value = Int32(pixel >> shift & 255)
            var mean = Int32(blurred >> shift & 255)
            // Compare colours, not amounts of light: else the outline of a shape would be taken for detail.
            if alpha != blurredAlpha { mean = min(255, mean &* alpha / blurredAlpha) }
            let sharp = value &+ ((value &- mean) &* amount &+ 128) >> 8
            result |= UInt32(max(0, min(alpha, sharp))) << shift
            shift &+= 8
        }
        return result
    }
}
