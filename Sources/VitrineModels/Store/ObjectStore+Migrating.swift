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
        let run = Locked<ObjectMigration<Value>?>(nil)
        let pending = Locked<[ObjectMigrationEvent]>([])
        return AsyncThrowingStream {
            if let event = pending.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return event }
            do {
                try group.check()
                let known = run.withLock { $0 }
                let coder = self.coder
                let (next, events) = try await self.writer.write { database in
                    var state = try known ?? ObjectMigration(type, group, dryRun: dryRun, coder: coder, database)
                    let events = try state.step(database)
                    return (state, events)
                }
                run.withLock { $0 = next }
                return pending.withLock { pending in
                    pending = events
                    return pending.isEmpty ? nil : pending.removeFirst()
                }
            } catch {
                throw PersistenceError(error)
            }
        }
    }
}

/// How far the migration of a group has come.
private struct ObjectMigration<Value: PersistentRecord & SendableMetatype>: Sendable {
    private let group: ObjectGroup
    private let isDryRun: Bool
    private let coder: PersistentCoder
    /// The schemas of older versions that are left, the present one last.
    private var outdated: [Int64]
    private let total: Int
    private var done = 0
    private var last: Int64 = 0

    private static var batchSize: Int { 1000 }

    init(
        _ type: Value.Type, _ group: ObjectGroup, dryRun: Bool, coder: PersistentCoder, _ database: Database
    ) throws {
        (self.group, isDryRun, self.coder) = (group, dryRun, coder)
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
        var rows: [(key: String, bytes: [UInt8])] = []
        while try select.step() {
            last = select.integer(at: 0)
            rows.append((select.text(at: 1), select.bytes(at: 2)))
        }
        var events: [ObjectMigrationEvent] = []
        for row in rows {
            do throws(PersistenceError) {
                let upgraded = try coder.upgraded(row.bytes, of: Value.self)
                guard !isDryRun else { continue }
                do {
                    try ObjectTables.replace(
                        row.bytes, with: upgraded, row.key, group, database, registry: coder.registry)
                } catch {
                    throw PersistenceError(error)
                }
            } catch {
                if case .database(let error) = error { throw error }
                events.append(.failed(key: row.key, error))
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
