public import VitrineCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A value in JSON (RFC 8259).
///
/// ```swift
/// let json = try JSONValue(parsing: bytes)
/// json["name"]?.string                  // nil if there is no such member, or if it is no text
/// json["tags"]?[0]?.string
/// let user = try json.decoded(as: User.self)
/// ```
///
/// Accessors and subscripts return nil where the value is of another kind. Numbers are lossless: 64-bit integers,
/// doubles, and all others as decimal text. Encoding is deterministic: members are sorted by the bytes of their names,
/// without white space.
///
/// Only objects and arrays can be parsed and stored. Bytes that are not one complete JSON text in UTF-8 are refused,
/// never repaired.
public struct JSONValue: Sendable, Hashable {
    /// How deep arrays and objects may be nested: 512. Deeper input is refused, so that it cannot exhaust the stack.
    package static let maximumDepth = 512

    package let root: Node

    package init(_ root: Node) { self.root = root }

    /// Reads a text in UTF-8, such as `Data` or `text.utf8`, with or without a byte order mark. The last of several
    /// members of one name counts.
    ///
    /// - Throws: An error that describes where the text ceases to be JSON, or that it is neither an object nor an
    ///   array.
    public init(parsing text: some Sequence<UInt8>) throws {
        let root: Node = try ContiguousArray(text).withUnsafeBufferPointer { bytes in
            var parser = JSONParser(bytes)
            return try parser.parse()
        }
        switch root {
        case .object, .array: self.root = root
        default: throw JSONError.fragment
        }
    }

    /// The members of an object.
    public var object: [String: JSONValue]? {
        if case .object(let members) = root { members.mapValues { JSONValue($0) } } else { nil }
    }

    /// The elements of an array.
    public var array: [JSONValue]? {
        if case .array(let elements) = root { elements.map { JSONValue($0) } } else { nil }
    }

    /// A text.
    public var string: String? {
        if case .string(let value) = root { value } else { nil }
    }

    /// A number that is a whole one and fits.
    public var int: Int? { number?.int64.flatMap { Int(exactly: $0) } }

    /// A number as the nearest double.
    public var double: Double? { number?.double }

    /// True or false.
    public var bool: Bool? {
        if case .bool(let value) = root { value } else { nil }
    }

    /// Whether it is null.
    public var isNull: Bool { root == .null }

    /// A number as it was written.
    package var number: Number? {
        if case .number(let value) = root { value } else { nil }
    }

    /// A member of an object; nil if there is none.
    public subscript(name: String) -> JSONValue? {
        guard case .object(let members) = root else { return nil }
        return members[name].map { JSONValue($0) }
    }

    /// An element of an array; nil if there is none.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = root, elements.indices.contains(index) else { return nil }
        return JSONValue(elements[index])
    }

    /// The text in UTF-8: the same bytes for equal values, in every process.
    package var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.write(root)
        return writer.bytes
    }

    /// Encodes a value as JSON.
    ///
    /// - Throws: The error of encoding, or an error if the value is neither an object nor an array.
    public init(encoding value: some Encodable) throws {
        try self.init(parsing: try JSONEncoder().encode(value))
    }

    /// The value this is the JSON of.
    ///
    /// - Throws: `DecodingError`.
    public func decoded<Result: Decodable>(as type: Result.Type = Result.self) throws -> Result {
        try JSONDecoder().decode(type, from: Data(bytes))
    }
}

extension JSONValue: CacheableValue {
    /// Reads a text, as ``init(parsing:)`` does.
    public init(cacheBytes: [UInt8]) throws { try self.init(parsing: cacheBytes) }

    /// The text in UTF-8: the same bytes for equal values, in every process.
    ///
    /// - Throws: An error if the value is neither an object nor an array.
    public func cacheBytes() throws -> [UInt8] {
        switch root {
        case .object, .array: return bytes
        default: throw JSONError.fragment
        }
    }

    /// The approximate memory of the tree.
    public var cacheCost: Int { root.cost }
}

extension JSONValue: CustomStringConvertible {
    /// The text.
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates a text.
    public init(stringLiteral value: String) { root = .string(value) }
    /// Creates a number.
    public init(integerLiteral value: Int64) { root = .number(.integer(value)) }
    /// Creates a number. Traps for a literal that is not finite, which JSON cannot represent.
    public init(floatLiteral value: Double) {
        precondition(value.isFinite, "JSON has no \(value)")
        root = .number(.double(value))
    }
    /// Creates true or false.
    public init(booleanLiteral value: Bool) { root = .bool(value) }
    /// Creates null.
    public init(nilLiteral: ()) { root = .null }
    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { root = .array(elements.map(\.root)) }
    /// Creates an object. The last of several members of one name counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        root = .object(Dictionary(elements.map { ($0, $1.root) }, uniquingKeysWith: { _, last in last }))
    }
}

extension JSONValue {
    /// One value in a JSON text.
    package indirect enum Node: Sendable, Hashable {
        /// The value null.
        case null
        /// True or false.
        case bool(Bool)
        /// A number.
        case number(Number)
        /// A string.
        case string(String)
        /// An array.
        case array([Node])
        /// An object.
        case object([String: Node])

        /// About the bytes it occupies. Recursion is bounded by ``JSONValue/maximumDepth`` for parsed values.
        var cost: Int {
            let own = MemoryLayout<Node>.stride + 32
            switch self {
            case .null, .bool, .number: return own
            case .string(let text): return own + text.utf8.count
            case .array(let elements): return elements.reduce(own) { $0 + $1.cost }
            case .object(let members):
                return members.reduce(own) { $0 + 16 + $1.key.utf8.count + $1.value.cost }
            }
        }
    }
}

extension JSONValue {
    /// A number, in the narrowest form that represents it exactly.
    package enum Number: Sendable, Hashable {
        /// Written without a point or an exponent, from -2⁶³ to 2⁶³-1.
        case integer(Int64)
        /// Written without a point or an exponent, from 2⁶³ to 2⁶⁴-1.
        case unsigned(UInt64)
        /// Written with a point or an exponent, and a finite double whose shortest text has the same value.
        case double(Double)
        /// Any other number, as it was written: more digits or larger than the other forms hold.
        case decimal(String)

        /// The value if it is a whole number of 64 bits with a sign.
        package var int64: Int64? {
            switch self {
            case .integer(let value): value
            case .unsigned: nil
            case .double(let value): Int64(exactly: value)
            case .decimal: nil
            }
        }

        /// The value if it is a whole number of 64 bits without a sign.
        package var uint64: UInt64? {
            switch self {
            case .integer(let value): UInt64(exactly: value)
            case .unsigned(let value): value
            case .double(let value): UInt64(exactly: value)
            case .decimal: nil
            }
        }

        /// The nearest double; nil for a number beyond its range.
        package var double: Double? {
            switch self {
            case .integer(let value): return Double(value)
            case .unsigned(let value): return Double(value)
            case .double(let value): return value
            case .decimal(let text):
                guard let value = Double(text), value.isFinite else { return nil }
                return value
            }
        }

        /// The number as JSON writes it. Not finite doubles, which no text gives, are null.
        package var text: String {
            switch self {
            case .integer(let value): String(value)
            case .unsigned(let value): String(value)
            case .double(let value): value.isFinite ? value.description : "null"
            case .decimal(let text): text
            }
        }

        /// The number a literal says, whose syntax has been checked.
        init(literal: String) {
            if let value = Int64(literal), value != 0 || literal == "0" {
                self = .integer(value)
            } else if literal.utf8.first != UInt8(ascii: "-"), let value = UInt64(literal) {
                self = .unsigned(value)
            } else if let value = Double(literal), value.isFinite,
                Self.digits(literal) == Self.digits(value.description)
            {
                self = .double(value)
            } else {
                self = .decimal(literal)
            }
        }

        /// Sign, significant digits and power of ten of the last digit: equal for equal values.
        private static func digits(_ literal: String) -> [Int] {
            var digits: [Int] = []
            var power = 0, exponent = 0, exponentSign = 1
            var isNegative = false, isFraction = false, isExponent = false
            for byte in literal.utf8 {
                switch byte {
                case UInt8(ascii: "-") where isExponent: exponentSign = -1
                case UInt8(ascii: "-"): isNegative = true
                case UInt8(ascii: "."): isFraction = true
                case UInt8(ascii: "e"), UInt8(ascii: "E"): isExponent = true
                case 0x30...0x39 where isExponent:
                    // Beyond any double; more digits change nothing but could overflow.
                    if exponent < 1_000_000 { exponent = exponent * 10 + Int(byte - 0x30) }
                case 0x30...0x39:
                    digits.append(Int(byte - 0x30))
                    if isFraction { power -= 1 }
                default: break
                }
            }
            power += exponent * exponentSign
            while digits.last == 0 {
                digits.removeLast()
                power += 1
            }
            let first = digits.firstIndex { $0 != 0 } ?? digits.count
            digits.removeFirst(first)
            return [isNegative ? 1 : 0, digits.isEmpty ? 0 : power] + digits
        }
    }
}

/// Why bytes are no JSON. Positions count bytes from 0.
package enum JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The text ends in the middle of a value.
    case unexpectedEnd
    /// There is something that cannot stand here: most often a missing quote or comma.
    case unexpectedByte(UInt8, position: Int)
    /// A string has bytes that are not UTF-8, an escape that does not exist, or half a surrogate pair.
    case invalidString(position: Int)
    /// A number is not written as RFC 8259 section 6 demands, or has more than 1,000 characters.
    case invalidNumber(position: Int)
    /// Arrays and objects have more than 512 nested levels.
    case tooDeep(position: Int)
    /// The top level is a text, a number, true, false or null.
    case fragment

    package var description: String {
        switch self {
        case .unexpectedEnd: "The JSON text is incomplete."
        case .unexpectedByte(let byte, let position): "Unexpected byte \(byte) at position \(position) of the JSON text."
        case .invalidString(let position): "The string at byte \(position) is not well-formed."
        case .invalidNumber(let position): "The number at byte \(position) is not well-formed."
        case .tooDeep(let position): "The JSON text has more than \(JSONValue.maximumDepth) nested levels at byte \(position)."
        case .fragment: "The top level of the JSON text is neither an object nor an array."
        }
    }
}
