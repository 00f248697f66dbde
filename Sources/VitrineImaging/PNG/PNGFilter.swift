/// Undoing the row filters of PNG (PNG specification, third edition, §9).
///
/// All kernels work on eight lanes, of which a pixel uses as many as it has bytes: the chain from one pixel to the next
/// has the same length for one lane as for eight. They read and write up to eight bytes behind a row.
enum PNGFilter {
    /// Bytes behind each row that the kernels may touch.
    static let padding = 32

    /// Undoes one row.
    ///
    /// - Parameters:
    ///   - type: The filter byte.
    ///   - source: The filtered row.
    ///   - target: Where the row goes; not `source` and not `above`.
    ///   - above: The row before, zeros for the first.
    ///   - distance: Bytes from one pixel to the next: 1, 2, 3, 4, 6 or 8.
    /// - Returns: False if there is no such filter.
    static func undo(
        _ type: UInt8, _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ above: UnsafeRawPointer,
        count: Int, distance: Int
    ) -> Bool {
        switch type {
        case 0:
            target.copyMemory(from: source, byteCount: count)
        case 2:
            up(source, target, above, count)
        case 1, 3, 4:
            switch distance {
            case 1: chained(type, source, target, above, count, 1)
            case 2: chained(type, source, target, above, count, 2)
            case 3: chained(type, source, target, above, count, 3)
            case 4: chained(type, source, target, above, count, 4)
            case 6: chained(type, source, target, above, count, 6)
            default: chained(type, source, target, above, count, 8)
            }
        default:
            return false
        }
        return true
    }

    @inline(__always)
    private static func chained(
        _ type: UInt8, _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ above: UnsafeRawPointer,
        _ count: Int, _ distance: Int
    ) {
        switch type {
        case 1: sub(source, target, count, distance)
        case 3: average(source, target, above, count, distance)
        default: paeth(source, target, above, count, distance)
        }
    }

    private static func up(
        _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ above: UnsafeRawPointer, _ count: Int
    ) {
        var i = 0
        while i < count {
            let x = (source + i).loadUnaligned(as: SIMD16<UInt8>.self)
            let b = (above + i).loadUnaligned(as: SIMD16<UInt8>.self)
            (target + i).storeBytes(of: x &+ b, as: SIMD16<UInt8>.self)
            i &+= 16
        }
    }

    /// Stores the lanes of one pixel; for 3 and 6 bytes also bytes of the next one, which is written afterwards.
    @inline(__always)
    private static func store(_ v: SIMD8<UInt8>, _ target: UnsafeMutableRawPointer, _ distance: Int) {
        let word = unsafeBitCast(v, to: UInt64.self)
        switch distance {
        case 1: target.storeBytes(of: UInt8(truncatingIfNeeded: word), as: UInt8.self)
        case 2: target.storeBytes(of: UInt16(truncatingIfNeeded: word), as: UInt16.self)
        case 3, 4: target.storeBytes(of: UInt32(truncatingIfNeeded: word), as: UInt32.self)
        default: target.storeBytes(of: word, as: UInt64.self)
        }
    }

    @inline(__always)
    private static func sub(
        _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ count: Int, _ distance: Int
    ) {
        var a = SIMD8<UInt8>.zero
        var i = 0
        while i < count {
            a &+= (source + i).loadUnaligned(as: SIMD8<UInt8>.self)
            store(a, target + i, distance)
            i &+= distance
        }
    }

    @inline(__always)
    private static func average(
        _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ above: UnsafeRawPointer, _ count: Int,
        _ distance: Int
    ) {
        var a = SIMD8<UInt16>.zero
        var i = 0
        while i < count {
            let b = SIMD8<UInt16>(truncatingIfNeeded: (above + i).loadUnaligned(as: SIMD8<UInt8>.self))
            let x = SIMD8<UInt16>(truncatingIfNeeded: (source + i).loadUnaligned(as: SIMD8<UInt8>.self))
            a = (x &+ (a &+ b) &>> 1) & 255
            store(SIMD8<UInt8>(truncatingIfNeeded: a), target + i, distance)
            i &+= distance
        }
    }

    /// Paeth's predictor without absolute values, with next to nothing to wait for.
    ///
    /// The estimate a + b − c is nearest to the smaller of a and b when t = 3c − a − b is at least both, to the greater
    /// when it is at most both, and to c in between; where it is as near to two of them the specification's order
    /// (a, b, c) picks the same value. With u = 3c − b, which does not depend on a, the first is a ≤ u / 2 and
    /// a ≤ u − b, the second a ≥ u / 2 and a ≥ u − b: two comparisons with what is known before a is.
    @inline(__always)
    private static func paeth(
        _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ above: UnsafeRawPointer, _ count: Int,
        _ distance: Int
    ) {
        var a = SIMD8<Int16>.zero
        var c = SIMD8<Int16>.zero
        var i = 0
        while i < count {
            let b = SIMD8<Int16>(truncatingIfNeeded: (above + i).loadUnaligned(as: SIMD8<UInt8>.self))
            let x = SIMD8<Int16>(truncatingIfNeeded: (source + i).loadUnaligned(as: SIMD8<UInt8>.self))
            let u = c &+ c &+ c &- b
            let most = pointwiseMin(u &>> 1, u &- b)
            let least = pointwiseMax((u &+ 1) &>> 1, u &- b)
            let isSmaller = mask(a .<= most), isGreater = mask(a .>= least)
            // Where both hold, a and b are the same.
            let predicted = (isSmaller & pointwiseMin(a, b)) | (isGreater & pointwiseMax(a, b))
                | (c & ~(isSmaller | isGreater))
            a = addBytes(x, predicted)
            c = b
            store(SIMD8<UInt8>(truncatingIfNeeded: a), target + i, distance)
            i &+= distance
        }
    }

    /// All bits of the lanes where it is so.
    @inline(__always)
    private static func mask(_ isSo: SIMDMask<SIMD8<Int16>>) -> SIMD8<Int16> {
        SIMD8<Int16>.zero.replacing(with: -1, where: isSo)
    }

    /// Sums of lanes that hold a byte each, modulo 256.
    @inline(__always)
    private static func addBytes(_ a: SIMD8<Int16>, _ b: SIMD8<Int16>) -> SIMD8<Int16> {
        unsafeBitCast(
            unsafeBitCast(a, to: SIMD16<UInt8>.self) &+ unsafeBitCast(b, to: SIMD16<UInt8>.self),
            to: SIMD8<Int16>.self)
    }
}
