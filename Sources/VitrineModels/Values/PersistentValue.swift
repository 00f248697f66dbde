/// Anything that can be a stored property: numbers, text, dates, collections of them, and types of one's own.
///
/// Types of one's own conform by `@Persistable`, or by hand as ``PersistentRecord`` or ``PersistentObject``. An enum
/// with raw values needs no more than the name of the protocol:
///
/// ```swift
/// enum Color: String, PersistentValue { case red, green }
/// ```
public protocol PersistentValue: Hashable {
    /// The value's type as schemas record it. Types with a record of their own add it to the schema.
    static func persistentType(in schema: inout SchemaBuilder) -> ValueType
    /// Writes the value.
    func persist(to writer: inout BinaryWriter)
    /// Reads a value as ``persist(to:)`` wrote it.
    static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self
    /// The type whose schema heads the value's bytes: an object's own class, whatever it is stored as.
    var persistentDynamicType: any PersistentValue.Type { get }
}

extension PersistentValue {
    public var persistentDynamicType: any PersistentValue.Type { Self.self }
}

/// A struct or enum, or by ``PersistentObject`` a class, with named properties and a version.
///
/// `@Persistable` writes the conformance. By hand it is:
///
/// ```swift
/// struct Place: PersistentRecord {
///     var name: String
///     var latitude = 0.0
///
///     static let persistentName = "Place"
///     static func describe(in record: inout RecordBuilder) {
///         record.header(version: "1.0", kind: .structure)
///         record.property("name", String.self)
///         record.property("latitude", default: 0.0)
///     }
///     func persistProperties(to writer: inout BinaryWriter) {
///         name.persist(to: &writer)
///         latitude.persist(to: &writer)
///     }
///     init(restoring reader: inout BinaryReader) throws(PersistenceError) {
///         name = try reader.read()
///         latitude = try reader.read()
///     }
/// }
/// ```
///
/// The three lists are in the same order. A record without any property writes one byte 0, and an enum the number of
/// its case before the case's payload.
public protocol PersistentRecord: PersistentValue {
    /// The name the type is stored under; it stays when the type is renamed. Generic types name their arguments.
    static var persistentName: String { get }
    /// Tells the version, the properties or cases, and the migration steps.
    static func describe(in record: inout RecordBuilder)
    /// Writes the properties in the described order.
    func persistProperties(to writer: inout BinaryWriter)
    /// Reads the properties in the described order.
    init(restoring reader: inout BinaryReader) throws(PersistenceError)
}

extension PersistentRecord {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType {
        schema.add(Self.self)
        return .record(persistentName)
    }

    @inlinable
    public func persist(to writer: inout BinaryWriter) {
        guard writer.enter() else { return }
        persistProperties(to: &writer)
        writer.leave()
    }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        try reader.enter()
        let value = try Self(restoring: &reader)
        reader.leave()
        return value
    }
}
