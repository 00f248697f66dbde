/// Four characters that name a chunk (PNG, RIFF) or a box (ISO/IEC 14496-12).
package struct FourCC: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    /// The characters, the first in the highest byte.
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The first four ASCII characters of a literal; a shorter one is filled with zeros.
    package init(stringLiteral value: StaticString) {
        var raw: UInt32 = 0
        for i in 0..<4 { raw = raw << 8 | (i < value.utf8CodeUnitCount ? UInt32(value.utf8Start[i]) : 0) }
        rawValue = raw
    }
}
