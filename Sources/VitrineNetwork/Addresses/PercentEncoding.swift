/// Percent-encoding, such as `%41` for `A` (RFC 3986, section 2.1).
package enum PercentEncoding {
    /// Decodes a text.
    ///
    /// - Returns: nil if a `%` is not followed by two hexadecimal digits.
    package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(text.underestimatedCount)
        var rest = text.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(value), let low = rest.next().flatMap(value) else { return nil }
            result.append(high << 4 | low)
        }
        return result
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x41 + 10
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }

    /// Encodes the bytes that a URL cannot contain and leaves all others unchanged.
    package static func encodeForbidden(_ text: String) -> String {
        let isForbidden: (UInt8) -> Bool = { byte in
            byte <= 0x20 || byte >= 0x7F || "\"<>\\^`{|}".utf8.contains(byte)
        }
        guard text.utf8.contains(where: isForbidden) else { return text }
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in text.utf8 {
            if isForbidden(byte) {
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
