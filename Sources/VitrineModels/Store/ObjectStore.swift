internal import VitrineCore
import VitrineDatabase

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
/// - A store on a **full disk** can be opened and read. Changes throw ``PersistenceError/database(_:)`` with the reason
///   `full`, and succeed once there is room again.
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
/// - ``value(for:in:default:)``
/// ### Looking around
/// - ``keys(in:prefix:descending:limit:)``
/// - ``groups(below:)``
/// - ``count(in:)``
/// - ``size(in:)``
/// - ``entries(in:after:limit:)``
/// - ``storedVersions()``
/// - ``tree(for:in:)``
/// ### Changes
/// - ``changes(in:interval:)``
/// - ``migrate(_:in:dryRun:)``
/// - ``forget(_:version:)``
/// ### Care
/// - ``verify()``
/// - ``backUp(to:)``
public final class ObjectStore: Sendable {
    /// The file.
    public let path: String
    /// Which types and schemas there are.
    public var registry: TypeRegistry { coder.registry }

    let configuration: Configuration
    var coder: PersistentCoder { configuration.coder }
    let seal: ValueSeal
    let writer: DatabaseWriter
    let observers = ObjectObservers()
    private let reader: DatabaseReader
    let memory: ObjectMemory?

    /// Opens a store, and makes it if there is none.
    ///
    /// - Parameters:
    ///   - path: The file, in a directory that exists.
    ///   - configuration: How it is opened.
    ///   - types: Types to make known: subclasses that no property names.
    /// - Throws: ``PersistenceError/notAStore(path:reason:)``, ``PersistenceError/wrongKey(path:reason:)``,
    ///   ``PersistenceError/database(_:)``. Nothing is changed in a file that is no store or has another key.
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
            // Copies that a killed process was writing beside the store are as large as the store.
            _ = try? AtomicFile.removeTemporariesOfDeadWriters(in: FilePath.parent(of: path))
        }
        do {
            (writer, reader) = try configuration.open(path, seal)
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
        var batch = ObjectBatch(coder: coder, seal: seal)
        try batch.put(value, for: key, in: group)
        try await commit(batch)
    }

    /// Removes the value with a key, if there is one.
    public nonisolated(nonsending) func remove(
        _ key: String, in group: ObjectGroup = .root
    ) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder, seal: seal)
        try batch.remove(key, in: group)
        try await commit(batch)
    }

    /// Removes a group with all groups below it; everything for the root group.
    public nonisolated(nonsending) func removeGroup(_ group: ObjectGroup) async throws(PersistenceError) {
        var batch = ObjectBatch(coder: coder, seal: seal)
        try batch.removeGroup(group)
        try await commit(batch)
    }

    /// Makes several changes together or not at all.
    ///
    /// - Parameter body: Puts changes into the batch. If it throws, nothing is changed.
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
                        try ObjectTables.put(stored, key, group, database, registry: registry)
                    case .remove(let key, let group): try ObjectTables.remove(key, group, database)
                    case .removeGroup(let group): try ObjectTables.remove(group, database)
                    }
                }
            }
        } catch {
            throw PersistenceError(error)
        }
        tell(batch.changes)
    }

    /// Tells everyone of changes that were committed.
    func tell(_ changes: [ObjectChange]) {
        memory?.forget(changes)
        observers.tell(changes)
    }

    /// Forgets all that memory holds, whose present form is another now.
    func forgetAll() { memory?.forget([.removedGroup(.root)]) }

    // MARK: Parts

    /// SQLite's number of changes by other connections than the writer's; nil while that writes.
    func changesOfOthers() -> Int64? {
        let number = try? writer.betweenTransactions { database throws(DatabaseError) in
            try database.changesOfOthers()
        }
        return number ?? nil
    }

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
    /// What a job of the database's failed with.
    init(_ error: any Error) {
        switch error {
        case let error as PersistenceError: self = error
        case let error as DatabaseError: self = .database(error)
        case let error as FileError: self = .file(error)
        default: self = .malformed("\(error)")
        }
    }
}
