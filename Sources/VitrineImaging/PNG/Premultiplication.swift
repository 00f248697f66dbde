/// Multiplying rows of 8-bit samples by their alpha.
enum Premultiplication {
    /// Multiplies colour by alpha, rounded, in `target`, which may not be `source`.
    ///
    /// - Parameter channels: 2 or 4, alpha last.
    /// - Returns: False, with nothing written, if every pixel is opaque.
    static func apply(
        _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, width: Int, channels: Int
    ) -> Bool {
        channels == 4 ? applyRGBA(source, target, width) : applyGray(source, target, width)
    }

    private static func applyGray(_ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ width: Int) -> Bool {
        let from = source.assumingMemoryBound(to: UInt8.self)
        let to = target.assumingMemoryBound(to: UInt8.self)
        for x in 0..<width {
            let a = UInt32(from[x &* 2 &+ 1])
            to[x &* 2] = UInt8(truncatingIfNeeded: AlphaMath.multiply(UInt32(from[x &* 2]), a))
            to[x &* 2 &+ 1] = UInt8(truncatingIfNeeded: a)
        }
        return true
    }

    private static func applyRGBA(_ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ width: Int) -> Bool {
        var all = SIMD4<UInt32>(repeating: .max)
        var x = 0
        while x &+ 4 <= width {
            all &= (source + x &* 4).loadUnaligned(as: SIMD4<UInt32>.self)
            x &+= 4
        }
        var opaque = (all[0] & all[1] & all[2] & all[3]).littleEndian >> 24 == 255
        while x < width {
            if (source + x &* 4 + 3).load(as: UInt8.self) != 255 { opaque = false }
            x &+= 1
        }
        if opaque { return false }
        AlphaMath.premultiply(source, into: target, count: width)
        return true
    }
}
