extension UInt8 {
    /// The byte with `A` to `Z` as small letters.
    var asciiLowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }

    /// What the byte is worth as a digit.
    var decimalDigit: UInt8? { (0x30...0x39).contains(self) ? self &- 0x30 : nil }

    /// Space or tab: the white space of header fields (RFC 9110 section 5.6.3).
    var isHTTPWhitespace: Bool { self == 0x20 || self == 0x09 }

    /// May stand in a token (RFC 9110 section 5.6.2).
    var isHTTPToken: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case 0x21, 0x23, 0x24, 0x25, 0x26, 0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
        default: false
        }
    }
}
