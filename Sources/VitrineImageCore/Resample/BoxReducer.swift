/// Averages blocks of samples, usually `factor` × `factor`, while rows arrive. An image is reduced without ever being
/// in memory as a whole.
///
/// Each result is the mean of its block, rounded to nearest (halves up) and exact: sums are kept whole until the one
/// division. Blocks cut off by the right or lower edge are means of the samples that exist. With a factor of 1 the
/// reducer only converts depth and range.
///
/// The result's extent is `width / factor` by `height / factor`, as ``PixelPlane/extentWidth`` wants it.
package struct BoxReducer: ~Copyable {
    /// The conversion of a mean of input samples to a byte: `(mean * multiplier + bias) / divisor`, rounded and
    /// clamped.
    package struct Scale: Sendable, Hashable {
        package var multiplier: Int
        package var bias: Int
        package var divisor: Int

        package init(multiplier: Int, bias: Int, divisor: Int) {
            precondition(multiplier > 0 && multiplier <= 255 && divisor > 0 && divisor <= 65_535 && abs(bias) < 1 << 24)
            self.multiplier = multiplier
            self.bias = bias
            self.divisor = divisor
        }

        /// Bytes stay as they are.
        package static let identity = Scale(multiplier: 1, bias: 0, divisor: 1)
    }

    /// Samples a row of the result, and its rows.
    package let outputWidth: Int
    package let outputHeight: Int
    private let width: Int
    private let height: Int
    private let channels: Int
    private let factor: Int
    private let verticalFactor: Int
    private let scale: Scale
    private let output: PixelStorage
    /// Sums down the columns of the current block row: 16 bits each for bytes, 32 bits each for words.
    private let columns: UnsafeMutableRawPointer
    /// Sums of whole blocks; needed beside `columns` only because 16 bits overflow after 257 rows of bytes.
    private let blocks: UnsafeMutablePointer<UInt64>
    private var rowsInColumns = 0
    private var rowsInBlock = 0
    /// Rows taken so far.
    package private(set) var row = 0
    /// Rows of the result that are complete.
    package private(set) var outputRow = 0

    /// 257 × 255 is the most that 16 bits hold; 256 is a multiple of the group of four.
    private static let byteRowsBeforeFlush = 256

    /// A reducer for `height` rows of `width` samples of `channels` interleaved channels. Traps unless all are
    /// positive.
    ///
    /// - Parameter verticalFactor: Rows a block, where they differ from its columns (4:2:2 chroma).
    package init(
        width: Int, height: Int, channels: Int = 1, factor: Int, verticalFactor: Int? = nil, scale: Scale = .identity
    ) {
        precondition(width > 0 && height > 0 && channels > 0 && factor > 0, "a reducer needs a picture")
        precondition((verticalFactor ?? 1) > 0, "a block has at least one row")
        self.width = width
        self.height = height
        self.channels = channels
        self.factor = min(factor, 65_535)
        self.verticalFactor = min(verticalFactor ?? factor, 65_535)
        self.scale = scale
        outputWidth = (width - 1) / self.factor + 1
        outputHeight = (height - 1) / self.verticalFactor + 1
        output = PixelStorage(zeroedByteCount: outputWidth * outputHeight * channels)
        columns = .allocate(byteCount: width * channels * MemoryLayout<UInt32>.stride, alignment: 16)
        blocks = .allocate(capacity: outputWidth * channels)
        blocks.initialize(repeating: 0, count: outputWidth * channels)
    }

    deinit {
        columns.deallocate()
        blocks.deallocate()
    }

    /// Takes the next `count` rows of bytes; rows beyond the height are ignored.
    package mutating func add(rows: UnsafePointer<UInt8>, count: Int, bytesPerRow: Int) {
        var next = rows
        var left = min(count, height - row)
        let n = width * channels
        let sums = columns.assumingMemoryBound(to: UInt16.self)
        if factor == 1, verticalFactor == 1, scale == .identity {
            for _ in 0..<max(0, left) {
                (output.bytes.baseAddress! + row * n).copyMemory(from: next, byteCount: n)
                next += bytesPerRow
                row += 1
                outputRow += 1
            }
            return
        }
        while left > 0 {
            let available = min(left, verticalFactor - rowsInBlock, BoxReducer.byteRowsBeforeFlush - rowsInColumns)
            let taken = available >= 4 ? 4 : 1
            if taken == 4 {
                BoxReducer.addFour(next, bytesPerRow, into: sums, count: n, fresh: rowsInColumns == 0)
            } else {
                BoxReducer.addOne(next, into: sums, count: n, fresh: rowsInColumns == 0)
            }
            next += bytesPerRow * taken
            left -= taken
            advance(by: taken, isWide: false)
        }
    }

    /// Takes the next `count` rows of 16-bit samples in native byte order; rows beyond the height are ignored.
    package mutating func add(rows: UnsafePointer<UInt16>, count: Int, bytesPerRow: Int) {
        var next = UnsafeRawPointer(rows)
        let n = width * channels
        hasWords = true
        let sums = columns.assumingMemoryBound(to: UInt32.self)
        for _ in 0..<max(0, min(count, height - row)) {
            let samples = next.assumingMemoryBound(to: UInt16.self)
            if rowsInColumns == 0 {
                for x in 0..<n { sums[x] = UInt32(samples[x]) }
            } else {
                for x in 0..<n { sums[x] &+= UInt32(samples[x]) }
            }
            next += bytesPerRow
            advance(by: 1, isWide: true)
        }
    }

    /// Returns the result. When rows are missing, the unfinished block is the mean of its rows so far, and the rows of
    /// the result below it are `fill`.
    package consuming func finish(fill: UInt8 = 0) -> PixelPlane {
        let n = outputWidth * channels
        if outputRow < outputHeight, rowsInBlock > 0 { emit() }
        if outputRow < outputHeight {
            (output.bytes.baseAddress! + outputRow * n)
                .initializeMemory(as: UInt8.self, repeating: fill, count: (outputHeight - outputRow) * n)
        }
        return PixelPlane(
            width: outputWidth, height: outputHeight, channels: channels,
            extent: (Double(width) / Double(factor), Double(height) / Double(verticalFactor)),
            storage: output)
    }

    private mutating func advance(by taken: Int, isWide: Bool) {
        rowsInColumns += taken
        rowsInBlock += taken
        row += taken
        let isComplete = rowsInBlock == verticalFactor || row == height
        if isComplete || (!isWide && rowsInColumns == BoxReducer.byteRowsBeforeFlush) {
            isWide
                ? flush(columns.assumingMemoryBound(to: UInt32.self))
                : flush(columns.assumingMemoryBound(to: UInt16.self))
            rowsInColumns = 0
        }
        pendingIsWide = isWide
        if isComplete { emit() }
    }

    /// Whether any row was one of words, whose totals can be larger than those of bytes.
    private var hasWords = false

    /// Whether `columns` holds words, for finishing an image that ends within a block.
    private var pendingIsWide = false

    /// Adds the column sums of each block to its total.
    private func flush<T: FixedWidthInteger & UnsignedInteger>(_ sums: UnsafeMutablePointer<T>) {
        var block = blocks
        var x = 0
        while x < width {
            let end = min(x + factor, width)
            switch channels {
            case 1:
                var a: UInt64 = 0
                for i in x..<end { a &+= UInt64(truncatingIfNeeded: sums[i]) }
                block[0] &+= a
            case 3:
                var (a, b, c): (UInt64, UInt64, UInt64) = (0, 0, 0)
                for i in x..<end {
                    a &+= UInt64(truncatingIfNeeded: sums[3 &* i])
                    b &+= UInt64(truncatingIfNeeded: sums[3 &* i &+ 1])
                    c &+= UInt64(truncatingIfNeeded: sums[3 &* i &+ 2])
                }
                block[0] &+= a
                block[1] &+= b
                block[2] &+= c
            case 4:
                var (a, b, c, d): (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
                for i in x..<end {
                    a &+= UInt64(truncatingIfNeeded: sums[4 &* i])
                    b &+= UInt64(truncatingIfNeeded: sums[4 &* i &+ 1])
                    c &+= UInt64(truncatingIfNeeded: sums[4 &* i &+ 2])
                    d &+= UInt64(truncatingIfNeeded: sums[4 &* i &+ 3])
                }
                block[0] &+= a
                block[1] &+= b
                block[2] &+= c
                block[3] &+= d
            default:
                for i in x..<end {
                    for c in 0..<channels { block[c] &+= UInt64(truncatingIfNeeded: sums[i &* channels &+ c]) }
                }
            }
            block += channels
            x = end
        }
    }

    /// Divides the totals of the current block row and starts the next.
    private mutating func emit() {
        if rowsInColumns > 0 {
            pendingIsWide
                ? flush(columns.assumingMemoryBound(to: UInt32.self))
                : flush(columns.assumingMemoryBound(to: UInt16.self))
            rowsInColumns = 0
        }
        let target = (output.bytes.baseAddress! + outputRow * outputWidth * channels)
            .assumingMemoryBound(to: UInt8.self)
        let whole = width / factor
        let inner = Quotient(count: factor * rowsInBlock, scale: scale)
        if inner.isPlainMean, !hasWords {
            for i in 0..<(whole * channels) { target[i] = inner.mean(blocks[i]) }
        } else {
            for i in 0..<(whole * channels) { target[i] = inner(blocks[i]) }
        }
        if whole < outputWidth {
            let edge = Quotient(count: (width - whole * factor) * rowsInBlock, scale: scale)
            for i in (whole * channels)..<(outputWidth * channels) { target[i] = edge(blocks[i]) }
        }
        blocks.update(repeating: 0, count: outputWidth * channels)
        rowsInBlock = 0
        outputRow += 1
    }

    private static func addOne(
        _ row: UnsafePointer<UInt8>, into sums: UnsafeMutablePointer<UInt16>, count: Int, fresh: Bool
    ) {
        if fresh {
            for x in 0..<count { sums[x] = UInt16(row[x]) }
        } else {
            for x in 0..<count { sums[x] &+= UInt16(row[x]) }
        }
    }

    /// Four rows at once: a quarter of the loads and stores of the sums.
    private static func addFour(
        _ row: UnsafePointer<UInt8>, _ stride: Int, into sums: UnsafeMutablePointer<UInt16>, count: Int, fresh: Bool
    ) {
        let (a, b, c, d) = (row, row + stride, row + 2 * stride, row + 3 * stride)
        if fresh {
            for x in 0..<count { sums[x] = (UInt16(a[x]) &+ UInt16(b[x])) &+ (UInt16(c[x]) &+ UInt16(d[x])) }
        } else {
            for x in 0..<count { sums[x] &+= (UInt16(a[x]) &+ UInt16(b[x])) &+ (UInt16(c[x]) &+ UInt16(d[x])) }
        }
    }
}

extension BoxReducer {
    /// A division by one number, many times: multiplication by the rounded-up reciprocal, which is exact for dividends
    /// below 2³¹ (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994, §4).
    struct Quotient {
        private let multiplier: Int
        private let addend: Int
        private let divisor: Int
        private let reciprocal: UInt64
        private let shift: UInt64

        init(count: Int, scale: Scale) {
            multiplier = scale.multiplier
            divisor = count &* scale.divisor
            addend = count &* scale.bias &+ divisor / 2
            let bits = UInt64(Int.bitWidth - (divisor &- 1).leadingZeroBitCount)
            shift = 31 + bits
            reciprocal = shift < 63 ? (1 << shift) / UInt64(divisor) + 1 : 0
        }

        /// Whether ``mean(_:)`` does: totals of bytes are not scaled, and fit 31 bits.
        var isPlainMean: Bool {
            multiplier == 1 && addend == divisor / 2 && divisor <= 1 << 22 && reciprocal != 0
        }

        /// The mean of `count` bytes, without the cases that it cannot be.
        @inline(__always)
        func mean(_ total: UInt64) -> UInt8 {
            let dividend = UInt64(UInt32(truncatingIfNeeded: total) &+ UInt32(truncatingIfNeeded: addend))
            return UInt8(truncatingIfNeeded: (dividend &* reciprocal) &>> shift)
        }

        @inline(__always)
        func callAsFunction(_ total: UInt64) -> UInt8 {
            let dividend = Int(truncatingIfNeeded: total) &* multiplier &+ addend
            if dividend < 0 { return 0 }
            let quotient =
                dividend < 1 << 31 && reciprocal != 0
                ? (UInt64(truncatingIfNeeded: dividend) &* reciprocal) &>> shift
                : UInt64(truncatingIfNeeded: dividend / divisor)
            return UInt8(truncatingIfNeeded: min(quotient, 255))
        }
    }
}
