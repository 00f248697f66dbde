/// Reads fields of a JPEG XL codestream, lowest bit first.
///
/// Source: ISO/IEC 18181-1 annex B (U32, Bool, Enum).
struct JXLBitReader {
    /// One way of writing a U32: `base` plus a number of `bits`.
    typealias Choice = (base: Int, bits: Int)

    private let reader: ByteReader
    private var position: Int

    init(_ reader: ByteReader, at offset: Int) {
        self.reader = reader
        position = offset &* 8
    }

    mutating func bits(_ count: Int) throws(ImageError) -> Int {
        var value = 0
        for i in 0..<count {
            value |= (try reader.u8(at: position >> 3) >> (position & 7) & 1) << i
            position += 1
        }
        return value
    }

    mutating func bool() throws(ImageError) -> Bool { try bits(1) == 1 }

    mutating func skip(_ count: Int) { position &+= count }

    mutating func u32(_ a: Choice, _ b: Choice, _ c: Choice, _ d: Choice) throws(ImageError) -> Int {
        let choice = switch try bits(2) {
        case 0: a
        case 1: b
        case 2: c
        default: d
        }
        return try choice.base + bits(choice.bits)
    }

    mutating func enumeration() throws(ImageError) -> Int { try u32((0, 0), (1, 0), (2, 4), (18, 6)) }
}
