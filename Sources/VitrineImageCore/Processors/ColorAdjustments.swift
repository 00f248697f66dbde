/// Puts a colour behind the image.
struct BackgroundProcessor: ImageProcessing {
    let color: PixelColor

    var identifier: String { "background(\(color.cssString))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage { image.composed(over: color) }
}

/// Replaces colours by their luma.
struct GrayscaleProcessor: ImageProcessing {
    var identifier: String { "grayscale" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        image.mapRows(to: image.alpha) { source, target, count in
            for x in 0..<count {
                let pixel = PixelMath.load(source + 4 &* x)
                // ITU-R BT.709-6 §3.2: 0.2126 R′ + 0.7152 G′ + 0.0722 B′, in 1/65,536.
                let luma = ((pixel & 255) &* 13_933 &+ (pixel >> 8 & 255) &* 46_871 &+ (pixel >> 16 & 255) &* 4_732
                    &+ 32_768) >> 16
                PixelMath.store(pixel & 0xff00_0000 | luma &* 0x01_0101, target + 4 &* x)
            }
        }
    }
}

/// The ways in which ``ImageProcessor/tint(_:opacity:mode:)`` colours an image.
public enum TintMode: Sendable, Hashable {
    /// Every pixel takes the colour and keeps its alpha: the image is a stencil, like a template image of UIKit.
    case template
    /// Every channel is multiplied by the colour's: white becomes the colour, black stays black.
    case multiply
}

/// Colours the image.
struct TintProcessor: ImageProcessing {
    let color: PixelColor
    let opacity: Double
    let mode: TintMode

    var identifier: String { "tint(\(color.cssString),\(opacity),\(mode))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        try ProcessorCheck.value(opacity, in: 0...1, "tint opacity")
        // A translucent colour tints less, it does not make the image translucent.
        let mix = UInt32((opacity * Double(color.alpha)).rounded())
        let solid = PixelMath.straight(color) | 0xff00_0000
        let source = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        let mode = mode
        return source.mapRows(to: source.alpha) { source, target, count in
            switch mode {
            case .template: Self.stencil(source, target: target, count: count, color: solid, mix: mix)
            case .multiply: Self.multiply(source, target: target, count: count, color: solid, mix: mix)
            }
        }
    }

    private static func stencil(
        _ source: UnsafeRawPointer, target: UnsafeMutableRawPointer, count: Int, color: UInt32, mix: UInt32
    ) {
        for x in 0..<count {
            let pixel = PixelMath.load(source + 4 &* x)
            PixelMath.store(blend(pixel, tinted: PixelMath.scale(color, pixel >> 24), mix: mix), target + 4 &* x)
        }
    }

    private static func multiply(
        _ source: UnsafeRawPointer, target: UnsafeMutableRawPointer, count: Int, color: UInt32, mix: UInt32
    ) {
        let red = color & 255, green = color >> 8 & 255, blue = color >> 16 & 255
        for x in 0..<count {
            let pixel = PixelMath.load(source + 4 &* x)
            let r = AlphaMath.multiply(pixel & 255, red), g = AlphaMath.multiply(pixel >> 8 & 255, green)
            let b = AlphaMath.multiply(pixel >> 16 & 255, blue)
            PixelMath.store(blend(pixel, tinted: pixel & 0xff00_0000 | b << 16 | g << 8 | r, mix: mix), target + 4 &* x)
        }
    }

    /// `mix` / 255 of `tinted` and the rest of `pixel`; both have one alpha, which is kept.
    @inline(__always)
    private static func blend(_ pixel: UInt32, tinted: UInt32, mix: UInt32) -> UInt32 {
        if mix == 255 { return tinted }
        let rest = 255 &- mix
        // One division for both shares, so that the rounding cannot exceed alpha.
        let r = (pixel & 255) &* rest &+ (tinted & 255) &* mix &+ 127
        let g = (pixel >> 8 & 255) &* rest &+ (tinted >> 8 & 255) &* mix &+ 127
        let b = (pixel >> 16 & 255) &* rest &+ (tinted >> 16 & 255) &* mix &+ 127
        return pixel & 0xff00_0000 | (b / 255) << 16 | (g / 255) << 8 | r / 255
    }
}
