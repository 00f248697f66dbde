/// Puts a colour behind the picture.
struct BackgroundProcessor: ImageProcessing {
    let color: Color

    var identifier: String { "background(\(color.cssString))" }

    func process(_ image: Image) throws(ImageError) -> Image { image.composed(over: color) }
}

extension Image {
    /// The picture with `color` behind it, without any transparency left; an opaque picture as it is.
    ///
    /// Only the red, green and blue of `color` count. For encoders of formats without alpha.
    public func flattened(over color: Color) -> Image {
        composed(over: Color(red: color.red, green: color.green, blue: color.blue))
    }

    /// The picture over a colour that may itself be translucent.
    func composed(over color: Color) -> Image {
        if alpha == .opaque { return self }
        let background = PixelMath.premultiplied(color)
        let result: Alpha = color.alpha == 255 ? .opaque : .premultiplied
        if alpha == .straight {
            return mapPixels(to: result) { PixelMath.over(PixelMath.premultiply($0), background) }
        }
        return mapPixels(to: result) { PixelMath.over($0, background) }
    }
}

/// Replaces colours by their luma.
struct GrayscaleProcessor: ImageProcessing {
    var identifier: String { "grayscale" }

    func process(_ image: Image) throws(ImageError) -> Image {
        image.mapPixels(to: image.alpha) { pixel in
            // ITU-R BT.709-6 §3.2: 0.2126 R′ + 0.7152 G′ + 0.0722 B′, in 1/65,536.
            let luma = ((pixel & 255) &* 13_933 &+ (pixel >> 8 & 255) &* 46_871 &+ (pixel >> 16 & 255) &* 4_732
                &+ 32_768) >> 16
            return pixel & 0xff00_0000 | luma &* 0x01_0101
        }
    }
}

/// How ``ImageProcessor/tint(_:opacity:mode:)`` colours a picture.
public enum TintMode: String, Sendable, Hashable, Codable, CaseIterable {
    /// Every pixel takes the colour and keeps its alpha: the picture is a stencil, as a template image is to UIKit.
    case template
    /// Every channel is multiplied by the colour's: white becomes the colour, black stays black.
    case multiply
}

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
