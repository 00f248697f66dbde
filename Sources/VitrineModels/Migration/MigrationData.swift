/// The stored properties of one struct, enum or object, as an older version wrote them. The type may no longer exist.
///
/// Migration steps read and change properties by name. The present version then reads the result. Properties that it
/// does not declare are dropped.
///
/// ```swift
/// @Migration(to: "1.1.0") static func first(_ old: MigrationData) throws {
///     old.rename("title", to: "string")
///     try old.convert("date") { (seconds: Double) in Date(timeIntervalSince1970: seconds) }
///     guard let bar = try old.value("bar", as: MigrationData.self) else { return }
///     old.set("number", to: try bar.value("count", as: Int.self))
/// }
/// ```
///
/// A step finds a property with earlier names (`renamedFrom`) by all of them, so that steps of all versions work. Where
/// another property has one of these names now, or a step renames the property again, write the renaming as a step of
/// its own version instead.
///
/// An object that several others refer to is one instance of this class. Properties of extensions are named
/// `(Category)name`, or `name` if they have no category.
///
/// Use the data only while the step runs: it is empty after the migration.
///
/// ## Topics
/// ### Reading
/// - ``typeName``
/// - ``version``
/// - ``names``
/// - ``subscript(_:)``
/// - ``value(_:as:)``
/// ### Changing
/// - ``set(_:to:)``
/// - ``remove(_:)``
/// - ``rename(_:to:)``
/// - ``convert(_:to:_:)``
public final class MigrationData {
    /// The stored name of the type. Set it to change the type of the data to another type of the program.
    public var typeName: String
    /// The version of the type when the data was stored.
    public let version: SchemaVersion
    /// The name of the case of an enum; nil for other types.
    public var caseName: String?

    private(set) var values: [MigrationTree] = []
    private var keys: [String] = []
    /// The schema of the data; nil for data that a step created.
    let schema: Schema?
    let isObject: Bool
    /// The schemas of values that extensions declared.
    var extensionSchemas: [String: Schema] = [:]
    /// The properties that the type has now, if some of them were renamed. They give steps the names of their version.
    var present: [RecordSchema.Property] = []

    init(_ record: RecordSchema, _ schema: Schema) {
        typeName = record.name
        version = record.version
        self.schema = schema
        isObject = record.kind == .object
    }

    /// Creates empty data of the present version of a type, to set as a value of other data. No step runs on it.
    ///
    /// - Parameters:
    ///   - typeName: The persistent name of the type.
    ///   - caseName: The name of the case of an enum; nil for other types.
    public init(typeName: String, caseName: String? = nil) {
        self.typeName = typeName
        self.caseName = caseName
        version = "0"
        schema = nil
        isObject = false
    }

    // MARK: Reading

    /// The names of the properties, in the order of storage.
    public var names: [String] { keys }

    /// The value of a property; nil if there is no such property. Setting nil removes the property.
    public subscript(name: String) -> MigrationValue? {
        get { index(name).map { MigrationValue(values[$0]) } }
        set {
            switch (index(name), newValue) {
            case (let index?, let value?): values[index] = value.tree
            case (let index?, nil):
                keys.remove(at: index)
                values.remove(at: index)
            case (nil, let value?): append(name, value.tree)
            case (nil, nil): break
            }
        }
    }

    /// Returns the value of a property as a type; nil if there is no such property or its value is nil.
    ///
    /// Numbers convert if no precision is lost. A nested struct or object is read as ``MigrationData``, and an array or
    /// set of them as `[MigrationData]`.
    ///
    /// - Throws: ``PersistenceError/typeMismatch(path:expected:found:)``.
    public func value<Value: MigrationConvertible>(
        _ name: String, as type: Value.Type = Value.self
    ) throws(PersistenceError) -> Value? {
        guard let value = self[name], value.tree != .null else { return nil }
        guard let result = Value._converted(from: value) else {
            throw .typeMismatch(path: "\(typeName).\(name)", expected: "\(Value.self)", found: value.tree.kind)
        }
        return result
    }

    // MARK: Changing

    /// Sets a property, and adds it if there is no such property. A nil value is stored as nil.
    public func set<Value: MigrationConvertible>(_ name: String, to value: Value?) {
        self[name] = value?._migrationValue ?? MigrationValue(.null)
    }

    /// Removes a property.
    ///
    /// - Returns: The value of the property; nil if there was no such property.
    @discardableResult
    public func remove(_ name: String) -> MigrationValue? {
        defer { self[name] = nil }
        return self[name]
    }

    /// Renames a property. A property that has the new name is replaced. A missing property is ignored.
    public func rename(_ name: String, to newName: String) {
        guard name != newName, let found = index(name) else { return }
        let name = keys[found]
        if name != newName, let replaced = storedIndex(newName) {
            keys.remove(at: replaced)
            values.remove(at: replaced)
        }
        if let index = storedIndex(name) { keys[index] = newName }
        extensionSchemas[newName] = extensionSchemas.removeValue(forKey: name)
    }

    /// Converts the value of a property, and optionally renames the property. A missing or nil value is not converted.
    ///
    /// - Parameters:
    ///   - name: The property.
    ///   - newName: The new name of the property. Default: the same name.
    ///   - transform: Returns the new value for an old one.
    public func convert<Old: MigrationConvertible, New: MigrationConvertible>(
        _ name: String, to newName: String? = nil, _ transform: (Old) throws -> New
    ) throws {
        let old = try value(name, as: Old.self)
        if let newName { rename(name, to: newName) }
        if let old { set(newName ?? name, to: try transform(old)) }
    }

    // MARK: Parts

    func append(_ name: String, _ value: MigrationTree) {
        keys.append(name)
        values.append(value)
    }

    func reserve(_ count: Int) {
        keys.reserveCapacity(count)
        values.reserveCapacity(count)
    }

    /// Removes all values.
    func removeAll() {
        keys = []
        values = []
        extensionSchemas = [:]
    }

    /// The values of the properties that the type itself declares.
    var valuesWithoutExtensions: [MigrationTree] {
        guard !extensionSchemas.isEmpty else { return values }
        return keys.indices.filter { extensionSchemas[keys[$0]] == nil }.map { values[$0] }
    }

    /// The value of a property as untyped data; nil if there is no such property.
    package func tree(_ name: String) -> MigrationTree? { storedIndex(name).map { values[$0] } }

    /// Returns the index of the property that is stored under a name in ``values``; nil if there is none.
    func storedIndex(_ name: String) -> Int? { keys.firstIndex(of: name) }

    /// Returns the index of a property in ``values``, also by an earlier or later name; nil if there is none.
    ///
    /// Earlier names have no versions, so which of a property's names a step knows is unknown. It finds the property by
    /// all of them. A name in the data comes first.
    private func index(_ name: String) -> Int? {
        if let index = storedIndex(name) { return index }
        let property = present.first { $0.name == name } ?? present.first { $0.aliases.contains(name) }
        guard let property else { return nil }
        return present.renamed(in: keys)[property.name] ?? storedIndex(property.name)
    }

    /// Returns the version of a class when the data was stored. Superclasses have versions of their own.
    func storedVersion(of record: RecordSchema) -> SchemaVersion {
        guard let schema else { return version }
        if let stored = schema.records[record.name] { return stored.version }
        for alias in record.aliases { if let stored = schema.records[alias] { return stored.version } }
        return version
    }
}

extension MigrationData: Equatable {
    /// Returns whether both are the same instance.
    public static func == (first: MigrationData, second: MigrationData) -> Bool { first === second }
}
