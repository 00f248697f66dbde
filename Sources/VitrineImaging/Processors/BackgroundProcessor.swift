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
