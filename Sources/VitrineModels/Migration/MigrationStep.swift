/// A function that migrates stored data of a type to a version.
///
/// Steps run on any thread, several at a time. In a `@MainActor` type, declare the function `nonisolated`.
public struct MigrationStep: Sendable {
    /// The version of the data after the step.
    let version: SchemaVersion
    let apply: @Sendable (MigrationData) throws -> Void

    /// Creates a step.
    ///
    /// - Parameters:
    ///   - version: The version of the data after the step. The step skips data of this version and later ones.
    ///   - apply: Changes the data. An error that it throws is reported as
    ///     ``PersistenceError/migrationFailed(type:from:to:reason:)``. The stored bytes stay unchanged then.
    public init(to version: SchemaVersion, _ apply: @escaping @Sendable (MigrationData) throws -> Void) {
        self.version = version
        self.apply = apply
    }

    /// Creates a step that migrates data of all older versions.
    ///
    /// ```swift
    /// @Migration(to: "2.0") static func migrate(_ old: MigrationData, from version: SchemaVersion) -> Bool {
    ///     if version < "1.1" { old.rename("title", to: "string") }
    ///     return true
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - version: The present version of the type.
    ///   - hook: Changes the data, which is of the version in its second parameter. If it returns false, the data is
    ///     abandoned: reading reports ``PersistenceError/migrationAbandoned(type:from:)``, and the data is kept until
    ///     ``ObjectStore/forget(_:version:)``.
    public init(
        to version: SchemaVersion, _ hook: @escaping @Sendable (MigrationData, SchemaVersion) throws -> Bool
    ) {
        self.init(to: version) { (data: MigrationData) in
            guard try hook(data, data.version) else { throw MigrationAbandoned() }
        }
    }
}

/// The error of a hook that abandons data of an older version.
///
/// Reading the data reports ``PersistenceError/migrationAbandoned(type:from:)``. The stored bytes stay unchanged.
struct MigrationAbandoned: Error {}

/// Migrates a tree of untyped data to the present versions of its types.
///
/// The steps of all types run in the order of their versions: first all steps to 1.1, superclasses before subclasses
/// and parents before children, then all steps to 1.2. A step therefore sees the whole graph in the form of one
/// version.
struct MigrationRun {
    private let registry: TypeRegistry
    private let readsNewerData: Bool
    private let inline: Schema
    private var chains: [String: Chain] = [:]
    /// The data in the tree before the first step and after the last one.
    private var before: [MigrationData] = [], after: [MigrationData] = []
    /// Whether a later version of the program wrote some of the data. Only if such data is read at all.
    private(set) var hasNewerData = false

    /// The present records of a type and its superclasses, root class first.
    private struct Chain {
        let records: [RecordSchema]
        let hasSteps: Bool
        /// The present properties, if some were renamed.
        let properties: [RecordSchema.Property]

        init(_ records: [RecordSchema]) {
            self.records = records
            hasSteps = records.contains { !$0.steps.isEmpty }
            properties = hasSteps && records.contains(where: \.hasAliases) ? records.flatMap(\.properties) : []
        }
    }

    /// - Parameter inline: Has the present records of structs and enums that have no schemas of their own.
    init(registry: TypeRegistry, readsNewerData: Bool, inline: Schema) {
        self.registry = registry
        self.readsNewerData = readsNewerData
        self.inline = inline
    }

    mutating func run(_ root: MigrationTree) throws(PersistenceError) {
        var nodes = root.records()
        before = root.allRecords(nodes)
        after = before
        try checkVersions(nodes)
        var done: SchemaVersion?
        while true {
            guard let next = nextVersion(nodes, after: done) else { return }
            for node in nodes { try apply(next, to: node) }
            done = next
            // A step can add data and change types.
            nodes = root.records()
            after = root.allRecords(nodes)
        }
    }

    /// Removes all values from the data, which may be cyclic, so that it can be deallocated.
    ///
    /// A step can take data out of the tree, so the data of the original tree is included.
    func breakCycles() { for data in before + after { data.removeAll() } }

    private mutating func nextVersion(_ nodes: [MigrationData], after done: SchemaVersion?) -> SchemaVersion? {
        var next: SchemaVersion?
        for node in nodes where node.schema != nil {
            let chain = chain(node.typeName)
            guard chain.hasSteps else { continue }
            for record in chain.records {
                let stored = node.storedVersion(of: record)
                for step in record.steps where step.version > stored {
                    if let done, step.version <= done { continue }
                    if next.map({ step.version < $0 }) ?? true { next = step.version }
                }
            }
        }
        return next
    }

    private mutating func apply(_ version: SchemaVersion, to node: MigrationData) throws(PersistenceError) {
        guard node.schema != nil else { return }
        let chain = chain(node.typeName)
        guard chain.hasSteps else { return }
        node.present = chain.properties
        for record in chain.records {
            let stored = node.storedVersion(of: record)
            for step in record.steps where step.version == version && version > stored {
                do {
                    try step.apply(node)
                } catch is MigrationAbandoned {
                    throw .migrationAbandoned(type: node.typeName, from: stored)
                } catch {
                    throw .migrationFailed(type: node.typeName, from: stored, to: version, reason: "\(error)")
                }
            }
        }
    }

    /// Refuses data of later versions, and data whose type was changed without a new version.
    private mutating func checkVersions(_ nodes: [MigrationData]) throws(PersistenceError) {
        // For a few elements a linear search is faster than hashing.
        var checked: [(schema: Schema, name: String)] = []
        for node in nodes {
            guard let schema = node.schema,
                !checked.contains(where: { $0.schema === schema && $0.name == node.typeName })
            else { continue }
            checked.append((schema, node.typeName))
            let current = registry.currentSchema(named: node.typeName) ?? inline
            let change = TypeRegistry.Change(
                type: node.typeName, old: schema.fingerprint, new: current.fingerprint,
                refusesNewer: !readsNewerData)
            if readsNewerData, !hasNewerData {
                hasNewerData = chain(node.typeName).records.contains { record in
                    schema.records[record.name].map { $0.version > record.version } ?? false
                }
            }
            // The result is the same for all objects with these schemas.
            guard !registry.isKnownGood(change) else { continue }
            for record in chain(node.typeName).records { try check(schema, record) }
            registry.noteGood(change)
        }
    }

    private func check(_ schema: Schema, _ record: RecordSchema) throws(PersistenceError) {
        guard let stored = schema.records[record.name] else { return }
        if !readsNewerData, stored.version > record.version {
            throw .newerThanCode(type: record.name, stored: stored.version, code: record.version)
        }
        guard stored.version == record.version else { return }
        let differences = stored.differences(from: record)
        if !differences.isEmpty {
            throw .changedWithoutVersion(type: record.name, version: record.version, differences: differences)
        }
    }

    private mutating func chain(_ name: String) -> Chain {
        if let known = chains[name] { return known }
        // A struct or enum stands in the schema of the value, or in that of a class which the value leads to.
        let schema = registry.currentSchema(named: name) ?? inline
        var records = schema.chain(schema.currentName(of: name))
        if records.isEmpty, let holder = registry.currentSchema(holding: name) {
            records = holder.chain(holder.currentName(of: name))
        }
        let chain = Chain(records.reversed())
        chains[name] = chain
        return chain
    }
}

extension MigrationTree {
    /// Removes all values from the records in a tree. Objects that form a cycle are deallocated only after this call.
    ///
    /// A tree that ``ObjectStore/tree(for:in:)`` or ``PersistentCoder/tree(of:)`` returned can be cyclic. Call this
    /// method when you no longer need such a tree.
    package func breakCycles() { for data in records(withExtensions: true) { data.removeAll() } }

    /// All records in a tree, including those in the values of extensions.
    ///
    /// - Parameter nodes: The other records.
    fileprivate func allRecords(_ nodes: [MigrationData]) -> [MigrationData] {
        nodes.allSatisfy(\.extensionSchemas.isEmpty) ? nodes : records(withExtensions: true)
    }

    /// All records in a tree, parents before children, each once.
    ///
    /// - Parameter withExtensions: Whether to include those in values of extensions. These values keep their schemas,
    ///   and are migrated when they are read. Default false.
    fileprivate func records(withExtensions: Bool = false) -> [MigrationData] {
        var nodes: [MigrationData] = []
        var seen: Set<ObjectIdentifier> = []
        var pending = [self]
        while let value = pending.popLast() {
            switch value {
            case .record(let data):
                guard seen.insert(ObjectIdentifier(data)).inserted else { continue }
                nodes.append(data)
                let values = withExtensions ? data.values : data.valuesWithoutExtensions
                for value in values.reversed() where value.hasParts { pending.append(value) }
            case .array(let values): for value in values.reversed() where value.hasParts { pending.append(value) }
            case .dictionary(let entries):
                for entry in entries.reversed() {
                    if entry.value.hasParts { pending.append(entry.value) }
                    if entry.key.hasParts { pending.append(entry.key) }
                }
            default: break
            }
        }
        return nodes
    }

    /// Whether the value can contain records.
    private var hasParts: Bool {
        switch self {
        case .record, .array, .dictionary: true
        default: false
        }
    }
}

extension Schema {
    /// Returns the present name of a record that has or had this name.
    func currentName(of name: String) -> String {
        if records[name] != nil { return name }
        return records.values.first { $0.aliases.contains(name) }?.name ?? name
    }
}
