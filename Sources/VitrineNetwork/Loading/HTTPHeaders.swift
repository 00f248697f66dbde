/// The header fields of a request or response, in order (RFC 9110, section 5).
///
/// Names are looked up without regard to the case of ASCII letters, and kept as they were written.
///
/// ```swift
/// var headers: HTTPHeaders = ["Accept": "image/*"]
/// headers["Referer"] = "https://example.org/"
/// headers["accept"]     // image/*
/// ```
public struct HTTPHeaders: Sendable, Hashable {
    /// One line of a header.
    public struct Field: Sendable {
        /// As it was written.
        public let name: String
        /// Without the white space around it. Bytes that are not UTF-8 are read as ISO 8859-1, one scalar each.
        public let value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Whether the field has this name, in any case.
        public func isNamed(_ name: String) -> Bool { HTTPHeaders.isSame(self.name, name) }
    }

    /// The fields, in order.
    public private(set) var fields: [Field]

    /// No fields.
    public init() { fields = [] }

    public init(_ fields: [Field]) { self.fields = fields }

    /// The value of the first field of a name; nil if there is none.
    public func first(_ name: String) -> String? { fields.first { $0.isNamed(name) }?.value }

    /// The values of all fields of a name, in order.
    public func all(_ name: String) -> [String] { fields.filter { $0.isNamed(name) }.map(\.value) }

    /// The values of all fields of a name as one list: joined by `, ` (RFC 9110, section 5.3); nil if there is none.
    ///
    /// Not for `Set-Cookie`, whose values may hold commas.
    public func combined(_ name: String) -> String? {
        guard let index = fields.firstIndex(where: { $0.isNamed(name) }) else { return nil }
        var result = fields[index].value
        for field in fields[(index + 1)...] where field.isNamed(name) { result += ", " + field.value }
        return result
    }

    /// Whether there is a field of the name.
    public func contains(_ name: String) -> Bool { fields.contains { $0.isNamed(name) } }

    /// Adds a field behind the others.
    public mutating func append(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Adds fields behind the others.
    public mutating func append(contentsOf other: HTTPHeaders) { fields.append(contentsOf: other.fields) }

    /// Replaces all fields of a name by one, in the place of the first.
    public mutating func set(_ name: String, _ value: String) {
        let field = Field(name: name, value: value)
        guard let index = fields.firstIndex(where: { $0.isNamed(name) }) else { return fields.append(field) }
        let others = fields[(index + 1)...].filter { !$0.isNamed(name) }
        fields.replaceSubrange(index..., with: [field] + others)
    }

    /// Removes all fields of a name.
    public mutating func remove(_ name: String) { fields.removeAll { $0.isNamed(name) } }

    /// Removes the fields that a predicate is true for.
    public mutating func removeAll(where predicate: (Field) throws -> Bool) rethrows {
        try fields.removeAll(where: predicate)
    }

    static func isSame(_ one: String, _ other: String) -> Bool {
        let a = one.utf8, b = other.utf8
        guard a.count == b.count else { return false }
        var (i, j) = (a.startIndex, b.startIndex)
        while i < a.endIndex {
            if a[i] != b[j], lowercased(a[i]) != lowercased(b[j]) { return false }
            (i, j) = (a.index(after: i), b.index(after: j))
        }
        return true
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
    }
}

extension HTTPHeaders.Field: Hashable {
    /// Names are compared without regard to case, values as they are.
    public static func == (one: Self, other: Self) -> Bool { one.isNamed(other.name) && one.value == other.value }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(name.lowercased())
        hasher.combine(value)
    }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }
}

extension HTTPHeaders: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { fields.count }
    public subscript(index: Int) -> Field { fields[index] }
}
