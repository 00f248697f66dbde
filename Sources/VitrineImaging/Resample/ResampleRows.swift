/// Rows of a plane as the resampler reads them: 16-bit, centred on zero, box-reduced and premultiplied if need be.
///
/// A level `v` of 0...255 is held as `(v - 128) * 256`. A ring of rows keeps what the current block of results needs.
struct ResampleRows {
    typealias Vector = SIMD8<Int16>

    let plane: PixelPlane
    /// Source samples that are averaged into one, along each axis.
    let boxWidth: Int
    let boxHeight: Int
    /// Samples a row and rows after the box.
    let width: Int
    let height: Int
    /// Whether the last of 2 or 4 channels is straight alpha that the others are to be multiplied by.
    let premultiplies: Bool
    /// Lanes from one row of the ring to the next.
    let stride: Int

    init(plane: PixelPlane, boxWidth: Int, boxHeight: Int, premultiplies: Bool) {
        self.plane = plane
        self.boxWidth = boxWidth
        self.boxHeight = boxHeight
        self.premultiplies = premultiplies
        width = (plane.width + boxWidth - 1) / boxWidth
        height = (plane.height + boxHeight - 1) / boxHeight
        stride = (width * plane.channels + 31) / 32 * 4
    }

    /// Fills one row of the ring. `sums` has room for `plane.width * plane.channels` numbers, when there is a box.
    func load(_ y: Int, from source: UnsafePointer<UInt8>, into row: UnsafeMutablePointer<Int16>,
        sums: UnsafeMutablePointer<UInt32>
    ) {
        if boxWidth == 1 && boxHeight == 1 {
            let source = source + y * plane.bytesPerRow
            if premultiplies {
                Self.premultiply(source, into: row, samples: width, channels: plane.channels)
            } else {
                Self.widen(source, into: row, count: width * plane.channels)
            }
            return
        }
        let first = y * boxHeight
        let rows = min(boxHeight, plane.height - first)
        let count = plane.width * plane.channels
        for i in 0..<count { sums[i] = 0 }
        if premultiplies {
            for r in first..<(first + rows) {
                Self.addPremultiplied(
                    source + r * plane.bytesPerRow, to: sums, samples: plane.width, channels: plane.channels)
            }
        } else {
            Self.add(source + first * plane.bytesPerRow, rows: rows, stride: plane.bytesPerRow, to: sums, count: count)
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
