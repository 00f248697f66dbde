/// Run-length coded rows (RLE8 and RLE4), readable in any order.
///
/// The code runs from the bottom row up, while rows are wanted from the top. A first pass notes where each row begins;
/// a row is then decoded from there. Memory is a few bytes a row, never the picture.
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
