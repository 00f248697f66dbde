/// Expands the LZW data of one GIF frame into palette indices.
///
/// Source: GIF89a specification appendix F; T. Welch, "A Technique for High-Performance Data Compression" (1984).
/// A code's string is kept as the place in the output where it first came out, so expanding is one forward copy. All
/// reads stay inside `data`, all writes inside `output`, whatever the codes say.
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
        return withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 4097) { table in
            guard let out = output.baseAddress, let input = data.baseAddress, let entries = table.baseAddress else {
                return (.exhausted, 0)
            }
            return expand(input, data.count, minimumCodeSize, out, output.count, entries)
        }
    }

    /// `entries[code]`: where the string came out first (high 32 bits) and its length (low 32 bits).
    private static func expand(
        _ input: UnsafePointer<UInt8>, _ inputCount: Int, _ minimum: Int,
        _ out: UnsafeMutablePointer<UInt8>, _ capacity: Int, _ entries: UnsafeMutablePointer<UInt64>
    ) -> (end: End, written: Int) {
        let clear = 1 << minimum
        var (bits, available, at) = (UInt64(0), 0, 0)
        var (size, next) = (minimum + 1, clear + 2)
        var (written, previous, previousLength) = (0, -1, 0)
        while written < capacity {
            if available < size {
                guard refill(input, inputCount, &at, &bits, &available, size) else { return (.exhausted, written) }
            }
            let code = Int(truncatingIfNeeded: bits & ((1 &<< UInt64(size)) &- 1))
            bits &>>= UInt64(size)
            available &-= size
            if code == clear {
                (size, next, previous) = (minimum + 1, clear + 2, -1)
                continue
            }
            if code == clear &+ 1 { return (.complete, written) }
            // The new entry is the previous string and the first index of this one, which stand side by side.
            if previous >= 0, next < 4096 {
                entries[next] = UInt64(previous) << 32 | UInt64(previousLength &+ 1)
                next &+= 1
                if next == 1 << size, size < 12 { size &+= 1 }
            }
            previous = written
            if code < clear {
                out[written] = UInt8(truncatingIfNeeded: code)
                written &+= 1
                previousLength = 1
            } else {
                guard code < next, code != clear else { return (.invalid, written) }
                let entry = entries[code]
                let source = Int(entry >> 32)
                previousLength = Int(entry & 0xFFFF_FFFF)
                let length = min(previousLength, capacity &- written)
                copy(out, from: source, to: written, length)
                written &+= length
            }
        }
        return (.complete, written)
    }

    /// Forward, index by index: a string may run into the place it is written to.
    @inline(__always)
    private static func copy(_ out: UnsafeMutablePointer<UInt8>, from source: Int, to target: Int, _ length: Int) {
        if target &- source >= length, length >= 16 {
            (out + target).update(from: out + source, count: length)
            return
        }
        for i in 0..<length { out[target &+ i] = out[source &+ i] }
    }

    @inline(__always)
    private static func refill(
        _ input: UnsafePointer<UInt8>, _ count: Int, _ at: inout Int, _ bits: inout UInt64, _ available: inout Int,
        _ size: Int
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
