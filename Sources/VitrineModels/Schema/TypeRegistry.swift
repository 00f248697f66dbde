internal import VitrineCore

/// Which types the program has, under which names and schemas, and which schemas there were before.
///
/// Types become known by being encoded or decoded, with everything they mention. What nothing mentions is a subclass,
/// or a type that older data became by migration: those are registered, before data with them is read.
public final class TypeRegistry: Sendable {
    /// The one that is used where no other is named.
    public static let shared = TypeRegistry()

    /// Unchecked: types have no state of their own.
    private struct Known: @unchecked Sendable {
        let type: any PersistentValue.Type
        let schema: Schema
    }

    /// Unchecked: classes have no state of their own here.
    private struct Class: @unchecked Sendable {
        let type: any PersistentObject.Type
    }

    private struct State: Sendable {
        var known: [ObjectIdentifier: Known] = [:]
        var classes: [UInt64: Class] = [:]
        /// By the names of records.
        var current: [String: Known] = [:]
        var aliases: [String: String] = [:]
        var catalog: [UInt64: Schema] = [:]
        var plans: [PlanKey: BytePlan?] = [:]
        /// Changes that need no complaint.
        var good: Set<Change> = []
        /// Names that stored data had and the type has not.
        var dropped: [String: Set<String>] = [:]
    }

    private struct PlanKey: Hashable {
        let old: UInt64
        let new: UInt64
    }

    /// What became of a type from one schema to another.
    struct Change: Hashable {
        let type: String
        let old: UInt64
        let new: UInt64
        let refusesNewer: Bool
    }

    private let state = Locked(State())

    /// A registry that knows nothing yet: for tests that play two builds of one program.
    public init() {}

    /// Makes types known.
    ///
    /// - Throws: ``PersistenceError/duplicateName(_:)``.
    public func register(_ types: any PersistentRecord.Type...) throws(PersistenceError) {
        for type in types { _ = try schema(of: type) }
    }

    /// The schema of a type as it is now.
    ///
    /// - Throws: ``PersistenceError/duplicateName(_:)``.
    public func schema<Value: PersistentValue>(of type: Value.Type) throws(PersistenceError) -> Schema {
        let identifier = ObjectIdentifier(type)
        if let known = state.withLock({ $0.known[identifier]?.schema }) { return known }
        var builder = SchemaBuilder()
        var root = Value.persistentType(in: &builder)
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
            if let object { state.classes[schema.fingerprint] = object }
            return true
        }
        guard isUnique else { throw .duplicateName(schema.name) }
    }

    // MARK: Looking up

    /// A schema by its fingerprint: a current one, or one that was added.
    public func schema(fingerprint: UInt64) -> Schema? {
        state.withLock { $0.catalog[fingerprint] }
    }

    /// Adds a schema that data was written under. Stores do so with the schemas they hold.
    public func add(_ schema: Schema) {
        state.withLock { state in
            if state.catalog[schema.fingerprint] == nil { state.catalog[schema.fingerprint] = schema }
        }
    }

    /// The schema of the type that has this name, or had it before.
    func currentSchema(named name: String) -> Schema? {
        state.withLock { state in
            state.current[name]?.schema ?? state.aliases[name].flatMap { state.current[$0]?.schema }
        }
    }

    /// The class whose current schema has this fingerprint.
    func objectType(of fingerprint: UInt64) -> (any PersistentObject.Type)? {
        state.withLock { $0.classes[fingerprint] }?.type
    }

    /// The short cut from one schema to another; nil if the change needs more.
    package func bytePlan(from old: Schema, to new: Schema) -> BytePlan? {
        let key = PlanKey(old: old.fingerprint, new: new.fingerprint)
        if let plan = state.withLock({ $0.plans[key] }) { return plan }
        let plan = BytePlan(from: old, to: new)
        for (type, names) in plan?.dropped ?? [] { noteDropped(names, of: type) }
        state.withLock { $0.plans[key] = plan }
        return plan
    }

    /// Whether a change was checked before, and was one that may be.
    func isKnownGood(_ change: Change) -> Bool { state.withLock { $0.good.contains(change) } }

    func noteGood(_ change: Change) { state.withLock { _ = $0.good.insert(change) } }

    // MARK: What is not known

    /// Names of stored properties that a type does not have and that were dropped when its data was brought up to date.
    package func droppedProperties(of type: String) -> Set<String> { state.withLock { $0.dropped[type] ?? [] } }

    /// Logs, once for each type and name, that stored properties are dropped (R138).
    func noteDropped(_ names: [String], of type: String) {
        let new = state.withLock { state in names.filter { state.dropped[type, default: []].insert($0).inserted } }
        guard !new.isEmpty else { return }
        // Most often a migration step has used them up.
        Log.logger("models").debug(
            "Stored properties that the type does not have are dropped",
            metadata: ["type": "\(type)", "names": "\(new.joined(separator: ", "))"])
    }
}
