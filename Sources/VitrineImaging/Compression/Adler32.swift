/// The checksum of zlib streams (RFC 1950 §8.2), sixteen bytes at a time.
package struct Adler32: Sendable {
    private var a: UInt32 = 1
    private var b: UInt32 = 0

    package init() {}

    /// The checksum of all bytes so far; 1 for none.
    package var value: UInt32 { b << 16 | a }

    /// Adds `bytes`.
    ///
    /// A block is 22 vectors of 16 bytes, the most for which sums of running sums (255 · 22 · 23 / 2) fit 16 bits.
    /// With `sum[l]` the bytes of lane l and `running[l]` the sum of its running sums, b grows by
    /// `352 · a + 16 · Σ running[l] − Σ l · sum[l]`.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard var p = bytes.baseAddress else { return }
        var left = bytes.count
        let lanes = SIMD16<UInt32>(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        while left >= 16 {
            let vectors = min(22, left >> 4)
            var sum = SIMD16<UInt16>.zero
            var running = SIMD16<UInt16>.zero
            for i in 0..<vectors {
                let v = (p + i &* 16).loadUnaligned(as: SIMD16<UInt8>.self)
                sum &+= SIMD16<UInt16>(truncatingIfNeeded: v)
                running &+= sum
            }
            let wide = SIMD16<UInt32>(truncatingIfNeeded: sum)
            let ahead = SIMD16<UInt32>(truncatingIfNeeded: running)
            let count = vectors &* 16
            let weighted = ahead.wrappedSum() &* 16 &- (wide &* lanes).wrappedSum()
            b = (b &+ UInt32(truncatingIfNeeded: count) &* a &+ weighted) % 65_521
            a = (a &+ wide.wrappedSum()) % 65_521
            p += count
            left &-= count
        }
        while left > 0 {
            a = (a &+ UInt32(p.load(as: UInt8.self))) % 65_521
            b = (b &+ a) % 65_521
            p += 1
            left &-= 1
        }
    }

    /// The checksum of `bytes`.
    package static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var adler = Adler32()
        bytes.withUnsafeBytes { adler.update($0) }
        return adler.value
    }
}
