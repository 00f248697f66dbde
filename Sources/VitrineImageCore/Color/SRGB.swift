#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The sRGB transfer curve and its matrix from the profile connection space.
///
/// Source: IEC 61966-2-1; matrix: sRGB primaries adapted from D65 to D50 by the Bradford transform, inverted
/// (B. Lindbloom, "RGB/XYZ Matrices").
package enum SRGB {
    /// Rows of the matrix from XYZ relative to D50 to linear sRGB.
    static let fromXYZ: [[Float]] = [
        [3.1338561, -1.6168667, -0.4906146],
        [-0.9787684, 1.9161415, 0.0334540],
        [0.0719453, -0.2289914, 1.4052427],
    ]

    /// Linear light of an encoded value, both 0...1.
    static func decode(_ v: Double) -> Double { v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4) }

    /// The encoded level nearest to linear light of `i / 65535`.
    static let encoded: [UInt8] = {
        var table = [UInt8](repeating: 255, count: 65_536)
        var i = 0
        for level in 0..<255 {
            let end = decode((Double(level) + 0.5) / 255) * 65_535
            while i < table.count && Double(i) < end {
                table[i] = UInt8(level)
                i += 1
            }
        }
        return table
    }()

    /// Linear light, 0…1, of each encoded level.
    package static let linear: [Float] = (0..<256).map { Float(decode(Double($0) / 255)) }

    /// Returns the encoded level nearest to linear light; values beyond 0…1 are clamped. For loops use ``encoded``.
    package static func level(_ linear: Float) -> UInt8 { encoded[Int(max(0, min(1, linear)) * 65_535 + 0.5)] }

    /// Columns of ``fromXYZ``, for multiplying by adding scaled columns.
    package static let columns: (x: SIMD4<Float>, y: SIMD4<Float>, z: SIMD4<Float>) = (
        SIMD4(fromXYZ[0][0], fromXYZ[1][0], fromXYZ[2][0], 0), SIMD4(fromXYZ[0][1], fromXYZ[1][1], fromXYZ[2][1], 0),
        SIMD4(fromXYZ[0][2], fromXYZ[1][2], fromXYZ[2][2], 0)
    )
}
