public import VitrineCore
import VitrineDatabase

/// A store of objects by key and group, in one file. Objects survive changes of their types.
///
/// ```swift
/// let store = try ObjectStore(at: path, types: Foo.self, SubFoo.self)
/// try await store.put(foo, for: "2026-01-02", in: "inbox/work")
/// let again = try store.object(Foo.self, for: "2026-01-02", in: "inbox/work")
/// ```
///
/// - A put is **atomic**, together with the schema of the object, and committed when the call returns. With the
///   durability `full` it survives a power failure. Concurrent puts share commits.
/// - A put that throws may be visible if the medium has failed during the commit, until a power failure or a later put
///   decides. Repeat it. After a failure, the next call opens the file again, and creates it if it was deleted.
/// - Data of an older version is migrated when it is read, and stored again in its present form.
/// - Several stores, of this process and of others, can use one file.
/// - A store on a **full disk** can be opened and read. Changes throw ``PersistenceError/database(_:)`` with the reason
///   `full`, and succeed again when there is space.
/// - **Only bytes cross threads**: objects are encoded by the caller, so their classes need not be `Sendable`. Reads
///   run on the calling thread. They take some microseconds unless the file has to be read from disk.
///
/// ## Topics
/// ### Objects
/// - ``put(_:for:in:)``
/// - ``object(_:for:in:)``
/// - ``remove(_:in:)``
/// - ``removeGroup(_:)``
/// - ``transaction(_:)``
/// ### Inspection
/// - ``keys(in:prefix:descending:limit:)``
/// - ``groups(below:)``
/// - ``count(in:)``
/// - ``json(for:in:)``
/// ### Changes
/// - ``changes(in:interval:)``
/// - ``migrate(_:in:dryRun:)``
/// - ``forget(_:version:)``
/// ### Maintenance
/// - ``verify()``
/// - ``backUp(to:)``
public final class ObjectStore: Sendable {
    /// The path of the file.
    package let path: String
    /// The known types and schemas.
    package var registry: TypeRegistry { coder.registry }

    let configuration: Configuration
    var coder: PersistentCoder { configuration.coder }
    let seal: ValueSeal
    let writer: DatabaseWriter
    let observers = ObjectObservers()
    private let reader: DatabaseReader
    let memory: ObjectMemory?

    /// Opens a store, and creates the file if it does not exist.
    ///
    /// - Parameters:
    ///   - path: The path of the file, in an existing directory.
    ///   - configuration: The options of the store.
    ///   - types: Types to register, for example subclasses that no property names.
    /// - Throws: ``PersistenceError/notAStore(path:reason:)``, ``PersistenceError/wrongKey(path:reason:)`` or
    ///   ``PersistenceError/database(_:)``. A file that is not a store, or has another key, is unchanged.
    public init(
        at path: String, configuration: Configuration = Configuration(), types: any PersistentRecord.Type...
    ) throws(PersistenceError) {
        self.path = path
        self.configuration = configuration
        seal = ValueSeal(cipher: configuration.cipher)
        let capacity = configuration.memoryCapacity
        memory = capacity > .zero ? ObjectMemory(capacity: capacity) : nil
        let registry = configuration.coder.registry
        for type in types { _ = try registry.schema(of: type) }
        if !configuration.isReadOnly {
            // The unfinished copy of a killed process is as large as the store.
            _ = try? AtomicFile.removeTemporariesOfDeadWriters(in: FilePath.parent(of: path))
        }
        do {
            (writer, reader) = try configuration.open(path, seal)
        } catch {
            throw PersistenceError(error)
        }
    }

    // MARK: Writing

    /// Stores a value, and replaces an existing one with the same key.
    ///
    /// - Parameters:
    ///   - value: An object, a struct, or any other ``PersistentValue``, for example an array or a number.
    ///   - key: The key, which is not empty.
    ///   - group: Default: `standard`, for values without a group.
    /// - Throws: ``PersistenceError``. The store is unchanged then.
    public nonisolated(nonsending) func put<Value: PersistentValue>(
        _ value: Value, for key: String, in group: GroupPath = .standard
    ) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder, seal: seal)
        try batch.put(value, for: key, in: group)
        try await commit(batch)
    }

    /// Removes the value with a key, if there is one.
    public nonisolated(nonsending) func remove(
        _ key: String, in group: GroupPath = .standard
    ) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder, seal: seal)
        batch.remove(key, in: group)
        try await commit(batch)
    }

    /// Removes a group and all groups below it. `standard` is the group of values without a group.
    public nonisolated(nonsending) func removeGroup(_ group: GroupPath) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder, seal: seal)
        batch.removeGroup(group)
        try await commit(batch)
    }

    /// Removes all values.
    ///
    /// - Parameter keepingReserve: Whether the group `reserve` stays, with the groups below it. Default true.
    public nonisolated(nonsending) func removeAll(keepingReserve: Bool = true) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder, seal: seal)
        batch.removeAll(keepingReserve: keepingReserve)
        try await commit(batch)
    }

    /// Makes several changes atomically.
    ///
    /// - Parameter body: Adds changes to the batch. If it throws, the store is unchanged.
    public nonisolated(nonsending) func transaction(
        _ body: (inout ObjectBatch) throws(PersistenceError) -> Void
    ) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder, seal: seal)
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
                        try ObjectTables.put(stored, key: key, group: group, database: database, registry: registry)
                    case .remove(let key, let group): try ObjectTables.remove(key, group: group, database: database)
                    case .removeGroup(let group): try ObjectTables.remove(group, database)
                    case .removeAll(let keeping): try ObjectTables.removeAll(keepingReserve: keeping, database)
                    }
                }
            }
        } catch {
            throw PersistenceError(error)
        }
        tell(batch.changes)
    }

    /// Notifies the memory cache and the subscribers of committed changes.
    func tell(_ changes: [ObjectChange]) {
        memory?.forget(changes)
        observers.tell(changes)
    }

    /// Empties the memory cache after a migration.
    func forgetAll() { memory?.forget([.removedAll]) }

    // MARK: Parts

    /// Returns the state of the file as far as connections other than the writer change it; nil during a write.
    func changesOfOthers() -> DatabaseWriter.ForeignState? { (try? writer.foreignState()) ?? nil }

    func read<Result: Sendable>(
        _ body: (Database) throws(DatabaseError) -> Result
    ) throws(PersistenceError) -> Result {
        do throws(DatabaseError) {
            return try reader.read { database throws(DatabaseError) in try body(database) }
        } catch {
            throw .database(error)
        }
    }
}

extension PersistenceError {
    /// Converts an error of a database job.
    init(_ error: any Error) {
        switch error {
        case let error as PersistenceError: self = error
        case let error as DatabaseError: self = .database(error)
        case let error as FileError: self = .file(error)
        default: self = .malformed("\(error)")
        }
    }
}

/// Changes that ``ObjectStore/transaction(_:)`` makes atomically, also across a crash.
///
/// Objects are encoded when they are added to the batch. The batch contains only bytes.
public struct ObjectBatch: Sendable {
    enum Operation: Sendable {
        case put(StoredBytes, key: String, group: GroupPath)
        case remove(key: String, group: GroupPath)
        case removeGroup(GroupPath)
        case removeAll(keepingReserve: Bool)
    }

    private(set) var operations: [Operation] = []
    private let coder: PersistentCoder
    private let seal: ValueSeal

    init(coder: PersistentCoder, seal: ValueSeal) { (self.coder, self.seal) = (coder, seal) }

    /// Stores a value, and replaces an existing one with the same key.
    ///
    /// - Throws: ``PersistenceError`` if the value cannot be encoded. The batch is unchanged then.
    public mutating func put<Value: PersistentValue>(
        _ value: Value, for key: String, in group: GroupPath = .standard
    ) throws(PersistenceError) {
        guard !key.isEmpty else { throw .invalidName(key, reason: "it is empty") }
        let (bytes, fingerprints) = try coder.encodeWithSchemas(value)
        let stored = try seal.seal(
            StoredBytes(bytes, fingerprints: fingerprints, registry: coder.registry), key: key, group: group)
        operations.append(.put(stored, key: key, group: group))
    }

    /// Removes the value with a key, if there is one.
    public mutating func remove(_ key: String, in group: GroupPath = .standard) {
        operations.append(.remove(key: key, group: group))
    }

    /// Removes a group and all groups below it.
    public mutating func removeGroup(_ group: GroupPath) {
        operations.append(.removeGroup(group))
    }

    mutating func removeAll(keepingReserve: Bool) { operations.append(.removeAll(keepingReserve: keepingReserve)) }

    var changes: [ObjectChange] {
        operations.map { operation in
            switch operation {
            case .put(_, let key, let group): .put(key: key, group: group)
            case .remove(let key, let group): .removed(key: key, group: group)
            case .removeGroup(let group): .removedGroup(group)
            case .removeAll: .removedAll
            }
        }
    }
}

/// An encoded value with the schemas that decoding needs, its own first.
struct StoredBytes: Sendable {
    let bytes: [UInt8]
    let schemas: [Schema]

    init(bytes: [UInt8], schemas: [Schema]) { (self.bytes, self.schemas) = (bytes, schemas) }

    init(_ bytes: [UInt8], fingerprints: [UInt64], registry: TypeRegistry) {
        self.bytes = bytes
        schemas = fingerprints.compactMap { registry.schema(fingerprint: $0) }
    }
}
