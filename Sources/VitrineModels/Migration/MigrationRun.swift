/// Brings a tree of data to the present versions of its types.
///
/// The steps of all types run along one line of time: all to 1.1, superclasses before subclasses and parents before
/// children, then all to 1.2. So a step sees the whole graph as it was at that moment.
struct MigrationRun {
    private let registry: TypeRegistry
    private let newerData: PersistentCoder.NewerData
    private let inline: Schema
    private var chains: [String: Chain] = [:]

    /// The present records of a type and its superclasses, the root class first.
    private struct Chain {
        let records: [RecordSchema]
        let hasSteps: Bool
    }

    /// - Parameter inline: Where structs and enums have their present records, unless they have schemas of their own.
    init(registry: TypeRegistry, newerData: PersistentCoder.NewerData, inline: Schema) {
        self.registry = registry
        self.newerData = newerData
        self.inline = inline
    }

    mutating func run(_ root: MigrationValue) throws(PersistenceError) {
        var nodes = nodes(root)
        try checkVersions(nodes)
        var done: SchemaVersion?
        while true {
            guard let next = nextVersion(nodes, after: done) else { return }
            for node in nodes { try apply(next, to: node) }
            done = next
            // Looked up anew after every step: it may have added data or changed types.
            nodes = self.nodes(root)
        }
    }

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
        for record in chain.records {
            let stored = node.storedVersion(of: record)
            for step in record.steps where step.version == version && version > stored {
                do {
                    try step.apply(node)
                } catch is MigrationAbandoned {
                    throw .migrationGivenUp(type: node.typeName, from: stored)
                } catch {
                    throw .migrationFailed(type: node.typeName, from: stored, to: version, reason: "\(error)")
                }
            }
        }
    }

    /// Refuses data of later versions, and data whose type was changed behind its version's back.
    private mutating func checkVersions(_ nodes: [MigrationData]) throws(PersistenceError) {
        // A handful: looked through faster than hashed.
        var checked: [(schema: Schema, name: String)] = []
        for node in nodes {
            guard let schema = node.schema,
                !checked.contains(where: { $0.schema === schema && $0.name == node.typeName })
            else { continue }
            checked.append((schema, node.typeName))
            let current = registry.currentSchema(named: node.typeName) ?? inline
            let change = TypeRegistry.Change(
                type: node.typeName, old: schema.fingerprint, new: current.fingerprint,
                refusesNewer: newerData == .refuse)
            // Whatever the object: the next thousand need not be compared again.
            guard !registry.isKnownGood(change) else { continue }
            for record in chain(node.typeName).records { try check(schema, record) }
            registry.noteGood(change)
        }
    }

    private func check(_ schema: Schema, _ record: RecordSchema) throws(PersistenceError) {
        guard let stored = schema.records[record.name] else { return }
        if newerData == .refuse, stored.version > record.version {
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
        let records: [RecordSchema]
        if let schema = registry.currentSchema(named: name) {
            records = schema.chain(schema.name).reversed()
        } else {
            records = inline.chain(inline.currentName(of: name)).reversed()
        }
        let chain = Chain(records: records, hasSteps: records.contains { !$0.steps.isEmpty })
        chains[name] = chain
        return chain
    }

    /// All data in a tree, parents before children, each once.
    private func nodes(_ root: MigrationValue) -> [MigrationData] {
        var nodes: [MigrationData] = []
        var seen: Set<ObjectIdentifier> = []
        var pending = [root]
        while let value = pending.popLast() {
            switch value {
            case .record(let data):
                guard seen.insert(ObjectIdentifier(data)).inserted else { continue }
                nodes.append(data)
                for value in data.values.reversed() where value.hasParts { pending.append(value) }
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
}

extension MigrationValue {
    /// Whether there may be records in it.
    fileprivate var hasParts: Bool {
        switch self {
        case .record, .array, .dictionary: true
        default: false
        }
    }
}

extension Schema {
    /// The name a record has now that has or had this one.
    func currentName(of name: String) -> String {
        if records[name] != nil { return name }
        return records.values.first { $0.aliases.contains(name) }?.name ?? name
    }
}
