/// SHA-1 of a stream of bytes (FIPS 180-4, section 6.1): for checksums that others have published. Two files of one
/// SHA-1 can be made, so it does not protect against whoever chooses both.
public struct SHA1Digest: Sendable {
    private var core = BlockDigest<SHA1Function>()

    public init() {}

    /// Takes more bytes in.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) { core.update(bytes) }

    /// Takes more bytes in.
    public mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { core.update($0) } }

    /// The 20 bytes of the digest of everything so far.
    public var bytes: [UInt8] { core.digest }

    /// The digest as 40 lower-case hexadecimal digits.
    public var hexadecimal: String { Hexadecimal.text(bytes) }
}

/// The compression function of SHA-1.
struct SHA1Function: BlockFunction {
    static let isBigEndian = true

    private var h0: UInt32 = 0x6745_2301, h1: UInt32 = 0xefcd_ab89, h2: UInt32 = 0x98ba_dcfe, h3: UInt32 = 0x1032_5476
    private var h4: UInt32 = 0xc3d2_e1f0

    mutating func compress(_ blocks: UnsafeRawPointer, count: Int) {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 80) { w in
            for block in 0..<count { compress(blocks + block * 64, w) }
        }
    }

    private mutating func compress(_ block: UnsafeRawPointer, _ w: UnsafeMutableBufferPointer<UInt32>) {
        for i in 0..<16 {
            w[i] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: i &* 4, as: UInt32.self))
        }
        for i in 16..<80 { w[i] = Self.rotated(w[i &- 3] ^ w[i &- 8] ^ w[i &- 14] ^ w[i &- 16], 1) }
        var a = h0, b = h1, c = h2, d = h3, e = h4
        for i in 0..<80 {
            let mix: UInt32
            let constant: UInt32
            switch i {
            case ..<20: (mix, constant) = ((b & c) | (~b & d), 0x5a82_7999)
            case ..<40: (mix, constant) = (b ^ c ^ d, 0x6ed9_eba1)
            case ..<60: (mix, constant) = ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc)
            default: (mix, constant) = (b ^ c ^ d, 0xca62_c1d6)
            }
            let sum = Self.rotated(a, 5) &+ mix &+ e &+ constant &+ w[i]
            (a, b, c, d, e) = (sum, a, Self.rotated(b, 30), c, d)
        }
        h0 &+= a
        h1 &+= b
        h2 &+= c
        h3 &+= d
        h4 &+= e
    }

    var digest: [UInt8] {
        [h0, h1, h2, h3, h4].flatMap { word in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) } }
    }

    @inline(__always)
    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word << count | word >> (32 &- count) }
}
