/// Collects the records of one schema.
public struct _SchemaBuilder {
    private(set) var records: [String: RecordSchema] = [:]
    private var owners: [String: ObjectIdentifier] = [:]
    /// The classes that the value can refer to. They have schemas of their own.
    private(set) var mentioned: [any PersistentObject.Type] = []
    private(set) var failure: PersistenceError?

    init() {}

    /// Adds the record of a type and of all types inside it, once.
    mutating func add<Record: PersistentRecord>(_ type: Record.Type) {
        let name = Record.persistentName
        if let owner = owners[name] {
            if owner != ObjectIdentifier(type) { failure = .duplicateName(name) }
            return
        }
        owners[name] = ObjectIdentifier(type)
        var builder = RecordBuilder(name: name, schema: self)
        Record.describe(in: &builder)
        self = builder.schema
        if type is any PersistentObject.Type {
            builder.record.kind = .object
        } else if !builder.record.cases.isEmpty {
            builder.record.kind = .enumeration
        }
        records[name] = builder.record
        if let reason = builder.record.ambiguity { failure = .ambiguousNames(type: name, reason: reason) }
        if let name = builder.record.repeatedName {
            failure = .invalidSchema(type: "\(type)", reason: "two properties are stored as \(name)")
        }
    }

    fileprivate mutating func fail(_ error: PersistenceError) { failure = error }

    /// Adds a class that values can refer to. The registry registers it as well.
    mutating func mention<Object: PersistentObject>(_ type: Object.Type) {
        mentioned.append(type)
    }
}

/// Collects the description of a type, for ``PersistentRecord/describe(in:)``.
public struct RecordBuilder {
    fileprivate var record: RecordSchema
    fileprivate var schema: _SchemaBuilder

    fileprivate init(name: String, schema: _SchemaBuilder) {
        record = RecordSchema(name: name)
        self.schema = schema
    }

    /// Describes the type itself. Call it first.
    ///
    /// - Parameters:
    ///   - version: The version of the stored form.
    ///   - superclass: The superclass, if that is persistent.
    ///   - isExtensible: Whether properties that extensions declare are stored. Default false.
    ///   - steps: The migration steps for data of older versions.
    ///   - aliases: Earlier names of the type.
    public mutating func header(
        version: SchemaVersion, superclass: (any PersistentObject.Type)? = nil, isExtensible: Bool = false,
        steps: [MigrationStep] = [], renamedFrom aliases: [String] = []
    ) {
        record.version = version
        record.isExtensible = isExtensible
        record.steps = steps
        record.aliases = aliases
        if let superclass {
            record.superclass = superclass.persistentName
            add(superclass)
        }
    }

    /// Makes the schema unusable.
    mutating func fail(_ error: PersistenceError) { schema.fail(error) }

    private mutating func add<Object: PersistentObject>(_ superclass: Object.Type) {
        schema.add(superclass)
        schema.mention(superclass)
    }

    /// Describes a stored property without a default value.
    ///
    /// - Parameters:
    ///   - name: The name under which the property is stored.
    ///   - type: The type of the property, usually inferred.
    ///   - late: Whether the property is read after the object exists. For classes only. Default false.
    ///   - aliases: Earlier names of the property. A property that now has one of them is another property.
    public mutating func property<Value: PersistentValue>(
        _ name: String, _ type: Value.Type = Value.self, late: Bool = false, renamedFrom aliases: [String] = []
    ) {
        add(name, type: type, late: late, aliases: aliases, writeDefault: nil)
    }

    /// Describes a stored property with a default value, which is used for older data without the property.
    ///
    /// - Parameters:
    ///   - name: The name under which the property is stored.
    ///   - type: The type of the property, usually inferred.
    ///   - late: Whether the property is read after the object exists. For classes only. Default false.
    ///   - aliases: Earlier names of the property. A property that now has one of them is another property.
    ///   - value: The default value. It is evaluated for each value that lacks the property, on any thread.
    public mutating func property<Value: PersistentValue>(
        _ name: String, _ type: Value.Type = Value.self, late: Bool = false, renamedFrom aliases: [String] = [],
        default value: @escaping @Sendable @autoclosure () -> Value
    ) {
        add(name, type: type, late: late, aliases: aliases) { $0.write(value()) }
    }

    /// Describes a property whose default value is the initial value in its declaration. For generated code only.
    ///
    /// The expression can be isolated to the actor of the type, so the closure is not `@Sendable`. It must not capture
    /// variables.
    public mutating func _property<Value: PersistentValue>(
        _ name: String, _ type: Value.Type = Value.self, late: Bool = false, renamedFrom aliases: [String] = [],
        default value: @escaping @autoclosure () -> Value
    ) {
        add(name, type: type, late: late, aliases: aliases) { $0.write(value()) }
    }

    mutating func add<Value: PersistentValue>(
        _ name: String, type: Value.Type, late: Bool, aliases: [String],
        writeDefault: ((inout BinaryWriter) -> Void)?
    ) {
        let stored = Value._persistentType(in: &schema)
        let property = RecordSchema.Property(
            name, stored.type, aliases: aliases, writeDefault: writeDefault, check: stored.check)
        if late { record.late.append(property) } else { record.early.append(property) }
    }

    /// Describes a case of an enum. Call it for all cases, in the order of the numbers that are written for them.
    ///
    /// - Parameters:
    ///   - name: The name of the case.
    ///   - payload: Labels and types of the associated values; `_0`, `_1`, … for values without a label.
    public mutating func `case`(_ name: String, _ payload: [(String, any PersistentValue.Type)] = []) {
        var values: [RecordSchema.Case.Payload] = []
        for (label, type) in payload {
            let stored = type._persistentType(in: &schema)
            values.append(RecordSchema.Case.Payload(name: label, type: stored.type, check: stored.check))
        }
        record.cases.append(RecordSchema.Case(name: name, payload: values))
    }
}
