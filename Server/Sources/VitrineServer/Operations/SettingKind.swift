import Foundation

/// How a value of a type is read and shown.
struct Kind<Value: Sendable>: Sendable {
    var unit: String
    var isSwitch = false
    var isList = false
    var read: @Sendable (SettingValue) throws -> Value
    var show: @Sendable (Value) -> SettingValue
}

extension Kind where Value == Int {
    static func integer(_ range: ClosedRange<Int>, unit: String) -> Kind {
        Kind(unit: unit) { value in
            let number: Int? =
                switch value {
                case .integer(let number): number
                case .text(let text): Int(text)
                default: nil
                }
            guard let number else { throw SettingError("\(value.brief) is not a whole number") }
            guard range.contains(number) else {
                throw SettingError("\(number) is not between \(range.lowerBound) and \(range.upperBound)")
            }
            return number
        } show: { .integer($0) }
    }

    /// A number of bytes, or a number with KiB, MiB or GiB.
    static func bytes(_ range: ClosedRange<Int>) -> Kind {
        Kind(unit: "bytes") { value in
            var number: Int?
            switch value {
            case .integer(let bytes): number = bytes
            case .text(let text):
                number = Int(text)
                for (suffix, scale) in [("KiB", 10), ("MiB", 20), ("GiB", 30)] where text.hasSuffix(suffix) {
                    number = Int(text.dropLast(3)).flatMap { $0 >= 0 && $0 <= Int.max >> scale ? $0 << scale : nil }
                }
            default: break
            }
            guard let number else {
                throw SettingError("\(value.brief) is not a number of bytes, or of KiB, MiB or GiB")
            }
            guard range.contains(number) else {
                throw SettingError("\(number) is not between \(range.lowerBound) and \(range.upperBound) bytes")
            }
            return number
        } show: { .integer($0) }
    }
}

extension Kind where Value == Double {
    static func number(_ range: ClosedRange<Double>, unit: String) -> Kind {
        Kind(unit: unit) { value in
            let number: Double? =
                switch value {
                case .integer(let number): Double(number)
                case .number(let number): number
                case .text(let text): Double(text)
                default: nil
                }
            guard let number, number.isFinite else { throw SettingError("\(value.brief) is not a number") }
            guard range.contains(number) else {
                let bounds = [range.lowerBound, range.upperBound].map(JSONText.number)
                throw SettingError("\(JSONText.number(number)) is not between \(bounds[0]) and \(bounds[1])")
            }
            return number
        } show: { .number($0) }
    }
}

extension Kind where Value == Bool {
    static var boolean: Kind {
        Kind(unit: "true or false", isSwitch: true) { value in
            switch value {
            case .boolean(let value): return value
            case .text("true"), .text("1"), .text("yes"), .text("on"), .text("t"): return true
            case .text("false"), .text("0"), .text("no"), .text("off"), .text("f"): return false
            default: throw SettingError("\(value.brief) is not true or false")
            }
        } show: { .boolean($0) }
    }
}

extension Kind where Value == String {
    static func text(unit: String = "text", _ check: @escaping @Sendable (String) -> String? = { _ in nil }) -> Kind {
        Kind(unit: unit) { value in
            guard case .text(let text) = value else { throw SettingError("\(value.brief) is not a text") }
            guard !text.contains(where: { $0.isNewline || $0 == "\0" }) else {
                throw SettingError("the text has several lines")
            }
            if let problem = check(text) { throw SettingError(problem) }
            return text
        } show: { .text($0) }
    }

    static var path: Kind { text(unit: "path") }
    static var url: Kind {
        text(unit: "URL") { text in
            guard !text.isEmpty else { return nil }
            let url = URLComponents(string: text)
            let isWeb = url?.scheme == "http" || url?.scheme == "https"
            return isWeb && url?.host?.isEmpty == false ? nil : "it is not an http or https URL"
        }
    }
}

/// A list in a file, or values with commas between them.
func list<Element: Sendable>(
    unit: String, read: @escaping @Sendable (String) throws -> Element,
    show: @escaping @Sendable (Element) -> String
) -> Kind<[Element]> {
    Kind(unit: unit, isList: true) { value in
        switch value {
        case .text(let text):
            return try text.split(separator: ",").map {
                try read($0.trimmingCharacters(in: .whitespaces))
            }
        case .list(let values):
            return try values.map { value in
                guard case .text(let text) = value else { throw SettingError("\(value.brief) is not a text") }
                return try read(text)
            }
        default: throw SettingError("\(value.brief) is not a list")
        }
    } show: { .list($0.map { .text(show($0)) }) }
}

/// A table in a file, or `name=value` with commas between them.
func table<Key: Hashable & Sendable, Value: Sendable>(
    unit: String, separator: Character = ",", key: @escaping @Sendable (String) throws -> Key,
    name: @escaping @Sendable (Key) -> String, value kind: Kind<Value>
) -> Kind<[Key: Value]> {
    Kind(unit: unit, isList: true) { value in
        var result: [Key: Value] = [:]
        func add(_ name: String, _ value: SettingValue) throws {
            do {
                guard result.updateValue(try kind.read(value), forKey: try key(name)) == nil else {
                    throw SettingError("it is given twice")
                }
            } catch let error as SettingError {
                throw SettingError("“\(name)”: \(error.reason)")
            }
        }
        switch value {
        case .text(let text):
            for part in text.split(separator: separator) {
                let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard pair.count == 2 else { throw SettingError("“\(part)” is not of the form NAME=VALUE") }
                try add(pair[0].trimmingCharacters(in: .whitespaces), .text(String(pair[1])))
            }
        case .table(let values):
            for name in values.keys.sorted() { try add(name, values[name] ?? .text("")) }
        default: throw SettingError("\(value.brief) is not a table")
        }
        return result
    } show: { values in
        .table(Dictionary(uniqueKeysWithValues: values.map { (name($0.key), kind.show($0.value)) }))
    }
}

extension SettingValue {
    /// The value in a message, cut.
    var brief: String {
        switch self {
        case .text(let text): "“\(text.prefix(60))”"
        case .list: "a list"
        case .table: "a table"
        default: json
        }
    }
}
