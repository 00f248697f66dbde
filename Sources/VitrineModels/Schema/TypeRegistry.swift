package import Logging
internal import VitrineCore

/// The types of the program with their names and schemas, and the schemas of earlier versions.
///
/// Encoding or decoding a value registers its type and all types that it mentions. Register other types before you read
/// data with them: subclasses that no property names, and types that a migration step changes data to.
public final class TypeRegistry: Sendable {
    /// The default registry.
    public static let shared = TypeRegistry()

    /// Unchecked: metatypes have no state.
    private struct Known: @unchecked Sendable {
        let type: any PersistentValue.Type
        let schema: Schema
    }

    /// Unchecked: metatypes have no state.
    private struct Class: @unchecked Sendable {
        let type: any PersistentObject.Type
    }

    private struct State: Sendable {
        var known: [ObjectIdentifier: Known] = [:]
        var classes: [UInt64: Class] = [:]
        /// The present types, by the names of their records.
        var current: [String: Known] = [:]
        var aliases: [String: String] = [:]
        /// A present schema with the record of a type, by the present and earlier names of the type.
        var holders: [String: Schema] = [:]
        var catalog: [UInt64: Schema] = [:]
        var plans: [PlanKey: BytePlan?] = [:]
        /// Changes of schema that were checked and are valid.
        var good: Set<Change> = []
        /// Names of stored properties that the type does not have, by type.
        var dropped: [String: Set<String>] = [:]
    }

    private struct PlanKey: Hashable {
        let old: UInt64
        let new: UInt64
    }

    /// The change of a type from one schema to another.
    struct Change: Hashable {
        let type: String
        let old: UInt64
        let new: UInt64
        let refusesNewer: Bool
    }

    private let state = Locked(State())
    private let log: Logger

    /// Creates an empty registry. Tests use separate registries for two versions of a program.
    public convenience init() { self.init(log: Log.logger("models")) }

    /// Creates an empty registry that logs elsewhere.
    package init(log: Logger) { self.log = log }

    /// Registers types.
    ///
    /// - Throws: ``PersistenceError/duplicateName(_:)``.
    public func register(_ types: any PersistentRecord.Type...) throws(PersistenceError) {
        for type in types { _ = try schema(of: type) }
    }

    /// Returns the present schema of a type.
    ///
    /// - Throws: ``PersistenceError/duplicateName(_:)``.
    public func schema<Value: PersistentValue>(of type: Value.Type) throws(PersistenceError) -> Schema {
        let identifier = ObjectIdentifier(type)
        if let known = state.withLock({ $0.known[identifier]?.schema }) { return known }
        var builder = _SchemaBuilder()
        var root = Value._persistentType(in: &builder).type
        if let object = type as? any PersistentObject.Type {
            builder.add(object)
            root = .object(object.persistentName)
        }
        if let failure = builder.failure { throw failure }
        let schema = Schema(root: root, records: builder.records, registry: self)
        try remember(type, schema)
        for type in builder.mentioned { _ = try self.schema(of: type) }
        return schema
    }

    private func remember<Value: PersistentValue>(_ type: Value.Type, _ schema: Schema) throws(PersistenceError) {
        let known = Known(type: type, schema: schema)
        let object = (type as? any PersistentObject.Type).map { Class(type: $0) }
        let record = type is any PersistentRecord.Type ? schema.rootRecord : nil
        let isUnique = state.withLock { state in
            if let record {
                if let other = state.current[record.name], other.type != known.type { return false }
                state.current[record.name] = known
                for alias in record.aliases { state.aliases[alias] = record.name }
            }
            state.known[ObjectIdentifier(known.type)] = known
            state.catalog[schema.fingerprint] = schema
            for record in schema.records.values {
                for name in [record.name] + record.aliases { state.holders[name] = schema }
            }
            if let object { state.classes[schema.fingerprint] = object }
            return true
        }
        guard isUnique else { throw .duplicateName(schema.name) }
    }

    // MARK: Schemas and types

    /// Returns the schema with a fingerprint: the present schema of a type, or one that was added.
    package func schema(fingerprint: UInt64) -> Schema? {
        state.withLock { $0.catalog[fingerprint] }
    }

    /// Adds the schema of an earlier version. Stores add all schemas that they contain.
    public func add(_ schema: Schema) {
        state.withLock { state in
            if state.catalog[schema.fingerprint] == nil { state.catalog[schema.fingerprint] = schema }
        }
    }

    /// Returns the schema of the type that has or had this name.
    func currentSchema(named name: String) -> Schema? {
        state.withLock { state in
            state.current[name]?.schema ?? state.aliases[name].flatMap { state.current[$0]?.schema }
        }
    }

    /// Returns a present schema that has the record of a type with this name now or earlier.
    func currentSchema(holding name: String) -> Schema? { state.withLock { $0.holders[name] } }

    /// Returns the class whose present schema has this fingerprint.
    func objectType(of fingerprint: UInt64) -> (any PersistentObject.Type)? {
        state.withLock { $0.classes[fingerprint] }?.type
    }

    /// Returns the byte plan from one schema to another; nil if the change needs untyped data.
    package func bytePlan(from old: Schema, to new: Schema) -> BytePlan? {
        let key = PlanKey(old: old.fingerprint, new: new.fingerprint)
        if let plan = state.withLock({ $0.plans[key] }) { return plan }
        let plan = BytePlan(from: old, to: new)
        for (type, names) in plan?.dropped ?? [] { noteDropped(names, of: type) }
        state.withLock { $0.plans[key] = plan }
        return plan
    }

    /// Returns whether a change was checked and is valid.
    func isKnownGood(_ change: Change) -> Bool { state.withLock { $0.good.contains(change) } }

    func noteGood(_ change: Change) { state.withLock { _ = $0.good.insert(change) } }

    // MARK: Dropped properties

    /// Returns the names of stored properties that migration dropped because the type does not have them.
    package func droppedProperties(of type: String) -> Set<String> { state.withLock { $0.dropped[type] ?? [] } }

    /// Logs, once for each type and name, that stored properties are dropped.
    func noteDropped(_ names: [String], of type: String) {
        let new = state.withLock { state in names.filter { state.dropped[type, default: []].insert($0).inserted } }
        guard !new.isEmpty else { return }
        // Usually a migration step has used their values.
        log.debug(
            "Stored properties that the type does not have are dropped",
            metadata: ["type": "\(type)", "names": "\(new.joined(separator: ", "))"])
    }
}
