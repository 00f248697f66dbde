/// Blurs.
struct BlurProcessor: ImageProcessing {
    let radius: Double

    var identifier: String { "blur(\(radius))" }

    func process(_ image: Image) throws(ImageError) -> Image {
        try ProcessorCheck.value(radius, in: 0...500, "blur radius")
        if radius == 0 { return image }
        // Straight alpha would let the colour of invisible pixels bleed out.
        var result = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        GaussianBlur(sigma: radius).apply(to: &result)
        return result
    }
}
