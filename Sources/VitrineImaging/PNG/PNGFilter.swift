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

    /// Paeth's predictor without absolute values. With `t = 3c − a − b`, the estimate a + b − c is nearest to the
    /// greater of a and b when t ≤ min(a, b), to the smaller when t ≥ max(a, b), and to c in between; where it is as
    /// near to two of them the specification's order (a, b, c) picks the same value.
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
            let t = (c &+ c &+ c &- b) &- a
            let low = pointwiseMin(a, b)
            let high = pointwiseMax(a, b)
            let predicted = c.replacing(with: low, where: high .<= t).replacing(with: high, where: t .<= low)
            a = (x &+ predicted) & 255
            c = b
            store(SIMD8<UInt8>(truncatingIfNeeded: a), target + i, distance)
            i &+= distance
        }
    }
}
