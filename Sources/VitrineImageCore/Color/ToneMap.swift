/// Converts linear light of any range to sRGB: light of 1 becomes white, and ``DisplayLight`` maps brighter light.
package struct ToneMap: Sendable {
    private let table = SRGB.encoded

    package init() {}

    /// Relative luminance of linear light with the primaries of sRGB (ITU-R BT.709).
    @inline(__always)
    package static func luminance(r: Float, g: Float, b: Float) -> Float { 0.2126 * r + 0.7152 * g + 0.0722 * b }

    /// The number in 16 bits (IEEE 754 binary16); not every platform has the type.
    @inline(__always)
    package static func light(_ half: UInt16) -> Float {
        let sign = UInt32(half & 0x8000) << 16
        let magnitude = UInt32(half & 0x7FFF)
        if magnitude >= 0x7C00 { return Float(bitPattern: sign | 0x7F80_0000 | (magnitude & 0x3FF) << 13) }
        // The exponent is rebased by a multiplication, which is right for subnormal numbers, too.
        return Float(bitPattern: sign | magnitude << 13) * 0x1p112
    }

    /// The encoded level of grey light; 0 if it is not a number.
    @inline(__always)
    package func level(_ light: Float) -> UInt8 { encoded(DisplayLight.shown(SIMD4(light, light, light, 0)).y) }

    /// Writes the encoded levels of a colour.
    @inline(__always)
    package func write(red: Float, green: Float, blue: Float, to pixel: UnsafeMutablePointer<UInt8>) {
        let shown = DisplayLight.shown(SIMD4(red, green, blue, 0))
        (pixel[0], pixel[1], pixel[2]) = (encoded(shown.x), encoded(shown.y), encoded(shown.z))
    }

    /// - Parameter light: A number of 0...1.
    @inline(__always)
    private func encoded(_ light: Float) -> UInt8 { table[Int(light * 65_535 + 0.5)] }
}
