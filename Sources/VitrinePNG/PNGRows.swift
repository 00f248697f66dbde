import VitrineImageCore

/// Rows of one PNG image, inflated and with their filters undone, in the order of the stream.
struct PNGRowReader: ~Copyable {
    private var inflater: Inflater<PNGDataSource>
    private let header: PNGHeader
    private let scratch: ScratchMemory
    private let capacity: Int
    private var above: UnsafeMutableRawPointer
    private var row: UnsafeMutableRawPointer
    /// For a filtered row that does not lie in one piece of inflated data.
    private let stash: UnsafeMutableRawPointer
    private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
    private var rowBytes = 0

    /// A reader for rows of at most `width` pixels.
    init(_ source: consuming PNGDataSource, _ header: PNGHeader, width: Int) {
        inflater = Inflater(source)
        self.header = header
        capacity = header.rowBytes(width: width) + 1 + 2 * PNGFilter.padding
        scratch = ScratchMemory(byteCount: 3 * capacity)
        let memory = scratch.bytes.baseAddress!
        above = memory
        row = memory + capacity
        stash = memory + 2 * capacity
    }

    /// Whether the data ended because the file did.
    var isTruncated: Bool { inflater.source.isTruncated }

    /// Begins an image, or a pass of one, with rows of `width` pixels.
    mutating func begin(width: Int) {
        rowBytes = header.rowBytes(width: width)
        above.initializeMemory(as: UInt8.self, repeating: 0, count: capacity)
    }

    /// The next row, valid until the call after the next. ``PNGFilter/padding`` bytes behind it may be read.
    mutating func next() throws(InflateError) -> UnsafeRawPointer {
        let filtered = try filteredRow()
        let target = row
        guard
            PNGFilter.undo(
                filtered.load(as: UInt8.self), source: filtered + 1, target: target, above: above, count: rowBytes,
                distance: header.filterDistance)
        else { throw .invalid("unknown row filter") }
        row = above
        above = target
        return UnsafeRawPointer(target)
    }

    /// Reads the end of the stream, behind the last row, where its checksum is. Data behind the last row is ignored.
    mutating func finish() throws(InflateError) {
        if piece.isEmpty { piece = try inflater.next() }
    }

    private mutating func filteredRow() throws(InflateError) -> UnsafeRawPointer {
        let count = rowBytes + 1
        if piece.count >= count, let start = piece.baseAddress {
            piece = UnsafeRawBufferPointer(rebasing: piece[count...])
            return start
        }
        var filled = 0
        while filled < count {
            if piece.isEmpty {
                piece = try inflater.next()
                guard !piece.isEmpty else { throw .invalid("the image data ends before the last row") }
            }
            let n = min(count - filled, piece.count)
            UnsafeMutableRawBufferPointer(start: stash + filled, count: n).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: piece[..<n]))
            filled += n
            piece = UnsafeRawBufferPointer(rebasing: piece[n...])
        }
        return UnsafeRawPointer(stash)
    }
}

/// The destination of decoded rows: a plane of every pixel, or of means.
protocol PNGRowSink: ~Copyable {
    /// Adds the next row of samples; 16 bytes behind it are readable.
    mutating func add(_ source: UnsafeRawPointer)
    /// Adds `count` pixels of row `y` at `x`, `x + step` and so on.
    mutating func add(_ source: UnsafeRawPointer, y: Int, x: Int, step: Int, count: Int)
    /// The plane, with zeros where nothing came.
    mutating func finish() -> PixelPlane
}

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
        _ type: UInt8, source: UnsafeRawPointer, target: UnsafeMutableRawPointer, above: UnsafeRawPointer,
        count: Int, distance: Int
    ) -> Bool {
        switch type {
        case 0:
            target.copyMemory(from: source, byteCount: count)
        case 2:
            up(source, target: target, above: above, count: count)
        case 1, 3, 4:
            switch distance {
            case 1: chained(type, source: source, target: target, above: above, count: count, distance: 1)
            case 2: chained(type, source: source, target: target, above: above, count: count, distance: 2)
            case 3: chained(type, source: source, target: target, above: above, count: count, distance: 3)
            case 4: chained(type, source: source, target: target, above: above, count: count, distance: 4)
            case 6: chained(type, source: source, target: target, above: above, count: count, distance: 6)
            default: chained(type, source: source, target: target, above: above, count: count, distance: 8)
            }
        default:
            return false
        }
        return true
    }

    @inline(__always)
    private static func chained(
        _ type: UInt8, source: UnsafeRawPointer, target: UnsafeMutableRawPointer, above: UnsafeRawPointer,
        count: Int, distance: Int
    ) {
        switch type {
        case 1: sub(source, target: target, count: count, distance: distance)
        case 3: average(source, target: target, above: above, count: count, distance: distance)
        default: paeth(source, target: target, above: above, count: count, distance: distance)
        }
    }

    private static func up(
        _ source: UnsafeRawPointer, target: UnsafeMutableRawPointer, above: UnsafeRawPointer, count: Int
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
    private static func store(v: SIMD8<UInt8>, target: UnsafeMutableRawPointer, distance: Int) {
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
        _ source: UnsafeRawPointer, target: UnsafeMutableRawPointer, count: Int, distance: Int
    ) {
        var a = SIMD8<UInt8>.zero
        var i = 0
        while i < count {
            a &+= (source + i).loadUnaligned(as: SIMD8<UInt8>.self)
            store(v: a, target: target + i, distance: distance)
            i &+= distance
        }
    }

    @inline(__always)
    private static func average(
        _ source: UnsafeRawPointer, target: UnsafeMutableRawPointer, above: UnsafeRawPointer, count: Int,
        distance: Int
    ) {
        var a = SIMD8<UInt16>.zero
        var i = 0
        while i < count {
            let b = SIMD8<UInt16>(truncatingIfNeeded: (above + i).loadUnaligned(as: SIMD8<UInt8>.self))
            let x = SIMD8<UInt16>(truncatingIfNeeded: (source + i).loadUnaligned(as: SIMD8<UInt8>.self))
            a = (x &+ (a &+ b) &>> 1) & 255
            store(v: SIMD8<UInt8>(truncatingIfNeeded: a), target: target + i, distance: distance)
            i &+= distance
        }
    }

    /// Paeth's predictor without absolute values, and with few dependencies between its steps.
    ///
    /// With t = 3c − a − b, the estimate a + b − c is nearest to the smaller of a and b if t is at least both. It is
    /// nearest to the greater if t is at most both, and to c otherwise. If two are equally near, the specification's
    /// order (a, b, c) picks the same value. Let u = 3c − b, which does not depend on a. The first condition is then
    /// a ≤ u / 2 and a ≤ u − b; the second is a ≥ u / 2 and a ≥ u − b. Both bounds are known before a is.
    @inline(__always)
    private static func paeth(
        _ source: UnsafeRawPointer, target: UnsafeMutableRawPointer, above: UnsafeRawPointer, count: Int,
        distance: Int
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
            store(v: SIMD8<UInt8>(truncatingIfNeeded: a), target: target + i, distance: distance)
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

/// The seven passes of Adam7 (PNG specification, third edition, §8.2).
enum PNGInterlacing {
    /// Where the pixels of one pass lie.
    struct Pass: Sendable {
        let x: Int
        let y: Int
        let columnStep: Int
        let rowStep: Int

        /// Pixels a row of the pass, of an image that wide.
        func columns(of width: Int) -> Int { width > x ? (width - x + columnStep - 1) / columnStep : 0 }
        /// Rows of the pass, of an image that high.
        func rows(of height: Int) -> Int { height > y ? (height - y + rowStep - 1) / rowStep : 0 }
    }

    static let passes = [
        Pass(x: 0, y: 0, columnStep: 8, rowStep: 8), Pass(x: 4, y: 0, columnStep: 8, rowStep: 8),
        Pass(x: 0, y: 4, columnStep: 4, rowStep: 8), Pass(x: 2, y: 0, columnStep: 4, rowStep: 4),
        Pass(x: 0, y: 2, columnStep: 2, rowStep: 4), Pass(x: 1, y: 0, columnStep: 2, rowStep: 2),
        Pass(x: 0, y: 1, columnStep: 1, rowStep: 2),
    ]

    /// How many passes are worth decoding when `reduction` stored pixels fall on one of the result.
    ///
    /// Five passes are every second pixel of every second row, three are every fourth; leaving the others out takes
    /// samples instead of means. At least 64 samples remain for a pixel of the result. A 12-megapixel photo then keeps
    /// 50 dB with five passes (to 200 pixels) and 48 dB with three (to 100 pixels), compared with all seven. The time
    /// is 0.27 and 0.06. Palettes and low depths are often dithered in patterns of a few pixels, which samples would
    /// turn into plain areas of a wrong colour: they get every pass.
    static func passCount(reduction: Double, header: PNGHeader) -> Int {
        guard header.colorType != .palette, header.depth >= 8 else { return 7 }
        return reduction >= 32 ? 3 : reduction >= 16 ? 5 : 7
    }

    /// Fills pixels that did not come, from `pass` and its row `row` on, with the one to the left or above that an
    /// earlier pass has: the blocky preview of an interlaced image.
    static func fill(_ plane: inout FullPlane, pass: Int, row: Int) {
        var first = row
        for index in max(1, pass)..<7 {
            let grid = passes[index]
            let columns = grid.columns(of: plane.width)
            let rows = grid.rows(of: plane.height)
            // Even-numbered passes come between columns, odd-numbered ones between rows.
            let (left, up) = index & 1 == 1 ? (grid.x, 0) : (0, grid.y)
            for r in min(first, rows)..<rows {
                for c in 0..<columns {
                    plane.repeatPixel(
                        y: grid.y + r * grid.rowStep, x: grid.x + c * grid.columnStep, left: left, up: up)
                }
            }
            first = 0
        }
    }
}
