/// Distributions of asymmetric numeral systems and their alias tables.
///
/// Source: ISO/IEC 18181-1 annex C.2.5 and C.2.6 (alias mapping after Vose, 1991).
enum JXLANSTable {
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
