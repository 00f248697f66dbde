/// SHA-256 of a stream of bytes (FIPS 180-4, section 6.2).
///
/// ```swift
/// var digest = SHA256Digest()
/// while let bytes = try next() { digest.update(bytes) }
/// let hex = digest.hexadecimal
/// ```
package struct SHA256Digest: Sendable {
    private var core = BlockDigest<SHA256Function>()

    /// Creates a digest of no bytes.
    package init() {}

    /// Appends bytes.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) { core.update(bytes) }

    /// Appends bytes.
    package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { core.update($0) } }

    /// The 32 bytes of the digest of everything so far.
    package var bytes: [UInt8] { core.digest }

    /// The digest as 64 lower-case hexadecimal digits.
    package var hexadecimal: String { Hexadecimal.text(bytes) }

    /// Returns the digest of some bytes.
    package static func digest(of bytes: [UInt8]) -> [UInt8] {
        var digest = SHA256Digest()
        digest.update(bytes)
        return digest.bytes
    }

    /// Returns the digest of the text's UTF-8.
    package static func digest(of text: String) -> [UInt8] { digest(of: Array(text.utf8)) }
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
                    compress(block, k: constants, w: schedule)
                    block += 64
                }
            }
        }
    }

    private mutating func compress(
        _ block: UnsafeRawPointer, k: UnsafeBufferPointer<UInt32>, w: UnsafeMutableBufferPointer<UInt32>
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

/// SHA-1 of a stream of bytes (FIPS 180-4, section 6.1), for published checksums.
///
/// Collisions can be made on purpose, so it does not protect against a party that chooses both files.
package struct SHA1Digest: Sendable {
    private var core = BlockDigest<SHA1Function>()

    /// Creates a digest of no bytes.
    package init() {}

    /// Appends bytes.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) { core.update(bytes) }

    /// Appends bytes.
    package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { core.update($0) } }

    /// The 20 bytes of the digest of everything so far.
    package var bytes: [UInt8] { core.digest }

    /// The digest as 40 lower-case hexadecimal digits.
    package var hexadecimal: String { Hexadecimal.text(bytes) }
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

/// MD5 of a stream of bytes (RFC 1321), for the names of the freedesktop thumbnail specification and of earlier
/// releases.
///
/// Collisions can be made on purpose, so it protects nothing.
package struct MD5Digest: Sendable {
    private var core = BlockDigest<MD5Function>()

    /// Creates a digest of no bytes.
    package init() {}

    /// Appends bytes.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) { core.update(bytes) }

    /// Appends bytes.
    package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { core.update($0) } }

    /// The 16 bytes of the digest of everything so far.
    package var bytes: [UInt8] { core.digest }

    /// The digest as 32 lower-case hexadecimal digits.
    package var hexadecimal: String { Hexadecimal.text(bytes) }

    /// Returns the digest of some bytes.
    package static func digest(of bytes: [UInt8]) -> [UInt8] {
        var digest = MD5Digest()
        digest.update(bytes)
        return digest.bytes
    }

    /// Returns the digest of the text's UTF-8.
    package static func digest(of text: String) -> [UInt8] { digest(of: Array(text.utf8)) }
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

/// The compression function of a digest with 64-byte blocks and 512-bit padding that ends in the length.
protocol BlockFunction: Sendable {
    /// Whether the length in the padding is big endian.
    static var isBigEndian: Bool { get }
    init()
    /// Adds `count` whole blocks of 64 bytes.
    mutating func compress(_ blocks: UnsafeRawPointer, count: Int)
    /// The digest's bytes.
    var digest: [UInt8] { get }
}

/// Cuts a stream of bytes into blocks for a ``BlockFunction``.
struct BlockDigest<Function: BlockFunction>: Sendable {
    private var function = Function()
    /// The bytes of the last, incomplete block.
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard var base = bytes.baseAddress else { return }
        var rest = bytes.count
        count &+= UInt64(rest)
        if !pending.isEmpty {
            let taken = min(64 - pending.count, rest)
            pending.append(contentsOf: UnsafeRawBufferPointer(start: base, count: taken))
            base += taken
            rest -= taken
            guard pending.count == 64 else { return }
            pending.withUnsafeBytes { block in
                if let start = block.baseAddress { function.compress(start, count: 1) }
            }
            pending.removeAll(keepingCapacity: true)
        }
        let blocks = rest / 64
        if blocks > 0 { function.compress(base, count: blocks) }
        pending.append(contentsOf: UnsafeRawBufferPointer(start: base + blocks * 64, count: rest - blocks * 64))
    }

    /// The digest of all bytes so far. More bytes can follow.
    var digest: [UInt8] {
        var end = pending
        end.append(0x80)
        while end.count % 64 != 56 { end.append(0) }
        let bits = count &* 8
        for index in 0..<8 {
            let shift = UInt64(Function.isBigEndian ? 56 - index * 8 : index * 8)
            end.append(UInt8(truncatingIfNeeded: bits >> shift))
        }
        var last = function
        end.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { last.compress(start, count: bytes.count / 64) }
        }
        return last.digest
    }
}

/// Bytes as hexadecimal digits.
package enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    /// Returns two lower-case digits for each byte.
    package static func text(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the value of one digit in either case, or nil for anything else.
    package static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x41 + 10
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }
}
