internal import VitrineCore
public import VitrineDatabase

/// Objects by key and group in one file, which outlive the changes of their types.
///
/// ```swift
/// let store = try ObjectStore(at: path, types: Foo.self, SubFoo.self)
/// try await store.put(foo, for: "2026-01-02", in: "inbox/work")
/// let again = try store.object(Foo.self, for: "2026-01-02", in: "inbox/work")
/// ```
///
/// - A put is **whole or not at all**, with the record of its schema, and has happened when the call returns; with
///   durability `full` no power cut takes it back. Callers at the same time share the price of a commit.
/// - Objects are read as what they were stored as, brought up to date if they are of an older version, and stored
///   again in their present form.
/// - Several stores, of this and of other processes, may use one file.
/// - **Only bytes cross threads**: objects are turned into bytes where the call is made, so their classes need not be
///   `Sendable`. Reads answer on the calling thread, within some microseconds unless the file has to be read.
///
/// ## Topics
/// ### Objects
/// - ``put(_:for:in:)``
/// - ``object(_:for:in:)``
/// - ``remove(_:in:)``
/// - ``removeGroup(_:)``
/// - ``transaction(_:)``
/// ### Looking around
/// - ``keys(in:prefix:descending:limit:)``
/// - ``groups(below:)``
/// - ``count(in:)``
/// - ``tree(for:in:)``
/// ### Changes
/// - ``changes(in:interval:)``
/// - ``migrate(_:in:dryRun:)``
public final class ObjectStore: Sendable {
    /// The file.
    public let path: String
    /// Which types and schemas there are.
    public var registry: TypeRegistry { coder.registry }

    let coder: PersistentCoder
    let writer: DatabaseWriter
    let observers = ObjectObservers()
    private let reader: Locked<Database>

    /// Opens a store, and makes it if there is none.
    ///
    /// - Parameters:
    ///   - path: The file, in a directory that exists.
    ///   - durability: Whether a power cut may take the last changes. Default `full`.
    ///   - coder: How objects become bytes, and which types there are. Default: the shared registry.
    ///   - types: Types to make known: subclasses that no property names.
    /// - Throws: ``PersistenceError/notAStore(path:reason:)``, ``PersistenceError/database(_:)``. Nothing is changed
    ///   in a file that is no store.
    public init(
        at path: String, durability: Database.Options.Durability = .full, coder: PersistentCoder = PersistentCoder(),
        types: any PersistentRecord.Type...
    ) throws(PersistenceError) {
        self.path = path
        self.coder = coder
        for type in types { _ = try coder.registry.schema(of: type) }
        var options = Database.Options()
        options.durability = durability
        do {
            let database = try Database(path: path, options: options)
            try ObjectTables.create(database)
            try ObjectTables.loadSchemas(database, into: coder.registry)
            writer = DatabaseWriter(database)
            reader = Locked(try Database(path: path, options: options))
        } catch {
            throw PersistenceError(error)
        }
    }

    // MARK: Writing

    /// Stores a value in place of one with the same key.
    ///
    /// - Parameters:
    ///   - value: An object, a struct, or any other ``PersistentValue``: arrays and plain values as well.
    ///   - key: Any text but the empty one.
    ///   - group: Default: the root group.
    /// - Throws: ``PersistenceError``; what was stored is as it was.
    public nonisolated(nonsending) func put<Value: PersistentValue>(
        _ value: Value, for key: String, in group: ObjectGroup = .root
    ) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder)
        try batch.put(value, for: key, in: group)
        try await commit(batch)
    }

    /// Removes the value with a key, if there is one.
    public nonisolated(nonsending) func remove(
        _ key: String, in group: ObjectGroup = .root
    ) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder)
        try batch.remove(key, in: group)
        try await commit(batch)
    }

    /// Removes a group with all groups below it; everything for the root group.
    public nonisolated(nonsending) func removeGroup(_ group: ObjectGroup) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder)
        try batch.removeGroup(group)
        try await commit(batch)
    }

    /// Makes several changes together or not at all.
    ///
    /// - Parameter body: Puts changes into the batch. If it throws, nothing is changed.
    public nonisolated(nonsending) func transaction(
        _ body: (inout ObjectBatch) throws(PersistenceError) -> Void
    ) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder)
        try body(&batch)
        try await commit(batch)
    }

    private nonisolated(nonsending) func commit(_ batch: ObjectBatch) async throws(PersistenceError) {
        guard !batch.operations.isEmpty else { return }
        let registry = registry
        do {
            try await writer.write { database in
                for operation in batch.operations {
                    switch operation {
                    case .put(let stored, let key, let group):
                        try ObjectTables.put(stored, key, group, database, registry: registry)
                    case .remove(let key, let group): try ObjectTables.remove(key, group, database)
                    case .removeGroup(let group): try ObjectTables.remove(group, database)
                    }
                }
            }
        } catch {
            throw PersistenceError(error)
        }
        observers.tell(batch.changes)
    }

    // MARK: Reading

    /// The value with a key; nil if there is none. Blocks while the file is read.
    ///
    /// - Throws: ``PersistenceError``; the stored bytes are as they were.
    public func object<Value: PersistentValue>(
        _ type: Value.Type = Value.self, for key: String, in group: ObjectGroup = .root
    ) throws(PersistenceError) -> Value? {
        guard let bytes = try bytes(for: key, in: group) else { return nil }
        let (value, upgraded) = try readingSchemas { () throws(PersistenceError) in
            try coder.decodeUpgrading(type, from: bytes)
        }
        if let upgraded { store(upgraded, inPlaceOf: bytes, key, group) }
        return value
    }

    /// The value with a key as untyped data, for which no code of its type is needed; nil if there is none.
    public func tree(for key: String, in group: ObjectGroup = .root) throws(PersistenceError) -> MigrationValue? {
        guard let bytes = try bytes(for: key, in: group) else { return nil }
        return try readingSchemas { () throws(PersistenceError) in try coder.tree(of: bytes) }
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

    // MARK: Parts

    private func bytes(for key: String, in group: ObjectGroup) throws(PersistenceError) -> [UInt8]? {
        try group.check()
        return try read { database throws(DatabaseError) in try ObjectTables.bytes(key, group, database) }
    }

    private func read<Result: Sendable>(
        _ body: (Database) throws(DatabaseError) -> Result
    ) throws(PersistenceError) -> Result {
        do throws(DatabaseError) {
            return try reader.withLock { database throws(DatabaseError) in try body(database) }
        } catch {
            throw .database(error)
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
    private func store(_ upgraded: StoredBytes, inPlaceOf old: [UInt8], _ key: String, _ group: ObjectGroup) {
        let registry = registry
        writer.submit { database in
            try ObjectTables.replace(old, with: upgraded, key, group, database, registry: registry)
        } completion: { result in
            if case .failure(let error) = result {
                Log.logger("models").warning(
                    "An object was not stored in its present form",
                    metadata: ["key": "\(key)", "group": "\(group)", "error": "\(error)"])
            }
        }
    }
}

extension PersistenceError {
    /// What a job of the database's failed with.
    init(_ error: any Error) {
        switch error {
        case let error as PersistenceError: self = error
        case let error as DatabaseError: self = .database(error)
        default: self = .malformed("\(error)")
        }
    }
}
