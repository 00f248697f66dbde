#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
public import VitrineCore

/// A JSON text (RFC 8259) whose top level is an object or an array (R2).
///
/// ```swift
/// let json = try JSON(parsing: bytes)
/// json.dictionary?["name"]?.string      // nil if the top level is an array
/// json["tags"]?[0]?.string
/// let user = try json.decoded(as: User.self)
/// ```
///
/// Numbers keep what the text says: 64-bit integers, doubles, and anything beyond those as decimal text. Bytes are
/// refused, never repaired, when they are not one complete JSON text in UTF-8. Encoding is deterministic: members are
/// sorted by their names' bytes, there is no white space.
public struct JSON: Sendable, Hashable {
    /// How deep arrays and objects may be nested: 512. Deeper input is refused, so that it cannot exhaust the stack.
    public static let maximumDepth = 512

    /// The top level: ``Value/object(_:)`` or ``Value/array(_:)``.
    public let root: Value

    /// An object.
    public init(_ members: [String: Value]) { root = .object(members) }

    /// An array.
    public init(_ elements: [Value]) { root = .array(elements) }

    /// Reads a text in UTF-8, with or without a byte order mark. The last of several members of one name counts.
    ///
    /// - Throws: ``JSONError``, which says where the text ceases to be JSON.
    public init(parsing bytes: [UInt8]) throws(JSONError) {
        let result = bytes.withUnsafeBufferPointer { bytes in
            Result { () throws(JSONError) in
                var parser = JSONParser(bytes)
                return try parser.parse()
            }
        }
        let value = try result.get()
        switch value {
        case .object, .array: root = value
        default: throw .fragment
        }
    }

    /// Reads a text.
    ///
    /// - Throws: ``JSONError``, which says where the text ceases to be JSON.
    public init(parsing text: String) throws(JSONError) { try self.init(parsing: Array(text.utf8)) }

    /// The members, or nil if the top level is an array.
    public var dictionary: [String: Value]? { root.object }

    /// The elements, or nil if the top level is an object.
    public var array: [Value]? { root.array }

    /// A member of the top level; nil if there is none or the top level is an array.
    public subscript(name: String) -> Value? { root[name] }

    /// An element of the top level; nil if there is none or the top level is an object.
    public subscript(index: Int) -> Value? { root[index] }

    /// The text in UTF-8: the same bytes for equal values, in every process.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.write(root)
        return writer.bytes
    }

    /// The text.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// What an encodable value is as JSON.
    ///
    /// - Throws: What encoding throws, or ``JSONError/fragment`` if the value is neither an object nor an array.
    public init(encoding value: some Encodable) throws {
        try self.init(parsing: [UInt8](try JSONEncoder().encode(value)))
    }

    /// The value this is the JSON of.
    ///
    /// - Throws: `DecodingError`.
    public func decoded<Result: Decodable>(as type: Result.Type = Result.self) throws -> Result {
        try JSONDecoder().decode(type, from: Data(bytes))
    }
}

extension JSON: CacheableValue {
    /// Reads a text.
    ///
    /// - Throws: ``JSONError``.
    public init(cacheBytes: [UInt8]) throws { try self.init(parsing: cacheBytes) }

    /// ``bytes``.
    public func cacheBytes() -> [UInt8] { bytes }

    /// About what the tree occupies: every value's place and the texts that do not fit in it.
    public var cacheCost: Int { root.cost }
}

extension JSON: CustomStringConvertible {
    /// ``text``.
    public var description: String { text }
}
