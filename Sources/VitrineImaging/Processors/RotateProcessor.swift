#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Turns the picture clockwise.
struct RotateProcessor: ImageProcessing {
    let degrees: Double
    let background: Color

    var identifier: String { "rotate(\(degrees),\(background.cssString))" }

    func process(_ image: Image) throws(ImageError) -> Image {
        try ProcessorCheck.value(degrees, in: -360_000...360_000, "angle")
        var angle = degrees.truncatingRemainder(dividingBy: 360)
        if angle < 0 { angle += 360 }
        let right = image.width - 1, bottom = image.height - 1
        switch angle {
        case 0, 360: return image
        case 90: return image.moved(to: image.size.transposed) { ($1, bottom &- $0) }
        case 180: return image.moved(to: image.size) { (right &- $0, bottom &- $1) }
        case 270: return image.moved(to: image.size.transposed) { (right &- $1, $0) }
        default: return try turned(image, by: angle * .pi / 180)
        }
    }

    private func turned(_ image: Image, by radians: Double) throws(ImageError) -> Image {
        let source = image.converted(to: .premultiplied)
        let width = Double(image.width), height = Double(image.height)
        let sine = sin(radians), cosine = cos(radians)
        // What rounding adds to a side of whole pixels must not cost another pixel.
        let size = PixelSize(
            width: Int((width * abs(cosine) + height * abs(sine) - 1e-6).rounded(.up)),
            height: Int((width * abs(sine) + height * abs(cosine) - 1e-6).rounded(.up)))
        try ProcessorCheck.outputSide(size, "rotated image")
        let centreX = Double(size.width) / 2, centreY = Double(size.height) / 2
        // The inverse map, around both centres.
        let sampler = AffineSampler(
            origin: (width / 2 - centreX * cosine - centreY * sine, height / 2 + centreX * sine - centreY * cosine),
            alongRow: (cosine, -sine), alongColumn: (sine, cosine))
        return sampler.draw(source, size: size).composed(over: background)
    }
}
