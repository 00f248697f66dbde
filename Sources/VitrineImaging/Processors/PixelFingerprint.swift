extension Image {
    /// 128 bits that tell pictures apart in cache keys: size, alpha and visible bytes, equal in every run.
    ///
    /// Two FNV-1a sums over 32-bit words with different offsets, each stirred at the end (constants: the FNV offset
    /// basis and prime of draft-eastlake-fnv §5, and the finaliser of MurmurHash3). Not proof against somebody who
    /// wants two pictures to collide.
    var fingerprint: String {
        var a: UInt64 = 0xcbf2_9ce4_8422_2325, b: UInt64 = 0x9ae1_6a3b_2f90_404f
        func stir(_ word: UInt64) {
            a = (a ^ word) &* 0x0000_0100_0000_01b3
            b = (b ^ (word &+ b >> 32)) &* 0x9e37_79b9_7f4a_7c15
        }
        for word in [width, height, Int(alpha.rawValue)] { stir(UInt64(word)) }
        withUnsafeBytes { bytes in
            for y in 0..<height {
                let row = bytes.baseAddress! + y &* bytesPerRow
                for x in 0..<width { stir(UInt64(PixelMath.load(row + x &* 4))) }
            }
        }
        return Self.hexadecimal(Self.finish(a)) + Self.hexadecimal(Self.finish(b))
    }

    private static func finish(_ sum: UInt64) -> UInt64 {
        var h = sum
        h = (h ^ h >> 33) &* 0xff51_afd7_ed55_8ccd
        h = (h ^ h >> 33) &* 0xc4ce_b9fe_1a85_ec53
        return h ^ h >> 33
    }

    private static func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
