/// Bytes as text of 64 characters (RFC 4648 §4).
package enum Base64Text {
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, byte) in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8.enumerated() {
            values[Int(byte)] = UInt8(value)
        }
        return values
    }()

    /// Decodes text up to its padding or its end, passing over all other characters, such as ends of lines.
    package static func decode(_ text: ArraySlice<UInt8>) -> [UInt8] {
        let values = values
        return [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3 + 3) { result, count in
            var (bits, held): (UInt32, UInt32) = (0, 0)
            for byte in text {
                if byte == UInt8(ascii: "=") { break }
                let value = values[Int(byte)]
                if value == 0xFF { continue }
                bits = bits << 6 | UInt32(value)
                held += 6
                if held >= 8 {
                    held -= 8
                    result[count] = UInt8(truncatingIfNeeded: bits >> held)
                    count += 1
                }
            }
        }
    }
}
