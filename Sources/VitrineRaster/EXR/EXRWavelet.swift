import VitrineImageCore

/// A PIZ chunk: Huffman codes of the wavelet coefficients of words that a table maps to samples.
struct EXRWavelet {
    private let bytes: [UInt8]
    private let header: EXRHeader
    private let width: Int
    private let rows: Int
    private let name: String

    init(_ bytes: [UInt8], _ header: EXRHeader, width: Int, rows: Int, name: String) {
        (self.bytes, self.header, self.width, self.rows, self.name) = (bytes, header, width, rows, name)
    }

    private func corrupt(_ reason: String) -> ImageError { .corrupt(input: name, reason: reason) }

    func samples() throws(ImageError) -> [UInt8] {
        let (table, maximum, start) = try values()
        guard start + 4 <= bytes.count else { throw corrupt("a chunk without codes") }
        let length = (0..<4).reduce(0) { $0 | Int(bytes[start + $1]) << (8 * $1) }
        guard length <= bytes.count - start - 4 else { throw corrupt("a chunk without codes") }
        let count = rows * header.bytesPerPixel * width / 2
        let codes = Array(bytes[(start + 4)..<(start + 4 + length)])
        guard var words = EXRHuffman.decode(codes, count: count) else { throw corrupt("a chunk of invalid codes") }
        var at = 0
        for channel in header.channels {
            let parts = channel.kind.bytes / 2
            for part in 0..<parts {
                words.withUnsafeMutableBufferPointer { words in
                    let grid = Grid(
                        start: at + part, columns: width, step: parts, rows: rows, rowStep: width * parts)
                    EXRWavelet.invertTransform(of: words, grid: grid, isShort: maximum < 1 << 14)
                }
            }
            at += width * parts * rows
        }
        var result: [UInt8] = []
        result.reserveCapacity(count * 2)
        for y in 0..<rows {
            at = 0
            for channel in header.channels {
                let row = width * (channel.kind.bytes / 2)
                for i in 0..<row {
                    let value = table[Int(words[at + y * row + i])]
                    result.append(UInt8(truncatingIfNeeded: value))
                    result.append(UInt8(truncatingIfNeeded: value >> 8))
                }
                at += row * rows
            }
        }
        return result
    }

    /// The samples that occur, from a bitmap; the largest index; and where the codes begin.
    private func values() throws(ImageError) -> ([UInt16], maximum: Int, start: Int) {
        guard bytes.count >= 4 else { throw corrupt("a chunk without its table") }
        let first = Int(bytes[0]) | Int(bytes[1]) << 8
        let last = Int(bytes[2]) | Int(bytes[3]) << 8
        var at = 4
        var bitmap = [UInt8](repeating: 0, count: 8_192)
        if first <= last {
            guard last < bitmap.count, at + last - first < bytes.count else {
                throw corrupt("a chunk without its table")
            }
            for i in first...last {
                bitmap[i] = bytes[at]
                at += 1
            }
        }
        var table = [UInt16](repeating: 0, count: 65_536)
        var count = 0
        for i in 0..<65_536 where i == 0 || bitmap[i >> 3] & (1 << UInt8(i & 7)) != 0 {
            table[count] = UInt16(i)
            count += 1
        }
        return (table, count - 1, at)
    }

    /// Where the words of a channel lie.
    private struct Grid {
        let start: Int
        let columns: Int
        /// The words from column to column.
        let step: Int
        let rows: Int
        /// The words from row to row.
        let rowStep: Int
    }

    /// The inverse of a Haar-like transform of two dimensions, level by level.
    ///
    /// - Parameter isShort: Whether all words have less than 14 bits, so that the transform is without overflow.
    private static func invertTransform(
        of words: UnsafeMutableBufferPointer<UInt16>, grid: Grid, isShort: Bool
    ) {
        let (start, columns, step) = (grid.start, grid.columns, grid.step)
        let (rows, rowStep) = (grid.rows, grid.rowStep)
        @inline(__always) func pair(_ low: UInt16, _ high: UInt16) -> (UInt16, UInt16) {
            if isShort {
                let difference = Int32(Int16(bitPattern: high))
                let sum = Int32(Int16(bitPattern: low)) &+ (difference & 1) &+ (difference >> 1)
                return (UInt16(truncatingIfNeeded: sum), UInt16(truncatingIfNeeded: sum &- difference))
            }
            let second = low &- high >> 1
            return (high &+ second &- 0x8000, second)
        }
        var span = 1
        while span <= min(columns, rows) { span <<= 1 }
        span >>= 1
        var half = span >> 1
        while half >= 1 {
            var y = 0
            while y <= rows - span {
                var x = 0
                while x <= columns - span {
                    let a = start &+ y &* rowStep &+ x &* step
                    let (b, c) = (a &+ half &* step, a &+ half &* rowStep)
                    let d = c &+ half &* step
                    let left = pair(words[a], words[c])
                    let right = pair(words[b], words[d])
                    (words[a], words[b]) = pair(left.0, right.0)
                    (words[c], words[d]) = pair(left.1, right.1)
                    x += span
                }
                if columns & half != 0 {
                    let a = start &+ y &* rowStep &+ x &* step
                    let c = a &+ half &* rowStep
                    (words[a], words[c]) = pair(words[a], words[c])
                }
                y += span
            }
            if rows & half != 0 {
                var x = 0
                while x <= columns - span {
                    let a = start &+ y &* rowStep &+ x &* step
                    let b = a &+ half &* step
                    (words[a], words[b]) = pair(words[a], words[b])
                    x += span
                }
            }
            span = half
            half >>= 1
        }
    }
}

/// The canonical Huffman codes of PIZ, of up to 58 bits, the last of which repeats the word before.
private enum EXRHuffman {
    private static let symbols = 65_537
    private static let longestCode = 58
    private static let tableBits = 12

    static func decode(_ bytes: [UInt8], count: Int) -> [UInt16]? {
        if bytes.isEmpty { return count == 0 ? [] : nil }
        guard bytes.count >= 20 else { return nil }
        func number(_ at: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[at + $1]) << (8 * $1) } }
        let (first, last, bitCount) = (number(0), number(4), number(12))
        guard first < symbols, last < symbols, first <= last else { return nil }
        var bits = Bits(bytes, from: 20)
        guard let lengths = lengths(&bits, first: first, last: last) else { return nil }
        bits.align()
        guard bitCount <= bits.remaining else { return nil }
        bits.limit(bitCount)

        // Longer codes have the lower values.
        var counts = [UInt64](repeating: 0, count: longestCode + 1)
        for length in lengths where length > 0 { counts[Int(length)] += 1 }
        var starts = [UInt64](repeating: 0, count: longestCode + 2)
        var code: UInt64 = 0
        for length in stride(from: longestCode, to: 0, by: -1) {
            starts[length] = code
            code = (code + counts[length]) >> 1
        }
        var places = [Int](repeating: 0, count: longestCode + 2)
        for length in 1...longestCode { places[length + 1] = places[length] + Int(counts[length]) }
        var sorted = [Int32](repeating: 0, count: places[longestCode + 1])
        var next = places
        for symbol in lengths.indices where lengths[symbol] > 0 {
            let length = Int(lengths[symbol])
            sorted[next[length]] = Int32(symbol + first)
            next[length] += 1
        }
        // Symbol and length of every short code, by its first bits; 0 for longer ones.
        var table = [UInt32](repeating: 0, count: 1 << tableBits)
        for length in 1...tableBits {
            for i in 0..<Int(counts[length]) {
                let begin = (Int(starts[length]) + i) << (tableBits - length)
                guard begin + 1 << (tableBits - length) <= table.count else { return nil }
                let entry = UInt32(sorted[places[length] + i]) << 8 | UInt32(length)
                for j in begin..<(begin + 1 << (tableBits - length)) { table[j] = entry }
            }
        }
        var result: [UInt16] = []
        result.reserveCapacity(count)
        while result.count < count {
            var symbol: Int?
            let entry = table[Int(bits.peek(tableBits))]
            if entry != 0 {
                guard bits.skip(Int(entry & 0xFF)) else { return nil }
                symbol = Int(entry >> 8)
            } else {
                for length in (tableBits + 1)...longestCode where counts[length] > 0 {
                    let code = bits.peek(length)
                    guard code >= starts[length], code - starts[length] < counts[length] else { continue }
                    guard bits.skip(length) else { return nil }
                    symbol = Int(sorted[places[length] + Int(code - starts[length])])
                    break
                }
            }
            guard let symbol else { return nil }
            if symbol == last {
                let times = Int(bits.peek(8))
                guard bits.skip(8), let value = result.last, times <= count - result.count else { return nil }
                for _ in 0..<times { result.append(value) }
            } else {
                result.append(UInt16(truncatingIfNeeded: symbol))
            }
        }
        return result
    }

    /// Lengths of six bits each for the symbols from `first` to `last`; some stand for runs of zero.
    private static func lengths(_ bits: inout Bits, first: Int, last: Int) -> [UInt8]? {
        var lengths: [UInt8] = []
        let count = last - first + 1
        while lengths.count < count {
            let value = Int(bits.peek(6))
            guard bits.skip(6) else { return nil }
            if value < 59 {
                lengths.append(UInt8(value))
                continue
            }
            var run = value - 59 + 2
            if value == 63 {
                run = Int(bits.peek(8)) + 6
                guard bits.skip(8) else { return nil }
            }
            guard run <= count - lengths.count else { return nil }
            lengths += [UInt8](repeating: 0, count: run)
        }
        return lengths
    }

    /// Bits from the highest of each byte on; zeros behind the end.
    private struct Bits {
        private let bytes: [UInt8]
        private var at: Int
        private var end: Int

        init(_ bytes: [UInt8], from offset: Int) {
            self.bytes = bytes
            at = offset * 8
            end = bytes.count * 8
        }

        var remaining: Int { end - at }

        mutating func align() { at = (at + 7) & ~7 }

        mutating func limit(_ count: Int) { end = min(end, at + count) }

        /// At most 58 bits.
        @inline(__always)
        func peek(_ count: Int) -> UInt64 {
            let byte = at >> 3
            var value: UInt64 = 0
            if byte &+ 8 < bytes.count {
                value = bytes.withUnsafeBytes {
                    UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: byte, as: UInt64.self))
                }
                let shift = UInt64(at & 7)
                value = value &<< shift | UInt64(bytes[byte &+ 8]) &>> (8 &- shift)
            } else {
                for i in 0..<8 { value = value << 8 | UInt64(byte &+ i < bytes.count ? bytes[byte &+ i] : 0) }
                value = value &<< UInt64(at & 7)
            }
            return value &>> UInt64(64 &- count)
        }

        @inline(__always)
        mutating func skip(_ count: Int) -> Bool {
            at &+= count
            return at <= end
        }
    }
}
