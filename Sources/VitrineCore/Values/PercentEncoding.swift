/// Decodes percent-encoding (RFC 3986, section 2.1).
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
                if index + 2 < text.count, let high = digit(text[index + 1]), let low = digit(text[index + 2]) {
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

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
