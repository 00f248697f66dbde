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

/// The checksum of PNG chunks and gzip members: CRC-32 with the reflected polynomial 0xEDB88320 (ISO 3309; PNG
/// specification, Annex D).
///
/// Eight bytes a step by eight tables (Kounavis and Berry, "A systematic approach to building high performance,
/// software-based, CRC generators", 2005).
package struct CRC32: Sendable {
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for i in 0..<256 {
            var c = UInt32(i)
            for _ in 0..<8 { c = c & 1 == 1 ? 0xEDB8_8320 ^ (c >> 1) : c >> 1 }
            tables[i] = c
        }
        for i in 256..<tables.count { tables[i] = tables[i - 256] >> 8 ^ tables[Int(tables[i - 256] & 255)] }
        return tables
    }()

    private var state: UInt32 = 0xFFFF_FFFF

    package init() {}

    /// The checksum of all bytes so far; 0 for none.
    package var value: UInt32 { ~state }

    /// Adds `bytes`.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard var p = bytes.baseAddress else { return }
        var left = bytes.count
        var crc = state
        Self.tables.withUnsafeBufferPointer { tables in
            guard let t = tables.baseAddress else { return }
            while left >= 8 {
                let v = UInt64(littleEndian: p.loadUnaligned(as: UInt64.self)) ^ UInt64(crc)
                var c = t[1_792 + Int(v & 255)] ^ t[1_536 + Int(v >> 8 & 255)]
                c ^= t[1_280 + Int(v >> 16 & 255)] ^ t[1_024 + Int(v >> 24 & 255)]
                c ^= t[768 + Int(v >> 32 & 255)] ^ t[512 + Int(v >> 40 & 255)]
                crc = c ^ t[256 + Int(v >> 48 & 255)] ^ t[Int(v >> 56)]
                p += 8
                left &-= 8
            }
            while left > 0 {
                crc = crc >> 8 ^ t[Int((crc ^ UInt32(p.load(as: UInt8.self))) & 255)]
                p += 1
                left &-= 1
            }
        }
        state = crc
    }

    /// The checksum of `bytes`.
    package static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var crc = CRC32()
        bytes.withUnsafeBytes { crc.update($0) }
        return crc.value
    }
}
