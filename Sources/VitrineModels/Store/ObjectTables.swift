internal import VitrineCore
import VitrineDatabase

/// The tables of a store and the statements on them. All calls block, and changes belong into a transaction.
enum ObjectTables {
    /// "VtrO", in the file's header (https://www.sqlite.org/pragma.html#pragma_application_id).
    private static let applicationIdentifier: Int64 = 0x5674_724F
    private static let format: Int64 = 1

    /// Makes the tables in a new file.
    static func create(_ database: Database) throws {
        try database.transaction {
            let identifier = try database.integer("PRAGMA application_id") ?? 0
            if identifier == applicationIdentifier {
                let found = try database.integer("PRAGMA user_version") ?? 0
                guard found == format else {
                    throw PersistenceError.notAStore(path: database.path, reason: "its format \(found) is not known")
                }
                return
            }
            guard identifier == 0, try database.integer("SELECT count(*) FROM sqlite_master") == 0 else {
                throw PersistenceError.notAStore(path: database.path, reason: "it has tables of something else")
            }
            try database.execute(
                """
                PRAGMA application_id=\(applicationIdentifier);
                PRAGMA user_version=\(format);
                CREATE TABLE grp(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
                CREATE TABLE schema(fingerprint INTEGER PRIMARY KEY, type TEXT NOT NULL, version TEXT NOT NULL,
                    record BLOB NOT NULL);
                CREATE TABLE object(id INTEGER PRIMARY KEY, grp INTEGER NOT NULL REFERENCES grp(id) ON DELETE CASCADE,
                    key TEXT NOT NULL, schema INTEGER NOT NULL REFERENCES schema(fingerprint),
                    modified INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE(grp, key));
                CREATE INDEX object_schema ON object(schema, grp);
                """)
        }
    }

    // MARK: Schemas

    /// Makes all recorded schemas known to a registry. One that cannot be read is left out: its objects cannot be
    /// read then, and all others can.
    static func loadSchemas(_ database: Database, into registry: TypeRegistry) throws(DatabaseError) {
        let statement = try database.cachedStatement("SELECT fingerprint, record FROM schema")
        while try statement.step() {
            guard registry.schema(fingerprint: UInt64(bitPattern: statement.integer(at: 0))) == nil else { continue }
            if let schema = try? Schema(encoded: statement.bytes(at: 1), registry: registry) { registry.add(schema) }
        }
    }

    /// Records schemas, in the transaction of the first object that needs them.
    ///
    /// - Throws: ``PersistenceError/changedWithoutVersion(type:version:differences:)`` if the store has the same
    ///   version of a type in a form that cannot be read as this one.
    static func record(_ schemas: [Schema], _ database: Database, registry: TypeRegistry) throws {
        for schema in schemas {
            let known = try database.cachedStatement("SELECT 1 FROM schema WHERE fingerprint=?")
            known.bind(Int64(bitPattern: schema.fingerprint), at: 1)
            if try known.step() {
                known.reset()
                continue
            }
            try compare(schema, database, registry)
            let insert = try database.cachedStatement("INSERT INTO schema VALUES(?,?,?,?)")
            insert.bind(Int64(bitPattern: schema.fingerprint), at: 1)
            insert.bind(schema.name, at: 2)
            insert.bind(schema.version.description, at: 3)
            insert.bind(schema.encoded, at: 4)
            try insert.run()
        }
    }

    private static func compare(_ schema: Schema, _ database: Database, _ registry: TypeRegistry) throws {
        let statement = try database.cachedStatement("SELECT record FROM schema WHERE type=? AND version=?")
        statement.bind(schema.name, at: 1)
        statement.bind(schema.version.description, at: 2)
        defer { statement.reset() }
        while try statement.step() {
            guard let stored = try? Schema(encoded: statement.bytes(at: 0), registry: registry) else { continue }
            for (name, record) in schema.records {
                guard let other = stored.records[name], other.version == record.version else { continue }
                let differences = other.differences(from: record)
                guard differences.isEmpty else {
                    throw PersistenceError.changedWithoutVersion(
                        type: name, version: record.version, differences: differences)
                }
            }
        }
    }

    // MARK: Objects

    static func put(
        _ stored: StoredBytes, _ key: String, _ group: ObjectGroup, _ database: Database, registry: TypeRegistry
    ) throws {
        try record(stored.schemas, database, registry: registry)
        let groups = try database.cachedStatement("INSERT INTO grp(path) VALUES(?) ON CONFLICT DO NOTHING")
        groups.bind(group.path, at: 1)
        try groups.run()
        let put = try database.cachedStatement(
            """
            INSERT INTO object(grp, key, schema, modified, value)
            VALUES((SELECT id FROM grp WHERE path=?1), ?2, ?3,
                CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), ?4)
            ON CONFLICT(grp, key) DO UPDATE SET schema=excluded.schema, modified=excluded.modified,
                value=excluded.value
            """)
        put.bind(group.path, at: 1)
        put.bind(key, at: 2)
        put.bind(stored.schemas.first.map { Int64(bitPattern: $0.fingerprint) }, at: 3)
        try put.binding(stored.bytes, at: 4) { () throws(DatabaseError) in try put.run() }
    }

    static func remove(_ key: String, _ group: ObjectGroup, _ database: Database) throws(DatabaseError) {
        let remove = try database.cachedStatement(
            "DELETE FROM object WHERE grp=(SELECT id FROM grp WHERE path=?) AND key=?")
        remove.bind(group.path, at: 1)
        remove.bind(key, at: 2)
        try remove.run()
    }

    static func remove(_ group: ObjectGroup, _ database: Database) throws(DatabaseError) {
        // '0' follows '/'.
        let remove = try database.cachedStatement(
            "DELETE FROM grp WHERE ?1='' OR path=?1 OR (path>?1||'/' AND path<?1||'0')")
        remove.bind(group.path, at: 1)
        try remove.run()
    }

    /// Brings bytes up to date that are still those that were read.
    static func replace(
        _ old: [UInt8], with stored: StoredBytes, _ key: String, _ group: ObjectGroup, _ database: Database,
        registry: TypeRegistry
    ) throws {
        try record(stored.schemas, database, registry: registry)
        let update = try database.cachedStatement(
            """
            UPDATE object SET value=?1, schema=?2
            WHERE grp=(SELECT id FROM grp WHERE path=?3) AND key=?4 AND value=?5
            """)
        update.bind(stored.bytes, at: 1)
        update.bind(stored.schemas.first.map { Int64(bitPattern: $0.fingerprint) }, at: 2)
        update.bind(group.path, at: 3)
        update.bind(key, at: 4)
        update.bind(old, at: 5)
        try update.run()
    }

    static func bytes(_ key: String, _ group: ObjectGroup, _ database: Database) throws(DatabaseError) -> [UInt8]? {
        let select = try database.cachedStatement(
            "SELECT value FROM object WHERE grp=(SELECT id FROM grp WHERE path=?) AND key=?")
        select.bind(group.path, at: 1)
        select.bind(key, at: 2)
        guard try select.step() else { return nil }
        defer { select.reset() }
        return select.bytes(at: 0)
    }

    static func keys(
        _ group: ObjectGroup, prefix: String, descending: Bool, limit: Int, _ database: Database
    ) throws(DatabaseError) -> [String] {
        let order = descending ? "DESC" : "ASC"
        let select = try database.cachedStatement(
            """
            SELECT key FROM object WHERE grp=(SELECT id FROM grp WHERE path=?1) AND key>=?2
                AND substr(key, 1, length(?2))=?2 ORDER BY key \(order) LIMIT ?3
            """)
        select.bind(group.path, at: 1)
        select.bind(prefix, at: 2)
        select.bind(limit, at: 3)
        var keys: [String] = []
        while try select.step() { keys.append(select.text(at: 0)) }
        return keys
    }

    static func groups(below group: ObjectGroup, _ database: Database) throws(DatabaseError) -> [ObjectGroup] {
        let select = try database.cachedStatement(
            """
            SELECT path FROM grp WHERE path<>'' AND (?1='' OR (path>?1||'/' AND path<?1||'0'))
                AND EXISTS(SELECT 1 FROM object WHERE object.grp=grp.id) ORDER BY path
            """)
        select.bind(group.path, at: 1)
        var groups: [ObjectGroup] = []
        while try select.step() { groups.append(ObjectGroup(select.text(at: 0))) }
        return groups
    }

    static func count(_ group: ObjectGroup, _ database: Database) throws(DatabaseError) -> Int {
        let select = try database.cachedStatement(
            "SELECT count(*) FROM object WHERE grp=(SELECT id FROM grp WHERE path=?)")
        select.bind(group.path, at: 1)
        defer { select.reset() }
        return try select.step() ? Int(select.integer(at: 0)) : 0
    }
}
