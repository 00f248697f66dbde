/// A streaming decoder of zlib and raw deflate streams (RFC 1950, RFC 1951) in bounded memory.
///
/// Each call of ``next()`` decodes some more into a window, which keeps the 32 KiB that later matches may refer to:
///
/// ```swift
/// var inflater = Inflater(InflaterBytes(compressed))
/// while true {
///     let piece = try inflater.next()
///     if piece.isEmpty { break }
///     …
/// }
/// ```
///
/// Memory is always 32 KiB of window, one chunk of output, one of input and 40 KiB of tables.
package struct Inflater<Source: InflaterSource>: ~Copyable {
    /// The container of the deflate data.
    package enum Wrapper: Sendable {
        case zlib, raw
    }

    enum State {
        case start, blockHeader, stored, codes, trailer, finished
    }

    /// Index bits of the primary tables: 2,048 literal entries of 4 bytes fit half of a 16 KiB first-level cache.
    static var literalBits: Int { 11 }
    static var distanceBits: Int { 9 }
    /// Bytes the inner loop may read behind the end of the input, or write behind its limit (three refills; four
    /// entries of four bytes, a match of 258 and the rest of a 16-byte copy).
    static var slack: Int { 320 }
    static var history: Int { 32_768 }

    /// The source of compressed bytes.
    package var source: Source
    let wrapper: Wrapper
    private let scratch: ScratchMemory
    let input: UnsafeMutablePointer<UInt8>
    let inputCapacity: Int
    let window: UnsafeMutablePointer<UInt8>
    let chunk: Int
    let literals: HuffmanTable
    let distances: HuffmanTable
    let codeLengths: HuffmanTable
    let lengths: UnsafeMutablePointer<UInt8>

    var state = State.start
    var isFinalBlock = false
    var storedLeft = 0
    /// Bits not yet consumed, the next one lowest. Above ``bitCount`` it may hold a copy of input bits still to come.
    var bits: UInt64 = 0
    var bitCount = 0
    var inputNext: UnsafeMutablePointer<UInt8>
    var inputEnd: UnsafeMutablePointer<UInt8>
    var inputHasEnded = false
    var out: UnsafeMutablePointer<UInt8>
    /// Of the bytes so far.
    private var adler = Adler32()
    private var pending: InflateError?

    /// Makes a decoder; nothing is read yet.
    ///
    /// - Parameters:
    ///   - chunk: About how many bytes ``next()`` gives at once; at least 1.
    ///   - inputCapacity: Bytes asked of the source at once; at least 64.
    package init(
        _ source: consuming Source, wrapper: Wrapper = .zlib, chunk: Int = 128 << 10, inputCapacity: Int = 128 << 10
    ) {
        precondition(chunk >= 1 && inputCapacity >= 64, "an inflater needs room")
        let symbols = 288 + 32
        let templateCount = 288 + 32 + 19
        let literalCapacity = HuffmanTable.capacity(bits: Self.literalBits, symbols: 288)
        let distanceCapacity = HuffmanTable.capacity(bits: Self.distanceBits, symbols: 32)
        let tableBytes = (literalCapacity + distanceCapacity + 128 + templateCount) * 4
        let windowBytes = Self.history + chunk + Self.slack
        scratch = ScratchMemory(
            byteCount: tableBytes + symbols * 2 + 512 + windowBytes + inputCapacity + Self.slack)
        let memory = scratch.bytes.baseAddress!

        let entries = memory.bindMemory(to: UInt32.self, capacity: tableBytes / 4)
        let templates = entries + literalCapacity + distanceCapacity + 128
        let words = HuffmanEntry.templates(.literals) + HuffmanEntry.templates(.distances)
            + HuffmanEntry.templates(.codeLengths)
        for (i, word) in words.enumerated() { templates[i] = word }
        let sorted = (memory + tableBytes).bindMemory(to: UInt16.self, capacity: symbols)
        literals = HuffmanTable(entries: entries, bits: Self.literalBits, templates: templates, sorted: sorted)
        distances = HuffmanTable(
            entries: entries + literalCapacity, bits: Self.distanceBits, templates: templates + 288, sorted: sorted)
        codeLengths = HuffmanTable(
            entries: entries + literalCapacity + distanceCapacity, bits: 7, templates: templates + 320, sorted: sorted)
        let bytes = (memory + tableBytes + symbols * 2).bindMemory(
            to: UInt8.self, capacity: 512 + windowBytes + inputCapacity + Self.slack)
        lengths = bytes
        window = bytes + 512
        // Wide loads may touch bytes nothing has been written to; they never reach the output.
        input = window + windowBytes
        inputNext = input
        inputEnd = input
        out = window
        self.source = source
        self.wrapper = wrapper
        self.chunk = chunk
        self.inputCapacity = inputCapacity
    }

    /// Decodes the next bytes.
    ///
    /// - Returns: Bytes that stay valid until the next call; none at the end of the stream. 64 bytes behind them
    ///   may be read, with any content.
    /// - Throws: ``InflateError``, after everything before the fault has been returned. Calling again throws again.
    package mutating func next() throws(InflateError) -> UnsafeRawBufferPointer {
        if let pending { throw pending }
        if out - window > Self.history {
            // The window slides only when the last chunk has been used: its end becomes the history.
            window.update(from: out - Self.history, count: Self.history)
            out = window + Self.history
        }
        let start = out
        let limit = window + (Self.history + chunk)
        do throws(InflateError) {
            while out < limit && state != .finished { try step(limit, start) }
        } catch {
            pending = error
        }
        let piece = UnsafeRawBufferPointer(start: start, count: out - start)
        if piece.isEmpty, let pending { throw pending }
        if state != .finished && wrapper == .zlib { adler.update(piece) }
        return piece
    }

    private mutating func step(_ limit: UnsafeMutablePointer<UInt8>, _ start: UnsafeMutablePointer<UInt8>)
        throws(InflateError)
    {
        switch state {
        case .start:
            if wrapper == .zlib { try readZlibHeader() }
            state = .blockHeader
        case .blockHeader: try readBlockHeader()
        case .stored: try copyStored(limit)
        case .codes: try decodeCodes(limit)
        case .trailer:
            if wrapper == .zlib {
                adler.update(UnsafeRawBufferPointer(start: start, count: out - start))
                try checkTrailer()
            }
            state = .finished
        case .finished: break
        }
    }

    private mutating func readZlibHeader() throws(InflateError) {
        let header = try take(16)
        let method = header & 0xFF
        let flags = header >> 8
        guard method & 15 == 8, method >> 4 <= 7 else { throw .invalid("not a zlib stream") }
        guard (method << 8 | flags) % 31 == 0 else { throw .invalid("zlib header check is wrong") }
        guard flags & 32 == 0 else { throw .invalid("zlib stream needs a preset dictionary") }
    }

    private mutating func checkTrailer() throws(InflateError) {
        bits >>= UInt64(bitCount & 7)
        bitCount &= ~7
        let stored = UInt32(try take(16)) | UInt32(try take(16)) << 16
        guard stored.byteSwapped == adler.value else { throw .invalid("checksum is wrong") }
    }
}

extension Inflater where Source == InflaterBytes {
    /// Everything a stream in memory decodes to.
    ///
    /// - Parameter maximum: The most bytes to return; further bytes are cut off.
    package static func inflate(
        _ bytes: [UInt8], wrapper: Wrapper = .zlib, maximum: Int, expected: Int = 0
    ) throws(InflateError) -> [UInt8] {
        let chunk = min(max(maximum, 1), 64 << 10)
        var inflater = Inflater(InflaterBytes(bytes), wrapper: wrapper, chunk: chunk, inputCapacity: 8 << 10)
        var result: [UInt8] = []
        result.reserveCapacity(min(expected, maximum))
        while result.count < maximum {
            let piece = try inflater.next()
            if piece.isEmpty { break }
            result.append(contentsOf: piece.prefix(maximum - result.count))
        }
        return result
    }
}

/// Where an ``Inflater`` gets compressed bytes from, piece by piece.
package protocol InflaterSource {
    /// Writes up to `buffer.count` bytes to the start of `buffer`, whose whole memory may be used as scratch.
    ///
    /// - Returns: The bytes written; 0 when there are no more.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(ImageError) -> Int
}

/// Compressed bytes in memory.
package struct InflaterBytes: InflaterSource {
    private let bytes: [UInt8]
    private var position = 0

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    package mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(ImageError) -> Int {
        let n = min(buffer.count, bytes.count - position)
        guard n > 0 else { return 0 }
        bytes.withUnsafeBytes {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[position..<(position + n)]))
        }
        position += n
        return n
    }
}

/// Why a deflate stream could not be decoded.
package enum InflateError: Error, Sendable, Hashable {
    /// The input ends before the stream does.
    case truncated
    /// The stream breaks a rule of RFC 1950 or RFC 1951; the text says which.
    case invalid(String)
    /// The source of compressed bytes failed.
    case source(ImageError)
}

/// Block headers and everything else that is read a few bits at a time.
extension Inflater {
    /// Moves unread input to the front of its buffer and fills the rest from the source.
    mutating func fetch() throws(InflateError) {
        guard !inputHasEnded else { return }
        let unread = inputEnd - inputNext
        if unread > 0 && inputNext > input { input.update(from: inputNext, count: unread) }
        inputNext = input
        inputEnd = input + unread
        let available = UnsafeMutableRawBufferPointer(start: inputEnd, count: inputCapacity - unread)
        let n: Int
        do {
            n = try source.read(into: available)
        } catch {
            throw .source(error)
        }
        if n <= 0 { inputHasEnded = true }
        inputEnd += min(max(n, 0), available.count)
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
