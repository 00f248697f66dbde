/// The CRC-32C of a stream of bytes, with the polynomial of Castagnoli (RFC 3720, section 12.1 and appendix B.4).
///
/// It finds damage and does not resist deliberate collisions. Unlike ``StableHash``, it is the same however the bytes
/// are divided.
package struct CRC32C: Sendable, Hashable {
    private var state: UInt32

    /// Creates the checksum of no bytes.
    package init() { state = ~0 }

    /// The checksum of everything so far.
    package var value: UInt32 { ~state }

    /// Appends bytes.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        state = Self.tables.withUnsafeBufferPointer { Self.update(state, bytes: bytes, tables: $0) }
    }

    private static func update(
        _ state: UInt32, bytes: UnsafeRawBufferPointer, tables: UnsafeBufferPointer<UInt32>
    ) -> UInt32 {
        var state = state, index = 0
        // Eight bytes at once, each by the table for its distance from the end of the eight (slicing by 8).
        while bytes.count &- index >= 8 {
            var word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            word ^= UInt64(state)
            state = 0
            for place in 0..<8 {
                state ^= tables[(7 &- place) &* 256 &+ Int(truncatingIfNeeded: word & 0xFF)]
                word >>= 8
            }
            index &+= 8
        }
        while index < bytes.count {
            state = state >> 8 ^ tables[Int(truncatingIfNeeded: (state ^ UInt32(bytes[index])) & 0xFF)]
            index &+= 1
        }
        return state
    }

    /// For each distance from the end, 0 to 7, the remainders of all bytes.
    private static let tables: [UInt32] = {
        var tables = (0..<256).map { byte in
            (0..<8).reduce(UInt32(byte)) { rest, _ in rest >> 1 ^ (rest & 1 == 1 ? 0x82F6_3B78 : 0) }
        }
        for index in 256..<2048 {
            let rest = tables[index - 256]
            tables.append(rest >> 8 ^ tables[Int(rest & 0xFF)])
        }
        return tables
    }()
}
