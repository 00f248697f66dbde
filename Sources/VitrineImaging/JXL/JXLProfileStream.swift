/// The entropy-coded ICC profile between a codestream's header and its first frame, which has no length of its own:
/// who wants to go on must read it.
///
/// Source: ISO/IEC 18181-1 annex E.4.1 and E.4.2 (contexts).
enum JXLProfileStream {
    static let maximumBytes = 4 << 20

    /// Reads it to its end; what it means ``JXLProfile`` knows.
    static func read(_ bits: inout JXLBits) throws(JXLFault) -> [UInt8] {
        let count = bits.u64()
        guard count <= maximumBytes else { throw .unsupported("its profile is too large") }
        var result: [UInt8] = []
        let code = try JXLEntropyCode(&bits, contexts: 41)
        var reader = JXLEntropyReader(code, &bits)
        var (last, before) = (0, 0)
        for i in 0..<Int(count) {
            let context = i <= 128 ? 0 : 1 + kindOfLast(last) + 8 * kindBefore(before)
            before = last
            last = try reader.read(&bits, context)
            guard last < 256 else { throw .corrupt("profile") }
            result.append(UInt8(last))
            if i & 1023 == 0 { try bits.check() }
        }
        try reader.finish(bits)
        return result
    }

    private static func isLetter(_ byte: Int) -> Bool { (0x61...0x7A).contains(byte | 0x20) && byte < 0x80 }

    private static func isOfNumber(_ byte: Int) -> Bool {
        (0x30...0x39).contains(byte) || byte == 0x2E || byte == 0x2C
    }

    private static func kindOfLast(_ byte: Int) -> Int {
        if isLetter(byte) { return 0 }
        if isOfNumber(byte) { return 1 }
        switch byte {
        case 0: return 2
        case 1: return 3
        case ..<16: return 4
        case 255: return 6
        case 241...: return 5
        default: return 7
        }
    }

    private static func kindBefore(_ byte: Int) -> Int {
        if isLetter(byte) { return 0 }
        if isOfNumber(byte) { return 1 }
        if byte < 16 { return 2 }
        return byte > 240 ? 3 : 4
    }
}
