// An optional is a byte, 0 for nil, before the value; a collection its count before the elements. No element is empty,
// so a count beyond the bytes that are left is known to be wrong before anything is allocated.

extension Optional: PersistentValue where Wrapped: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType {
        .optional(Wrapped.persistentType(in: &schema))
    }

    @inlinable
    public func persist(to writer: inout BinaryWriter) {
        switch self {
        case .none: writer.write(byte: 0)
        case .some(let value):
            writer.write(byte: 1)
            value.persist(to: &writer)
        }
    }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Wrapped? {
        try reader.readByte() == 0 ? .none : .some(try Wrapped.restore(from: &reader))
    }
}

extension Array: PersistentValue where Element: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType {
        .array(Element.persistentType(in: &schema))
    }

    @inlinable
    public func persist(to writer: inout BinaryWriter) {
        writer.write(unsigned: UInt64(count))
        for element in self { element.persist(to: &writer) }
    }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> [Element] {
        let count = try reader.readCount()
        var array: [Element] = []
        array.reserveCapacity(reader.reservation(count, stride: MemoryLayout<Element>.stride))
        for _ in 0..<count { array.append(try Element.restore(from: &reader)) }
        return array
    }
}

extension Set: PersistentValue where Element: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType {
        .set(Element.persistentType(in: &schema))
    }

    @inlinable
    public func persist(to writer: inout BinaryWriter) {
        writer.write(unsigned: UInt64(count))
        for element in self { element.persist(to: &writer) }
    }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Set<Element> {
        let count = try reader.readCount()
        var set = Set<Element>(minimumCapacity: reader.reservation(count, stride: MemoryLayout<Element>.stride))
        for _ in 0..<count { set.insert(try Element.restore(from: &reader)) }
        return set
    }
}

extension Dictionary: PersistentValue where Key: PersistentValue, Value: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType {
        let key = Key.persistentType(in: &schema)
        return .dictionary(key, Value.persistentType(in: &schema))
    }

    @inlinable
    public func persist(to writer: inout BinaryWriter) {
        writer.write(unsigned: UInt64(count))
        for (key, value) in self {
            key.persist(to: &writer)
            value.persist(to: &writer)
        }
    }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> [Key: Value] {
        let count = try reader.readCount()
        let stride = MemoryLayout<Key>.stride + MemoryLayout<Value>.stride
        var dictionary = [Key: Value](minimumCapacity: reader.reservation(count, stride: stride))
        for _ in 0..<count {
            let key = try Key.restore(from: &reader)
            dictionary[key] = try Value.restore(from: &reader)
        }
        return dictionary
    }
}

extension PersistentValue where Self: RawRepresentable, RawValue: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType {
        RawValue.persistentType(in: &schema)
    }

    @inlinable
    public func persist(to writer: inout BinaryWriter) { rawValue.persist(to: &writer) }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        let raw = try RawValue.restore(from: &reader)
        guard let value = Self(rawValue: raw) else { throw reader.outOfRange("\(Self.self)") }
        return value
    }
}
