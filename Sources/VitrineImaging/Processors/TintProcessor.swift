/// Colours the picture.
struct TintProcessor: ImageProcessing {
    let color: Color
    let opacity: Double
    let mode: TintMode

    var identifier: String { "tint(\(color.cssString),\(opacity),\(mode.rawValue))" }

    func process(_ image: Image) throws(ImageError) -> Image {
        try ProcessorCheck.value(opacity, in: 0...1, "tint opacity")
        // A translucent colour tints less, it does not make the picture translucent.
        let mix = UInt32((opacity * Double(color.alpha)).rounded())
        let solid = PixelMath.straight(color) | 0xff00_0000
        let source = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        switch mode {
        case .template:
            return source.mapPixels(to: source.alpha) { pixel in
                let tinted = PixelMath.scale(solid, pixel >> 24)
                return Self.blend(pixel, tinted, mix)
            }
        case .multiply:
            let red = solid & 255, green = solid >> 8 & 255, blue = solid >> 16 & 255
            return source.mapPixels(to: source.alpha) { pixel in
                let r = AlphaMath.multiply(pixel & 255, red), g = AlphaMath.multiply(pixel >> 8 & 255, green)
                let b = AlphaMath.multiply(pixel >> 16 & 255, blue)
                return Self.blend(pixel, pixel & 0xff00_0000 | b << 16 | g << 8 | r, mix)
            }
        }
    }

    /// `mix` / 255 of `tinted` and the rest of `pixel`; both have one alpha, which is kept.
    @inline(__always)
    private static func blend(_ pixel: UInt32, _ tinted: UInt32, _ mix: UInt32) -> UInt32 {
        if mix == 255 { return tinted }
        let rest = 255 &- mix
        // One division for both shares, so that the rounding cannot exceed alpha.
        let r = (pixel & 255) &* rest &+ (tinted & 255) &* mix &+ 127
        let g = (pixel >> 8 & 255) &* rest &+ (tinted >> 8 & 255) &* mix &+ 127
        let b = (pixel >> 16 & 255) &* rest &+ (tinted >> 16 & 255) &* mix &+ 127
        return pixel & 0xff00_0000 | (b / 255) << 16 | (g / 255) << 8 | r / 255
    }
}
