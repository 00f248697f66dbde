/// SHA-256 of a stream of bytes (FIPS 180-4, section 6.2).
///
/// ```swift
/// var digest = SHA256Digest()
/// while let bytes = try next() { digest.update(bytes) }
/// let hex = digest.hexadecimal
/// ```
public struct SHA256Digest: Sendable {
    private var core = BlockDigest<SHA256Function>()

    public init() {}

    /// Takes more bytes in.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) { core.update(bytes) }

    /// Takes more bytes in.
    public mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { core.update($0) } }

    /// The 32 bytes of the digest of everything so far.
    public var bytes: [UInt8] { core.digest }

    /// The digest as 64 lower-case hexadecimal digits.
    public var hexadecimal: String { Hexadecimal.text(bytes) }

    /// The digest of some bytes.
    public static func digest(of bytes: [UInt8]) -> [UInt8] {
        var digest = SHA256Digest()
        digest.update(bytes)
        return digest.bytes
    }

    /// The digest of the text's UTF-8.
    public static func digest(of text: String) -> [UInt8] { digest(of: Array(text.utf8)) }
}

/// The compression function of SHA-256.
struct SHA256Function: BlockFunction {
    static let isBigEndian = true

    private var h0: UInt32 = 0x6a09_e667, h1: UInt32 = 0xbb67_ae85, h2: UInt32 = 0x3c6e_f372, h3: UInt32 = 0xa54f_f53a
    private var h4: UInt32 = 0x510e_527f, h5: UInt32 = 0x9b05_688c, h6: UInt32 = 0x1f83_d9ab, h7: UInt32 = 0x5be0_cd19

    mutating func compress(_ blocks: UnsafeRawPointer, count: Int) {
        Self.constants.withUnsafeBufferPointer { constants in
            withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
                var block = blocks
                for _ in 0..<count {
                    compress(block, constants, schedule)
                    block += 64
                }
            }
        }
    }

    private mutating func compress(
        _ block: UnsafeRawPointer, _ k: UnsafeBufferPointer<UInt32>, _ w: UnsafeMutableBufferPointer<UInt32>
    ) {
        for t in 0..<16 {
            w[t] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: t &* 4, as: UInt32.self))
        }
        for t in 16..<64 {
            let x = w[t &- 15], y = w[t &- 2]
            let s0 = Self.rotate(x, 7) ^ Self.rotate(x, 18) ^ (x >> 3)
            let s1 = Self.rotate(y, 17) ^ Self.rotate(y, 19) ^ (y >> 10)
            w[t] = w[t &- 16] &+ s0 &+ w[t &- 7] &+ s1
        }
        var a = h0, b = h1, c = h2, d = h3, e = h4, f = h5, g = h6, h = h7
        for t in 0..<64 {
            let s1 = Self.rotate(e, 6) ^ Self.rotate(e, 11) ^ Self.rotate(e, 25)
            let t1 = h &+ s1 &+ ((e & f) ^ (~e & g)) &+ k[t] &+ w[t]
            let s0 = Self.rotate(a, 2) ^ Self.rotate(a, 13) ^ Self.rotate(a, 22)
            let t2 = s0 &+ ((a & b) ^ (a & c) ^ (b & c))
            (h, g, f, e) = (g, f, e, d &+ t1)
            (d, c, b, a) = (c, b, a, t1 &+ t2)
        }
        h0 &+= a
        h1 &+= b
        h2 &+= c
        h3 &+= d
        h4 &+= e
        h5 &+= f
        h6 &+= g
        h7 &+= h
    }

    var digest: [UInt8] {
        [h0, h1, h2, h3, h4, h5, h6, h7].flatMap { word in
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) }
        }
    }

    @inline(__always)
    private static func rotate(_ x: UInt32, _ n: UInt32) -> UInt32 { x >> n | x << (32 &- n) }

    /// FIPS 180-4, section 4.2.2: the first 32 fractional bits of the cube roots of the first 64 primes.
    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]
}
