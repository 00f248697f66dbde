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
    var slots: [JXLANSTable.Slot] = []
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
            minimumCopySymbol = bits.u32((224, 0), (512, 0), (4096, 0), (8, 15))
            minimumCopyLength = bits.u32((3, 0), (4, 0), (5, 2), (9, 8))
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
