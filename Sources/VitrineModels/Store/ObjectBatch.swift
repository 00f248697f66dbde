/// Changes that a store makes together or not at all, also across a crash.
///
/// Objects are turned into bytes when they are put into the batch, by the code that owns them; only bytes travel.
public struct ObjectBatch: Sendable {
    enum Operation: Sendable {
        case put(StoredBytes, key: String, group: ObjectGroup)
        case remove(key: String, group: ObjectGroup)
        case removeGroup(ObjectGroup)
    }

    private(set) var operations: [Operation] = []
    private let coder: PersistentCoder
    private let seal: ValueSeal

    init(coder: PersistentCoder, seal: ValueSeal) { (self.coder, self.seal) = (coder, seal) }

    /// Stores a value in place of one with the same key.
    ///
    /// - Throws: ``PersistenceError`` if it cannot be stored; the batch is as it was then.
    public mutating func put<Value: PersistentValue>(
        _ value: Value, for key: String, in group: ObjectGroup = .root
    ) throws(PersistenceError) {
        try group.check()
        guard !key.isEmpty else { throw .invalidName(key, reason: "it is empty") }
        let (bytes, fingerprints) = try coder.encodeWithSchemas(value)
        let stored = try seal.seal(StoredBytes(bytes, fingerprints, coder.registry), key, group)
        operations.append(.put(stored, key: key, group: group))
    }

    /// Removes the value with a key, if there is one.
    public mutating func remove(_ key: String, in group: ObjectGroup = .root) throws(PersistenceError) {
        try group.check()
        operations.append(.remove(key: key, group: group))
    }

    /// Removes a group with all groups below it.
    public mutating func removeGroup(_ group: ObjectGroup) throws(PersistenceError) {
        try group.check()
        operations.append(.removeGroup(group))
    }

    var changes: [ObjectChange] {
        operations.map { operation in
            switch operation {
            case .put(_, let key, let group): .put(key: key, group: group)
            case .remove(let key, let group): .removed(key: key, group: group)
            case .removeGroup(let group): .removedGroup(group)
            }
        }
    }
}

/// A value's bytes with the schemas that reading them takes, its own first.
struct StoredBytes: Sendable {
    let bytes: [UInt8]
    let schemas: [Schema]

    init(bytes: [UInt8], schemas: [Schema]) { (self.bytes, self.schemas) = (bytes, schemas) }

    init(_ bytes: [UInt8], _ fingerprints: [UInt64], _ registry: TypeRegistry) {
        self.bytes = bytes
        schemas = fingerprints.compactMap { registry.schema(fingerprint: $0) }
    }
}
