import VitrineImageCore

/// An ICC profile as JPEG XL packs it: commands that rebuild it from predictions, and the bytes they use.
///
/// Source: ISO/IEC 18181-1 annex E.4.3 to E.4.5.
struct JXLProfile {
    private(set) var bytes: [UInt8] = []
    private let encoded: [UInt8]
    private var command = 0
    private var commandsEnd: Int
    private var data = 0

    /// nil when the commands make no sense.
    init?(encoded: [UInt8]) {
        self.init(encoded, commandsEnd: encoded.count)
        guard let size = number(), let commands = number(), size <= JXLProfileStream.maximumBytes,
            commands <= encoded.count - command
        else { return nil }
        commandsEnd = command + commands
        data = commandsEnd
        guard readHeader(size) else { return nil }
        if size > 128 { guard readTags(), readContent(size) else { return nil } }
        guard bytes.count == size else { return nil }
    }

    private init(_ encoded: [UInt8], commandsEnd: Int) {
        self.encoded = encoded
        self.commandsEnd = commandsEnd
    }

    private mutating func nextCommand() -> Int? {
        guard command < commandsEnd else { return nil }
        defer { command += 1 }
        return Int(encoded[command])
    }

    private mutating func number() -> Int? {
        var value = 0
        for shift in stride(from: 0, to: 56, by: 7) {
            guard let byte = nextCommand() else { return nil }
            value |= (byte & 127) << shift
            if byte < 128 { return value }
        }
        return nil
    }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count <= encoded.count - data, bytes.count + count <= JXLProfileStream.maximumBytes else { return nil }
        defer { data += count }
        return encoded[data..<(data + count)]
    }

    private mutating func append(_ value: Int) {
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    private mutating func readHeader(_ size: Int) -> Bool {
        var predicted = [UInt8](repeating: 0, count: 128)
        func put(_ text: String, at offset: Int) {
            predicted.replaceSubrange(offset..<(offset + text.utf8.count), with: text.utf8)
        }
        for i in 0..<4 { predicted[i] = UInt8(truncatingIfNeeded: size >> (24 - 8 * i)) }
        predicted[8] = 4
        put("mntrRGB XYZ ", at: 12)
        put("acsp", at: 36)
        predicted.replaceSubrange(68..<80, with: [0, 0, 0xF6, 0xD6, 0, 1, 0, 0, 0, 0, 0xD3, 0x2D])
        let count = min(128, size)
        guard let differences = take(count) else { return false }
        for (i, difference) in differences.enumerated() {
            switch i {
            case 8: predicted.replaceSubrange(80..<84, with: bytes[4..<8])
            case 41 where bytes[40] == 0x41: put("PPL", at: 41)
            case 41 where bytes[40] == 0x4D: put("SFT", at: 41)
            case 42 where bytes[40] == 0x53 && bytes[41] == 0x47: put("I ", at: 42)
            case 42 where bytes[40] == 0x53 && bytes[41] == 0x55: put("NW", at: 42)
            default: break
            }
            bytes.append(predicted[i] &+ difference)
        }
        return true
    }

    private static let tags = [
        "cprt", "wtpt", "bkpt", "rXYZ", "gXYZ", "bXYZ", "kXYZ", "rTRC", "gTRC", "bTRC", "kTRC", "chad", "desc", "chrm",
        "dmnd", "dmdd", "lumi",
    ]
    private static let ofTwentyBytes: Set<String> = ["rXYZ", "gXYZ", "bXYZ", "kXYZ", "wtpt", "bkpt", "lumi"]

    private mutating func readTags() -> Bool {
        guard let count = number() else { return false }
        if count == 0 { return true }
        append(count - 1)
        var start = 128 + (count - 1) * 12
        var size = 0
        while let entry = nextCommand() {
            let code = entry & 63
            if code == 0 { break }
            let tag: [UInt8]
            switch code {
            case 1:
                guard let own = take(4) else { return false }
                tag = Array(own)
            case 2: tag = Array("rTRC".utf8)
            case 3: tag = Array("rXYZ".utf8)
            case 4..<21: tag = Array(JXLProfile.tags[code - 4].utf8)
            default: return false
            }
            start += size
            if JXLProfile.ofTwentyBytes.contains(String(decoding: tag, as: UTF8.self)) { size = 20 }
            if entry & 64 != 0 {
                guard let value = number() else { return false }
                start = value
            }
            if entry & 128 != 0 {
                guard let value = number() else { return false }
                size = value
            }
            guard start <= Int(UInt32.max), size <= Int(UInt32.max) else { return false }
            appendTag(tag, start: start, size: size)
            if code == 2 { for name in ["gTRC", "bTRC"] { appendTag(Array(name.utf8), start: start, size: size) } }
            if code == 3 {
                appendTag(Array("gXYZ".utf8), start: start + size, size: size)
                appendTag(Array("bXYZ".utf8), start: start + 2 * size, size: size)
            }
            guard bytes.count <= JXLProfileStream.maximumBytes else { return false }
        }
        return true
    }

    private mutating func appendTag(_ tag: [UInt8], start: Int, size: Int) {
        bytes += tag
        append(start)
        append(size)
    }

    private static let types = ["XYZ ", "desc", "text", "mluc", "para", "curv", "sf32", "gbd "]

    private mutating func readContent(_ size: Int) -> Bool {
        while let entry = nextCommand() {
            switch entry {
            case 1, 2, 3:
                guard let count = number(), let own = take(count) else { return false }
                bytes += entry == 1 ? Array(own) : JXLProfile.shuffled(own, width: entry == 2 ? 2 : 4)
            case 4: guard predict() else { return false }
            case 10:
                guard let own = take(12) else { return false }
                bytes += Array("XYZ ".utf8) + [0, 0, 0, 0] + own
            case 16..<24: bytes += Array(JXLProfile.types[entry - 16].utf8) + [0, 0, 0, 0]
            default: return false
            }
            guard bytes.count <= size else { return false }
        }
        return true
    }

    /// Bytes that stood by their place in a number, put together again.
    private static func shuffled(_ own: ArraySlice<UInt8>, width: Int) -> [UInt8] {
        let rows = (own.count + width - 1) / width
        var result: [UInt8] = []
        result.reserveCapacity(own.count)
        for row in 0..<rows {
            for i in stride(from: own.startIndex + row, to: own.endIndex, by: max(1, rows)) { result.append(own[i]) }
        }
        return result
    }

    /// Numbers as differences from a prediction by earlier ones.
    private mutating func predict() -> Bool {
        guard let flags = nextCommand() else { return false }
        let width = (flags & 3) + 1
        let order = (flags >> 2) & 3
        guard width != 3, order != 3 else { return false }
        var stride = width
        if flags & 16 != 0 {
            guard let value = number() else { return false }
            stride = value
        }
        guard stride >= width, stride < bytes.count, stride * 4 < bytes.count, let count = number(),
            let own = take(count)
        else { return false }
        let differences = JXLProfile.shuffled(own, width: width)
        let start = bytes.count
        for (i, difference) in differences.enumerated() {
            let place = start + i - i % width
            func before(_ n: Int) -> Int {
                (0..<width).reduce(0) { $0 << 8 | Int(bytes[place - n * stride + $1]) }
            }
            let value = switch order {
            case 0: before(1)
            case 1: 2 * before(1) - before(2)
            default: 3 * before(1) - 3 * before(2) + before(3)
            }
            bytes.append(difference &+ UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - i % width))))
        }
        return true
    }
}

/// The entropy-coded ICC profile between a codestream's header and its first frame. It has no length, so every decoder
/// of the first frame has to read it.
///
/// Source: ISO/IEC 18181-1 annex E.4.1 and E.4.2 (contexts).
enum JXLProfileStream {
    static let maximumBytes = 4 << 20
    /// How many times its packed bytes a profile can have, above a floor. Codes can take no bits at all; libjxl has the
    /// same limit.
    private static let maximumRatio = 256

    /// Reads the profile to its end; ``JXLProfile`` decodes it.
    static func read(_ bits: inout JXLBits) throws(JXLFault) -> [UInt8] {
        let count = bits.u64()
        guard count <= maximumBytes else { throw .unsupported("its profile is too large") }
        var result: [UInt8] = []
        let code = try JXLEntropyCode(&bits, contexts: 41)
        var reader = JXLEntropyReader(code, &bits)
        var (last, before) = (0, 0)
        let start = bits.position
        for i in 0..<Int(count) {
            let context = i <= 128 ? 0 : 1 + kindOfLast(last) + 8 * kindBefore(before)
            before = last
            last = try reader.read(&bits, context)
            guard last < 256 else { throw .corrupt("profile") }
            result.append(UInt8(last))
            if i & 1023 == 0 {
                try bits.check()
                guard i <= maximumRatio * (64 + (bits.position - start) / 8) else { throw .corrupt("profile") }
            }
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
