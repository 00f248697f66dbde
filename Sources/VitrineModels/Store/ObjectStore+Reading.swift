internal import VitrineCore
import VitrineDatabase

extension ObjectStore {
    /// The value with a key; nil if there is none. Blocks while the file is read.
    ///
    /// - Throws: ``PersistenceError``; the stored bytes are as they were.
    public func object<Value: PersistentValue>(
        _ type: Value.Type = Value.self, for key: String, in group: ObjectGroup = .root
    ) throws(PersistenceError) -> Value? {
        guard let stored = try stored(key, group) else { return nil }
        let (value, upgraded) = try opening(stored, key, group) { bytes throws(PersistenceError) in
            try coder.decodeUpgrading(type, from: bytes)
        }
        if let upgraded, !configuration.isReadOnly { store(upgraded, inPlaceOf: stored, key, group) }
        return value
    }

    /// The value with a key, or another one if there is none: for plain values.
    ///
    /// ```swift
    /// let isOn = try store.value(for: "isOn", default: false)
    /// ```
    public func value<Value: PersistentValue>(
        for key: String, in group: ObjectGroup = .root, default value: @autoclosure () -> Value
    ) throws(PersistenceError) -> Value {
        try object(Value.self, for: key, in: group) ?? value()
    }

    /// The value with a key as untyped data, for which no code of its type is needed; nil if there is none.
    public func tree(for key: String, in group: ObjectGroup = .root) throws(PersistenceError) -> MigrationValue? {
        try reading(key, group) { bytes throws(PersistenceError) in try coder.tree(of: bytes) }
    }

    /// What a body makes of a value's bytes; nil if there is none.
    func reading<Result>(
        _ key: String, _ group: ObjectGroup, _ body: ([UInt8]) throws(PersistenceError) -> Result
    ) throws(PersistenceError) -> Result? {
        guard let stored = try stored(key, group) else { return nil }
        return try opening(stored, key, group, body)
    }

    /// The keys in a group, sorted by their UTF-8.
    ///
    /// - Parameters:
    ///   - group: Default: the root group. Groups below it are not looked into.
    ///   - prefix: Only keys that begin so. Default: all.
    ///   - descending: From the last to the first. Default false.
    ///   - limit: How many at most. Default: all.
    public func keys(
        in group: ObjectGroup = .root, prefix: String = "", descending: Bool = false, limit: Int = .max
    ) throws(PersistenceError) -> [String] {
        try group.check()
        return try read { database throws(DatabaseError) in
            try ObjectTables.keys(group, prefix: prefix, descending: descending, limit: max(0, limit), database)
        }
    }

    /// The groups below a group that hold objects, sorted.
    public func groups(below group: ObjectGroup = .root) throws(PersistenceError) -> [ObjectGroup] {
        try group.check()
        return try read { database throws(DatabaseError) in try ObjectTables.groups(below: group, database) }
    }

    /// How many objects are in a group itself.
    public func count(in group: ObjectGroup = .root) throws(PersistenceError) -> Int {
        try group.check()
        return try read { database throws(DatabaseError) in try ObjectTables.count(group, database) }
    }
}

// MARK: Parts

extension ObjectStore {
    /// How many reads memory has answered, for tests.
    package var memoryHits: Int { memory?.hits ?? 0 }

    /// A value's bytes as the file has them, or opened, if memory had them.
    private struct Stored {
        let bytes: [UInt8]
        let isOpen: Bool
        /// Since when nothing has changed; nil if that is not known.
        let moment: Int?
    }

    private func stored(_ key: String, _ group: ObjectGroup) throws(PersistenceError) -> Stored? {
        try group.check()
        // While a transaction runs nobody knows what others have changed.
        let moment = memory.flatMap { memory in changesOfOthers().map { memory.moment(changesOfOthers: $0) } }
        if moment != nil, let bytes = memory?.bytes(key, group) {
            return Stored(bytes: bytes, isOpen: true, moment: moment)
        }
        let bytes = try read { database throws(DatabaseError) in try ObjectTables.bytes(key, group, database) }
        return bytes.map { Stored(bytes: $0, isOpen: false, moment: moment) }
    }

    /// Opens a value's bytes and reads them.
    ///
    /// - Throws: ``PersistenceError/unreadable(key:group:_:)``, or why the file could not be read.
    private func opening<Result>(
        _ stored: Stored, _ key: String, _ group: ObjectGroup, _ body: ([UInt8]) throws(PersistenceError) -> Result
    ) throws(PersistenceError) -> Result {
        do throws(PersistenceError) {
            let bytes = stored.isOpen ? stored.bytes : try seal.open(stored.bytes, key, group)
            let result = try readingSchemas { () throws(PersistenceError) in try body(bytes) }
            if !stored.isOpen, let moment = stored.moment {
                memory?.keep(bytes, key, group, readAfter: moment)
            }
            return result
        } catch .database(let error) {
            throw .database(error)
        } catch {
            throw .unreadable(key: key, group: group.path, error)
        }
    }

    /// Another process may have recorded a schema since the store was opened.
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

    /// Stores what was brought up to date, unless it was changed meanwhile. If that fails, it is brought up to date
    /// again when it is read next.
    private func store(_ upgraded: StoredBytes, inPlaceOf old: Stored, _ key: String, _ group: ObjectGroup) {
        // What memory had was read in its old form: only the file's own bytes can be compared with the file's.
        guard !old.isOpen || configuration.cipher == nil else { return }
        let registry = registry, seal = seal, memory = memory
        writer.submit { database in
            let sealed = try seal.seal(upgraded, key, group)
            try ObjectTables.replace(old.bytes, with: sealed, key, group, database, registry: registry)
        } completion: { result in
            memory?.forget([.put(key: key, group: group)])
            if case .failure(let error) = result {
                Log.logger("models").warning(
                    "An object was not stored in its present form",
                    metadata: ["key": "\(key)", "group": "\(group)", "error": "\(error)"])
            }
        }
    }
}
