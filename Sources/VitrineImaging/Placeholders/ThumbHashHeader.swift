/// The first 5 (with alpha 6) bytes of a ThumbHash.
struct ThumbHashHeader {
    /// Constant factors: 0…1, −1…1, −1…1 and 0…1.
    let luminance: Double, yellowBlue: Double, redGreen: Double, alpha: Double
    /// What the other factors of each channel are multiplied by.
    let luminanceScale: Double, yellowBlueScale: Double, redGreenScale: Double, alphaScale: Double
    let hasAlpha: Bool
    /// Luminance factors along the width and the height as the header states them, 1…7: their ratio is the picture's.
    let columns: Int, rows: Int
    /// Where the 4-bit factors begin.
    let factorsStart: Int

    init(_ hash: [UInt8]) throws(ImageError) {
        guard hash.count >= 5 else { throw ThumbHash.corrupt("has fewer than 5 bytes") }
        let first = Int(hash[0]) | Int(hash[1]) << 8 | Int(hash[2]) << 16
        let second = Int(hash[3]) | Int(hash[4]) << 8
        hasAlpha = first >> 23 != 0
        guard !hasAlpha || hash.count >= 6 else { throw ThumbHash.corrupt("has alpha, but not the byte for it") }
        luminance = Double(first & 63) / 63
        yellowBlue = Double(first >> 6 & 63) / 31.5 - 1
        redGreen = Double(first >> 12 & 63) / 31.5 - 1
        luminanceScale = Double(first >> 18 & 31) / 31
        yellowBlueScale = Double(second >> 3 & 63) / 63
        redGreenScale = Double(second >> 9 & 63) / 63
        alpha = hasAlpha ? Double(hash[5] & 15) / 15 : 1
        alphaScale = hasAlpha ? Double(hash[5] >> 4) / 15 : 0
        let shorter = second & 7, longer = hasAlpha ? 5 : 7
        guard shorter > 0 else { throw ThumbHash.corrupt("a side without factors") }
        let isLandscape = second >> 15 != 0
        columns = isLandscape ? longer : shorter
        rows = isLandscape ? shorter : longer
        factorsStart = hasAlpha ? 6 : 5
        let count = Self.factorCount(max(3, columns), max(3, rows)) + 2 * Self.factorCount(3, 3)
            + (hasAlpha ? Self.factorCount(5, 5) : 0)
        let expected = factorsStart + (count + 1) / 2
        guard hash.count == expected else { throw ThumbHash.corrupt("must have \(expected) bytes, not \(hash.count)") }
    }

    /// Factors of a channel with `nx` by `ny` waves, the constant one left out: the triangle of low frequencies.
    static func factorCount(_ nx: Int, _ ny: Int) -> Int {
        (0..<ny).reduce(-1) { count, y in count + (0..<nx).count { $0 * ny < nx * (ny - y) } }
    }
}
