/// Brings a tree of data to the present versions of its types.
///
/// The steps of all types run along one line of time: all to 1.1, superclasses before subclasses and parents before
/// children, then all to 1.2. So a step sees the whole graph as it was at that moment.
struct MigrationRun {
    private let registry: TypeRegistry
    private let newerData: PersistentCoder.NewerData
    private let inline: Schema
    private var chains: [String: [RecordSchema]] = [:]

    /// - Parameter inline: Where structs and enums have their present records, unless they have schemas of their own.
    init(registry: TypeRegistry, newerData: PersistentCoder.NewerData, inline: Schema) {
        self.registry = registry
        self.newerData = newerData
        self.inline = inline
    }

    mutating func run(_ root: MigrationValue) throws(PersistenceError) {
        try checkVersions(nodes(root))
        var done: SchemaVersion?
        // Looked up anew before every step: the one before may have added data or changed types.
        while true {
            let nodes = nodes(root)
            guard let next = nextVersion(nodes, after: done) else { return }
            for node in nodes { try apply(next, to: node) }
            done = next
        }
    }

    private mutating func nextVersion(_ nodes: [MigrationData], after done: SchemaVersion?) -> SchemaVersion? {
        var next: SchemaVersion?
        for node in nodes where node.schema != nil {
            for record in chain(node.typeName) where !record.steps.isEmpty {
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
        for record in chain(node.typeName) {
            let stored = node.storedVersion(of: record)
            for step in record.steps where step.version == version && version > stored {
                do {
                    try step.apply(node)
                } catch is MigrationGiveUp {
                    throw .migrationGivenUp(type: node.typeName, from: stored)
                } catch {
                    throw .migrationFailed(type: node.typeName, from: stored, to: version, reason: "\(error)")
                }
            }
        }
    }

    /// Refuses data of later versions, and data whose type was changed behind its version's back.
    private mutating func checkVersions(_ nodes: [MigrationData]) throws(PersistenceError) {
        var checked: Set<[String]> = []
        for node in nodes {
            guard let schema = node.schema,
                checked.insert([node.typeName, Schema.name(of: schema.fingerprint)]).inserted
            else { continue }
            for record in chain(node.typeName) {
                guard let stored = schema.records[record.name] else { continue }
                if newerData == .refuse, stored.version > record.version {
                    throw .newerThanCode(type: record.name, stored: stored.version, code: record.version)
                }
                guard stored.version == record.version else { continue }
                let differences = stored.differences(from: record)
                if !differences.isEmpty {
                    throw .changedWithoutVersion(type: record.name, version: record.version, differences: differences)
                }
            }
        }
    }

    /// The present records of a type and its superclasses, the root class first.
    private mutating func chain(_ name: String) -> [RecordSchema] {
        if let known = chains[name] { return known }
        let chain: [RecordSchema]
        if let schema = registry.currentSchema(named: name) {
            chain = schema.chain(schema.name).reversed()
        } else {
            chain = inline.chain(inline.currentName(of: name)).reversed()
        }
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
                pending.append(contentsOf: data.values.reversed())
            case .array(let values): pending.append(contentsOf: values.reversed())
            case .dictionary(let entries):
                for entry in entries.reversed() {
                    pending.append(entry.value)
                    pending.append(entry.key)
                }
            default: break
            }
        }
        return nodes
    }
}

extension Schema {
    /// The name a record has now that has or had this one.
    func currentName(of name: String) -> String {
        if records[name] != nil { return name }
        return records.values.first { $0.aliases.contains(name) }?.name ?? name
    }
}
