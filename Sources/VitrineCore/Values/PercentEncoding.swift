/// Percent-encoding, such as `%41` for `A` (RFC 3986, section 2.1).
package enum PercentEncoding {
    /// Returns the bytes that a text stands for. Escapes that are not complete stay as they are.
    package static func decoded(_ text: some Sequence<UInt8>) -> [UInt8] { parts(of: text).bytes }

    /// Returns the bytes that a text stands for, or nil if an escape is not complete.
    package static func validated(_ text: some Sequence<UInt8>) -> [UInt8]? {
        let (bytes, isValid) = parts(of: text)
        return isValid ? bytes : nil
    }

    private static func parts(of text: some Sequence<UInt8>) -> (bytes: [UInt8], isValid: Bool) {
        let text = Array(text)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var isValid = true
        var index = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "%") {
                if index + 2 < text.count, let high = Hexadecimal.value(of: text[index + 1]),
                    let low = Hexadecimal.value(of: text[index + 2])
                {
                    bytes.append(high << 4 | low)
                    index += 3
                    continue
                }
                isValid = false
            }
            bytes.append(text[index])
            index += 1
        }
        return (bytes, isValid)
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
