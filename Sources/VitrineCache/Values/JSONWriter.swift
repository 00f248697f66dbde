/// Writes JSON without white space, members in the order of their names' bytes.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ value: JSON.Value) {
        switch value {
        case .null: append("null")
        case .bool(let value): append(value ? "true" : "false")
        case .number(let number): append(number.text)
        case .string(let text): write(text)
        case .array(let elements):
            append("[")
            for (index, element) in elements.enumerated() {
                if index > 0 { append(",") }
                write(element)
            }
            append("]")
        case .object(let members):
            append("{")
            let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            for (index, member) in sorted.enumerated() {
                if index > 0 { append(",") }
                write(member.key)
                append(":")
                write(member.value)
            }
            append("}")
        }
    }

    /// Escapes only what RFC 8259 section 7 demands: quotes, backslashes, control characters.
    private mutating func write(_ text: String) {
        let digits: StaticString = "0123456789abcdef"
        append("\"")
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20:
                append("\\u00")
                bytes.append(digits.utf8Start[Int(byte >> 4)])
                bytes.append(digits.utf8Start[Int(byte & 15)])
            default: bytes.append(byte)
            }
        }
        append("\"")
    }

    private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
}
