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

    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Returns bytes as a text, with an escape for each that does not stand for itself.
    package static func encoded(_ bytes: some Sequence<UInt8>, leaving isPlain: (UInt8) -> Bool) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            if isPlain(byte) {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Encodes the bytes that a URL cannot contain and leaves all others unchanged.
    package static func encodeForbidden(_ text: String) -> String {
        func isPlain(_ byte: UInt8) -> Bool { (0x21..<0x7F).contains(byte) && !"\"<>\\^`{|}".utf8.contains(byte) }
        return text.utf8.allSatisfy(isPlain) ? text : encoded(text.utf8, leaving: isPlain)
    }
}
