import VitrineImageCore

/// The codes of one entropy-coded stream: which distribution each context uses, and the tables of each.
///
/// Source: ISO/IEC 18181-1 annex C (ANS and prefix codes, hybrid integers, clustering, LZ77).
struct JXLEntropyCode {
    /// How a token and the bits behind it make a number (C.3.3).
    struct Hybrid {
        var splitExponent = 0
        var msb = 0
        var lsb = 0

        init() {}

        init(_ bits: inout JXLBits, logAlphabet: Int) throws(JXLFault) {
            splitExponent = bits.bits(JXLEntropyCode.ceilLog2(logAlphabet + 1))
            guard splitExponent <= logAlphabet else { throw .corrupt("hybrid integer") }
            guard splitExponent != logAlphabet else { return }
            msb = bits.bits(JXLEntropyCode.ceilLog2(splitExponent + 1))
            guard msb <= splitExponent else { throw .corrupt("hybrid integer") }
            lsb = bits.bits(JXLEntropyCode.ceilLog2(splitExponent - msb + 1))
            guard msb + lsb <= splitExponent else { throw .corrupt("hybrid integer") }
        }
    }

    /// The distribution of each context.
    var clusters: [UInt8] = [0]
    var hybrids: [Hybrid] = []
    var usesPrefixCodes = false
    var logAlphabet = 15
    /// Of ANS: one slot an alphabet symbol and distribution.
    fileprivate var slots: [JXLANSTable.Slot] = []
    /// Of prefix codes: the tables one behind the other, where each begins and how many bits index it.
    var prefixEntries: [UInt32] = []
    var prefixTables: [(start: Int, bits: Int)] = []
    // LZ77.
    var hasCopies = false
    var minimumCopySymbol = 0
    var minimumCopyLength = 0
    var lengthHybrid = Hybrid()

    static func ceilLog2(_ x: Int) -> Int { x <= 1 ? 0 : Int.bitWidth - (x - 1).leadingZeroBitCount }

    /// Reads the codes for `contexts` contexts; the one for distances comes on top.
    init(_ bits: inout JXLBits, contexts: Int, allowsCopies: Bool = true) throws(JXLFault) {
        var contexts = contexts
        if bits.bool() {
            guard allowsCopies else { throw .corrupt("copies where there may be none") }
            hasCopies = true
            minimumCopySymbol = bits.u32(a: (224, 0), b: (512, 0), c: (4096, 0), d: (8, 15))
            minimumCopyLength = bits.u32(a: (3, 0), b: (4, 0), c: (5, 2), d: (9, 8))
            lengthHybrid = try Hybrid(&bits, logAlphabet: 8)
            contexts += 1
        }
        clusters = contexts == 1 ? [0] : try JXLEntropyCode.clusters(&bits, contexts: contexts)
        let count = Int(clusters.max() ?? 0) + 1
        usesPrefixCodes = bits.bool()
        logAlphabet = usesPrefixCodes ? 15 : 5 + bits.bits(2)
        for _ in 0..<count { hybrids.append(try Hybrid(&bits, logAlphabet: logAlphabet)) }
        try bits.check()
        if usesPrefixCodes {
            try readPrefixCodes(&bits, count: count)
        } else {
            slots.reserveCapacity(count << logAlphabet)
            for _ in 0..<count { try JXLANSTable.append(&bits, logAlphabet: logAlphabet, to: &slots) }
        }
        try bits.check()
    }

    private mutating func readPrefixCodes(_ bits: inout JXLBits, count: Int) throws(JXLFault) {
        var sizes: [Int] = []
        for _ in 0..<count {
            var size = 1
            if bits.bool() {
                let n = bits.bits(4)
                size = 1 + (1 << n) + bits.bits(n)
            }
            guard size <= 1 << 15 else { throw .corrupt("alphabet too large") }
            // A few bits can announce such a code, whose tables take far longer to make. No encoder writes more than
            // 4,096 symbols (libjxl, PREFIX_MAX_ALPHABET_SIZE).
            guard size <= 1 << 12 else { throw .unsupported("an alphabet of too many symbols") }
            sizes.append(size)
        }
        for size in sizes {
            let lengths = try JXLPrefixCode.lengths(&bits, alphabet: size)
            try bits.check()
            let start = prefixEntries.count
            let width = try JXLPrefixCode.appendTable(lengths, to: &prefixEntries)
            prefixTables.append((start, width))
        }
    }

    /// Which distribution each context uses (C.2.2).
    static func clusters(_ bits: inout JXLBits, contexts: Int) throws(JXLFault) -> [UInt8] {
        var map = [UInt8](repeating: 0, count: contexts)
        if bits.bool() {
            let n = bits.bits(2)
            for i in 0..<contexts { map[i] = UInt8(bits.bits(n)) }
        } else {
            let movesToFront = bits.bool()
            let code = try JXLEntropyCode(&bits, contexts: 1, allowsCopies: contexts > 2)
            var reader = JXLEntropyReader(code, &bits)
            for i in 0..<contexts {
                let value = try reader.read(&bits, 0)
                guard value < 256 else { throw .corrupt("too many distributions") }
                map[i] = UInt8(value)
            }
            try reader.finish(bits)
            if movesToFront {
                var order = (0..<256).map { UInt8($0) }
                for i in 0..<contexts {
                    let index = Int(map[i])
                    let value = order[index]
                    map[i] = value
                    order.remove(at: index)
                    order.insert(value, at: 0)
                }
            }
        }
        try bits.check()
        return map
    }
}

/// Reads the numbers of one entropy-coded stream.
///
/// Source: ISO/IEC 18181-1 annex C.3.
struct JXLEntropyReader {
    private static let windowSize = 1 << 20

    private let code: JXLEntropyCode
    private var state: UInt32 = 0
    // What copies repeat; empty where the code has none.
    private var window: [UInt32] = []
    private var read = 0
    private var copiesLeft = 0
    private var copyFrom = 0

    init(_ code: JXLEntropyCode, _ bits: inout JXLBits) {
        self.code = code
        if !code.usesPrefixCodes { state = UInt32(truncatingIfNeeded: bits.bits(32)) }
    }

    /// The next number in a context.
    mutating func read(_ bits: inout JXLBits, _ context: Int) throws(JXLFault) -> Int {
        guard code.hasCopies else { return try plain(&bits, Int(code.clusters[context])) }
        if copiesLeft == 0 {
            let token = symbol(&bits, Int(code.clusters[context]))
            if token < code.minimumCopySymbol {
                return remember(try number(&bits, token: token, hybrid: code.hybrids[Int(code.clusters[context])]))
            }
            let length = try number(&bits, token: token - code.minimumCopySymbol, hybrid: code.lengthHybrid)
            copiesLeft = length + code.minimumCopyLength
            let distance = try plain(&bits, Int(code.clusters[code.clusters.count - 1])) + 1
            copyFrom = read - min(distance, read, JXLEntropyReader.windowSize)
        }
        try bits.check()
        copiesLeft -= 1
        let index = copyFrom & (JXLEntropyReader.windowSize - 1)
        // A copy before the first number is one of zeros.
        let value = index < window.count ? Int(window[index]) : 0
        copyFrom += 1
        return remember(value)
    }

    private mutating func remember(_ value: Int) -> Int {
        let index = read & (JXLEntropyReader.windowSize - 1)
        if index < window.count {
            window[index] = UInt32(truncatingIfNeeded: value)
        } else {
            window.append(UInt32(truncatingIfNeeded: value))
        }
        read += 1
        return value
    }

    /// The next number of a distribution, in a code without copies.
    @inline(__always)
    mutating func plain(_ bits: inout JXLBits, _ cluster: Int) throws(JXLFault) -> Int {
        try number(&bits, token: symbol(&bits, cluster), hybrid: code.hybrids[cluster])
    }

    @inline(__always)
    private func number(
        _ bits: inout JXLBits, token: Int, hybrid: JXLEntropyCode.Hybrid
    ) throws(JXLFault) -> Int {
        let split = 1 &<< hybrid.splitExponent
        if token < split { return token }
        let inToken = hybrid.msb &+ hybrid.lsb
        let n = hybrid.splitExponent &- inToken &+ ((token &- split) &>> inToken)
        guard n < 32 else { throw .corrupt("a number is too large") }
        let low = token & ((1 &<< hybrid.lsb) &- 1)
        let high = (token &>> hybrid.lsb) & ((1 &<< hybrid.msb) &- 1) | (1 &<< hybrid.msb)
        let value = ((high &<< n | bits.bits(n)) &<< hybrid.lsb) | low
        guard value <= Int(UInt32.max) else { throw .corrupt("a number is too large") }
        return value
    }

    @inline(__always)
    private mutating func symbol(_ bits: inout JXLBits, _ cluster: Int) -> Int {
        if code.usesPrefixCodes {
            let table = code.prefixTables[cluster]
            let index = Int(truncatingIfNeeded: bits.peek()) & ((1 &<< table.bits) &- 1)
            let entry = code.prefixEntries[table.start &+ index]
            bits.skip(Int(entry & 15))
            return Int(entry &>> 4)
        }
        let logBucket = 12 &- code.logAlphabet
        let index = Int(state & 0xFFF)
        let bucket = index &>> logBucket
        let position = index & ((1 &<< logBucket) &- 1)
        let slot = code.slots[cluster &<< code.logAlphabet &+ bucket]
        let symbol: Int
        let (frequency, offset): (UInt32, UInt32)
        if position >= Int(slot.cutoff) {
            symbol = Int(slot.alias)
            frequency = UInt32(slot.aliasFrequency)
            offset = UInt32(slot.offset &+ UInt16(truncatingIfNeeded: position))
        } else {
            symbol = bucket
            frequency = UInt32(slot.frequency)
            offset = UInt32(truncatingIfNeeded: position)
        }
        state = frequency &* (state &>> 12) &+ offset
        if state < 1 << 16 { state = state &<< 16 | UInt32(truncatingIfNeeded: bits.bits(16)) }
        return symbol
    }

    /// - Throws: ``JXLFault`` when the stream did not end as it must.
    func finish(_ bits: JXLBits) throws(JXLFault) {
        try bits.check()
        guard code.usesPrefixCodes || state == 0x13_0000 else { throw .corrupt("entropy-coded stream") }
    }
}

/// Prefix codes as Brotli writes them.
///
/// Source: ISO/IEC 18181-1 annex C.2.4; RFC 7932 §3.4 and §3.5.
private enum JXLPrefixCode {
    /// The code length of each symbol; 0 for symbols that do not occur.
    static func lengths(_ bits: inout JXLBits, alphabet: Int) throws(JXLFault) -> [UInt8] {
        var lengths = [UInt8](repeating: 0, count: alphabet)
        guard alphabet > 1 else { return lengths }
        let skip = bits.bits(2)
        if skip == 1 {
            let width = JXLEntropyCode.ceilLog2(alphabet)
            let count = bits.bits(2) + 1
            let symbols = (0..<count).map { _ in bits.bits(width) }
            let isDeep = count == 4 && bits.bool()
            let shape: [UInt8] = [[0], [1, 1], [1, 2, 2], isDeep ? [1, 2, 3, 3] : [2, 2, 2, 2]][count - 1]
            guard symbols.allSatisfy({ $0 < alphabet }), Set(symbols).count == count else {
                throw .corrupt("prefix code")
            }
            if count == 1 {
                // A single symbol takes no bits: a length that no code has.
                lengths[symbols[0]] = .max
                return lengths
            }
            for (symbol, length) in zip(symbols, shape) { lengths[symbol] = length }
            return lengths
        }
        let codeLengths = try readCodeLengthCode(&bits, skip: skip)
        try readLengths(&bits, codeLengths, into: &lengths)
        return lengths
    }

    private static func readCodeLengthCode(_ bits: inout JXLBits, skip: Int) throws(JXLFault) -> [UInt8] {
        let order = [1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        let codes: [(UInt8, Int)] = [
            (0, 2), (4, 2), (3, 2), (2, 3), (0, 2), (4, 2), (3, 2), (1, 4),
            (0, 2), (4, 2), (3, 2), (2, 3), (0, 2), (4, 2), (3, 2), (5, 4),
        ]
        var lengths = [UInt8](repeating: 0, count: 18)
        var (space, used) = (32, 0)
        for symbol in order[skip...] where space > 0 {
            let (length, width) = codes[Int(truncatingIfNeeded: bits.peek() & 15)]
            bits.skip(width)
            lengths[symbol] = length
            if length > 0 {
                space -= 32 >> Int(length)
                used += 1
            }
        }
        guard space == 0 || used == 1 else { throw .corrupt("prefix code") }
        if used == 1, let only = lengths.firstIndex(where: { $0 > 0 }) { lengths[only] = .max }
        return lengths
    }

    private static func readLengths(
        _ bits: inout JXLBits, _ codeLengths: [UInt8], into lengths: inout [UInt8]
    ) throws(JXLFault) {
        var table: [UInt32] = []
        let width = try appendTable(codeLengths, to: &table)
        var (symbol, space) = (0, 32_768)
        var previous: UInt8 = 8
        var (run, runLength): (Int, UInt8) = (0, 0)
        while symbol < lengths.count, space > 0 {
            let entry = table[Int(truncatingIfNeeded: bits.peek()) & ((1 << width) - 1)]
            bits.skip(Int(entry & 15))
            let code = Int(entry >> 4)
            if code < 16 {
                run = 0
                lengths[symbol] = UInt8(code)
                symbol += 1
                if code > 0 {
                    previous = UInt8(code)
                    space -= 32_768 >> code
                }
                continue
            }
            let length = code == 16 ? previous : 0
            if runLength != length { (run, runLength) = (0, length) }
            let old = run
            if run > 0 { run = (run - 2) << (code - 14) }
            run += bits.bits(code - 14) + 3
            guard run - old <= lengths.count - symbol else { throw .corrupt("prefix code") }
            for _ in 0..<(run - old) {
                lengths[symbol] = length
                symbol += 1
                if length > 0 { space -= 32_768 >> Int(length) }
            }
        }
        guard space == 0 else { throw .corrupt("prefix code") }
    }

    /// Appends a table indexed by the next bits: entry = symbol << 4 | length. Returns how many bits index it.
    static func appendTable(_ lengths: [UInt8], to entries: inout [UInt32]) throws(JXLFault) -> Int {
        if lengths.count == 1 || lengths.contains(.max) {
            entries.append(UInt32(lengths.firstIndex(of: .max) ?? 0) << 4)
            return 0
        }
        let width = Int(lengths.max() ?? 0)
        guard width > 0, width <= 15 else { throw .corrupt("prefix code") }
        let start = entries.count
        entries += [UInt32](repeating: 0, count: 1 << width)
        // Codes of one length follow each other in the order of symbols, behind twice those of the length before.
        var next = [Int](repeating: 0, count: width + 2)
        for length in lengths where length > 0 { next[Int(length) + 1] += 1 }
        for length in 1...(width + 1) { next[length] = 2 * (next[length] + next[length - 1]) }
        for (symbol, length) in lengths.enumerated() where length > 0 {
            let (code, length) = (next[Int(length)], Int(length))
            guard code < 1 << length else { throw .corrupt("prefix code") }
            next[length] += 1
            var reversed = 0
            for i in 0..<length where code >> i & 1 == 1 { reversed |= 1 << (length - 1 - i) }
            for index in stride(from: reversed, to: 1 << width, by: 1 << length) {
                entries[start + index] = UInt32(symbol) << 4 | UInt32(length)
            }
        }
        return width
    }
}

/// Distributions of asymmetric numeral systems and their alias tables.
///
/// Source: ISO/IEC 18181-1 annex C.2.5 and C.2.6 (alias mapping after Vose, 1991).
private enum JXLANSTable {
    /// One bucket of the alias table: below `cutoff` the symbol is the bucket's own.
    struct Slot {
        var cutoff: UInt16 = 0
        var alias: UInt16 = 0
        var offset: UInt16 = 0
        /// How often the bucket's own symbol occurs among 4,096.
        var frequency: UInt16 = 0
        var aliasFrequency: UInt16 = 0
    }

    static func append(
        _ bits: inout JXLBits, logAlphabet: Int, to slots: inout [Slot]
    ) throws(JXLFault) {
        let frequencies = try distribution(&bits, logAlphabet: logAlphabet)
        let size = 1 << logAlphabet
        let bucket = 4096 >> logAlphabet
        var table = [Slot](repeating: Slot(), count: size)
        if let only = frequencies.firstIndex(of: 4096) {
            for i in 0..<size {
                table[i] = Slot(
                    cutoff: 0, alias: UInt16(only), offset: UInt16(bucket * i), frequency: 0, aliasFrequency: 4096)
            }
            slots += table
            return
        }
        var cutoffs = frequencies
        var offsets = [Int](repeating: 0, count: size)
        var overfull = cutoffs.indices.filter { cutoffs[$0] > bucket }
        var underfull = cutoffs.indices.filter { cutoffs[$0] < bucket }
        while let over = overfull.popLast() {
            guard let under = underfull.popLast() else { throw .corrupt("ANS distribution") }
            cutoffs[over] -= bucket - cutoffs[under]
            table[under].alias = UInt16(over)
            offsets[under] = cutoffs[over]
            if cutoffs[over] < bucket {
                underfull.append(over)
            } else if cutoffs[over] > bucket {
                overfull.append(over)
            }
        }
        for i in 0..<size {
            if cutoffs[i] == bucket {
                table[i].alias = UInt16(i)
            } else {
                table[i].cutoff = UInt16(cutoffs[i])
                // May be negative; the sum with a position in the bucket is not.
                table[i].offset = UInt16(truncatingIfNeeded: offsets[i] - cutoffs[i])
            }
            table[i].frequency = UInt16(frequencies[i])
            table[i].aliasFrequency = UInt16(frequencies[Int(table[i].alias)])
        }
        slots += table
    }

    /// How often each symbol occurs among 4,096.
    private static func distribution(_ bits: inout JXLBits, logAlphabet: Int) throws(JXLFault) -> [Int] {
        let size = 1 << logAlphabet
        var counts = [Int](repeating: 0, count: size)
        if bits.bool() {
            let two = bits.bool()
            let first = bits.u8()
            let second = two ? bits.u8() : first
            guard first < size, second < size, !two || first != second else { throw .corrupt("ANS distribution") }
            counts[first] = 4096
            if two {
                counts[first] = bits.bits(12)
                counts[second] = 4096 - counts[first]
            }
            return counts
        }
        if bits.bool() {
            let alphabet = bits.u8() + 1
            guard alphabet <= size else { throw .corrupt("ANS distribution") }
            for i in 0..<alphabet { counts[i] = 4096 / alphabet + (i < 4096 % alphabet ? 1 : 0) }
            return counts
        }
        var length = 0
        while length < 3, bits.bool() { length += 1 }
        let shift = bits.bits(length) + (1 << length) - 1
        let alphabet = bits.u8() + 3
        guard shift <= 13, alphabet <= size else { throw .corrupt("ANS distribution") }
        try readCounts(&bits, alphabet: alphabet, shift: shift, into: &counts)
        return counts
    }

    private static func readCounts(
        _ bits: inout JXLBits, alphabet: Int, shift: Int, into counts: inout [Int]
    ) throws(JXLFault) {
        var logs = [Int](repeating: 0, count: alphabet)
        var same = [Int](repeating: 0, count: alphabet)
        var largest = -1
        var omitted = -1
        var i = 0
        while i < alphabet {
            logs[i] = logCount(&bits)
            if logs[i] == 13 {
                let run = bits.u8()
                same[i] = run + 5
                i += run + 4
                continue
            }
            if logs[i] > largest { (largest, omitted) = (logs[i], i) }
            i += 1
        }
        guard omitted >= 0, omitted + 1 >= alphabet || logs[omitted + 1] != 13 else { throw .corrupt("ANS distribution") }
        var (previous, repeats, total) = (0, 0, 0)
        for i in 0..<alphabet {
            if same[i] > 0 {
                repeats = same[i] - 1
                previous = i > 0 ? counts[i - 1] : 0
            }
            if repeats > 0 {
                counts[i] = previous
                repeats -= 1
            } else if i != omitted, logs[i] > 0 {
                let log = logs[i] - 1
                let precision = max(0, min(log, shift - (12 - log) / 2))
                counts[i] = 1 << log + bits.bits(precision) << (log - precision)
            }
            total += counts[i]
        }
        guard total < 4096, counts[omitted] == 0 else { throw .corrupt("ANS distribution") }
        counts[omitted] = 4096 - total
    }

    /// One more than the logarithm of a frequency; 0 for none, 13 for a run of equal ones.
    private static func logCount(_ bits: inout JXLBits) -> Int {
        let word = Int(truncatingIfNeeded: bits.peek() & 127)
        let (length, value) = switch word & 7 {
        case 0: (3, 10)
        case 2: (3, 7)
        case 4: (3, 6)
        case 5: (3, 8)
        case 6: (3, 9)
        case 3: (4, word & 8 == 0 ? 3 : 1)
        case 7: (4, word & 8 == 0 ? 5 : 2)
        default:
            if word & 8 != 0 { (4, 4) } else if word & 16 != 0 { (5, 0) } else if word & 32 != 0 { (6, 11) } else {
                (7, word & 64 != 0 ? 13 : 12)
            }
        }
        bits.skip(length)
        return value
    }
}
