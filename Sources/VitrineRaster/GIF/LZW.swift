import VitrineImageCore

/// Expands the LZW data of one GIF frame into palette indices.
///
/// Source: GIF89a specification appendix F; T. Welch, "A Technique for High-Performance Data Compression" (1984).
/// The string of a code is kept as its first eight indices in one word, and as the place of its first occurrence in the
/// output. Most strings fit the word, which one store writes; the rest of others is copied from that place. All reads
/// stay inside `data` and `output`, and all writes inside `output`, for any codes.
struct LZWDecoder {
    /// How the data ended.
    enum End {
        /// The frame is full, or an end code came.
        case complete
        /// The data ended first.
        case exhausted
        /// A code that cannot be.
        case invalid
    }

    /// Fills `output` from its beginning.
    ///
    /// - Returns: How it ended and how many indices were written.
    static func decode(
        _ data: UnsafeBufferPointer<UInt8>, minimumCodeSize: Int, into output: UnsafeMutableBufferPointer<UInt8>
    ) -> (end: End, written: Int) {
        guard (1...11).contains(minimumCodeSize) else { return (.invalid, 0) }
        return withUnsafeTemporaryAllocation(of: Entry.self, capacity: 4097) { table in
            guard let out = output.baseAddress, let input = data.baseAddress, let entries = table.baseAddress else {
                return (.exhausted, 0)
            }
            for code in 0..<(1 << minimumCodeSize) { entries[code] = Entry(head: UInt64(code & 255)) }
            return expand(
                input, inputCount: data.count, minimum: minimumCodeSize, out: out, capacity: output.count,
                entries: entries)
        }
    }

    /// The string of a code.
    private struct Entry {
        /// The first eight indices, the first lowest; zeros behind a shorter string.
        var head: UInt64
        var length: UInt32 = 1
        /// Where it came out first.
        var place: UInt32 = 0
    }

    private static func expand(
        _ input: UnsafePointer<UInt8>, inputCount: Int, minimum: Int,
        out: UnsafeMutablePointer<UInt8>, capacity: Int, entries: UnsafeMutablePointer<Entry>
    ) -> (end: End, written: Int) {
        let clear = 1 << minimum
        var (bits, available, at) = (UInt64(0), 0, 0)
        var (size, next) = (minimum + 1, clear + 2)
        var written = 0
        // The string before, and where it came out; none after a clear code.
        var previous = Entry(head: 0, length: 0)
        while written < capacity {
            if available < size {
                guard refill(input, count: inputCount, at: &at, bits: &bits, available: &available, size: size) else {
                    return (.exhausted, written)
                }
            }
            let code = Int(truncatingIfNeeded: bits & ((1 &<< UInt64(size)) &- 1))
            bits &>>= UInt64(size)
            available &-= size
            if code &>> 1 == clear &>> 1, code >= clear {
                if code > clear { return (.complete, written) }
                (size, next, previous.length) = (minimum + 1, clear + 2, 0)
                continue
            }
            let entry: Entry
            if previous.length > 0, next < 4096 {
                // The new string is the previous one and the first index of this one, which may be the new one: then
                // its first index is the previous one's. They stand side by side in the output.
                let shift = UInt64(previous.length) &* 8
                let fits = previous.length < 8
                entries[next] = Entry(
                    head: previous.head | (fits ? (previous.head & 255) &<< shift : 0), length: previous.length &+ 1,
                    place: previous.place)
                guard code <= next else { return (.invalid, written) }
                entry = entries[code]
                if fits { entries[next].head = previous.head | (entry.head & 255) &<< shift }
                next &+= 1
                if next == 1 &<< size, size < 12 { size &+= 1 }
            } else {
                guard code < next else { return (.invalid, written) }
                entry = entries[code]
            }
            copy(entry, to: written, out: out, capacity: capacity)
            previous = entry
            previous.place = UInt32(truncatingIfNeeded: written)
            written = min(written &+ Int(entry.length), capacity)
        }
        return (.complete, written)
    }

    /// Writes a string, as far as there is room, and up to seven indices behind it where there is.
    @inline(__always)
    private static func copy(_ entry: Entry, to target: Int, out: UnsafeMutablePointer<UInt8>, capacity: Int) {
        let to = UnsafeMutableRawPointer(out) + target
        let length = Int(entry.length)
        guard target &+ length &+ 8 <= capacity else {
            let from = Int(entry.place)
            for i in 0..<min(length, capacity &- target) {
                out[target &+ i] = i < 8 ? UInt8(truncatingIfNeeded: entry.head &>> UInt64(i &* 8)) : out[from &+ i]
            }
            return
        }
        to.storeBytes(of: entry.head.littleEndian, as: UInt64.self)
        guard length > 8 else { return }
        // A string of more than eight began at least eight indices ago, so words do not overlap.
        let from = UnsafeRawPointer(out) + Int(entry.place)
        var i = 8
        while i < length {
            (to + i).storeBytes(of: (from + i).loadUnaligned(as: UInt64.self), as: UInt64.self)
            i &+= 8
        }
    }

    @inline(__always)
    private static func refill(
        _ input: UnsafePointer<UInt8>, count: Int, at: inout Int, bits: inout UInt64, available: inout Int,
        size: Int
    ) -> Bool {
        if at <= count &- 8 {
            // Eight bytes at once; those that do not fit whole are read again next time, to the same bits.
            let next = UnsafeRawPointer(input + at).loadUnaligned(as: UInt64.self)
            bits |= UInt64(littleEndian: next) &<< UInt64(available)
            let taken = (63 &- available) >> 3
            at &+= taken
            available &+= taken &* 8
            return true
        }
        while available <= 56, at < count {
            bits |= UInt64(input[at]) &<< UInt64(available)
            at &+= 1
            available &+= 8
        }
        return available >= size
    }
}

/// Packs palette indices by LZW with codes of growing length.
///
/// Source: GIF89a specification appendix F. Strings are found in an open hash table of their prefix code and last
/// index.
enum LZWEncoder {
    private static let slots = 8192  // twice the 4096 codes

    /// The codes, lowest bit first, not yet cut into sub-blocks.
    static func encode(_ indices: [UInt8], minimumCodeSize: Int) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(indices.count / 2 + 16)
        let clear = UInt32(1) << UInt32(minimumCodeSize)
        var keys = [UInt32](repeating: .max, count: slots)
        var codes = [UInt16](repeating: 0, count: slots)
        var (bits, pending) = (UInt64(0), UInt64(0))
        var (size, next) = (UInt64(minimumCodeSize + 1), clear + 2)
        func emit(_ code: UInt32) {
            bits |= UInt64(code) << pending
            pending &+= size
            while pending >= 8 {
                output.append(UInt8(truncatingIfNeeded: bits))
                bits >>= 8
                pending &-= 8
            }
        }
        emit(clear)
        guard var prefix = indices.first.map({ UInt32($0) }) else {
            emit(clear + 1)
            if pending > 0 { output.append(UInt8(truncatingIfNeeded: bits)) }
            return output
        }
        for index in indices.dropFirst() {
            let key = prefix << 8 | UInt32(index)
            var slot = Int(truncatingIfNeeded: (key &* 2_654_435_761) >> 19)  // Knuth's multiplicative hash, 13 bits
            while keys[slot] != .max, keys[slot] != key { slot = (slot &+ 1) & (slots &- 1) }
            if keys[slot] == key {
                prefix = UInt32(codes[slot])
                continue
            }
            emit(prefix)
            prefix = UInt32(index)
            if next < 4096 {
                keys[slot] = key
                codes[slot] = UInt16(truncatingIfNeeded: next)
                // The reader learns this code one step later, so it widens one step later as well.
                if next == 1 << UInt32(size), size < 12 { size &+= 1 }
                next &+= 1
            } else {
                emit(clear)
                for i in 0..<slots { keys[i] = .max }
                (size, next) = (UInt64(minimumCodeSize + 1), clear + 2)
            }
        }
        emit(prefix)
        // The reader counts the string it closes with this code.
        if next == 1 << UInt32(size), size < 12 { size &+= 1 }
        emit(clear + 1)
        if pending > 0 { output.append(UInt8(truncatingIfNeeded: bits)) }
        return output
    }
}
