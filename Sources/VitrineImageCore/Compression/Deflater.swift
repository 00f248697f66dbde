/// A small deflate encoder (RFC 1951) with zlib's wrapper (RFC 1950): greedy matches from hash chains, one block with
/// the fixed Huffman code. For builds without a codec library; files come out about a fifth larger than zlib's.
package struct Deflater {
    private static let hashBits = 15
    /// How many earlier places are tried for a match.
    private static let chainLength = 24
    private static let longestMatch = 258
    private static let farthest = 32_768

    private var out: [UInt8]
    private var bits: UInt64 = 0
    private var bitCount: UInt64 = 0

    private init(capacity: Int) {
        out = []
        out.reserveCapacity(capacity)
    }

    /// The zlib stream of `bytes`.
    package static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        var deflater = Deflater(capacity: bytes.count / 2 + 64)
        deflater.out += [0x78, 0x9C]
        deflater.put(0b011, 3)  // final, fixed code
        bytes.withUnsafeBufferPointer { deflater.compress($0) }
        deflater.putSymbol(256)
        deflater.flush()
        let sum = Adler32.checksum(bytes)
        deflater.out += (0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - $0 * 8)) }
        return deflater.out
    }

    private mutating func compress(_ bytes: UnsafeBufferPointer<UInt8>) {
        var heads = [Int](repeating: -1, count: 1 << Self.hashBits)
        var links = [Int](repeating: -1, count: Self.farthest)
        var at = 0
        while at < bytes.count {
            guard at + 4 <= bytes.count else {
                putSymbol(Int(bytes[at]))
                at += 1
                continue
            }
            let match = Self.longest(bytes, at: at, head: heads[Self.hash(bytes, at)], links: links)
            let length = match.length >= 4 ? match.length : 1
            if length > 1 { putMatch(length, match.distance) } else { putSymbol(Int(bytes[at])) }
            for i in at..<min(at + length, bytes.count - 3) {
                let hash = Self.hash(bytes, i)
                links[i & (Self.farthest - 1)] = heads[hash]
                heads[hash] = i
            }
            at += length
        }
    }

    /// Multiplicative hashing (Knuth, volume 3, §6.4) of four bytes.
    private static func hash(_ bytes: UnsafeBufferPointer<UInt8>, _ at: Int) -> Int {
        var word: UInt32 = 0
        for i in 0..<4 { word |= UInt32(bytes[at + i]) << UInt32(8 * i) }
        return Int((word &* 2_654_435_761) >> UInt32(32 - hashBits))
    }

    private static func longest(
        _ bytes: UnsafeBufferPointer<UInt8>, at: Int, head: Int, links: [Int]
    ) -> (length: Int, distance: Int) {
        let limit = min(longestMatch, bytes.count - at)
        var best = (length: 0, distance: 0)
        var candidate = head
        for _ in 0..<chainLength {
            guard candidate >= 0, at - candidate < farthest else { break }
            var length = 0
            while length < limit && bytes[candidate + length] == bytes[at + length] { length += 1 }
            if length > best.length {
                best = (length, at - candidate)
                if length == limit { break }
            }
            // A link that has been overwritten by a later place would lead forward.
            let next = links[candidate & (farthest - 1)]
            guard next < candidate else { break }
            candidate = next
        }
        return best
    }

    private mutating func put(_ value: UInt64, _ count: UInt64) {
        bits |= value << bitCount
        bitCount += count
        while bitCount >= 8 {
            out.append(UInt8(truncatingIfNeeded: bits))
            bits >>= 8
            bitCount -= 8
        }
    }

    private mutating func flush() {
        if bitCount > 0 { put(0, 8 - bitCount) }
    }

    /// Huffman code words go out with their first bit first.
    private mutating func putReversed(_ word: UInt64, _ count: UInt64) {
        put(UInt64(UInt16(word).reversedBits) >> (16 - count), count)
    }

    /// A symbol of the fixed code (RFC 1951 §3.2.6).
    private mutating func putSymbol(_ symbol: Int) {
        switch symbol {
        case ..<144: putReversed(UInt64(0x30 + symbol), 8)
        case ..<256: putReversed(UInt64(0x190 + symbol - 144), 9)
        case ..<280: putReversed(UInt64(symbol - 256), 7)
        default: putReversed(UInt64(0xC0 + symbol - 280), 8)
        }
    }

    private mutating func putMatch(_ length: Int, _ distance: Int) {
        let (lengthSymbol, lengthExtra, lengthBits) = Self.lengthCode(length)
        putSymbol(lengthSymbol)
        put(UInt64(lengthExtra), UInt64(lengthBits))
        let d = distance - 1
        guard d >= 4 else {
            putReversed(UInt64(d), 5)
            return
        }
        let top = Int.bitWidth - 1 - d.leadingZeroBitCount
        let extraBits = top - 1
        putReversed(UInt64(2 * top + (d >> extraBits & 1)), 5)
        put(UInt64(d & ((1 << extraBits) - 1)), UInt64(extraBits))
    }

    /// Symbol, extra value and extra bits of a length from 3 to 258 (RFC 1951 §3.2.5).
    private static func lengthCode(_ length: Int) -> (symbol: Int, extra: Int, bits: Int) {
        if length == longestMatch { return (285, 0, 0) }
        let l = length - 3
        guard l >= 8 else { return (257 + l, 0, 0) }
        let top = Int.bitWidth - 1 - l.leadingZeroBitCount
        let bits = top - 2
        return (257 + 4 * bits + 4 + (l >> bits & 3), l & ((1 << bits) - 1), bits)
    }
}

extension UInt16 {
    /// The bits in the opposite order.
    fileprivate var reversedBits: UInt16 {
        var v = self
        v = v >> 1 & 0x5555 | (v & 0x5555) << 1
        v = v >> 2 & 0x3333 | (v & 0x3333) << 2
        v = v >> 4 & 0x0F0F | (v & 0x0F0F) << 4
        return v.byteSwapped
    }
}
