// Signed integers are zigzag varints, unsigned ones varints (LEB128), so that a width can grow without new bytes;
// floating-point numbers are their IEEE 754 bits in little endian.

extension Bool: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .bool }

    @inlinable
    public func persist(to writer: inout BinaryWriter) { writer.write(byte: self ? 1 : 0) }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Bool {
        try reader.readByte() != 0
    }
}

extension PersistentValue where Self: FixedWidthInteger & SignedInteger {
    @inlinable
    public func persist(to writer: inout BinaryWriter) { writer.write(signed: Int64(self)) }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        guard let value = Self(exactly: try reader.readSigned()) else { throw reader.outOfRange("\(Self.self)") }
        return value
    }
}

extension PersistentValue where Self: FixedWidthInteger & UnsignedInteger {
    @inlinable
    public func persist(to writer: inout BinaryWriter) { writer.write(unsigned: UInt64(self)) }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        guard let value = Self(exactly: try reader.readUnsigned()) else { throw reader.outOfRange("\(Self.self)") }
        return value
    }
}

extension Int: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .int64 }
}

extension Int64: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .int64 }
}

extension Int32: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .int32 }
}

extension Int16: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .int16 }
}

extension Int8: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .int8 }
}

extension UInt: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .uint64 }
}

extension UInt64: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .uint64 }
}

extension UInt32: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .uint32 }
}

extension UInt16: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .uint16 }
}

extension UInt8: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .uint8 }
}

extension Double: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .double }

    @inlinable
    public func persist(to writer: inout BinaryWriter) { writer.write(word: bitPattern) }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Double {
        Double(bitPattern: try reader.readWord())
    }
}

extension Float: PersistentValue {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType { .float }

    @inlinable
    public func persist(to writer: inout BinaryWriter) { writer.write(halfWord: bitPattern) }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Float {
        Float(bitPattern: try reader.readHalfWord())
    }
}
