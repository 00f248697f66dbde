/// Reads JSON as RFC 8259 has it, strictly.
struct JSONParser {
    private static let maximumNumberLength = 1000

    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0
    private var depth = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// The one value of the whole text.
    mutating func parse() throws(JSONError) -> JSONValue.Node {
        // RFC 8259 section 8.1: parsers may ignore a byte order mark.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        let value = try value()
        skipSpace()
        guard position == bytes.count else { throw unexpected() }
        return value
    }

    private mutating func value() throws(JSONError) -> JSONValue.Node {
        skipSpace()
        switch try current() {
        case UInt8(ascii: "{"): return .object(try nested { parser throws(JSONError) in try parser.object() })
        case UInt8(ascii: "["): return .array(try nested { parser throws(JSONError) in try parser.array() })
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "-"), 0x30...0x39: return .number(try number())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        default: throw unexpected()
        }
    }

    private mutating func nested<Result>(
        _ body: (inout JSONParser) throws(JSONError) -> Result
    ) throws(JSONError) -> Result {
        depth += 1
        defer { depth -= 1 }
        guard depth <= JSONValue.maximumDepth else { throw .tooDeep(position: position) }
        position += 1
        return try body(&self)
    }

    private mutating func object() throws(JSONError) -> [String: JSONValue.Node] {
        var members: [String: JSONValue.Node] = [:]
        if try skip(to: "}") { return members }
        while true {
            skipSpace()
            guard try current() == UInt8(ascii: "\"") else { throw unexpected() }
            let name = try string()
            skipSpace()
            guard try current() == UInt8(ascii: ":") else { throw unexpected() }
            position += 1
            members[name] = try value()
            if try skip(to: "}") { return members }
            guard try current() == UInt8(ascii: ",") else { throw unexpected() }
            position += 1
        }
    }

    private mutating func array() throws(JSONError) -> [JSONValue.Node] {
        var elements: [JSONValue.Node] = []
        if try skip(to: "]") { return elements }
        while true {
            elements.append(try value())
            if try skip(to: "]") { return elements }
            guard try current() == UInt8(ascii: ",") else { throw unexpected() }
            position += 1
        }
    }

    // MARK: Strings

    private mutating func string() throws(JSONError) -> String {
        let start = position
        position += 1
        let first = position
        // Most strings have no escape: found by one scan, copied once.
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                defer { position += 1 }
                return try text(bytes[first..<position], start)
            case UInt8(ascii: "\\"): return try escapedString(from: first, start)
            case 0..<0x20: throw .invalidString(position: start)
            default: position += 1
            }
        }
        throw .unexpectedEnd
    }

    private mutating func escapedString(from first: Int, _ start: Int) throws(JSONError) -> String {
        var buffer = Array(bytes[first..<position])
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return try text(buffer[...], start)
            case UInt8(ascii: "\\"): try escape(into: &buffer, start)
            case 0..<0x20: throw .invalidString(position: start)
            default: buffer.append(byte)
            }
        }
        throw .unexpectedEnd
    }

    private mutating func escape(into buffer: inout [UInt8], _ start: Int) throws(JSONError) {
        let byte = try current()
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): buffer.append(byte)
        case UInt8(ascii: "b"): buffer.append(0x08)
        case UInt8(ascii: "f"): buffer.append(0x0C)
        case UInt8(ascii: "n"): buffer.append(0x0A)
        case UInt8(ascii: "r"): buffer.append(0x0D)
        case UInt8(ascii: "t"): buffer.append(0x09)
        case UInt8(ascii: "u"):
            var unit = try hexadecimal(start)
            if (0xD800..<0xDC00).contains(unit) {
                guard try current() == UInt8(ascii: "\\") else { throw .invalidString(position: start) }
                position += 1
                guard try current() == UInt8(ascii: "u") else { throw .invalidString(position: start) }
                position += 1
                let low = try hexadecimal(start)
                guard (0xDC00..<0xE000).contains(low) else { throw .invalidString(position: start) }
                unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(unit) else { throw .invalidString(position: start) }
            buffer.append(contentsOf: Unicode.UTF8.encode(scalar).map(Array.init) ?? [])
        default: throw .invalidString(position: start)
        }
    }

    private mutating func hexadecimal(_ start: Int) throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            let byte = try current()
            switch byte {
            case 0x30...0x39: value = value << 4 | UInt32(byte - 0x30)
            case 0x41...0x46: value = value << 4 | UInt32(byte - 0x37)
            case 0x61...0x66: value = value << 4 | UInt32(byte - 0x57)
            default: throw .invalidString(position: start)
            }
            position += 1
        }
        return value
    }

    private func text(_ bytes: some Collection<UInt8>, _ start: Int) throws(JSONError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .invalidString(position: start) }
        return text
    }

    // MARK: Numbers and words

    /// RFC 8259 section 6: `-`? (`0` | digits not beginning with 0) (`.` digits)? (e sign? digits)?
    private mutating func number() throws(JSONError) -> JSONValue.Number {
        let start = position
        if bytes[position] == UInt8(ascii: "-") { position += 1 }
        let leading = position
        guard skipDigits(), bytes[leading] != UInt8(ascii: "0") || position == leading + 1 else {
            throw .invalidNumber(position: start)
        }
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            position += 1
            guard skipDigits() else { throw .invalidNumber(position: start) }
        }
        if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
            position += 1
            if position < bytes.count, bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-") {
                position += 1
            }
            guard skipDigits() else { throw .invalidNumber(position: start) }
        }
        guard position - start <= Self.maximumNumberLength else { throw .invalidNumber(position: start) }
        return JSONValue.Number(literal: String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func skipDigits() -> Bool {
        let start = position
        while position < bytes.count, (0x30...0x39).contains(bytes[position]) { position += 1 }
        return position > start
    }

    private mutating func literal(_ word: StaticString, _ value: JSONValue.Node) throws(JSONError) -> JSONValue.Node {
        for index in 0..<word.utf8CodeUnitCount {
            guard try current() == word.utf8Start[index] else { throw unexpected() }
            position += 1
        }
        return value
    }

    // MARK: Bytes

    private func current() throws(JSONError) -> UInt8 {
        guard position < bytes.count else { throw .unexpectedEnd }
        return bytes[position]
    }

    private func unexpected() -> JSONError {
        position < bytes.count ? .unexpectedByte(bytes[position], position: position) : .unexpectedEnd
    }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    private mutating func skip(to end: Unicode.Scalar) throws(JSONError) -> Bool {
        skipSpace()
        guard try current() == UInt8(ascii: end) else { return false }
        position += 1
        return true
    }
}

/// Writes JSON without white space, members in the order of their names' bytes.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ value: JSONValue.Node) {
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

    /// Escapes only the characters that RFC 8259, section 7, requires: quotes, backslashes and control characters.
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
