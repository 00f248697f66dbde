/// Whole seconds as header fields say them (RFC 9111 section 1.2.2).
enum DeltaSeconds {
    /// What counts as the most: 68 years, the value the RFC names for all that is more than a cache can hold.
    static let most: Int64 = 2_147_483_648

    /// - Returns: nil unless all bytes are digits; values above ``most`` are ``most``.
    static func parse(_ bytes: ArraySlice<UInt8>) -> Int64? {
        guard !bytes.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            guard let digit = byte.decimalDigit else { return nil }
            value = min(value * 10 + Int64(digit), most)
        }
        return value
    }

    /// The first member of the first line of an `Age` field; nil when it is not a number (RFC 9111 section 5.1).
    static func age(_ headers: HTTPHeaders) -> Int64? {
        guard let line = headers["Age"], let first = HTTPList.elements(line).first else { return nil }
        return parse(first)
    }
}
