public import VitrineCore
import VitrineDatabase

/// The result of ``ObjectStore/verify()``.
public struct ObjectVerification: Sendable, Equatable {
    /// The number of objects read.
    public internal(set) var objects = 0
    /// The damaged objects, each as ``PersistenceError/unreadable(key:group:_:)``.
    public internal(set) var damaged: [PersistenceError] = []
    /// The damage in the file, as SQLite reports it.
    public internal(set) var file: [String] = []

    /// Whether the file and all objects are intact.
    public var isIntact: Bool { damaged.isEmpty && file.isEmpty }
}

extension ObjectStore {
    /// Verifies the file and every object: its checksum, its encryption, and that it matches its schema.
    ///
    /// It reads the whole store, concurrently with other calls. The types of the objects are not needed.
    public nonisolated(nonsending) func verify() async throws(PersistenceError) -> ObjectVerification {
        try await apart { store, database in
            var verification = ObjectVerification()
            verification.file = try database.findDamage()
            try database.transaction(.deferred) {
                try ObjectTables.loadSchemas(database, into: store.registry)
                let select = try database.prepare("SELECT key, path, value FROM object JOIN grp ON grp.id=grp")
                while try select.step() {
                    let (key, group) = (select.text(at: 0), GroupPath(path: select.text(at: 1)))
                    verification.objects += 1
                    do {
                        try store.coder.tree(of: store.seal.open(select.bytes(at: 2), key: key, group: group))
                            .breakCycles()
                    } catch let error as PersistenceError {
                        verification.damaged.append(.unreadable(key: key, group: group.path, error))
                    }
                }
            }
            return verification
        }
    }

    /// Copies a consistent snapshot of the store to another file, concurrently with other calls.
    ///
    /// The copy is a store. It replaces an existing file when it is complete and durable.
    ///
    /// - Throws: ``PersistenceError/file(_:)`` or ``PersistenceError/database(_:)``. An existing file is unchanged
    ///   then.
    public nonisolated(nonsending) func backUp(to path: String) async throws(PersistenceError) {
        try await apart { _, database in
            // The unfinished copy of a killed process is as large as a store.
            _ = try? AtomicFile.removeTemporariesOfDeadWriters(in: FilePath.parent(of: path))
            let writer = try AtomicFileWriter(path: path, options: .durable)
            let vacuum = try database.prepare("VACUUM INTO ?")
            vacuum.bind(writer.temporary, at: 1)
            try vacuum.run()
            try writer.commit()
        }
    }

    /// Removes all objects that are stored in a version of a type, for example after a migration step abandoned them.
    ///
    /// Objects nested in others stay.
    ///
    /// - Parameters:
    ///   - type: The stored name of the type, which may no longer exist.
    ///   - version: The stored version.
    /// - Returns: The number of removed objects.
    @discardableResult
    public nonisolated(nonsending) func forget(
        _ type: String, version: SchemaVersion
    ) async throws(PersistenceError) -> Int {
        do {
            let removed = try await writer.write { database in
                try ObjectTables.removeAll(of: type, version, database)
            }
            tell(removed.map { .removed(key: $0.key, group: $0.group) })
            return removed.count
        } catch {
            throw PersistenceError(error)
        }
    }

    /// Runs a long operation with a connection of its own, on a thread that may block.
    private nonisolated(nonsending) func apart<Result: Sendable>(
        _ body: @escaping @Sendable (ObjectStore, Database) throws -> Result
    ) async throws(PersistenceError) -> Result {
        do {
            return try await BlockingExecutor.shared.run { () throws(any Error) in
                let reader = try self.configuration.temporaryReader(self.path)
                return try reader.withDatabase { database in Swift.Result { try body(self, database) } }.get()
            }
        } catch {
            throw PersistenceError(error)
        }
    }
}

/// An event in the migration of a group.
public enum ObjectMigrationEvent: Sendable, Equatable {
    /// The number of processed objects, of all that older versions stored.
    case progress(done: Int, total: Int)
    /// An object could not be migrated. It stays unchanged.
    case failed(key: String, PersistenceError)
}

extension ObjectStore {
    /// Migrates all objects of a type in a group, in transactions of a thousand objects.
    ///
    /// The migration proceeds as the stream is read. Objects that were migrated stay so if it is stopped. It includes
    /// objects of subclasses. Nested objects are migrated with the objects that contain them.
    ///
    /// - Parameters:
    ///   - type: A struct or class.
    ///   - group: Default: `standard`, for values without a group. Groups below it are not migrated.
    ///   - dryRun: Whether to store nothing. Default false.
    /// - Returns: The progress after each transaction, and the objects that could not be migrated. The stream throws
    ///   ``PersistenceError`` if the database fails.
    public func migrate<Value: PersistentRecord & SendableMetatype>(
        _ type: Value.Type, in group: GroupPath = .standard, dryRun: Bool = false
    ) -> AsyncThrowingStream<ObjectMigrationEvent, any Error> {
        let run = Locked<MigrationProgress<Value>>((nil, []))
        return AsyncThrowingStream {
            if let event = run.withLock({ $0.pending.isEmpty ? nil : $0.pending.removeFirst() }) { return event }
            do {
                let known = run.withLock { $0.migration }
                let coder = self.coder, seal = self.seal
                let (next, events) = try await self.writer.write { database in
                    var migration =
                        try known
                        ?? ObjectMigration(
                            type, group: group, dryRun: dryRun, coder: coder, seal: seal, database: database)
                    let events = try migration.step(database)
                    return (migration, events)
                }
                // Memory can contain the old form of any of them.
                if !dryRun { self.forgetAll() }
                run.withLock { $0 = (next, Array(events.dropFirst())) }
                return events.first
            } catch {
                throw PersistenceError(error)
            }
        }
    }
}

/// A migration, once it has begun, and the events that were not read yet.
private typealias MigrationProgress<Value: PersistentRecord & SendableMetatype> = (
    migration: ObjectMigration<Value>?, pending: [ObjectMigrationEvent]
)

/// The state of the migration of a group.
private struct ObjectMigration<Value: PersistentRecord & SendableMetatype>: Sendable {
    private let group: GroupPath
    private let isDryRun: Bool
    private let coder: PersistentCoder
    private let seal: ValueSeal
    /// The remaining schemas of older versions. The last one is being migrated.
    private var outdated: [Int64]
    private let total: Int
    private var done = 0
    private var last: Int64 = 0

    private static var batchSize: Int { 1000 }

    init(
        _ type: Value.Type, group: GroupPath, dryRun: Bool, coder: PersistentCoder, seal: ValueSeal,
        database: Database
    ) throws {
        (self.group, isDryRun, self.coder, self.seal) = (group, dryRun, coder, seal)
        try ObjectTables.loadSchemas(database, into: coder.registry)
        let name = try coder.registry.schema(of: type).name
        let select = try database.cachedStatement(
            "SELECT schema, count(*) FROM object WHERE grp=(SELECT id FROM grp WHERE path=?) GROUP BY schema")
        select.bind(group.path, at: 1)
        var outdated: [Int64] = []
        var total = 0
        while try select.step() {
            let fingerprint = select.integer(at: 0)
            guard let stored = coder.registry.schema(fingerprint: UInt64(bitPattern: fingerprint)),
                let current = coder.registry.currentSchema(named: stored.name),
                current.fingerprint != stored.fingerprint,
                current.chain(current.name).contains(where: { $0.name == name })
            else { continue }
            outdated.append(fingerprint)
            total += Int(select.integer(at: 1))
        }
        (self.outdated, self.total) = (outdated, total)
    }

    /// Migrates the next batch.
    ///
    /// - Returns: The events of the batch; none at the end.
    mutating func step(_ database: Database) throws -> [ObjectMigrationEvent] {
        guard let schema = outdated.last else { return [] }
        let select = try database.cachedStatement(
            """
            SELECT id, key, value FROM object
            WHERE schema=? AND grp=(SELECT id FROM grp WHERE path=?) AND id>? ORDER BY id LIMIT \(Self.batchSize)
            """)
        select.bind(schema, at: 1)
        select.bind(group.path, at: 2)
        select.bind(last, at: 3)
        var rows: [(row: Int64, key: String, bytes: [UInt8])] = []
        while try select.step() {
            last = select.integer(at: 0)
            rows.append((last, select.text(at: 1), select.bytes(at: 2)))
        }
        var events: [ObjectMigrationEvent] = []
        for (row, key, bytes) in rows {
            do {
                let upgraded = try coder.upgraded(seal.open(bytes, key: key, group: group), of: Value.self)
                // Data of a later version stays as it is, if it is read at all.
                guard !isDryRun, !upgraded.isOfLaterVersion else { continue }
                let sealed = try seal.seal(upgraded.bytes, key: key, group: group)
                try ObjectTables.replace(row: row, with: sealed, database, registry: coder.registry)
            } catch let error as PersistenceError {
                events.append(.failed(key: key, error))
            }
        }
        done += rows.count
        if rows.count < Self.batchSize {
            outdated.removeLast()
            last = 0
        }
        // Other processes may have migrated some, or stored more in an older version.
        if outdated.isEmpty { done = max(done, total) }
        return events + [.progress(done: done, total: max(done, total))]
    }
}
