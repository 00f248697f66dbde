/// ThumbHash: a blurred impression of a picture, its shape and its transparency in 5 to 25 bytes, for showing until the
/// picture is there.
///
/// Source: ThumbHash by Evan Wallace (evanw.github.io/thumbhash and the format notes of its reference): luminance, two
/// colour differences and alpha as small triangles of cosine factors, 4 bits each.
public enum ThumbHash {
    /// Width over height, rounded to sevenths (fifths when the picture has alpha).
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a ThumbHash.
    public static func aspectRatio(of hash: [UInt8]) throws(ImageError) -> Double {
        let header = try ThumbHashHeader(hash)
        return Double(header.columns) / Double(header.rows)
    }

    /// The mean colour and alpha.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a ThumbHash.
    public static func averageColor(of hash: [UInt8]) throws(ImageError) -> Color {
        let header = try ThumbHashHeader(hash)
        let (red, green, blue) = rgb(header.luminance, header.yellowBlue, header.redGreen)
        func byte(_ value: Double) -> UInt8 { UInt8(max(0, min(1, value)) * 255 + 0.5) }
        return Color(red: byte(red), green: byte(green), blue: byte(blue), alpha: byte(header.alpha))
    }

    /// Red, green and blue from luminance (R + G + B) / 3, yellow-blue (R + G) / 2 − B and red-green R − G.
    static func rgb(_ l: Double, _ p: Double, _ q: Double) -> (Double, Double, Double) {
        let blue = l - 2 / 3 * p
        let red = (3 * l - blue + q) / 2
        return (red, red - q, blue)
    }

    static func corrupt(_ reason: String) -> ImageError { .corrupt(input: "ThumbHash", reason: reason) }
}
