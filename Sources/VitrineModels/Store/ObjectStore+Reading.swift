internal import VitrineCache
public import VitrineCore
import VitrineDatabase

extension ObjectStore {
    /// Returns the value with a key, or nil if there is none. Blocks while the file is read.
    ///
    /// ```swift
    /// let isOn = try store.object(for: "isOn") ?? false
    /// ```
    ///
    /// Data of an older version is migrated, and stored again in its present form in the background.
    ///
    /// - Throws: ``PersistenceError``. The stored bytes are unchanged then.
    public func object<Value: PersistentValue>(
        _ type: Value.Type = Value.self, for key: String, in group: GroupPath = .standard
    ) throws(PersistenceError) -> Value? {
        guard let stored = try stored(key, group) else { return nil }
        let (value, upgraded) = try opening(stored, key: key, group: group) { bytes throws(PersistenceError) in
            try coder.decodeUpgrading(type, from: bytes)
        }
        if let upgraded, !configuration.isReadOnly { store(upgraded, inPlaceOf: stored, key: key, group: group) }
        return value
    }

    /// Returns the value with a key as untyped data, or nil if there is none. The type of the value is not needed.
    package func tree(for key: String, in group: GroupPath = .standard) throws(PersistenceError) -> MigrationTree? {
        try reading(key, group: group) { bytes throws(PersistenceError) in try coder.tree(of: bytes) }
    }

    /// Passes the bytes of a value to a closure; nil if there is no value.
    func reading<Result>(
        _ key: String, group: GroupPath, body: ([UInt8]) throws(PersistenceError) -> Result
    ) throws(PersistenceError) -> Result? {
        guard let stored = try stored(key, group) else { return nil }
        return try opening(stored, key: key, group: group, body: body)
    }

    /// Returns the keys in a group, sorted by their UTF-8.
    ///
    /// - Parameters:
    ///   - group: Default: `standard`, for values without a group. Groups below it are not included.
    ///   - prefix: The prefix of the keys. Default: all keys.
    ///   - descending: Whether the order is reversed. Default false.
    ///   - limit: The largest number of keys. Default: no limit.
    public func keys(
        in group: GroupPath = .standard, prefix: String = "", descending: Bool = false, limit: Int = .max
    ) throws(PersistenceError) -> [String] {
        try read { database throws(DatabaseError) in
            try ObjectTables.keys(group, prefix: prefix, descending: descending, limit: max(0, limit), database)
        }
    }

    /// Returns the groups that contain objects, sorted: those below a group, or for nil, the default, all but
    /// `standard`.
    public func groups(below group: GroupPath? = nil) throws(PersistenceError) -> [GroupPath] {
        try read { database throws(DatabaseError) in try ObjectTables.groups(below: group, database) }
    }

    /// Returns the number of objects in a group, without the groups below it.
    public func count(in group: GroupPath = .standard) throws(PersistenceError) -> Int {
        try read { database throws(DatabaseError) in try ObjectTables.count(group, database) }
    }
}

// MARK: Parts

extension ObjectStore {
    /// The number of reads that the memory cache answered.
    package var memoryHits: Int { memory?.hits ?? 0 }

    /// The bytes of a value: as they are in the file, or decrypted from the memory cache.
    private struct Stored {
        let bytes: [UInt8]
        let isOpen: Bool
        /// The moment after which the store has not changed; nil if it is unknown.
        let moment: Int?
    }

    private func stored(_ key: String, _ group: GroupPath) throws(PersistenceError) -> Stored? {
        // During a transaction the number of changes by others is unknown.
        let moment = memory.flatMap { memory in changesOfOthers().map { memory.moment(changesOfOthers: $0) } }
        if moment != nil, let bytes = memory?.bytes(key, group) {
            return Stored(bytes: bytes, isOpen: true, moment: moment)
        }
        let bytes = try read { database throws(DatabaseError) in
            try ObjectTables.bytes(key, group: group, database: database)
        }
        return bytes.map { Stored(bytes: $0, isOpen: false, moment: moment) }
    }

    /// Decrypts the bytes of a value and passes them to a closure.
    ///
    /// - Throws: ``PersistenceError/unreadable(key:group:_:)``, or ``PersistenceError/database(_:)``.
    private func opening<Result>(
        _ stored: Stored, key: String, group: GroupPath, body: ([UInt8]) throws(PersistenceError) -> Result
    ) throws(PersistenceError) -> Result {
        do throws(PersistenceError) {
            let bytes = stored.isOpen ? stored.bytes : try seal.open(stored.bytes, key: key, group: group)
            let result = try readingSchemas { () throws(PersistenceError) in try body(bytes) }
            if !stored.isOpen, let moment = stored.moment {
                memory?.keep(bytes, key: key, group: group, readAfter: moment)
            }
            return result
        } catch .database(let error) {
            throw .database(error)
        } catch {
            throw .unreadable(key: key, group: group.path, error)
        }
    }

    /// Runs a closure, and again with new schemas: another process can have recorded some since the store was opened.
    private func readingSchemas<Result>(
        _ body: () throws(PersistenceError) -> Result
    ) throws(PersistenceError) -> Result {
        do throws(PersistenceError) {
            return try body()
        } catch .unknownSchema {
            try read { database throws(DatabaseError) in try ObjectTables.loadSchemas(database, into: registry) }
            return try body()
        }
    }

    /// Stores a migrated value, unless it was changed meanwhile. After a failure, the next read migrates it again.
    private func store(_ upgraded: StoredBytes, inPlaceOf old: Stored, key: String, group: GroupPath) {
        // Bytes from the memory cache are decrypted, so they cannot be compared with encrypted bytes in the file.
        guard !old.isOpen || configuration.cipher == nil else { return }
        let registry = registry, seal = seal, memory = memory
        writer.submit { database in
            let sealed = try seal.seal(upgraded, key: key, group: group)
            try ObjectTables.replace(
                old.bytes, with: sealed, key: key, group: group, database: database, registry: registry)
        } completion: { result in
            memory?.forget([.put(key: key, group: group)])
            if case .failure(let error) = result {
                Log.logger("models").warning(
                    "A migrated object could not be stored",
                    metadata: ["key": "\(key)", "group": "\(group)", "error": "\(error)"])
            }
        }
    }
}

/// The metadata of a stored object.
package struct ObjectEntry: Sendable, Equatable {
    /// The key of the object.
    package let key: String
    /// The group of the object.
    package let group: GroupPath
    /// The stored name of the type.
    package let type: String
    /// The stored version of the type; `0` for plain values and collections.
    package let version: SchemaVersion
    /// The size of the stored value.
    package let size: ByteCount
    /// The time of the last put, since 1970.
    package let modified: Duration
}

extension ObjectStore {
    /// A version of a type in which objects are or were stored.
    package struct StoredVersion: Sendable, Equatable {
        /// The stored name of the type.
        package let type: String
        /// The version of the type.
        package let version: SchemaVersion
        /// The fingerprint of the schema.
        package let fingerprint: UInt64
        /// The number of objects in this version, without nested objects.
        package let count: Int
    }

    /// Returns a page of the entries in a group, sorted by the UTF-8 of their keys.
    ///
    /// - Parameters:
    ///   - group: Default: `standard`, for values without a group. Groups below it are not included.
    ///   - key: The last key of the previous page; nil for the first page.
    ///   - limit: The largest number of entries.
    package func entries(
        in group: GroupPath = .standard, after key: String? = nil, limit: Int
    ) throws(PersistenceError) -> [ObjectEntry] {
        try read { database throws(DatabaseError) in
            try ObjectTables.entries(group, after: key, limit: max(0, limit), database)
        }
    }

    /// Returns the size of all values in a group, without the groups below it.
    package func size(in group: GroupPath = .standard) throws(PersistenceError) -> ByteCount {
        return ByteCount(
            try read { database throws(DatabaseError) in try ObjectTables.size(group, database) })
    }

    /// Returns all versions of types that the store has schemas of, sorted by type and version.
    package func storedVersions() throws(PersistenceError) -> [StoredVersion] {
        try read { database throws(DatabaseError) in try ObjectTables.versions(database) }
    }
}

/// The memory cache of a store: the decrypted bytes of values. It contains no bytes that differ from the file.
final class ObjectMemory: Sendable {
    private struct State {
        /// Increases with every change. Bytes that were read before a change are not cached after it.
        var moment = 0
        /// The last known state as far as other connections change it.
        var changesOfOthers: DatabaseWriter.ForeignState?
    }

    private let state = Locked(State())
    private let cache: MemoryCache<CacheKey, [UInt8]>

    /// The memory that an entry uses in addition to its bytes.
    private static let overhead = 200

    init(capacity: ByteCount) {
        cache = MemoryCache(.init(capacity: capacity), cost: { $0.count + Self.overhead })
    }

    private static func name(_ key: String, _ group: GroupPath) -> CacheKey { CacheKey(group.path, key) }

    /// Returns the present moment. Empties the cache if others changed the file.
    func moment(changesOfOthers: DatabaseWriter.ForeignState) -> Int {
        state.withLock { state in
            if state.changesOfOthers != changesOfOthers {
                state.changesOfOthers = changesOfOthers
                state.moment += 1
                cache.removeAll()
            }
            return state.moment
        }
    }

    /// The number of reads that the cache answered.
    var hits: Int { cache.statistics.hits }

    func bytes(_ key: String, _ group: GroupPath) -> [UInt8]? { cache.value(forKey: Self.name(key, group)) }

    /// Caches bytes that were read, unless the store has changed since.
    func keep(_ bytes: [UInt8], key: String, group: GroupPath, readAfter moment: Int) {
        state.withLock { state in
            if state.moment == moment { cache.set(bytes, forKey: Self.name(key, group)) }
        }
    }

    /// Removes the values that a commit changed.
    func forget(_ changes: [ObjectChange]) {
        state.withLock { state in
            state.moment += 1
            for change in changes {
                switch change {
                case .put(let key, let group), .removed(let key, let group): cache.remove(Self.name(key, group))
                case .removedGroup, .removedAll, .elsewhere: cache.removeAll()
                }
            }
        }
    }
}
