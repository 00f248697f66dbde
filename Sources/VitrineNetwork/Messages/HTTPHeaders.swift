/// The header fields of a request or response, in order (RFC 9110, section 5).
///
/// Names are compared without regard to the case of ASCII letters and keep their spelling.
///
/// ```swift
/// var headers: HTTPHeaders = ["Accept": "image/*"]
/// headers["Referer"] = "https://example.org/"
/// headers["accept"]     // image/*
/// for (name, value) in headers { print(name, value) }
/// ```
public struct HTTPHeaders: Sendable, Hashable {
    /// A header field.
    package struct Field: Sendable {
        /// The name as it was written.
        package let name: String
        /// The value without surrounding white space. Bytes that are not UTF-8 are read as ISO 8859-1.
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Returns whether the field has a name, in any case.
        package func isNamed(_ name: String) -> Bool { HTTPHeaders.isSame(self.name, name) }
    }

    /// The fields, in order.
    package private(set) var fields: [Field]

    /// Creates a header without fields.
    public init() { fields = [] }

    /// Creates a header from names and values.
    public init(_ fields: some Sequence<(name: String, value: String)>) {
        self.fields = fields.map { Field(name: $0.name, value: $0.value) }
    }

    package init(_ fields: [Field]) { self.fields = fields }

    /// The value of the first field with a name, or nil if there is none.
    ///
    /// Setting a value replaces all fields with the name by one, in the place of the first. Setting nil removes them.
    public subscript(name: String) -> String? {
        get { fields.first { $0.isNamed(name) }?.value }
        set {
            guard let newValue else { return remove(name) }
            let field = Field(name: name, value: newValue)
            guard let index = fields.firstIndex(where: { $0.isNamed(name) }) else { return fields.append(field) }
            let others = fields[(index + 1)...].filter { !$0.isNamed(name) }
            fields.replaceSubrange(index..., with: [field] + others)
        }
    }

    /// Returns the values of all fields with a name, in order.
    public func all(_ name: String) -> [String] { fields.filter { $0.isNamed(name) }.map(\.value) }

    /// Returns the values of all fields with a name, joined by `, ` (RFC 9110, section 5.3); nil if there is none.
    ///
    /// Not for `Set-Cookie`, whose values may contain commas.
    package func combined(_ name: String) -> String? {
        let values = all(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Returns whether there is a field with a name.
    package func contains(_ name: String) -> Bool { fields.contains { $0.isNamed(name) } }

    /// Adds a field after the others. Use the subscript to replace a field.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The value.
    public mutating func append(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Adds fields after the others.
    package mutating func append(contentsOf other: HTTPHeaders) { fields.append(contentsOf: other.fields) }

    /// Removes all fields with a name.
    package mutating func remove(_ name: String) { fields.removeAll { $0.isNamed(name) } }

    /// Removes the fields that a predicate is true for.
    package mutating func removeAll(where predicate: (Field) throws -> Bool) rethrows {
        try fields.removeAll(where: predicate)
    }

    fileprivate static func isSame(_ one: String, _ other: String) -> Bool {
        let a = one.utf8, b = other.utf8
        guard a.count == b.count else { return false }
        var (i, j) = (a.startIndex, b.startIndex)
        while i < a.endIndex {
            if a[i] != b[j], a[i].asciiLowercased != b[j].asciiLowercased { return false }
            (i, j) = (a.index(after: i), b.index(after: j))
        }
        return true
    }
}

extension HTTPHeaders.Field: Hashable {
    /// Returns whether two fields are equal. Names are compared without regard to case.
    package static func == (one: Self, other: Self) -> Bool { one.isNamed(other.name) && one.value == other.value }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name.lowercased())
        hasher.combine(value)
    }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }
}

extension HTTPHeaders: Sequence {
    /// Returns an iterator over the names and values, in order.
    public func makeIterator() -> some IteratorProtocol<(name: String, value: String)> {
        fields.lazy.map { (name: $0.name, value: $0.value) }.makeIterator()
    }
}

// MARK: Parsing

extension HTTPHeaders {
    /// Parses the lines of a header as a server sends them.
    ///
    /// Folded lines are joined by a space (RFC 9112, section 5.2). The transport that collects the lines limits the
    /// number and size of the fields.
    package init(lines: [UInt8]) throws(HTTPHeadersProblem) {
        var fields: [Field] = []
        fields.reserveCapacity(16)
        let problem = lines.withUnsafeBufferPointer { bytes in Self.read(bytes, into: &fields) }
        if let problem { throw problem }
        self.init(fields)
    }

    private static func read(_ bytes: UnsafeBufferPointer<UInt8>, into fields: inout [Field]) -> HTTPHeadersProblem? {
        var start = 0
        while start < bytes.count {
            var end = start, colon = -1
            var hasControls = false
            while end < bytes.count, bytes[end] != 0x0A {
                let byte = bytes[end]
                if byte == UInt8(ascii: ":"), colon < 0 { colon = end }
                // One CR may stand before the LF.
                if byte == 0 || byte == 0x0D && end + 1 < bytes.count && bytes[end + 1] != 0x0A { hasControls = true }
                end += 1
            }
            let line = start..<(end > start && bytes[end - 1] == 0x0D ? end - 1 : end)
            start = end + 1
            if hasControls { return HTTPHeadersProblem(reason: "a header field contains control characters") }
            if line.isEmpty { continue }
            if HTTPSyntax.isBlank(bytes[line.lowerBound]) {
                guard let last = fields.popLast() else {
                    return HTTPHeadersProblem(reason: "the header begins with a folded line")
                }
                fields.append(Field(name: last.name, value: last.value + " " + text(trimmed(bytes, line))))
            } else {
                guard colon >= 0 else { return HTTPHeadersProblem(reason: "a header line has no colon") }
                let name = text(UnsafeBufferPointer(rebasing: bytes[line.lowerBound..<colon]))
                guard HTTPSyntax.isToken(name) else {
                    return HTTPHeadersProblem(reason: "a header field has no valid name")
                }
                fields.append(Field(name: name, value: text(trimmed(bytes, (colon + 1)..<line.upperBound))))
            }
        }
        return nil
    }

    private static func trimmed(
        _ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>
    ) -> UnsafeBufferPointer<UInt8> {
        var lower = range.lowerBound, upper = range.upperBound
        while lower < upper, HTTPSyntax.isBlank(bytes[lower]) { lower += 1 }
        while upper > lower, HTTPSyntax.isBlank(bytes[upper - 1]) { upper -= 1 }
        return UnsafeBufferPointer(rebasing: bytes[lower..<upper])
    }

    /// Decodes UTF-8, or else ISO 8859-1, whose bytes are the first 256 scalars.
    private static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        if bytes.allSatisfy({ $0 < 0x80 }) {
            return String(unsafeUninitializedCapacity: bytes.count) { $0.initialize(fromContentsOf: bytes) }
        }
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var text = String.UnicodeScalarView()
        for byte in bytes { text.append(Unicode.Scalar(byte)) }
        return String(text)
    }
}

/// The error of a header that cannot be parsed.
package struct HTTPHeadersProblem: Error {
    /// The reason, as a part of a sentence.
    package let reason: String
}
