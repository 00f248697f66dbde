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
