/// BlurHash: a blurred impression of a picture in 6 to 166 characters of text, for showing until the picture is there.
///
/// It knows neither transparency nor the picture's shape; ``ThumbHash`` knows both.
///
/// Source: the algorithm description of BlurHash by Wolt (`Algorithm.md` of woltapp/blurhash): a small discrete cosine
/// transform of linear light, quantised and written in base 83.
public enum BlurHash {
    /// Waves a hash can hold along each side.
    static let componentRange = 1...9

    /// How many waves along the width and along the height a hash holds.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` unless `hash` has a BlurHash's characters and length.
    public static func components(of hash: String) throws(ImageError) -> (x: Int, y: Int) {
        let digits = try Base83.digits(hash)
        return try components(of: digits)
    }

    /// The mean colour, which a hash holds exactly.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a BlurHash.
    public static func averageColor(of hash: String) throws(ImageError) -> Color {
        let digits = try Base83.digits(hash)
        _ = try components(of: digits)
        return try mean(of: digits)
    }

    static func components(of digits: [Int]) throws(ImageError) -> (x: Int, y: Int) {
        guard digits.count >= 6 else { throw corrupt("has fewer than 6 characters") }
        guard digits[0] < 81 else { throw corrupt("its first character stands for no number of components") }
        let x = digits[0] % 9 + 1, y = digits[0] / 9 + 1
        guard digits.count == 4 + 2 * x * y else {
            throw corrupt("\(x) by \(y) components take \(4 + 2 * x * y) characters, not \(digits.count)")
        }
        return (x, y)
    }

    static func mean(of digits: [Int]) throws(ImageError) -> Color {
        let value = Base83.number(digits[2..<6])
        guard value < 1 << 24 else { throw corrupt("its mean colour is out of range") }
        return Color(
            red: UInt8(truncatingIfNeeded: value >> 16), green: UInt8(truncatingIfNeeded: value >> 8),
            blue: UInt8(truncatingIfNeeded: value))
    }

    static func corrupt(_ reason: String) -> ImageError { .corrupt(input: "BlurHash", reason: reason) }
}
