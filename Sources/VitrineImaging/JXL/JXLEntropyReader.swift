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
                return remember(try number(&bits, token, code.hybrids[Int(code.clusters[context])]))
            }
            let length = try number(&bits, token - code.minimumCopySymbol, code.lengthHybrid)
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
        try number(&bits, symbol(&bits, cluster), code.hybrids[cluster])
    }

    @inline(__always)
    private func number(
        _ bits: inout JXLBits, _ token: Int, _ hybrid: JXLEntropyCode.Hybrid
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
