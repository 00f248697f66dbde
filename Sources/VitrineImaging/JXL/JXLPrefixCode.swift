/// Prefix codes as Brotli writes them.
///
/// Source: ISO/IEC 18181-1 annex C.2.4; RFC 7932 §3.4 and §3.5.
enum JXLPrefixCode {
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
        var code = 0
        for length in 1...width {
            for (symbol, l) in lengths.enumerated() where Int(l) == length {
                guard code < 1 << length else { throw .corrupt("prefix code") }
                var reversed = 0
                for i in 0..<length where code >> i & 1 == 1 { reversed |= 1 << (length - 1 - i) }
                for index in stride(from: reversed, to: 1 << width, by: 1 << length) {
                    entries[start + index] = UInt32(symbol) << 4 | UInt32(length)
                }
                code += 1
            }
            code <<= 1
        }
        return width
    }
}
