internal import VitrineCore

/// A persistent class that lists its stored properties once, as key paths.
///
/// ```swift
/// class Note: KeyPathObject {
///     var title = ""
///     var place: Place?
///     weak var parent: Note?
///     required init() {}
///
///     class var persistentSchema: ObjectSchema {
///         ObjectSchema(Note.self, version: "1.1", properties: [
///             .property("title", \.title), .property("place", \.place), .property("parent", \.parent),
///         ])
///     }
/// }
/// ```
///
/// The list is enough to store, read, compare, copy and describe an object. It needs no macro and no further function.
///
/// Reading an object calls `init()`, and then sets all properties. They can therefore refer back to the object, and
/// their observers run. A property that older data lacks gets the value that `init()` gives it. A property that is not
/// in the list is not stored and not compared.
///
/// A subclass overrides ``persistentSchema`` with its own properties, and inherits those of its superclass. The
/// superclass is found by reflection, so that a custom mirror must not suppress it. A final class whose properties all
/// have values needs no initializer.
public protocol KeyPathObject: PersistentObject {
    /// Creates an object with the default values of its properties.
    init()

    /// The name, the version, the properties and the migration steps of the class. They are the same at each call.
    static var persistentSchema: ObjectSchema { get }
}

/// The name, the version, the properties and the migration steps of a ``KeyPathObject``.
public struct ObjectSchema: Sendable {
    let name: String
    let version: SchemaVersion
    let aliases: [String]
    let steps: [MigrationStep]
    fileprivate let properties: [PropertyAccess]
    fileprivate let object: ObjectType

    /// Creates the schema of a class.
    ///
    /// - Parameters:
    ///   - type: The class.
    ///   - name: The name under which the class is stored. Keep it when you rename the class. Default: the name of the
    ///     class, with its generic arguments.
    ///   - version: The version of the stored form. Versions are compared number by number. Default "1".
    ///   - aliases: Earlier names of the class.
    ///   - steps: The migration steps for data of older versions.
    ///   - properties: The stored properties that the class itself declares.
    public init<Object: KeyPathObject>(
        _ type: Object.Type, name: String? = nil, version: SchemaVersion = "1", renamedFrom aliases: [String] = [],
        steps: [MigrationStep] = [], properties: [ObjectProperty<Object>]
    ) {
        self.name = name ?? String(describing: type)
        (self.version, self.aliases, self.steps) = (version, aliases, steps)
        // The storage for extensions follows the other properties.
        let accesses = properties.map(\.access)
        self.properties = accesses.filter { $0.describe != nil } + accesses.filter { $0.describe == nil }
        object = ObjectType(Object.self)
    }
}

/// A stored property of a ``KeyPathObject``.
public struct ObjectProperty<Object: KeyPathObject> {
    fileprivate let access: PropertyAccess

    /// Returns a property that is stored.
    ///
    /// - Parameters:
    ///   - name: The name under which the property is stored. Keep it when you rename the property.
    ///   - keyPath: The property. It can be weak or computed.
    ///   - aliases: Earlier names of the property. They need no migration step.
    public static func property<Value: PersistentValue>(
        _ name: String, _ keyPath: ReferenceWritableKeyPath<Object, Value>, renamedFrom aliases: [String] = []
    ) -> Self {
        Self(
            access: PropertyAccess(
                keyPath,
                describe: { record in
                    record.add(name, type: Value.self, late: true, aliases: aliases) { writer in
                        writer.write(Object()[keyPath: keyPath])
                    }
                },
                write: { value, writer in writer.write(value) },
                read: { reader throws(PersistenceError) in try reader.read() }))
    }

    /// Returns the property that stores the properties of extensions; see ``ExtensionKey``. Only for root classes.
    ///
    /// - Parameter keyPath: A property such as `var persistentExtensions = ExtensionStorage()`.
    public static func extensions(_ keyPath: ReferenceWritableKeyPath<Object, ExtensionStorage>) -> Self {
        Self(
            access: PropertyAccess(
                keyPath, describe: nil, write: { value, writer in writer.write(value) },
                read: { reader throws(PersistenceError) in try reader.read() }))
    }
}

extension KeyPathObject {
    public static var persistentName: String { persistentSchema.name }

    public static func describe(in record: inout RecordBuilder) { ObjectLayout.layout(of: self).describe(in: &record) }

    public func persistProperties(to writer: inout BinaryWriter) {
        for property in ObjectLayout.layout(of: type(of: self)).properties { property.write(self, &writer) }
    }

    public init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        self.init()
        reader.register(self)
        for property in ObjectLayout.layout(of: type(of: self)).properties { try property.read(self, &reader) }
    }

    public func persistentEquals(_ other: AnyObject) -> Bool {
        type(of: other) == type(of: self)
            && ObjectLayout.layout(of: type(of: self)).properties.allSatisfy { $0.equals(self, other) }
    }

    public func persistentHash(into hasher: inout Hasher) {
        for property in ObjectLayout.layout(of: type(of: self)).properties { property.hash(self, &hasher) }
    }
}

/// Describes, writes, reads and compares one property of objects whose class only the closures know.
///
/// Unchecked: the closures capture key paths and metatypes, which have no state. Those of a class on an actor are not
/// `Sendable`. The closures run only where the conformance of the class is used, and so in its isolation.
private struct PropertyAccess: @unchecked Sendable {
    /// nil for the storage of extensions, which is not a property of the record.
    let describe: ((inout RecordBuilder) -> Void)?
    let write: (AnyObject, inout BinaryWriter) -> Void
    let read: (AnyObject, inout BinaryReader) throws(PersistenceError) -> Void
    let equals: (AnyObject, AnyObject) -> Bool
    let hash: (AnyObject, inout Hasher) -> Void

    /// An ``ObjectLayout`` has only properties of its class and of superclasses, so that the casts are safe.
    init<Object: KeyPathObject, Value: Hashable>(
        _ keyPath: ReferenceWritableKeyPath<Object, Value>, describe: ((inout RecordBuilder) -> Void)?,
        write: @escaping (Value, inout BinaryWriter) -> Void,
        read: @escaping (inout BinaryReader) throws(PersistenceError) -> Value
    ) {
        func cast(_ object: AnyObject) -> Object { unsafeDowncast(object, to: Object.self) }
        self.describe = describe
        self.write = { write(cast($0)[keyPath: keyPath], &$1) }
        self.read = { object, reader throws(PersistenceError) in
            cast(object)[keyPath: keyPath] = try read(&reader)
        }
        equals = { cast($0)[keyPath: keyPath] == cast($1)[keyPath: keyPath] }
        hash = { $1.combine(cast($0)[keyPath: keyPath]) }
    }
}

/// A class, and the one that it inherits from.
///
/// Unchecked: metatypes have no state.
private struct ObjectType: @unchecked Sendable {
    let type: any KeyPathObject.Type
    private let makeMirror: () -> Mirror

    init<Object: KeyPathObject>(_ type: Object.Type) {
        self.type = type
        makeMirror = { Mirror(reflecting: Object()) }
    }

    /// The superclass, if it is a ``KeyPathObject`` too.
    var superclass: (any KeyPathObject.Type)? {
        guard let parent = makeMirror().superclassMirror?.subjectType as? any KeyPathObject.Type else { return nil }
        return inherits(from: parent) ? parent : nil
    }

    /// A class can have a mirror of its own, which can name any type.
    private func inherits<Parent: KeyPathObject>(from parent: Parent.Type) -> Bool { type is Parent.Type }
}

/// The properties of a class and its superclasses.
private final class ObjectLayout: Sendable {
    /// Stored by class, because users compute schemas.
    private static let known = Locked<[ObjectIdentifier: ObjectLayout]>([:])

    private let schema: ObjectSchema
    private let superclass: ObjectLayout?
    /// All properties in the order of their bytes: first those of the root class. Empty if the schema has a defect.
    let properties: [PropertyAccess]
    /// Why the schema cannot be used; nil if it can.
    private let defect: PersistenceError?

    static func layout<Object: KeyPathObject>(of type: Object.Type) -> ObjectLayout {
        let identifier = ObjectIdentifier(type)
        if let layout = known.withLock({ $0[identifier] }) { return layout }
        let layout = ObjectLayout(type)
        known.withLock { $0[identifier] = layout }
        return layout
    }

    private init<Object: KeyPathObject>(_ type: Object.Type) {
        schema = type.persistentSchema
        superclass = schema.object.superclass.map { Self.layout(of: $0) }
        let storages = schema.properties.count { $0.describe == nil }
        let reason: String? =
            if schema.object.type != type {
                "it is the schema of \(schema.object.type)"
            } else if superclass != nil, schema.isExtensible {
                "only a root class can store the properties of extensions"
            } else if storages > 1 {
                "the properties of extensions are stored twice"
            } else {
                nil
            }
        properties = reason == nil ? (superclass?.properties ?? []) + schema.properties : []
        defect = reason.map { .invalidSchema(type: "\(type)", reason: $0) }
    }

    func describe(in record: inout RecordBuilder) {
        record.header(
            version: schema.version, superclass: superclass?.schema.object.type, isExtensible: schema.isExtensible,
            steps: schema.steps, renamedFrom: schema.aliases)
        for property in schema.properties { property.describe?(&record) }
        if let defect { record.fail(defect) }
    }
}

extension ObjectSchema {
    fileprivate var isExtensible: Bool { properties.contains { $0.describe == nil } }
}
