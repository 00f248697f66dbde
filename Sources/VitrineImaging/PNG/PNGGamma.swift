#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Correction of samples for a gAMA chunk that says something other than sRGB.
enum PNGGamma {
    /// The samples an encoder for a display of gamma 2.2 would have written for each sample of the file, or nil if that
    /// makes no visible difference.
    ///
    /// - Parameter gamma: 100,000 times the encoding exponent, 45,455 being 1/2.2 (PNG specification, third edition,
    ///   §11.3.2.2 and §13.13). Differences of less than a twentieth are left alone, as by libpng.
    static func table(_ gamma: UInt32) -> [UInt8]? {
        guard gamma >= 16, gamma <= 625_000_000 else { return nil }
        let exponent = 100_000 / (Double(gamma) * 2.2)
        guard abs(exponent - 1) >= 0.05 else { return nil }
        return (0..<256).map { UInt8(min(255, max(0, pow(Double($0) / 255, exponent) * 255 + 0.5))) }
    }

    /// Corrects all colour samples of a plane that nobody else can see yet.
    static func apply(_ table: [UInt8], to plane: PixelPlane, isPremultiplied: Bool) {
        let hasAlpha = plane.channels & 1 == 0
        let colors = hasAlpha ? plane.channels - 1 : plane.channels
        table.withUnsafeBufferPointer { table in
            for y in 0..<plane.height {
                let start = y * plane.bytesPerRow
                let row = UnsafeMutableRawBufferPointer(
                    rebasing: plane.storage.bytes[start..<(start + plane.width * plane.channels)])
                for x in 0..<plane.width {
                    let at = x &* plane.channels
                    let alpha = hasAlpha && isPremultiplied ? Int(row[at &+ colors]) : 255
                    guard alpha > 0 else { continue }
                    for c in at..<(at &+ colors) {
                        let straight = alpha == 255 ? Int(row[c]) : min(255, (Int(row[c]) &* 255 &+ alpha / 2) / alpha)
                        let corrected = Int(table[straight])
                        row[c] = UInt8(truncatingIfNeeded: alpha == 255 ? corrected : (corrected &* alpha &+ 127) / 255)
                    }
                }
            }
        }
    }
}
