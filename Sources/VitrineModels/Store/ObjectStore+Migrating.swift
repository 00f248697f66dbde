internal import VitrineCore
import VitrineDatabase

extension ObjectStore {
    /// Brings all objects of a type in a group up to date, a thousand to a transaction, as far as somebody asks for
    /// the next event. What is done stays done when it is stopped, by whatever.
    ///
    /// Looked at are objects of the type itself and of its subclasses, by the version they were stored in; objects
    /// inside others are brought up to date with these.
    ///
    /// - Parameters:
    ///   - type: A struct or class.
    ///   - group: Default: the root group. Groups below it are not looked into.
    ///   - dryRun: Whether nothing is stored. Default false.
    /// - Returns: Progress after each thousand, and what could not be brought up to date, which is as it was. It throws
    ///   ``PersistenceError`` if the database fails.
    public func migrate<Value: PersistentRecord & SendableMetatype>(
        _ type: Value.Type, in group: ObjectGroup = .root, dryRun: Bool = false
    ) -> AsyncThrowingStream<ObjectMigrationEvent, any Error> {
        let run = Locked<MigrationProgress<Value>>((nil, []))
        return AsyncThrowingStream {
            if let event = run.withLock({ $0.pending.isEmpty ? nil : $0.pending.removeFirst() }) { return event }
            do {
                try group.check()
                let known = run.withLock { $0.migration }
                let coder = self.coder, seal = self.seal
                let (next, events) = try await self.writer.write { database in
                    var migration =
                        try known ?? ObjectMigration(type, group, dryRun: dryRun, coder: coder, seal: seal, database)
                    let events = try migration.step(database)
                    return (migration, events)
                }
                // Memory may hold any of them in its old form.
                if !dryRun { self.forgetAll() }
                run.withLock { $0 = (next, Array(events.dropFirst())) }
                return events.first
            } catch {
                throw PersistenceError(error)
            }
        }
    }
}

/// A migration, once it has begun, and events that nobody has asked for yet.
private typealias MigrationProgress<Value: PersistentRecord & SendableMetatype> = (
    migration: ObjectMigration<Value>?, pending: [ObjectMigrationEvent]
)

/// How far the migration of a group has come.
private struct ObjectMigration<Value: PersistentRecord & SendableMetatype>: Sendable {
    private let group: ObjectGroup
    private let isDryRun: Bool
    private let coder: PersistentCoder
    private let seal: ValueSeal
    /// The schemas of older versions that are left, the present one last.
    private var outdated: [Int64]
    private let total: Int
    private var done = 0
    private var last: Int64 = 0

    private static var batchSize: Int { 1000 }

    init(
        _ type: Value.Type, _ group: ObjectGroup, dryRun: Bool, coder: PersistentCoder, seal: ValueSeal,
        _ database: Database
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

    /// Goes on by one batch.
    ///
    /// - Returns: Nothing when all is done.
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
                let upgraded = try coder.upgraded(seal.open(bytes, key, group), of: Value.self)
                guard !isDryRun else { continue }
                let sealed = try seal.seal(upgraded, key, group)
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
        return events + [.progress(done: done, total: total)]
    }
}
