import VitrineImageCore

/// Turns stored rows of a bitmap into red, green, blue and, with alpha, a fourth channel.
struct BMPRowConverter {
    private let header: BMPHeader
    private let channels: Int
    private let fields: [Field]

    /// One channel of a masked word.
    private struct Field {
        let mask: UInt32
        let shift: UInt32
        /// Largest value; at least 1.
        let peak: UInt64
        let isPresent: Bool

        init(_ mask: UInt32) {
            self.mask = mask
            isPresent = mask != 0
            shift = mask == 0 ? 0 : UInt32(mask.trailingZeroBitCount)
            peak = mask == 0 ? 1 : UInt64(mask >> shift)
        }

        /// Stretched to 0…255, rounded.
        @inline(__always)
        func value(of word: UInt32) -> UInt8 {
            let value = UInt64((word & mask) &>> shift)
            return peak == 255
                ? UInt8(truncatingIfNeeded: value) : UInt8(truncatingIfNeeded: (value &* 255 &+ peak / 2) / peak)
        }
    }

    /// - Parameter channels: 3, or 4 for alpha, which is opaque where the bitmap has none.
    init(_ header: BMPHeader, channels: Int) {
        self.header = header
        self.channels = channels
        if case .masked(let masks) = header.packing { fields = masks.map(Field.init) } else { fields = [] }
    }

    /// Converts one row; `row` has ``BMPHeader/bytesPerRow`` bytes, or for run-length coded bitmaps one index a byte.
    func convert(_ row: UnsafePointer<UInt8>, into target: UnsafeMutablePointer<UInt8>) {
        let width = header.size.width
        switch header.packing {
        case .indexed: indexed(row, bits: header.bits, into: target, width)
        case .runLength: indexed(row, bits: 8, into: target, width)
        case .bytes:
            var (s, t) = (row, target)
            for _ in 0..<width {
                t[0] = s[2]
                t[1] = s[1]
                t[2] = s[0]
                if channels == 4 { t[3] = 255 }
                s += 3
                t += channels
            }
        case .masked:
            if header.bits == 16 {
                masked(row, into: target, width) { UInt32($0[0]) | UInt32($0[1]) << 8 }
            } else {
                masked(row, into: target, width) {
                    UInt32($0[0]) | UInt32($0[1]) << 8 | UInt32($0[2]) << 16 | UInt32($0[3]) << 24
                }
            }
        }
    }

    private func indexed(
        _ row: UnsafePointer<UInt8>, bits: Int, into target: UnsafeMutablePointer<UInt8>, _ width: Int
    ) {
        header.palette.withUnsafeBufferPointer { palette in
            var t = target
            let perByte = 8 / bits
            let mask = (1 << bits) - 1
            for x in 0..<width {
                let shift = 8 - bits - (x % perByte) * bits
                let index = (Int(row[x / perByte]) >> shift) & mask
                t[0] = palette[3 * index]
                t[1] = palette[3 * index + 1]
                t[2] = palette[3 * index + 2]
                if channels == 4 { t[3] = 255 }
                t += channels
            }
        }
    }

    @inline(__always)
    private func masked(
        _ row: UnsafePointer<UInt8>, into target: UnsafeMutablePointer<UInt8>, _ width: Int,
        word: (UnsafePointer<UInt8>) -> UInt32
    ) {
        let (red, green, blue, alpha) = (fields[0], fields[1], fields[2], fields[3])
        let step = header.bits / 8
        var (s, t) = (row, target)
        for _ in 0..<width {
            let value = word(s)
            t[0] = red.value(of: value)
            t[1] = green.value(of: value)
            t[2] = blue.value(of: value)
            if channels == 4 { t[3] = alpha.isPresent ? alpha.value(of: value) : 255 }
            s += step
            t += channels
        }
    }
}

/// Stored rows of a bitmap, read from the source in runs of neighbours whichever way up they are stored.
struct BMPRowWindow {
    private let source: ByteSource
    private let offset: Int
    private let bytesPerRow: Int
    private let rows: Int
    private let isTopDown: Bool
    private let rowsAtOnce: Int
    private let storage: PixelStorage
    /// Stored rows in memory.
    private var loaded = 0..<0

    init(_ source: ByteSource, offset: Int, bytesPerRow: Int, rows: Int, capacity: Int, isTopDown: Bool) {
        self.source = source
        self.offset = offset
        self.bytesPerRow = bytesPerRow
        self.rows = rows
        self.isTopDown = isTopDown
        rowsAtOnce = max(1, min(rows, capacity / bytesPerRow))
        storage = PixelStorage(zeroedByteCount: rowsAtOnce * bytesPerRow)
    }

    /// Row `y` from the top, valid until the next call; zeros where the source has ended.
    mutating func row(_ y: Int) throws(ImageError) -> UnsafePointer<UInt8> {
        let stored = isTopDown ? y : rows - 1 - y
        if !loaded.contains(stored) {
            let first = isTopDown ? stored : max(0, stored + 1 - rowsAtOnce)
            let count = min(rowsAtOnce, rows - first)
            let buffer = UnsafeMutableRawBufferPointer(rebasing: storage.bytes[0..<(count * bytesPerRow)])
            let read = try source.read(into: buffer, at: offset + first * bytesPerRow)
            if read < buffer.count {
                UnsafeMutableRawBufferPointer(rebasing: buffer[read...]).initializeMemory(as: UInt8.self, repeating: 0)
            }
            loaded = first..<(first + count)
        }
        let base = storage.bytes.baseAddress! + (stored - loaded.lowerBound) * bytesPerRow
        return UnsafePointer(base.assumingMemoryBound(to: UInt8.self))
    }
}

/// Run-length coded rows (RLE8 and RLE4), readable in any order.
///
/// The code runs from the bottom row up, while rows are wanted from the top. A first pass notes where each row begins;
/// a row is then decoded from there. Memory is a few bytes a row, never the image.
///
/// Source: Microsoft, "Bitmap Compression".
struct BMPRunLength {
    private struct Start {
        var offset = -1
        var x = 0
    }

    private let bytes: [UInt8]
    private let size: PixelSize
    private let isNibbles: Bool
    private var starts: [Start]
    /// Whether the code ended without saying so, before the last row.
    private(set) var isTruncated = false

    init(_ bytes: [UInt8], size: PixelSize, bits: Int) {
        self.bytes = bytes
        self.size = size
        isNibbles = bits == 4
        starts = [Start](repeating: Start(), count: size.height)
        scan()
    }

    /// Whether any row has code.
    var isEmpty: Bool { bytes.isEmpty }

    /// Bytes of a literal run of `count` pixels, padded to two.
    private func literalBytes(_ count: Int) -> Int { ((isNibbles ? (count + 1) / 2 : count) + 1) & ~1 }

    private mutating func scan() {
        var (at, x, y) = (0, 0, 0)
        starts[0] = Start(offset: 0, x: 0)
        while y < size.height {
            guard at + 1 < bytes.count else {
                // A last row that is full needs no end mark.
                isTruncated = y < size.height - 1 || x < size.width
                return
            }
            let (count, value) = (Int(bytes[at]), Int(bytes[at + 1]))
            at += 2
            if count > 0 {
                x = min(size.width, x + count)
                continue
            }
            switch value {
            case 0:
                (x, y) = (0, y + 1)
                if y < size.height { starts[y] = Start(offset: at, x: 0) }
            case 1: return
            case 2:
                guard at + 1 < bytes.count else { continue }
                x = min(size.width, x + Int(bytes[at]))
                let down = Int(bytes[at + 1])
                at += 2
                y += down
                if down > 0, y < size.height { starts[y] = Start(offset: at, x: x) }
            default:
                x = min(size.width, x + value)
                at += literalBytes(value)
            }
        }
    }

    /// Writes one index a byte for the row `y`, counted from the bottom; 0 where the code says nothing.
    func row(_ y: Int, into target: UnsafeMutablePointer<UInt8>) {
        target.update(repeating: 0, count: size.width)
        guard y >= 0, y < size.height, starts[y].offset >= 0 else { return }
        bytes.withUnsafeBufferPointer { code in
            var (at, x) = (starts[y].offset, starts[y].x)
            while at + 1 < code.count {
                let (count, value) = (Int(code[at]), Int(code[at + 1]))
                at += 2
                if count > 0 {
                    let end = min(size.width, x + count)
                    for i in x..<end { target[i] = index(UInt8(value), isLow: isNibbles && (i - x) & 1 == 1) }
                    x = end
                } else if value > 2 {
                    let end = min(size.width, x + value)
                    for i in x..<end {
                        let n = i - x
                        let from = at + (isNibbles ? n / 2 : n)
                        guard from < code.count else { return }
                        target[i] = index(code[from], isLow: isNibbles && n & 1 == 1)
                    }
                    x = end
                    at += literalBytes(value)
                } else if value == 2, at + 1 < code.count, code[at + 1] == 0 {
                    x = min(size.width, x + Int(code[at]))
                    at += 2
                } else {
                    return
                }
            }
        }
    }

    @inline(__always)
    private func index(_ byte: UInt8, isLow: Bool) -> UInt8 {
        isNibbles ? (isLow ? byte & 15 : byte >> 4) : byte
    }
}
