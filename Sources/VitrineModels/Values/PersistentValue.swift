/// A type that can be a stored property: numbers, text, dates, collections, and your own structs, enums and classes.
///
/// Your own types conform by `@Persistable`, a class also as a ``KeyPathObject``. By hand they conform as
/// ``PersistentRecord`` or ``PersistentObject``. An enum with raw values only names the protocol:
///
/// ```swift
/// enum Color: String, PersistentValue { case red, green }
/// ```
///
/// Do not implement the requirements of this protocol yourself.
public protocol PersistentValue: Hashable {
    /// Returns the type as schemas record it. Types with a record of their own add that record to the schema.
    static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType
    /// Writes the value.
    func _persist(to writer: inout BinaryWriter)
    /// Reads a value that ``_persist(to:)`` wrote.
    static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self
    /// The type whose schema stands in the header of the value's bytes. For an object it is the object's own class.
    var _persistentDynamicType: any PersistentValue.Type { get }
}

/// The type of a stored value. Only code of the package looks inside.
public struct _StoredType: Sendable {
    let type: ValueType
    /// Tells raw values that the type has from others; nil if the type has all values of the stored type.
    let check: ValueCheck?

    init(_ type: ValueType, check: ValueCheck? = nil) { (self.type, self.check) = (type, check) }
}

/// Tells stored values that a type has from others, for types with raw values and their collections.
///
/// Unchecked: the closure captures only a metatype, which has no state, and closures of this kind.
struct ValueCheck: @unchecked Sendable {
    /// The name of the type.
    let name: String
    /// Returns whether the type has a value. Values of another stored type are accepted.
    let accepts: (MigrationTree) -> Bool

    init(name: String, accepts: @escaping (MigrationTree) -> Bool) { (self.name, self.accepts) = (name, accepts) }

    /// Checks the entries of a dictionary; nil if neither its keys nor its values need checks.
    init?(keys: ValueCheck?, values: ValueCheck?) {
        guard let first = keys ?? values else { return nil }
        self.init(name: first.name) { value in
            guard case .dictionary(let entries) = value else { return true }
            return entries.allSatisfy { entry in
                (keys?.accepts(entry.key) ?? true) && (values?.accepts(entry.value) ?? true)
            }
        }
    }

    /// - Throws: ``PersistenceError/typeMismatch(path:expected:found:)`` if the type does not have the value.
    func require(_ value: MigrationTree) throws(PersistenceError) {
        guard !accepts(value) else { return }
        let found = if case .string(let text) = value { "\"\(text)\"" } else { "another value" }
        throw .typeMismatch(path: "", expected: name, found: found)
    }

    /// Checks the elements of a collection.
    var elements: ValueCheck {
        ValueCheck(name: name) { value in
            guard case .array(let values) = value else { return true }
            return values.allSatisfy(accepts)
        }
    }

    /// Checks the value of an optional.
    var optional: ValueCheck {
        ValueCheck(name: name) { value in
            switch value {
            case .null: true
            case .wrapped(let value): accepts(value)
            default: accepts(value)
            }
        }
    }
}

extension PersistentValue {
    public var _persistentDynamicType: any PersistentValue.Type { Self.self }

    /// The name of the type as it stands in schemas, for example `[String: Place?]`.
    ///
    /// Generic types use it in their ``PersistentRecord/persistentName``, for example
    /// `"Box<\(Value.persistentTypeName)>"`.
    public static var persistentTypeName: String {
        var schema = _SchemaBuilder()
        return _persistentType(in: &schema).type.description
    }
}

/// A struct, an enum, or by ``PersistentObject`` a class, with named properties and a version.
///
/// `@Persistable` generates the conformance. The same by hand:
///
/// ```swift
/// struct Place: PersistentRecord {
///     var name: String
///     var latitude = 0.0
///
///     static let persistentName = "Place"
///     static func describe(in record: inout RecordBuilder) {
///         record.header(version: "1.0")
///         record.property("name", String.self)
///         record.property("latitude", default: 0.0)
///     }
///     func persistProperties(to writer: inout BinaryWriter) {
///         writer.write(name)
///         writer.write(latitude)
///     }
///     init(restoring reader: inout BinaryReader) throws(PersistenceError) {
///         name = try reader.read()
///         latitude = try reader.read()
///     }
/// }
/// ```
///
/// The three functions list the properties in the same order. An enum writes the number of its case by
/// ``BinaryWriter/write(case:)`` and then the payload of the case. A struct without properties writes case 0.
public protocol PersistentRecord: PersistentValue {
    /// The name under which the type is stored. Keep it when you rename the type. Generic types name their arguments.
    static var persistentName: String { get }
    /// Describes the version, the properties or cases, and the migration steps.
    static func describe(in record: inout RecordBuilder)
    /// Writes the properties in the described order.
    func persistProperties(to writer: inout BinaryWriter)
    /// Reads the properties in the described order.
    init(restoring reader: inout BinaryReader) throws(PersistenceError)
}

extension PersistentRecord {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType {
        schema.add(Self.self)
        return _StoredType(.record(persistentName))
    }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) {
        guard writer.enter() else { return }
        persistProperties(to: &writer)
        writer.leave()
    }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        try reader.enter()
        let value = try Self(restoring: &reader)
        reader.leave()
        return value
    }
}
