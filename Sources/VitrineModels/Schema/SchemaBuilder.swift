/// Collects the records that one schema needs.
public struct SchemaBuilder {
    private(set) var records: [String: RecordSchema] = [:]
    private(set) var owners: [String: ObjectIdentifier] = [:]
    /// Classes that the value can lead to, which have schemas of their own.
    private(set) var mentioned: [any PersistentObject.Type] = []
    private(set) var failure: PersistenceError?

    init() {}

    /// Adds the record of a type and of all it holds inline, once.
    public mutating func add<Record: PersistentRecord>(_ type: Record.Type) {
        let name = Record.persistentName
        if let owner = owners[name] {
            if owner != ObjectIdentifier(type) { failure = .duplicateName(name) }
            return
        }
        owners[name] = ObjectIdentifier(type)
        var builder = RecordBuilder(name: name, schema: self)
        Record.describe(in: &builder)
        self = builder.schema
        records[name] = builder.record
    }

    /// Tells of a class that values can lead to. It becomes known to the registry as well.
    public mutating func mention<Object: PersistentObject>(_ type: Object.Type) {
        mentioned.append(type)
    }
}

/// Collects what a type tells about itself.
public struct RecordBuilder {
    fileprivate(set) var record: RecordSchema
    fileprivate(set) var schema: SchemaBuilder

    fileprivate init(name: String, schema: SchemaBuilder) {
        record = RecordSchema(name: name)
        self.schema = schema
    }

    /// What is told first.
    ///
    /// - Parameters:
    ///   - version: The version of the stored form.
    ///   - kind: What kind of type it is.
    ///   - superclass: The class it inherits stored properties from, if that is persistent.
    ///   - isExtensible: Whether properties declared in extensions are stored. Default false.
    ///   - steps: How data of older versions is brought up to date.
    ///   - aliases: Names the type was stored under before.
    public mutating func header(
        version: SchemaVersion, kind: RecordSchema.Kind, superclass: (any PersistentObject.Type)? = nil,
        isExtensible: Bool = false, steps: [MigrationStep] = [], renamedFrom aliases: [String] = []
    ) {
        record.version = version
        record.kind = kind
        record.isExtensible = isExtensible
        record.steps = steps
        record.aliases = aliases
        if let superclass {
            record.superclass = superclass.persistentName
            add(superclass)
        }
    }

    private mutating func add<Object: PersistentObject>(_ superclass: Object.Type) {
        schema.add(superclass)
        schema.mention(superclass)
    }

    /// Tells of a stored property without a default.
    ///
    /// - Parameters:
    ///   - name: What it is stored under.
    ///   - type: The property's type, mostly inferred.
    ///   - late: Whether it is read when the object exists already. For classes only.
    ///   - aliases: Names it was stored under before.
    public mutating func property<Value: PersistentValue>(
        _ name: String, _ type: Value.Type = Value.self, late: Bool = false, renamedFrom aliases: [String] = []
    ) {
        add(name, Value.persistentType(in: &schema), late, aliases, nil)
    }

    /// Tells of a stored property with a default, which stands for what older data does not have.
    public mutating func property<Value: PersistentValue>(
        _ name: String, _ type: Value.Type = Value.self, late: Bool = false, renamedFrom aliases: [String] = [],
        default value: @escaping @autoclosure () -> Value
    ) {
        add(name, Value.persistentType(in: &schema), late, aliases) { value().persist(to: &$0) }
    }

    private mutating func add(
        _ name: String, _ type: ValueType, _ late: Bool, _ aliases: [String],
        _ writeDefault: ((inout BinaryWriter) -> Void)?
    ) {
        let property = RecordSchema.Property(name, type, aliases: aliases, writeDefault: writeDefault)
        if late { record.late.append(property) } else { record.early.append(property) }
    }

    /// Tells of an enum's case, in the order of their numbers.
    ///
    /// - Parameters:
    ///   - name: The case's name.
    ///   - payload: Labels and types of its values; `_0`, `_1`, … for those without a label.
    public mutating func `case`(_ name: String, _ payload: [(String, any PersistentValue.Type)] = []) {
        var values: [RecordSchema.Case.Payload] = []
        for (label, type) in payload {
            values.append(RecordSchema.Case.Payload(name: label, type: type.persistentType(in: &schema)))
        }
        record.cases.append(RecordSchema.Case(name: name, payload: values))
    }
}
