#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension String: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .string }

    @inlinable
    public func persist(to writer: inout BinaryWriter) {
        var text = self
        text.withUTF8 { writer.write(counted: UnsafeRawBufferPointer($0)) }
    }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> String {
        String(decoding: try reader.readCounted(), as: UTF8.self)
    }
}

extension Data: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .data }

    public func persist(to writer: inout BinaryWriter) { withUnsafeBytes { writer.write(counted: $0) } }

    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Data {
        Data(try reader.readCounted())
    }
}

/// Stored as seconds since 2001, to the last bit.
extension Date: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .date }

    @inlinable
    public func persist(to writer: inout BinaryWriter) {
        writer.write(word: timeIntervalSinceReferenceDate.bitPattern)
    }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Date {
        Date(timeIntervalSinceReferenceDate: Double(bitPattern: try reader.readWord()))
    }
}

extension UUID: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .uuid }

    @inlinable
    public func persist(to writer: inout BinaryWriter) { withUnsafeBytes(of: uuid) { writer.write(bytes: $0) } }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> UUID {
        UUID(uuid: try reader.take(16).loadUnaligned(as: uuid_t.self))
    }
}

/// Stored as its text and that of its base, which is empty for none.
extension URL: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .url }

    public func persist(to writer: inout BinaryWriter) {
        relativeString.persist(to: &writer)
        (baseURL?.absoluteString ?? "").persist(to: &writer)
    }

    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> URL {
        let text = try reader.read(String.self)
        let base = try reader.read(String.self)
        guard let url = URL(string: text, relativeTo: base.isEmpty ? nil : URL(string: base)) else {
            throw .malformed("\"\(text)\" is no URL")
        }
        return url
    }
}

/// Stored as its digits.
extension Decimal: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .decimal }

    public func persist(to writer: inout BinaryWriter) { description.persist(to: &writer) }

    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Decimal {
        let text = try reader.read(String.self)
        if text == "NaN" { return .nan }
        guard let number = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")) else {
            throw .malformed("\"\(text)\" is no decimal number")
        }
        return number
    }
}
