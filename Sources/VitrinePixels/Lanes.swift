/// Conversions between vectors, lane by lane.
///
/// The standard library has them as generic functions. The optimizer does not inline these in a module that uses them
/// often, and a call in the innermost loop makes it six times slower. The functions here are always inlined, and the
/// compiler turns them into single instructions.
public enum Lanes {
    /// Returns each lane at 32 bits.
    @inlinable @inline(__always)
    public static func widen(_ v: SIMD8<Int16>) -> SIMD8<Int32> {
        SIMD8(
            Int32(v[0]), Int32(v[1]), Int32(v[2]), Int32(v[3]), Int32(v[4]), Int32(v[5]), Int32(v[6]), Int32(v[7]))
    }

    /// Returns each lane at 32 bits.
    @inlinable @inline(__always)
    public static func widen(_ v: SIMD8<UInt8>) -> SIMD8<Int32> {
        SIMD8(
            Int32(v[0]), Int32(v[1]), Int32(v[2]), Int32(v[3]), Int32(v[4]), Int32(v[5]), Int32(v[6]), Int32(v[7]))
    }

    /// Returns the low half of each lane.
    @inlinable @inline(__always)
    public static func narrow(_ v: SIMD8<Int32>) -> SIMD8<Int16> {
        SIMD8(
            Int16(truncatingIfNeeded: v[0]), Int16(truncatingIfNeeded: v[1]), Int16(truncatingIfNeeded: v[2]),
            Int16(truncatingIfNeeded: v[3]), Int16(truncatingIfNeeded: v[4]), Int16(truncatingIfNeeded: v[5]),
            Int16(truncatingIfNeeded: v[6]), Int16(truncatingIfNeeded: v[7]))
    }

    /// Returns each lane as a level, clamped to 0...255.
    @inlinable @inline(__always)
    public static func level(_ v: SIMD8<Int16>) -> SIMD8<UInt8> {
        let zero = SIMD8<Int16>(repeating: 0), most = SIMD8<Int16>(repeating: 255)
        let low = v.replacing(with: zero, where: v .< zero)
        let w = low.replacing(with: most, where: low .> most)
        return SIMD8(
            UInt8(truncatingIfNeeded: w[0]), UInt8(truncatingIfNeeded: w[1]), UInt8(truncatingIfNeeded: w[2]),
            UInt8(truncatingIfNeeded: w[3]), UInt8(truncatingIfNeeded: w[4]), UInt8(truncatingIfNeeded: w[5]),
            UInt8(truncatingIfNeeded: w[6]), UInt8(truncatingIfNeeded: w[7]))
    }

    /// Returns each lane, clamped to 0...255.
    @inlinable @inline(__always)
    public static func clamp(_ v: SIMD8<Int32>) -> SIMD8<Int32> {
        let zero = SIMD8<Int32>(repeating: 0), most = SIMD8<Int32>(repeating: 255)
        let low = v.replacing(with: zero, where: v .< zero)
        return low.replacing(with: most, where: low .> most)
    }

    /// Returns the high half of each product: `a * b / 65,536`, rounded down.
    @inlinable @inline(__always)
    public static func multiplyHigh(_ a: SIMD8<Int16>, _ b: SIMD8<Int16>) -> SIMD8<Int16> {
        narrow((widen(a) &* widen(b)) &>> SIMD8<Int32>(repeating: 16))
    }
}
