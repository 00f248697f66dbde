/// Converts linear light of any range to sRGB.
///
/// The exposure makes the median luminance middle grey (0.18). Light above 1 is clipped. The median is of pixels
/// on a fixed grid of at most 256 by 256, without those of no light. It does not depend on the requested size, so that
/// all sizes of a picture look alike.
struct ToneMap: Sendable {
    /// Rows and columns of the grid at most.
    private static let gridSide = 256

    /// The factor of linear light.
    let exposure: Float
    private let table = SRGB.encoded

    /// - Parameter exposure: 1 for light of which 1 is white.
    init(exposure: Float = 1) {
        self.exposure = exposure
    }

    /// - Parameter luminances: Of pixels of the grid, in any order.
    init(medianOf luminances: [Float]) {
        let lights = luminances.filter { $0 > 0 && $0.isFinite }.sorted()
        let median = lights.isEmpty ? 0.18 : lights[lights.count / 2]
        self.init(exposure: min(max(0.18 / median, 0x1p-40), 0x1p40))
    }

    /// The distance of the grid's rows or columns in a side of so many pixels.
    static func step(_ side: Int) -> Int { max(1, (side + gridSide - 1) / gridSide) }

    /// Relative luminance of linear light with the primaries of sRGB (ITU-R BT.709).
    @inline(__always)
    static func luminance(_ r: Float, _ g: Float, _ b: Float) -> Float { 0.2126 * r + 0.7152 * g + 0.0722 * b }

    /// The number in 16 bits (IEEE 754 binary16); not every platform has the type.
    @inline(__always)
    static func light(_ half: UInt16) -> Float {
        let sign = UInt32(half & 0x8000) << 16
        let magnitude = UInt32(half & 0x7FFF)
        if magnitude >= 0x7C00 { return Float(bitPattern: sign | 0x7F80_0000 | (magnitude & 0x3FF) << 13) }
        // The exponent is rebased by a multiplication, which is right for subnormal numbers, too.
        return Float(bitPattern: sign | magnitude << 13) * 0x1p112
    }

    /// The encoded level; 0 if the light is not a number.
    @inline(__always)
    func level(_ light: Float) -> UInt8 {
        let value = light * exposure * 65_535 + 0.5
        return value >= 1 ? (value < 65_535 ? table[Int(value)] : 255) : 0
    }
}
