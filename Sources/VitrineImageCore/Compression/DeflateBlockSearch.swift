/// Looks for the beginning of a deflate block with codes of its own (RFC 1951 §3.2.7), at any bit.
///
/// Nothing marks one, but few bits are the header of one: its three codes must be complete, and the first has to lead to
/// the lengths of the others. Whether a block was found is certain only when the blocks before it end there.
package struct DeflateBlockSearch {
    /// Bytes that a header may take, and that must lie behind the last place that is looked at.
    package static let headerBytes = 400
    private static let order: [Int] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

    /// The symbol and length of the code word that bits begin with: seven of them, as long as a word may be.
    private var table = [UInt8](repeating: 0, count: 128)
    private var lengths = [UInt8](repeating: 0, count: 320)

    package init() {}

    /// The first bit of a block that is not the last of its stream; nil if none is found.
    package mutating func firstBlock(in bytes: UnsafeRawBufferPointer) -> Int? {
        guard let base = bytes.baseAddress, bytes.count > Self.headerBytes else { return nil }
        for byte in stride(from: 0, to: bytes.count - Self.headerBytes, by: 4) {
            let word = UInt64(littleEndian: (base + byte).loadUnaligned(as: UInt64.self))
            // The three bits of a block that is not the last one and has codes of its own: 0, 0, 1.
            var places = ~word & ~(word >> 1) & word >> 2 & 0xFFFF_FFFF
            while places != 0 {
                let place = byte * 8 + places.trailingZeroBitCount
                places &= places - 1
                if isBlock(base, place) { return place }
            }
        }
        return nil
    }

    /// At least 57 bits from a place on.
    @inline(__always)
    private static func bits(_ base: UnsafeRawPointer, _ place: Int) -> UInt64 {
        UInt64(littleEndian: (base + place >> 3).loadUnaligned(as: UInt64.self)) >> UInt64(place & 7)
    }

    /// Whether lengths of three bits each are those of a complete code.
    @inline(__always)
    private static func isComplete(_ lengths: UInt64, _ count: Int) -> Bool {
        var rest = lengths
        var used: UInt64 = 0
        for _ in 0..<count {
            let length = rest & 7
            // A length of 0 takes nothing.
            used &+= 128 &>> length & 127
            rest >>= 3
        }
        return used == 128
    }

    @inline(__always)
    private mutating func isBlock(_ base: UnsafeRawPointer, _ start: Int) -> Bool {
        let head = Self.bits(base, start)
        // At most 286 and 30 symbols.
        guard head >> 3 & 31 <= 29, head >> 8 & 31 <= 29 else { return false }
        let count = Int(head >> 13 & 15) + 4
        return Self.isComplete(Self.bits(base, start + 17), count) && leadsToCodes(base, start, head, count)
    }

    /// Whether a header whose first code is complete leads to two codes that are as well.
    private mutating func leadsToCodes(_ base: UnsafeRawPointer, _ start: Int, _ head: UInt64, _ count: Int) -> Bool {
        let literals = Int(head >> 3 & 31) + 257, distances = Int(head >> 8 & 31) + 1
        fillTable(Self.bits(base, start + 17), count)
        var place = start + 17 + count * 3
        var filled = 0
        while filled < literals + distances {
            let next = Self.bits(base, place)
            let entry = table[Int(next & 127)]
            let symbol = entry >> 3, length = Int(entry & 7)
            place += length
            guard symbol >= 16 else {
                lengths[filled] = symbol
                filled += 1
                continue
            }
            let (extra, fewest) = symbol == 16 ? (2, 3) : symbol == 17 ? (3, 3) : (7, 11)
            let bits = next >> UInt64(length) & (1 << UInt64(extra) - 1)
            let repeats = Int(bits) + fewest
            place += extra
            guard symbol != 16 || filled > 0, repeats <= literals + distances - filled else { return false }
            let value = symbol == 16 ? lengths[filled - 1] : 0
            for _ in 0..<repeats {
                lengths[filled] = value
                filled += 1
            }
        }
        guard lengths[256] > 0, Self.sum(lengths[..<literals]) == 1 << 15 else { return false }
        // No distance, or a single one, needs no complete code.
        let words = lengths[literals..<filled]
        let used = words.count { $0 > 0 }
        return Self.sum(words) == 1 << 15 || used == 0 || (used == 1 && words.contains(1))
    }

    /// The number of words of 15 bits that begin with a word of a code.
    private static func sum(_ lengths: ArraySlice<UInt8>) -> Int {
        lengths.reduce(0) { $0 + ($1 > 0 ? 1 << (15 - Int($1)) : 0) }
    }

    private mutating func fillTable(_ packed: UInt64, _ count: Int) {
        var ofSymbol = [UInt8](repeating: 0, count: 19)
        for index in 0..<count { ofSymbol[Self.order[index]] = UInt8(packed >> UInt64(index * 3) & 7) }
        // Canonical words, the first bit of which is the lowest of the index.
        var word = 0
        for length in 1...7 {
            for symbol in 0..<19 where Int(ofSymbol[symbol]) == length {
                var index = Self.reversed(word, length)
                while index < 128 {
                    table[index] = UInt8(symbol) << 3 | UInt8(length)
                    index += 1 << length
                }
                word += 1
            }
            word <<= 1
        }
    }

    private static func reversed(_ word: Int, _ length: Int) -> Int {
        var (word, result) = (word, 0)
        for _ in 0..<length {
            result = result << 1 | word & 1
            word >>= 1
        }
        return result
    }
}
