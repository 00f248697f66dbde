package import Foundation

/// A value of a setting, as a flag, a variable or a file gives it.
package indirect enum SettingValue: Sendable, Equatable {
    /// Of a flag or a variable, whose type only the setting knows, or a string of a file.
    case text(String)
    case integer(Int)
    case number(Double)
    case boolean(Bool)
    case list([SettingValue])
    case table([String: SettingValue])
}

/// A value that a setting refuses, without the name of the setting.
package struct SettingError: Error, Sendable, Equatable {
    package var reason: String

    package init(_ reason: String) { self.reason = reason }
}

extension SettingValue: Decodable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let value = try? container.decode(Bool.self) {
            self = .boolean(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .text(value)
        } else if let value = try? container.decode([SettingValue].self) {
            self = .list(value)
        } else if let value = try? container.decode([String: SettingValue].self) {
            self = .table(value)
        } else {
            throw SettingError("null is not a value")
        }
    }

    /// The settings of a JSON file.
    package static func json(_ data: Data) throws -> [String: SettingValue] {
        do {
            return try JSONDecoder().decode([String: SettingValue].self, from: data)
        } catch let error as SettingError {
            throw error
        } catch {
            throw SettingError("is not a JSON object of settings")
        }
    }

    /// One line of JSON with sorted keys.
    package var json: String {
        switch self {
        case .text(let text): JSONText.quoted(text)
        case .integer(let value): String(value)
        case .number(let value): JSONText.number(value)
        case .boolean(let value): String(value)
        case .list(let values): "[" + values.map(\.json).joined(separator: ",") + "]"
        case .table(let values):
            "{"
                + values.sorted { $0.key < $1.key }.map { "\(JSONText.quoted($0.key)):\($0.value.json)" }
                .joined(separator: ",") + "}"
        }
    }

    /// One line of TOML; tables are inline.
    package var toml: String {
        switch self {
        case .list(let values): "[" + values.map(\.toml).joined(separator: ", ") + "]"
        case .table(let values):
            values.isEmpty
                ? "{}"
                : "{ "
                    + values.sorted { $0.key < $1.key }.map { "\(JSONText.quoted($0.key)) = \($0.value.toml)" }
                    .joined(separator: ", ") + " }"
        default: json
        }
    }
}

/// Characters that are not seen, but that change the text around them: the categories Cc, Cf, Zl and Zp of Unicode.
///
/// Terminals obey control characters, text runs backwards behind some format characters, and readers of logs take
/// separators for the ends of lines. No text of a client brings one into a log or a document, in no format.
package enum UnseenText {
    package static func isUnseen(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.value >= 0x7F else { return scalar.value < 0x20 }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    /// `\u001b`, and a pair of surrogates beyond U+FFFF, as in JSON.
    static func escape(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.reduce(into: "") { text, unit in
            let digits = String(unit, radix: 16)
            text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// The text with escapes instead of such characters.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isUnseen) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            if isUnseen(scalar) { result += escape(scalar) } else { result.unicodeScalars.append(scalar) }
        }
        return result
    }
}

/// Text of JSON without an encoder, for lines that are written at every request.
package enum JSONText {
    /// A string in quotation marks, every character escaped that is not seen.
    package static func quoted(_ text: some StringProtocol) -> String {
        var result = "\""
        result.reserveCapacity(text.utf8.count + 2)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where UnseenText.isUnseen(scalar): result += UnseenText.escape(scalar)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// A finite number; a whole one without its fraction. Anything else is 0.
    package static func number(_ value: Double) -> String {
        guard value.isFinite else { return "0" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }
}

/// Reads the part of TOML 1.0 that settings need: tables, strings of one line, integers, numbers, booleans, arrays and
/// inline tables. Everything else, and every repeated key, is an error with its line.
package struct TOMLReader {
    private let characters: [UInt8]
    private var position = 0
    private var line = 1

    private init(_ text: String) { characters = Array(text.utf8) }

    /// - Throws: ``SettingError`` that begins with the line.
    package static func read(_ text: String) throws -> [String: SettingValue] {
        var reader = TOMLReader(text)
        do {
            return try reader.document()
        } catch let error as SettingError {
            throw SettingError("line \(reader.line): \(error.reason)")
        }
    }

    private var current: UInt8? { position < characters.count ? characters[position] : nil }

    private mutating func take(_ character: Character) -> Bool {
        guard let current, current == character.asciiValue else { return false }
        if current == 0x0A { line += 1 }
        position += 1
        return true
    }

    private mutating func skipBlanks(lines: Bool) throws {
        while let current {
            switch current {
            case 0x20, 0x09: position += 1
            case 0x0D where position + 1 < characters.count && characters[position + 1] == 0x0A: position += 1
            case 0x0A where lines:
                line += 1
                position += 1
            case UInt8(ascii: "#"):
                while let current = self.current, current != 0x0A { position += 1 }
            default: return
            }
        }
    }

    private mutating func endOfLine() throws {
        try skipBlanks(lines: false)
        guard current == nil || take("\n") else { throw SettingError("there is text after the value") }
    }

    private mutating func document() throws -> [String: SettingValue] {
        var result: [String: SettingValue] = [:]
        var path: [String] = []
        var declared: Set<[String]> = []
        while true {
            try skipBlanks(lines: true)
            guard current != nil else { return result }
            if take("[") {
                guard !take("[") else { throw SettingError("arrays of tables are not supported") }
                path = try key()
                guard take("]") else { throw SettingError("a table's name ends with “]”") }
                try endOfLine()
                guard declared.insert(path).inserted else {
                    throw SettingError("the table “\(path.joined(separator: "."))” is repeated")
                }
                try Self.open(path[...], in: &result)
            } else {
                let name = try key()
                guard take("=") else { throw SettingError("“=” is missing after the name") }
                try skipBlanks(lines: false)
                let value = try value()
                // Reported on its own line.
                try Self.set(value, at: (path + name)[...], in: &result)
                try endOfLine()
            }
        }
    }

    /// Names joined by dots.
    private mutating func key() throws -> [String] {
        var parts: [String] = []
        repeat {
            try skipBlanks(lines: false)
            if current == UInt8(ascii: "\"") || current == UInt8(ascii: "'") {
                parts.append(try string())
            } else {
                let start = position
                while let current, Self.isBare(current) { position += 1 }
                guard position > start else { throw SettingError("a name is missing") }
                parts.append(String(decoding: characters[start..<position], as: UTF8.self))
            }
            try skipBlanks(lines: false)
        } while take(".")
        return parts
    }

    private static func isBare(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    private mutating func value() throws -> SettingValue {
        guard let current else { throw SettingError("a value is missing") }
        switch current {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .text(try string())
        case UInt8(ascii: "["):
            position += 1
            var values: [SettingValue] = []
            while true {
                try skipBlanks(lines: true)
                if take("]") { return .list(values) }
                values.append(try value())
                try skipBlanks(lines: true)
                guard take(",") || self.current == UInt8(ascii: "]") else {
                    throw SettingError("“,” or “]” is missing in an array")
                }
            }
        case UInt8(ascii: "{"):
            position += 1
            var values: [String: SettingValue] = [:]
            try skipBlanks(lines: false)
            if take("}") { return .table(values) }
            repeat {
                let name = try key()
                guard take("=") else { throw SettingError("“=” is missing after the name") }
                try skipBlanks(lines: false)
                try Self.set(try value(), at: name[...], in: &values)
                try skipBlanks(lines: false)
            } while take(",")
            guard take("}") else { throw SettingError("“}” is missing after an inline table") }
            return .table(values)
        default: return try scalar()
        }
    }

    private mutating func scalar() throws -> SettingValue {
        let start = position
        while let current, Self.isBare(current) || current == UInt8(ascii: "+") || current == UInt8(ascii: ".") {
            position += 1
        }
        let text = String(decoding: characters[start..<position], as: UTF8.self)
        if text == "true" { return .boolean(true) }
        if text == "false" { return .boolean(false) }
        let digits = text.replacing("_", with: "")
        // TOML has no leading zeros, and a point has digits on both sides.
        let whole = digits.drop { $0 == "+" || $0 == "-" }.prefix { $0.isNumber }
        if !text.hasPrefix("_"), !text.hasSuffix("_"), !text.contains("__"), whole == "0" || whole.first != "0" {
            if let integer = Int(digits) { return .integer(integer) }
            if !whole.isEmpty, !digits.hasSuffix("."), !digits.contains(".e"), !digits.contains("x"),
                let number = Double(digits), number.isFinite
            {
                return .number(number)
            }
        }
        throw SettingError(text.isEmpty ? "a value is missing" : "“\(text)” is no string, number or boolean")
    }

    /// A string of one line, in either kind of quotation marks.
    private mutating func string() throws -> String {
        let mark = characters[position]
        position += 1
        if position + 1 < characters.count, characters[position] == mark, characters[position + 1] == mark {
            throw SettingError("strings of several lines are not supported")
        }
        var bytes: [UInt8] = []
        while let current {
            position += 1
            switch current {
            case mark:
                guard let text = String(validating: bytes, as: UTF8.self) else {
                    throw SettingError("a string is not UTF-8")
                }
                return text
            case 0x00..<0x09, 0x0A..<0x20, 0x7F:
                position -= 1
                throw SettingError("a string does not end on its line")
            case UInt8(ascii: "\\") where mark == UInt8(ascii: "\""):
                bytes.append(contentsOf: String(try escape()).utf8)
            default: bytes.append(current)
            }
        }
        throw SettingError("a string does not end")
    }

    private mutating func escape() throws -> Unicode.Scalar {
        guard let current else { throw SettingError("a string does not end") }
        position += 1
        switch current {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "u"), UInt8(ascii: "U"):
            let count = current == UInt8(ascii: "u") ? 4 : 8
            let digits = String(decoding: characters.dropFirst(position).prefix(count), as: UTF8.self)
            guard digits.utf8.count == count, digits.allSatisfy(\.isHexDigit), let code = UInt32(digits, radix: 16),
                let scalar = Unicode.Scalar(code)
            else { throw SettingError("a string has an invalid escape") }
            position += count
            return scalar
        default: throw SettingError("a string has an invalid escape")
        }
    }

    private static func set(
        _ value: SettingValue, at path: ArraySlice<String>, in table: inout [String: SettingValue]
    ) throws {
        guard let name = path.first else { return }
        if path.count == 1 {
            guard table[name] == nil else { throw SettingError("“\(name)” is repeated") }
            table[name] = value
        } else {
            try within(name, of: &table) { try set(value, at: path.dropFirst(), in: &$0) }
        }
    }

    private static func open(_ path: ArraySlice<String>, in table: inout [String: SettingValue]) throws {
        guard let name = path.first else { return }
        try within(name, of: &table) { try open(path.dropFirst(), in: &$0) }
    }

    private static func within(
        _ name: String, of table: inout [String: SettingValue],
        _ body: (inout [String: SettingValue]) throws -> Void
    ) throws {
        switch table[name] {
        case nil:
            var inner: [String: SettingValue] = [:]
            try body(&inner)
            table[name] = .table(inner)
        case .table(var inner):
            try body(&inner)
            table[name] = .table(inner)
        default: throw SettingError("“\(name)” is a value and a table")
        }
    }
}

extension SettingValue {
    /// The value with `***` for every text in it that is not empty; the names of tables stay.
    var masked: SettingValue {
        switch self {
        case .text(let text): .text(text.isEmpty ? "" : "***")
        case .list(let values): .list(values.map(\.masked))
        case .table(let values): .table(values.mapValues(\.masked))
        case .integer, .number, .boolean: .text("***")
        }
    }
}

extension [UInt8] {
    /// Nil unless the text is pairs of hexadecimal digits.
    package init?(hexadecimal text: some StringProtocol) {
        let digits = Array<UInt8>(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        self = []
        reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = GrammarText.hexadecimal(digits[index]),
                let low = GrammarText.hexadecimal(digits[index + 1])
            else { return nil }
            append(high << 4 | low)
        }
    }
}
