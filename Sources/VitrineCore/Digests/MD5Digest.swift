/// MD5 of a stream of bytes (RFC 1321): for names that other programs expect, such as the freedesktop thumbnail
/// specification's and those of earlier releases. Anyone can make two texts of one MD5, so it protects nothing.
public struct MD5Digest: Sendable {
    private var core = BlockDigest<MD5Function>()

    public init() {}

    /// Takes more bytes in.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) { core.update(bytes) }

    /// Takes more bytes in.
    public mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { core.update($0) } }

    /// The 16 bytes of the digest of everything so far.
    public var bytes: [UInt8] { core.digest }

    /// The digest as 32 lower-case hexadecimal digits.
    public var hexadecimal: String { Hexadecimal.text(bytes) }

    /// The digest of some bytes.
    public static func digest(of bytes: [UInt8]) -> [UInt8] {
        var digest = MD5Digest()
        digest.update(bytes)
        return digest.bytes
    }

    /// The digest of the text's UTF-8.
    public static func digest(of text: String) -> [UInt8] { digest(of: Array(text.utf8)) }
}

/// The compression function of MD5.
struct MD5Function: BlockFunction {
    static let isBigEndian = false

    private var a0: UInt32 = 0x6745_2301, b0: UInt32 = 0xefcd_ab89, c0: UInt32 = 0x98ba_dcfe, d0: UInt32 = 0x1032_5476

    mutating func compress(_ blocks: UnsafeRawPointer, count: Int) {
        Self.constants.withUnsafeBufferPointer { constants in
            var block = blocks
            for _ in 0..<count {
                compress(block, constants)
                block += 64
            }
        }
    }

    private mutating func compress(_ block: UnsafeRawPointer, _ k: UnsafeBufferPointer<UInt32>) {
        var a = a0, b = b0, c = c0, d = d0
        for i in 0..<64 {
            let mix: UInt32
            let word: Int
            switch i >> 4 {
            case 0: (mix, word) = ((b & c) | (~b & d), i)
            case 1: (mix, word) = ((d & b) | (~d & c), (5 &* i &+ 1) & 15)
            case 2: (mix, word) = (b ^ c ^ d, (3 &* i &+ 5) & 15)
            default: (mix, word) = (c ^ (b | ~d), (7 &* i) & 15)
            }
            let m = UInt32(littleEndian: block.loadUnaligned(fromByteOffset: word &* 4, as: UInt32.self))
            let sum = a &+ mix &+ k[i] &+ m
            let shift = Self.shift(i)
            (a, d, c, b) = (d, c, b, b &+ (sum << shift | sum >> (32 &- shift)))
        }
        a0 &+= a
        b0 &+= b
        c0 &+= c
        d0 &+= d
    }

    var digest: [UInt8] {
        [a0, b0, c0, d0].flatMap { word in [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) } }
    }

    /// RFC 1321, section 3.4: four shifts per round, one byte each, packed into a word.
    @inline(__always)
    private static func shift(_ i: Int) -> UInt32 {
        let round: UInt32 =
            switch i >> 4 {
            case 0: 0x1611_0c07
            case 1: 0x140e_0905
            case 2: 0x1710_0b04
            default: 0x150f_0a06
            }
        return round >> UInt32((i & 3) &* 8) & 0xff
    }

    /// RFC 1321, section 3.4: the integer part of 2^32 |sin(i)|, for i from 1 to 64.
    private static let constants: [UInt32] = [
        0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
        0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
        0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
        0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
        0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
        0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
        0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
        0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
    ]
}
