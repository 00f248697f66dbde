import CVitrinePixels
import VitrineCore

/// One run of the resampler: the tables, and the loops over them.
struct ResampleJob {
    typealias Vector = ResampleRows.Vector

    let rows: ResampleRows
    let across: ResampleWeights
    let down: ResampleWeights
    let size: PixelSize

    /// Scratch memory, allocated once a run.
    private struct Scratch {
        let columns: ResampleColumns
        /// Eight result lines, interleaved sample by sample.
        let result: UnsafeMutablePointer<SIMD8<UInt8>>
        let sums: UnsafeMutablePointer<UInt32>

        func deallocate() {
            columns.deallocate()
            result.deallocate()
            sums.deallocate()
        }
    }

    /// The rows of a plane: the address of the first of those that a row of the ring is made of. Asked for from above
    /// to below; nil ends the run.
    typealias Source = (Int) -> UnsafePointer<UInt8>?

    /// The scaled plane, or nil when cancelled.
    func run(_ plane: PixelPlane, _ cancellation: CancellationToken?) -> PixelPlane? {
        plane.storage.withUnsafeBytes { source in
            guard let source = source.bindMemory(to: UInt8.self).baseAddress else { return nil }
            return run(cancellation) { source + $0 * rows.boxHeight * plane.bytesPerRow }
        }
    }

    /// The scaled plane, or nil when cancelled or without rows.
    func run(_ cancellation: CancellationToken?, source: Source) -> PixelPlane? {
        let channels = rows.plane.channels
        let storage = PixelStorage(zeroedByteCount: size.width * size.height * channels)
        let hasBox = rows.boxWidth > 1 || rows.boxHeight > 1
        let scratch = Scratch(
            columns: ResampleColumns(down, samples: rows.width * channels, lines: size.height),
            result: .allocate(capacity: size.width * channels),
            sums: .allocate(capacity: hasBox ? rows.plane.width * channels : 1))
        defer { scratch.deallocate() }
        guard let target = storage.bytes.bindMemory(to: UInt8.self).baseAddress,
            run(from: source, into: target, scratch, cancellation)
        else { return nil }
        return PixelPlane(width: size.width, height: size.height, channels: channels, storage: storage)
    }

    private func run(
        from source: Source, into target: UnsafeMutablePointer<UInt8>, _ scratch: Scratch,
        _ cancellation: CancellationToken?
    ) -> Bool {
        let channels = rows.plane.channels
        var loaded = 0
        for y in stride(from: 0, to: size.height, by: 8) {
            if let cancellation, cancellation.isCancelled { return false }
            let count = min(8, size.height - y)
            let needed = scratch.columns.rows(of: y, count: count)
            loaded = max(loaded, needed.lowerBound)
            while loaded < needed.upperBound {
                guard let row = source(loaded) else { return false }
                rows.load(loaded, from: row, into: scratch.columns.row(loaded), sums: scratch.sums)
                loaded += 1
            }
            scratch.columns.filter(y, count: count)
            filterAcross(scratch.columns.columns, into: scratch.result)
            let row = size.width * channels
            UnsafeRawPointer(scratch.result).withMemoryRebound(to: UInt8.self, capacity: row * 8) { result in
                cpixels_store_lines(result, row, target + y * row, row, Int32(count))
            }
        }
        return true
    }

    private func filterAcross(_ columns: UnsafePointer<Vector>, into result: UnsafeMutablePointer<SIMD8<UInt8>>) {
        let shift = Int16(truncatingIfNeeded: across.bits + down.bits - 24)
        let channels = rows.plane.channels
        across.withTaps { taps in
            for x in 0..<size.width {
                let kernel = Kernel(
                    weights: taps.weights + x &* taps.stride, count: taps.counts[x], bias: taps.biases[x])
                Self.filterAcross(
                    columns + taps.starts[x] &* channels, kernel: kernel, channels: channels, shift: shift,
                    into: result + x &* channels)
            }
        }
    }

    /// The weights of the columns of a result sample.
    private struct Kernel {
        let weights: UnsafePointer<Int16>
        let count: Int
        let bias: Int16
    }

    /// One result sample of eight lines, all channels.
    @inline(__always)
    private static func filterAcross(
        _ columns: UnsafePointer<Vector>, kernel: Kernel, channels: Int, shift: Int16,
        into result: UnsafeMutablePointer<SIMD8<UInt8>>
    ) {
        let (weights, count) = (kernel.weights, kernel.count)
        let bias = Vector(repeating: kernel.bias)
        var a = bias, b = bias, c = bias, d = bias
        var k = 0
        switch channels {
        case 1:
            while k < count {
                a &+= Lanes.multiplyHigh(columns[k], Vector(repeating: weights[k]))
                k &+= 1
            }
        case 3:
            while k < count {
                let weight = Vector(repeating: weights[k])
                let p = columns + k &* 3
                a &+= Lanes.multiplyHigh(p[0], weight)
                b &+= Lanes.multiplyHigh(p[1], weight)
                c &+= Lanes.multiplyHigh(p[2], weight)
                k &+= 1
            }
            result[1] = narrow(b, shift)
            result[2] = narrow(c, shift)
        case 2:
            while k < count {
                let weight = Vector(repeating: weights[k])
                a &+= Lanes.multiplyHigh(columns[k &* 2], weight)
                b &+= Lanes.multiplyHigh(columns[k &* 2 &+ 1], weight)
                k &+= 1
            }
            result[1] = narrow(b, shift)
        default:
            while k < count {
                let weight = Vector(repeating: weights[k])
                let p = columns + k &* 4
                a &+= Lanes.multiplyHigh(p[0], weight)
                b &+= Lanes.multiplyHigh(p[1], weight)
                c &+= Lanes.multiplyHigh(p[2], weight)
                d &+= Lanes.multiplyHigh(p[3], weight)
                k &+= 1
            }
            result[1] = narrow(b, shift)
            result[2] = narrow(c, shift)
            result[3] = narrow(d, shift)
        }
        result[0] = narrow(a, shift)
    }

    /// Rounds to whole levels and undoes the centring.
    @inline(__always)
    private static func narrow(_ value: Vector, _ shift: Int16) -> SIMD8<UInt8> {
        let half = Vector(repeating: 1 &<< (shift &- 1))
        return Lanes.level(((value &+ half) &>> Vector(repeating: shift)) &+ Vector(repeating: 128))
    }
}

/// Rows of a plane in the resampler's form: 16-bit, centred on zero, box-reduced and premultiplied where necessary.
///
/// A level `v` of 0...255 is held as `(v - 128) * 256`. A ring holds the rows for the current block of results.
struct ResampleRows {
    typealias Vector = SIMD8<Int16>

    /// The shape of a plane.
    struct Shape {
        var width: Int
        var height: Int
        var channels: Int
        var bytesPerRow: Int
    }

    let plane: Shape
    /// Source samples that are averaged into one, along each axis.
    let boxWidth: Int
    let boxHeight: Int
    /// Samples a row and rows after the box.
    let width: Int
    let height: Int
    /// Whether the last of 2 or 4 channels is straight alpha that the others are to be multiplied by.
    let premultiplies: Bool

    init(plane: Shape, boxWidth: Int, boxHeight: Int, premultiplies: Bool) {
        self.plane = plane
        self.boxWidth = boxWidth
        self.boxHeight = boxHeight
        self.premultiplies = premultiplies
        width = (plane.width + boxWidth - 1) / boxWidth
        height = (plane.height + boxHeight - 1) / boxHeight
    }

    /// Fills one row of the ring from the source rows at `source`. `sums` has room for `plane.width * plane.channels`
    /// numbers, when there is a box.
    func load(
        _ y: Int, from source: UnsafePointer<UInt8>, into row: UnsafeMutablePointer<Int16>,
        sums: UnsafeMutablePointer<UInt32>
    ) {
        if boxWidth == 1 && boxHeight == 1 {
            if premultiplies {
                Self.premultiply(source, into: row, samples: width, channels: plane.channels)
            } else {
                Self.widen(source, into: row, count: width * plane.channels)
            }
            return
        }
        let rows = min(boxHeight, plane.height - y * boxHeight)
        let count = plane.width * plane.channels
        for i in 0..<count { sums[i] = 0 }
        if premultiplies {
            for r in 0..<rows {
                Self.addPremultiplied(
                    source + r * plane.bytesPerRow, to: sums, samples: plane.width, channels: plane.channels)
            }
        } else {
            Self.add(source, rows: rows, stride: plane.bytesPerRow, to: sums, count: count)
        }
        average(sums, rows: rows, into: row)
    }

    private static func widen(_ source: UnsafePointer<UInt8>, into row: UnsafeMutablePointer<Int16>, count: Int) {
        for i in 0..<count { row[i] = Int16(truncatingIfNeeded: (Int32(source[i]) &- 128) &<< 8) }
    }

    /// Multiplies colour by alpha at 16 bits: `c * a / 255 * 256`, rounded.
    private static func premultiply(
        _ source: UnsafePointer<UInt8>, into row: UnsafeMutablePointer<Int16>, samples: Int, channels: Int
    ) {
        let colors = channels &- 1
        for x in 0..<samples {
            let p = x &* channels
            let a = Int32(source[p &+ colors])
            for c in 0..<colors {
                let product = Int32(source[p &+ c]) &* a
                row[p &+ c] = Int16(truncatingIfNeeded: product &+ (product &+ 127) / 255 &- 32_768)
            }
            row[p &+ colors] = Int16(truncatingIfNeeded: (a &- 128) &<< 8)
        }
    }

    /// Adds rows of bytes column by column: in 16 bits for as long as they cannot overflow, which is twice as fast.
    private static func add(
        _ source: UnsafePointer<UInt8>, rows: Int, stride: Int, to sums: UnsafeMutablePointer<UInt32>, count: Int
    ) {
        var y = 0
        while y &+ 4 <= rows {
            let a = source + y &* stride, b = a + stride, c = b + stride, d = c + stride
            for i in 0..<count {
                let pair = UInt16(a[i]) &+ UInt16(b[i]) &+ UInt16(c[i]) &+ UInt16(d[i])
                sums[i] = sums[i] &+ UInt32(pair)
            }
            y &+= 4
        }
        while y < rows {
            let a = source + y &* stride
            for i in 0..<count { sums[i] = sums[i] &+ UInt32(a[i]) }
            y &+= 1
        }
    }

    /// Adds `c * a` for colours (65,535 rows of which still fit 32 bits) and alpha as it is.
    private static func addPremultiplied(
        _ source: UnsafePointer<UInt8>, to sums: UnsafeMutablePointer<UInt32>, samples: Int, channels: Int
    ) {
        if channels == 2 {
            for x in 0..<samples {
                let a = UInt32(source[2 &* x &+ 1])
                sums[2 &* x] = sums[2 &* x] &+ UInt32(source[2 &* x]) &* a
                sums[2 &* x &+ 1] = sums[2 &* x &+ 1] &+ a
            }
            return
        }
        for x in 0..<samples {
            let p = source + 4 &* x
            let s = sums + 4 &* x
            let a = UInt32(p[3])
            s[0] = s[0] &+ UInt32(p[0]) &* a
            s[1] = s[1] &+ UInt32(p[1]) &* a
            s[2] = s[2] &+ UInt32(p[2]) &* a
            s[3] = s[3] &+ a
        }
    }

    /// Means of column sums over `boxWidth` columns; the last box may have fewer.
    private func average(_ sums: UnsafePointer<UInt32>, rows: Int, into row: UnsafeMutablePointer<Int16>) {
        let channels = plane.channels
        for x in 0..<width {
            let first = x &* boxWidth
            let columns = min(boxWidth, plane.width &- first)
            let whole = 256 / (Float(columns) * Float(rows))
            for c in 0..<channels {
                let scale = premultiplies && c < channels - 1 ? whole / 255 : whole
                var sum: UInt64 = 0
                var p = first &* channels &+ c
                for _ in 0..<columns {
                    sum &+= UInt64(sums[p])
                    p &+= channels
                }
                let mean = Int32(min(65_280, Float(sum) * scale + 0.5))
                row[x &* channels &+ c] = Int16(truncatingIfNeeded: mean &- 32_768)
            }
        }
    }
}
