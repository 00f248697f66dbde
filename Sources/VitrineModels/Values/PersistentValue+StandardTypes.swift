#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// MARK: Numbers

// Signed integers are zigzag varints and unsigned integers are varints (LEB128), so a property can get a wider type
// without a new form of its bytes. Floating-point numbers are their IEEE 754 bits in little endian.

extension Bool: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.bool) }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) { writer.write(byte: self ? 1 : 0) }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Bool {
        try reader.readByte() != 0
    }
}

extension PersistentValue where Self: FixedWidthInteger & SignedInteger {
    @inlinable
    public func _persist(to writer: inout BinaryWriter) { writer.write(signed: Int64(self)) }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        guard let value = Self(exactly: try reader.readSigned()) else { throw reader.outOfRange("\(Self.self)") }
        return value
    }
}

extension PersistentValue where Self: FixedWidthInteger & UnsignedInteger {
    @inlinable
    public func _persist(to writer: inout BinaryWriter) { writer.write(unsigned: UInt64(self)) }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        guard let value = Self(exactly: try reader.readUnsigned()) else { throw reader.outOfRange("\(Self.self)") }
        return value
    }
}

extension Int: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.int64) }
}

extension Int64: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.int64) }
}

extension Int32: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.int32) }
}

extension Int16: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.int16) }
}

extension Int8: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.int8) }
}

extension UInt: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.uint64) }
}

extension UInt64: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.uint64) }
}

extension UInt32: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.uint32) }
}

extension UInt16: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.uint16) }
}

extension UInt8: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.uint8) }
}

extension Double: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.double) }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) { writer.write(word: bitPattern) }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Double {
        Double(bitPattern: try reader.readWord())
    }
}

extension Float: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.float) }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) { writer.write(halfWord: bitPattern) }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Float {
        Float(bitPattern: try reader.readHalfWord())
    }
}

// MARK: Text, bytes, dates and URLs

extension String: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.string) }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) {
        var text = self
        text.withUTF8 { writer.write(counted: UnsafeRawBufferPointer($0)) }
    }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> String {
        String(decoding: try reader.readCounted(), as: UTF8.self)
    }
}

extension Data: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.data) }

    public func _persist(to writer: inout BinaryWriter) { withUnsafeBytes { writer.write(counted: $0) } }

    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Data {
        Data(try reader.readCounted())
    }
}

/// Stored as all bits of the seconds since 2001.
extension Date: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.date) }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) {
        writer.write(word: timeIntervalSinceReferenceDate.bitPattern)
    }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Date {
        Date(timeIntervalSinceReferenceDate: Double(bitPattern: try reader.readWord()))
    }
}

extension UUID: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.uuid) }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) { withUnsafeBytes(of: uuid) { writer.write(bytes: $0) } }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> UUID {
        UUID(uuid: try reader.take(16).loadUnaligned(as: uuid_t.self))
    }
}

/// Stored as its text and the text of its base URL, which is empty if there is none.
extension URL: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.url) }

    public func _persist(to writer: inout BinaryWriter) {
        writer.write(relativeString)
        writer.write(baseURL?.absoluteString ?? "")
    }

    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> URL {
        let text = try reader.read(String.self)
        let base = try reader.read(String.self)
        guard let url = URL(string: text, relativeTo: base.isEmpty ? nil : URL(string: base)) else {
            throw .malformed("\"\(text)\" is not a URL")
        }
        return url
    }
}

/// Stored as its digits.
extension Decimal: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType { _StoredType(.decimal) }

    public func _persist(to writer: inout BinaryWriter) { writer.write(description) }

    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Decimal {
        let text = try reader.read(String.self)
        if text == "NaN" { return .nan }
        guard let number = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")) else {
            throw .malformed("\"\(text)\" is not a decimal number")
        }
        return number
    }
}

// MARK: Optionals and collections

// An optional writes one byte, 0 for nil, before its value. A collection writes its count before its elements. No
// element is empty, so a count larger than the rest of the bytes is refused before anything is allocated.

extension Optional: PersistentValue where Wrapped: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType {
        let wrapped = Wrapped._persistentType(in: &schema)
        return _StoredType(.optional(wrapped.type), check: wrapped.check?.optional)
    }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) {
        switch self {
        case .none: writer.write(byte: 0)
        case .some(let value):
            writer.write(byte: 1)
            writer.write(value)
        }
    }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Wrapped? {
        try reader.readByte() == 0 ? .none : .some(try Wrapped._restore(from: &reader))
    }
}

extension Array: PersistentValue where Element: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType {
        let element = Element._persistentType(in: &schema)
        return _StoredType(.array(element.type), check: element.check?.elements)
    }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) {
        writer.write(unsigned: UInt64(count))
        for element in self { writer.write(element) }
    }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> [Element] {
        let count = try reader.readCount()
        var array: [Element] = []
        array.reserveCapacity(reader.reservation(count, stride: MemoryLayout<Element>.stride))
        for _ in 0..<count { array.append(try Element._restore(from: &reader)) }
        return array
    }
}

extension Set: PersistentValue where Element: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType {
        let element = Element._persistentType(in: &schema)
        return _StoredType(.set(element.type), check: element.check?.elements)
    }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) {
        writer.write(unsigned: UInt64(count))
        for element in self { writer.write(element) }
    }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Set<Element> {
        let count = try reader.readCount()
        var set = Set<Element>(minimumCapacity: reader.reservation(count, stride: MemoryLayout<Element>.stride))
        for _ in 0..<count { set.insert(try Element._restore(from: &reader)) }
        return set
    }
}

extension Dictionary: PersistentValue where Key: PersistentValue, Value: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType {
        let key = Key._persistentType(in: &schema), value = Value._persistentType(in: &schema)
        return _StoredType(.dictionary(key.type, value.type), check: ValueCheck(keys: key.check, values: value.check))
    }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) {
        writer.write(unsigned: UInt64(count))
        for (key, value) in self {
            writer.write(key)
            writer.write(value)
        }
    }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> [Key: Value] {
        let count = try reader.readCount()
        let stride = MemoryLayout<Key>.stride + MemoryLayout<Value>.stride
        var dictionary = [Key: Value](minimumCapacity: reader.reservation(count, stride: stride))
        for _ in 0..<count {
            let key = try Key._restore(from: &reader)
            dictionary[key] = try Value._restore(from: &reader)
        }
        return dictionary
    }
}

extension PersistentValue where Self: RawRepresentable, RawValue: PersistentValue {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType {
        let type = RawValue._persistentType(in: &schema).type
        let check = ValueCheck(name: "\(Self.self)") { TreeWriter.hasValue($0, of: type, Self.self) }
        return _StoredType(type, check: check)
    }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) { writer.write(rawValue) }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        let raw = try RawValue._restore(from: &reader)
        guard let value = Self(rawValue: raw) else { throw reader.unknownRawValue("\(Self.self)") }
        return value
    }
}
