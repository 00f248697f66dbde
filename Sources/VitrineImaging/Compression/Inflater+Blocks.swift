/// Block headers and everything else that is read a few bits at a time.
extension Inflater {
    /// Moves unread input to the front of its buffer and fills the rest from the source.
    mutating func fetch() throws(InflateError) {
        guard !inputHasEnded else { return }
        let unread = inputEnd - inputNext
        if unread > 0 && inputNext > input { input.update(from: inputNext, count: unread) }
        inputNext = input
        inputEnd = input + unread
        let room = UnsafeMutableRawBufferPointer(start: inputEnd, count: inputCapacity - unread)
        let n: Int
        do {
            n = try source.read(into: room)
        } catch {
            throw .source(error)
        }
        if n <= 0 { inputHasEnded = true }
        inputEnd += min(max(n, 0), room.count)
        // What lies behind the end may be read as padding: it must be the same whenever it is read.
        inputEnd.update(repeating: 0, count: Self.slack)
    }

    /// Makes at least `count` (up to 32) bits available.
    mutating func need(_ count: Int) throws(InflateError) {
        guard bitCount < count else { return }
        bits &= 1 << UInt64(bitCount) &- 1
        while bitCount < count {
            if inputNext >= inputEnd {
                try fetch()
                if inputNext >= inputEnd { throw .truncated }
            }
            bits |= UInt64(inputNext.pointee) << UInt64(bitCount)
            inputNext += 1
            bitCount &+= 8
        }
    }

    /// Consumes `count` (up to 32) bits.
    mutating func take(_ count: Int) throws(InflateError) -> Int {
        try need(count)
        let value = Int(bits & (1 << UInt64(count) &- 1))
        bits >>= UInt64(count)
        bitCount &-= count
        return value
    }

    mutating func readBlockHeader() throws(InflateError) {
        if isFinalBlock {
            state = .trailer
            return
        }
        let header = try take(3)
        isFinalBlock = header & 1 == 1
        switch header >> 1 {
        case 0:
            let ragged = bitCount & 7
            bits >>= UInt64(ragged)
            bitCount &-= ragged
            let length = try take(16)
            let complement = try take(16)
            guard length ^ complement == 0xFFFF else { throw .invalid("stored block lengths do not match") }
            storedLeft = length
            state = .stored
        case 1:
            buildFixedTables()
            state = .codes
        case 2:
            try readDynamicTables()
            state = .codes
        default:
            throw .invalid("block type 3 does not exist")
        }
    }

    mutating func copyStored(_ limit: UnsafeMutablePointer<UInt8>) throws(InflateError) {
        while storedLeft > 0 && bitCount >= 8 && out < limit {
            out.pointee = UInt8(truncatingIfNeeded: bits)
            out += 1
            bits >>= 8
            bitCount &-= 8
            storedLeft &-= 1
        }
        if bitCount < 8 { (bits, bitCount) = (0, 0) }
        while storedLeft > 0 && out < limit {
            if inputNext >= inputEnd {
                try fetch()
                if inputNext >= inputEnd { throw .truncated }
            }
            let n = min(storedLeft, min(limit - out, inputEnd - inputNext))
            out.update(from: inputNext, count: n)
            out += n
            inputNext += n
            storedLeft &-= n
        }
        if storedLeft == 0 { state = .blockHeader }
    }

    /// The code of RFC 1951 §3.2.6.
    private mutating func buildFixedTables() {
        for symbol in 0..<288 { lengths[symbol] = symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8 }
        _ = literals.build(lengths: lengths, count: 288)
        for symbol in 0..<32 { lengths[symbol] = 5 }
        _ = distances.build(lengths: lengths, count: 32)
    }

    /// Reads the codes of a dynamic block (RFC 1951 §3.2.7).
    private mutating func readDynamicTables() throws(InflateError) {
        let literalCount = try take(5) + 257
        let distanceCount = try take(5) + 1
        let codeCount = try take(4) + 4
        guard literalCount <= 286, distanceCount <= 30 else { throw .invalid("too many symbols") }
        for i in 0..<19 { lengths[i] = 0 }
        let order: [UInt8] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
        for i in 0..<codeCount { lengths[Int(order[i])] = UInt8(truncatingIfNeeded: try take(3)) }
        guard codeLengths.build(lengths: lengths, count: 19) else { throw .invalid("bad code of code lengths") }

        let total = literalCount + distanceCount
        var i = 0
        while i < total {
            let (symbol, repeats) = try readCodeLength()
            if symbol < 16 {
                lengths[i] = symbol
                i &+= 1
                continue
            }
            guard symbol != 16 || i > 0, repeats <= total - i else { throw .invalid("bad repeat of code lengths") }
            let value = symbol == 16 ? lengths[i &- 1] : 0
            (lengths + i).update(repeating: value, count: repeats)
            i &+= repeats
        }
        guard lengths[256] > 0 else { throw .invalid("block without an end") }
        guard literals.build(lengths: lengths, count: literalCount) else { throw .invalid("bad literal code") }
        literals.joinLiterals()
        guard distances.build(lengths: lengths + literalCount, count: distanceCount) else {
            throw .invalid("bad distance code")
        }
    }

    /// One symbol of the code of code lengths, with how often 16, 17 and 18 repeat.
    private mutating func readCodeLength() throws(InflateError) -> (symbol: UInt8, repeats: Int) {
        // At the end of the input fewer than 7 bits may be left, and enough.
        while bitCount < 7 {
            if inputNext >= inputEnd { try fetch() }
            if inputNext >= inputEnd { break }
            try need(bitCount + 1)
        }
        let mask: UInt64 = 1 << UInt64(min(bitCount, 7)) &- 1
        let entry = codeLengths.entries[Int(bits & mask)]
        guard entry & HuffmanEntry.exceptional == 0 else { throw .invalid("unknown code length") }
        _ = try take(Int(entry & 63))
        let symbol = UInt8(truncatingIfNeeded: entry >> 16)
        switch symbol {
        case 16: return (symbol, try take(2) + 3)
        case 17: return (symbol, try take(3) + 3)
        case 18: return (symbol, try take(7) + 11)
        default: return (symbol, 1)
        }
    }
}
