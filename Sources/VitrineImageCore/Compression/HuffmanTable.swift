/// How entries of a ``HuffmanTable`` are laid out. One 32-bit word answers everything about a prefix of the input.
///
/// - bits 0–5: how many bits to consume, extra bits included
/// - bits 6–7: how many literal bytes the entry holds, 0 to 3
/// - literals: bits 8–31 are the bytes, the first lowest
/// - otherwise bits 8–11: bits of the code word alone (of a subtable: its index bits)
/// - otherwise bit 12: exceptional, bit 13: subtable, bit 14: end of block
/// - otherwise bits 16–31: base of the length or distance, or the start of the subtable
package enum HuffmanEntry {
    static let literalMask: UInt32 = 0xC0
    static let exceptional: UInt32 = 1 << 12
    static let subtable: UInt32 = 1 << 13
    static let endOfBlock: UInt32 = 1 << 14

    /// The meaning of symbols, without the length of their code.
    package enum Alphabet: Sendable {
        case literals, distances, codeLengths
    }

    /// Base lengths and extra bits of symbols 257 to 285 (RFC 1951 §3.2.5).
    private static let lengthBase: [UInt16] = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163,
        195, 227, 258,
    ]
    private static let lengthExtra: [UInt8] = [
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
    ]

    /// Entries of all symbols of an alphabet for a code length of 0; a code length n adds n · 0x101.
    ///
    /// Literals count their code length once only, in bits 0–5.
    static func templates(_ alphabet: Alphabet) -> [UInt32] {
        switch alphabet {
        case .codeLengths:
            return (0..<19).map { UInt32($0) << 16 }
        case .literals:
            return (0..<288).map { symbol in
                if symbol < 256 { return UInt32(symbol) << 8 | 1 << 6 }
                if symbol == 256 { return exceptional | endOfBlock }
                guard symbol < 286 else { return exceptional }
                return UInt32(lengthBase[symbol - 257]) << 16 | UInt32(lengthExtra[symbol - 257])
            }
        case .distances:
            return (0..<32).map { symbol in
                guard symbol < 30 else { return exceptional }
                let extra = symbol < 4 ? 0 : symbol / 2 - 1
                let base = symbol < 4 ? symbol + 1 : ((2 + symbol & 1) << extra) + 1
                return UInt32(base) << 16 | UInt32(extra)
            }
        }
    }
}

/// A decoding table for one canonical Huffman code: a primary table of `bits` index bits and subtables behind it.
///
/// The table borrows its memory from the ``Inflater`` that owns it.
struct HuffmanTable {
    /// Code words are at most this long (RFC 1951 §3.2.7).
    static let maximumLength = 15

    let entries: UnsafeMutablePointer<UInt32>
    /// Index bits of the primary table.
    let bits: Int
    private let templates: UnsafePointer<UInt32>
    private let sorted: UnsafeMutablePointer<UInt16>

    /// Entries that `symbols` code words can need at worst: each long one has a subtable to itself.
    static func capacity(bits: Int, symbols: Int) -> Int { (1 << bits) + symbols << max(0, maximumLength - bits) }

    init(
        entries: UnsafeMutablePointer<UInt32>, bits: Int, templates: UnsafePointer<UInt32>,
        sorted: UnsafeMutablePointer<UInt16>
    ) {
        self.entries = entries
        self.bits = bits
        self.templates = templates
        self.sorted = sorted
    }

    /// Builds the table for code lengths.
    ///
    /// - Returns: False if the code is over-subscribed, or incomplete other than by being a single word of one bit or
    ///   no word at all, which encoders write for a block with one distance or none.
    func build(lengths: UnsafePointer<UInt8>, count: Int) -> Bool {
        let counts = Self.count(lengths, count)
        var offsets = SIMD16<UInt16>.zero
        var left = 1
        var longest = 0
        for length in 1...Self.maximumLength {
            left = left &* 2 &- Int(counts[length])
            if left < 0 { return false }
            if counts[length] > 0 { longest = length }
            if length < Self.maximumLength { offsets[length &+ 1] = offsets[length] &+ counts[length] }
        }
        withUnsafeTemporaryAllocation(of: UInt16.self, capacity: 16) { places in
            guard let places = places.baseAddress else { return }
            for length in 0..<16 { places[length] = offsets[length] }
            for symbol in 0..<count {
                let length = Int(lengths[symbol] & 15)
                if length > 0 {
                    sorted[Int(places[length])] = UInt16(truncatingIfNeeded: symbol)
                    places[length] &+= 1
                }
            }
        }
        if left > 0 {
            guard longest <= 1 else { return false }
            let word = longest == 1 ? entry(Int(sorted[0]), length: 1) : HuffmanEntry.exceptional
            for i in 0..<(1 << bits) { entries[i] = i & 1 == 0 ? word : HuffmanEntry.exceptional }
            return true
        }
        fill(counts, longest)
        return true
    }

    /// How many words there are of each length. Four counters a length in one number, for the same length comes often,
    /// and a counter that was just written is slow to read.
    private static func count(_ lengths: UnsafePointer<UInt8>, _ count: Int) -> SIMD16<UInt16> {
        withUnsafeTemporaryAllocation(of: UInt16.self, capacity: 64) { counters in
            guard let base = counters.baseAddress else { return .zero }
            base.initialize(repeating: 0, count: 64)
            var i = 0
            while i < count {
                base[(i & 3) &* 16 &+ Int(lengths[i] & 15)] &+= 1
                i &+= 1
            }
            let rows = UnsafeRawPointer(base)
            var sum = SIMD16<UInt16>.zero
            for r in 0..<4 { sum &+= (rows + r &* 32).loadUnaligned(as: SIMD16<UInt16>.self) }
            sum[0] = 0
            return sum
        }
    }

    @inline(__always)
    private func entry(_ symbol: Int, length: Int) -> UInt32 {
        let template = templates[symbol]
        let n = UInt32(truncatingIfNeeded: length)
        return template &+ (template & HuffmanEntry.literalMask != 0 ? n : n &* 0x101)
    }

    /// Fills the tables of a complete code. Words are kept bit-reversed, as they arrive; the primary table is filled
    /// for the shortest words first and doubled for every further bit.
    private func fill(_ counts: SIMD16<UInt16>, _ longest: Int) {
        var word = 0
        var next = 0
        var length = 1
        while length <= min(bits, longest) {
            let end = 1 << length
            if length > 1 { (entries + end >> 1).update(from: entries, count: end >> 1) }
            for _ in 0..<Int(counts[length]) {
                entries[word] = entry(Int(sorted[next]), length: length)
                next &+= 1
                word = Self.successor(word, end)
            }
            length &+= 1
        }
        if longest <= bits {
            var filled = 1 << longest
            while filled < 1 << bits {
                (entries + filled).update(from: entries, count: filled)
                filled <<= 1
            }
            return
        }
        var free = 1 << bits
        var prefix = -1
        var start = 0
        var indexBits = 0
        while length <= longest {
            for position in 0..<Int(counts[length]) {
                if word & ((1 << bits) &- 1) != prefix {
                    prefix = word & ((1 << bits) &- 1)
                    start = free
                    indexBits = length &- bits
                    var used = Int(counts[length]) &- position
                    while used < 1 << indexBits {
                        indexBits &+= 1
                        used = used << 1 &+ Int(counts[bits &+ indexBits])
                    }
                    free &+= 1 << indexBits
                    entries[prefix] =
                        UInt32(truncatingIfNeeded: start) << 16 | UInt32(truncatingIfNeeded: indexBits) << 8
                        | UInt32(truncatingIfNeeded: bits) | HuffmanEntry.exceptional | HuffmanEntry.subtable
                }
                let value = entry(Int(sorted[next]), length: length &- bits)
                var i = word >> bits
                while i < 1 << indexBits {
                    entries[start &+ i] = value
                    i &+= 1 << (length &- bits)
                }
                next &+= 1
                word = Self.successor(word, 1 << length)
            }
            length &+= 1
        }
    }

    /// The bit-reversed code word that follows `word` among words of `end` values.
    @inline(__always)
    private static func successor(_ word: Int, _ end: Int) -> Int {
        let zeros = word ^ (end &- 1)
        guard zeros != 0 else { return 0 }
        let bit = 1 << (Int.bitWidth &- 1 &- zeros.leadingZeroBitCount)
        return word & (bit &- 1) | bit
    }

    /// Joins literals whose code words fit one index together, up to three in an entry for one look-up to yield.
    ///
    /// Goes from the highest index down: the words after a first one stand at a smaller index, which is not joined yet.
    func joinLiterals() {
        // Without branches but for the loop's: what follows a word is as good as random.
        let limit = UInt32(truncatingIfNeeded: bits)
        var i = (1 << bits) &- 1
        while i >= 0 {
            let first = entries[i]
            let n1 = first & 63
            let second = entries[i &>> Int(n1)]
            let n2 = n1 &+ (second & 63)
            let third = entries[i &>> Int(n2 & 63)]
            let n3 = n2 &+ (third & 63)
            // Lengths of those that are no literals are beyond the limit, joined or not.
            let isPair = first & second & HuffmanEntry.literalMask != 0 && n2 <= limit
            let pair = first & 0xFF00 | (second & 0xFF00) &<< 8 | 2 << 6 | n2
            let triple = first & 0xFF00 | (second & 0xFF00) &<< 8 | (third & 0xFF00) &<< 16 | 3 << 6 | n3
            let isTriple = third & HuffmanEntry.literalMask != 0 && n3 <= limit
            let joined = isTriple ? triple : pair
            entries[i] = isPair ? joined : first
            i &-= 1
        }
    }
}
