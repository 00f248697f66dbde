/// The stored properties of one struct, enum or object as an older version wrote them, also of types that are gone.
///
/// Migration steps change it by names; the result is stored, and read by the present version as if it had written it.
/// What the present version does not know any more is dropped.
///
/// ```swift
/// @Migration(to: "1.1.0") static func first(_ old: MigrationData) throws {
///     old.rename("title", to: "string")
///     try old.convert("date") { (seconds: Double) in Date(timeIntervalSince1970: seconds) }
///     if let bar = old.object("bar") { old.set("number", to: try bar.value("count", as: Int.self)) }
/// }
/// ```
///
/// It is a reference: an object that several others refer to is one piece of data. Properties declared in extensions
/// are named `(Category)name`, or `name` without a category.
///
/// ## Topics
/// ### Looking
/// - ``typeName``
/// - ``version``
/// - ``names``
/// - ``subscript(_:)``
/// - ``value(_:as:)``
/// - ``object(_:)``
/// - ``objects(_:)``
/// ### Changing
/// - ``set(_:to:)``
/// - ``remove(_:)``
/// - ``rename(_:to:)``
/// - ``replace(_:with:value:)``
/// - ``convert(_:to:_:)``
/// - ``become(_:)``
public final class MigrationData {
    /// The name of its type, as stored or as it has become.
    public private(set) var typeName: String
    /// The version of its type when it was stored.
    public let version: SchemaVersion
    /// The name of an enum's case; nil for other types.
    public var caseName: String?

    private(set) var values: [MigrationValue] = []
    private var keys: [String] = []
    /// What it was stored under; nil for data made by a step.
    let schema: Schema?
    let isObject: Bool
    /// The schemas of values that were declared in extensions.
    var extensionSchemas: [String: Schema] = [:]

    init(_ record: RecordSchema, _ schema: Schema) {
        typeName = record.name
        version = record.version
        self.schema = schema
        isObject = record.kind == .object
    }

    /// New data of a type, to be filled and set as a value of other data. It is as the type's present version wants
    /// it: no migration step is run on it.
    ///
    /// - Parameters:
    ///   - typeName: The type's persistent name.
    ///   - caseName: The case of an enum.
    public init(typeName: String, caseName: String? = nil) {
        self.typeName = typeName
        self.caseName = caseName
        version = "0"
        schema = nil
        isObject = false
    }

    // MARK: Looking

    /// The names of the properties, in the order of storage.
    public var names: [String] { keys }

    /// A property's value; nil if there is no such property. Setting nil removes it.
    public subscript(name: String) -> MigrationValue? {
        get { index(name).map { values[$0] } }
        set {
            switch (index(name), newValue) {
            case (let index?, let value?): values[index] = value
            case (let index?, nil):
                keys.remove(at: index)
                values.remove(at: index)
            case (nil, let value?): append(name, value)
            case (nil, nil): break
            }
        }
    }

    /// A property's value as a type; nil if there is none or it is nil.
    ///
    /// - Throws: ``PersistenceError/typeMismatch(path:expected:found:)``.
    public func value<Value: MigrationConvertible>(
        _ name: String, as type: Value.Type = Value.self
    ) throws(PersistenceError) -> Value? {
        guard let value = self[name], value != .null else { return nil }
        guard let result = Value.converted(from: value) else {
            throw .typeMismatch(path: "\(typeName).\(name)", expected: "\(Value.self)", found: value.kind)
        }
        return result
    }

    /// The struct or object that is a property's value; nil if there is none.
    public func object(_ name: String) -> MigrationData? { self[name].flatMap { MigrationData.converted(from: $0) } }

    /// The structs or objects that are a property's elements.
    public func objects(_ name: String) -> [MigrationData] {
        guard case .array(let elements)? = self[name] else { return [] }
        return elements.compactMap { MigrationData.converted(from: $0) }
    }

    // MARK: Changing

    /// Sets a property, which is added if there is none; nil is stored as nil.
    public func set<Value: MigrationConvertible>(_ name: String, to value: Value?) {
        self[name] = value?.migrationValue ?? .null
    }

    /// Removes a property.
    ///
    /// - Returns: Its value; nil if there was none.
    @discardableResult
    public func remove(_ name: String) -> MigrationValue? {
        defer { self[name] = nil }
        return self[name]
    }

    /// Gives a property another name, in place of one that has it. Nothing happens if there is no such property.
    public func rename(_ name: String, to newName: String) {
        guard name != newName, index(name) != nil else { return }
        self[newName] = nil
        if let index = index(name) { keys[index] = newName }
        extensionSchemas[newName] = extensionSchemas.removeValue(forKey: name)
    }

    /// Gives a property another name and value. Nothing happens if there is no such property; for nil it is only
    /// removed.
    public func replace<Value: MigrationConvertible>(_ name: String, with newName: String, value: Value?) {
        guard remove(name) != nil, let value else { return }
        set(newName, to: value)
    }

    /// Makes another value of a property's. Nothing happens if there is none or it is nil, but that it gets its new
    /// name.
    ///
    /// - Parameters:
    ///   - name: The property.
    ///   - newName: Another name for it; nil keeps it.
    ///   - transform: From the old value to the new one.
    public func convert<Old: MigrationConvertible, New: MigrationConvertible>(
        _ name: String, to newName: String? = nil, _ transform: (Old) throws -> New
    ) throws {
        let old = try value(name, as: Old.self)
        if let newName { rename(name, to: newName) }
        if let old { set(newName ?? name, to: try transform(old)) }
    }

    /// Makes it an object of another type that the program has.
    public func become(_ typeName: String) { self.typeName = typeName }

    // MARK: Parts

    func append(_ name: String, _ value: MigrationValue) {
        keys.append(name)
        values.append(value)
    }

    func reserve(_ count: Int) {
        keys.reserveCapacity(count)
        values.reserveCapacity(count)
    }

    /// Where in ``values`` a property is; nil if there is none.
    func index(_ name: String) -> Int? { keys.firstIndex(of: name) }

    /// The version a class was at when the data was stored: its own, as a superclass has versions of its own.
    func storedVersion(of record: RecordSchema) -> SchemaVersion {
        guard let schema else { return version }
        if let stored = schema.records[record.name] { return stored.version }
        for alias in record.aliases { if let stored = schema.records[alias] { return stored.version } }
        return version
    }
}

extension MigrationData: Equatable {
    /// Whether they are the same.
    public static func == (first: MigrationData, second: MigrationData) -> Bool { first === second }
}
