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
