internal import VitrineCore
import VitrineDatabase

/// The tables of a store and their statements. All calls block. Changes require a transaction.
enum ObjectTables {
    /// "VtrO", in the file's header (https://www.sqlite.org/pragma.html#pragma_application_id).
    private static let applicationIdentifier: Int64 = 0x5674_724F
    private static let format: Int64 = 1

    /// Creates the tables in a new file, or checks existing ones. Empties a store of an incompatible program version.
    static func open(
        _ database: Database, configuration: ObjectStore.Configuration, seal: ValueSeal
    ) throws {
        guard !configuration.isReadOnly else {
            guard try isStore(database) else {
                throw PersistenceError.notAStore(path: database.path, reason: "it is empty")
            }
            return try seal.check(cipherMark(database), path: database.path)
        }
        try database.transaction {
            if try isStore(database) {
                try seal.check(cipherMark(database), path: database.path)
            } else {
                try create(database)
                if let (name, mark) = try seal.mark() {
                    try setMeta("cipher", value: Array(name.utf8), database: database)
                    try setMeta("mark", value: mark, database: database)
                }
            }
            try adopt(configuration, database)
        }
    }

    /// Returns whether a store that is not writable can be read.
    ///
    /// It cannot if the file is empty, or if the store should be emptied because of an incompatible program version.
    static func mayBeRead(
        _ database: Database, configuration: ObjectStore.Configuration, seal: ValueSeal
    ) throws -> Bool {
        guard try isStore(database) else {
            guard !configuration.isReadOnly else {
                throw PersistenceError.notAStore(path: database.path, reason: "it is empty")
            }
            return false
        }
        try seal.check(cipherMark(database), path: database.path)
        guard !configuration.isReadOnly, let version = configuration.version else { return true }
        let stored = try meta("version", database).map { String(decoding: $0, as: UTF8.self) }
        return stored.map { $0 == version || configuration.compatibleVersions.contains($0) } ?? true
    }

    /// Returns whether the file is a store; false for an empty file.
    private static func isStore(_ database: Database) throws -> Bool {
        let identifier = try database.integer("PRAGMA application_id") ?? 0
        if identifier == applicationIdentifier {
            let found = try database.integer("PRAGMA user_version") ?? 0
            guard found == format else {
                throw PersistenceError.notAStore(path: database.path, reason: "its format \(found) is unknown")
            }
            return true
        }
        guard identifier == 0, try database.integer("SELECT count(*) FROM sqlite_master") == 0 else {
            throw PersistenceError.notAStore(path: database.path, reason: "it is another database")
        }
        return false
    }

    private static func create(_ database: Database) throws(DatabaseError) {
        try database.execute(
            """
            PRAGMA application_id=\(applicationIdentifier);
            PRAGMA user_version=\(format);
            CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB NOT NULL);
            CREATE TABLE grp(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
            CREATE TABLE schema(fingerprint INTEGER PRIMARY KEY, type TEXT NOT NULL, version TEXT NOT NULL,
                record BLOB NOT NULL);
            CREATE TABLE object(id INTEGER PRIMARY KEY, grp INTEGER NOT NULL REFERENCES grp(id) ON DELETE CASCADE,
                key TEXT NOT NULL, schema INTEGER NOT NULL REFERENCES schema(fingerprint),
                modified INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE(grp, key));
            CREATE INDEX object_schema ON object(schema, grp);
            """)
    }

    // MARK: Metadata

    private static func meta(_ name: String, _ database: Database) throws(DatabaseError) -> [UInt8]? {
        let select = try database.cachedStatement("SELECT value FROM meta WHERE name=?")
        select.bind(name, at: 1)
        guard try select.step() else { return nil }
        defer { select.reset() }
        return select.bytes(at: 0)
    }

    private static func setMeta(_ name: String, value: [UInt8], database: Database) throws(DatabaseError) {
        let insert = try database.cachedStatement("INSERT OR REPLACE INTO meta(name, value) VALUES(?, ?)")
        insert.bind(name, at: 1)
        insert.bind(value, at: 2)
        try insert.run()
    }

    private static func cipherMark(_ database: Database) throws(DatabaseError) -> (name: String, mark: [UInt8])? {
        guard let name = try meta("cipher", database) else { return nil }
        return (String(decoding: name, as: UTF8.self), try meta("mark", database) ?? [])
    }

    /// Removes all but the reserve group if an incompatible version of the program wrote last.
    private static func adopt(_ configuration: ObjectStore.Configuration, _ database: Database) throws {
        guard let version = configuration.version else { return }
        let stored = try meta("version", database).map { String(decoding: $0, as: UTF8.self) }
        guard stored != version else { return }
        if let stored, !configuration.compatibleVersions.contains(stored) {
            try removeAll(keepingReserve: true, database)
            Log.logger("models").notice(
                "Emptied a store of an incompatible program version",
                metadata: ["path": "\(database.path)", "version": "\(stored)"])
        }
        try setMeta("version", value: Array(version.utf8), database: database)
    }
}

extension ObjectTables {
    static func put(
        _ stored: StoredBytes, key: String, group: GroupPath, database: Database, registry: TypeRegistry
    ) throws {
        try record(stored.schemas, database, registry: registry)
        let put = try database.cachedStatement(
            """
            INSERT INTO object(grp, key, schema, modified, value)
            VALUES(?1, ?2, ?3, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), ?4)
            ON CONFLICT(grp, key) DO UPDATE SET schema=excluded.schema, modified=excluded.modified,
                value=excluded.value
            """)
        put.bind(try row(of: group, database), at: 1)
        put.bind(key, at: 2)
        put.bind(stored.schemas.first.map { Int64(bitPattern: $0.fingerprint) }, at: 3)
        try put.binding(stored.bytes, at: 4) { () throws(DatabaseError) in try put.run() }
    }

    /// Returns the row of a group. Inserts a missing group.
    private static func row(of group: GroupPath, _ database: Database) throws(DatabaseError) -> Int64 {
        let select = try database.cachedStatement("SELECT id FROM grp WHERE path=?")
        select.bind(group.path, at: 1)
        if try select.step() {
            defer { select.reset() }
            return select.integer(at: 0)
        }
        let insert = try database.cachedStatement("INSERT INTO grp(path) VALUES(?)")
        insert.bind(group.path, at: 1)
        try insert.run()
        return database.lastInsertedRow
    }

    static func remove(_ key: String, group: GroupPath, database: Database) throws(DatabaseError) {
        let remove = try database.cachedStatement(
            "DELETE FROM object WHERE grp=(SELECT id FROM grp WHERE path=?) AND key=?")
        remove.bind(group.path, at: 1)
        remove.bind(key, at: 2)
        try remove.run()
    }

    static func remove(_ group: GroupPath, _ database: Database) throws(DatabaseError) {
        let remove = try database.cachedStatement("DELETE FROM grp WHERE path=? OR (path>? AND path<?)")
        let below = group.descendants
        remove.bind(group.path, at: 1)
        remove.bind(below.lowerBound, at: 2)
        remove.bind(below.upperBound, at: 3)
        try remove.run()
    }

    /// Removes all values, but for the reserve group on request.
    static func removeAll(keepingReserve: Bool, _ database: Database) throws(DatabaseError) {
        let remove = try database.cachedStatement(
            "DELETE FROM grp WHERE NOT (?1 AND (path=?2 OR (path>?3 AND path<?4)))")
        let below = GroupPath.reserve.descendants
        remove.bind(keepingReserve ? 1 : 0, at: 1)
        remove.bind(GroupPath.reserve.path, at: 2)
        remove.bind(below.lowerBound, at: 3)
        remove.bind(below.upperBound, at: 4)
        try remove.run()
    }

    /// Replaces a value, unless its bytes have changed.
    static func replace(
        _ old: [UInt8], with stored: StoredBytes, key: String, group: GroupPath, database: Database,
        registry: TypeRegistry
    ) throws {
        let select = try database.cachedStatement(
            "SELECT id FROM object WHERE grp=(SELECT id FROM grp WHERE path=?) AND key=? AND value=?")
        select.bind(group.path, at: 1)
        select.bind(key, at: 2)
        select.bind(old, at: 3)
        guard try select.step() else { return }
        let row = select.integer(at: 0)
        select.reset()
        try replace(row: row, with: stored, database, registry: registry)
    }

    /// Replaces the value of a row.
    static func replace(
        row: Int64, with stored: StoredBytes, _ database: Database, registry: TypeRegistry
    ) throws {
        try record(stored.schemas, database, registry: registry)
        let update = try database.cachedStatement("UPDATE object SET value=?, schema=? WHERE id=?")
        update.bind(stored.bytes, at: 1)
        update.bind(stored.schemas.first.map { Int64(bitPattern: $0.fingerprint) }, at: 2)
        update.bind(row, at: 3)
        try update.run()
    }

    static func bytes(_ key: String, group: GroupPath, database: Database) throws(DatabaseError) -> [UInt8]? {
        let select = try database.cachedStatement(
            "SELECT value FROM object WHERE grp=(SELECT id FROM grp WHERE path=?) AND key=?")
        select.bind(group.path, at: 1)
        select.bind(key, at: 2)
        guard try select.step() else { return nil }
        defer { select.reset() }
        return select.bytes(at: 0)
    }

    static func keys(
        _ group: GroupPath, prefix: String, descending: Bool, limit: Int, _ database: Database
    ) throws(DatabaseError) -> [String] {
        let order = descending ? "DESC" : "ASC"
        let select = try database.cachedStatement(
            """
            SELECT key FROM object WHERE grp=(SELECT id FROM grp WHERE path=?1) AND key>=?2
                AND (?3 IS NULL OR key<CAST(?3 AS TEXT)) ORDER BY key \(order) LIMIT ?4
            """)
        select.bind(group.path, at: 1)
        select.bind(prefix, at: 2)
        if let end = end(ofPrefix: prefix) { select.bind(end, at: 3) } else { select.bindNull(at: 3) }
        select.bind(limit, at: 4)
        var keys: [String] = []
        while try select.step() { keys.append(select.text(at: 0)) }
        return keys
    }

    /// Returns the first bytes after all texts with a prefix; nil for the empty prefix. UTF-8 has no byte 255.
    private static func end(ofPrefix prefix: String) -> [UInt8]? {
        var end = Array(prefix.utf8)
        guard let last = end.popLast() else { return nil }
        return end + [last + 1]
    }

    /// Returns the groups with objects below a group, or all but the standard one for nil.
    static func groups(below group: GroupPath?, _ database: Database) throws(DatabaseError) -> [GroupPath] {
        let select = try database.cachedStatement(
            """
            SELECT path FROM grp WHERE path<>'' AND (?1 IS NULL OR (path>?1 AND path<?2))
                AND EXISTS(SELECT 1 FROM object WHERE object.grp=grp.id) ORDER BY path
            """)
        if let range = group?.descendants {
            select.bind(range.lowerBound, at: 1)
            select.bind(range.upperBound, at: 2)
        } else {
            select.bindNull(at: 1)
            select.bindNull(at: 2)
        }
        var groups: [GroupPath] = []
        while try select.step() { groups.append(GroupPath(path: select.text(at: 0))) }
        return groups
    }

    static func count(_ group: GroupPath, _ database: Database) throws(DatabaseError) -> Int {
        let select = try database.cachedStatement(
            "SELECT count(*) FROM object WHERE grp=(SELECT id FROM grp WHERE path=?)")
        select.bind(group.path, at: 1)
        defer { select.reset() }
        return try select.step() ? Int(select.integer(at: 0)) : 0
    }

    /// Returns the size of all values in a group.
    static func size(_ group: GroupPath, _ database: Database) throws(DatabaseError) -> Int {
        let select = try database.cachedStatement(
            "SELECT sum(length(value)) FROM object WHERE grp=(SELECT id FROM grp WHERE path=?)")
        select.bind(group.path, at: 1)
        defer { select.reset() }
        return try select.step() ? Int(select.integer(at: 0)) : 0
    }

    static func entries(
        _ group: GroupPath, after key: String?, limit: Int, _ database: Database
    ) throws(DatabaseError) -> [ObjectEntry] {
        let select = try database.cachedStatement(
            """
            SELECT key, type, version, length(value), modified FROM object JOIN schema ON schema=fingerprint
            WHERE grp=(SELECT id FROM grp WHERE path=?1) AND key>?2 ORDER BY key LIMIT ?3
            """)
        select.bind(group.path, at: 1)
        // No key is empty.
        select.bind(key ?? "", at: 2)
        select.bind(limit, at: 3)
        var entries: [ObjectEntry] = []
        while try select.step() {
            entries.append(
                ObjectEntry(
                    key: select.text(at: 0), group: group, type: select.text(at: 1),
                    version: SchemaVersion(select.text(at: 2)), size: ByteCount(Int(select.integer(at: 3))),
                    modified: .milliseconds(select.integer(at: 4))))
        }
        return entries
    }

    /// Removes all objects that are stored under a version of a type, without nested ones.
    static func removeAll(
        of type: String, _ version: SchemaVersion, _ database: Database
    ) throws(DatabaseError) -> [(key: String, group: GroupPath)] {
        var removed: [(key: String, group: GroupPath)] = []
        // Equal versions may have been recorded with different texts.
        for stored in try versions(database) where stored.type == type && stored.version == version {
            let fingerprint = Int64(bitPattern: stored.fingerprint)
            let select = try database.cachedStatement(
                "SELECT key, path FROM object JOIN grp ON grp.id=grp WHERE schema=?")
            select.bind(fingerprint, at: 1)
            while try select.step() { removed.append((select.text(at: 0), GroupPath(path: select.text(at: 1)))) }
            let delete = try database.cachedStatement("DELETE FROM object WHERE schema=?")
            delete.bind(fingerprint, at: 1)
            try delete.run()
        }
        return removed
    }
}

extension ObjectTables {
    /// Adds all recorded schemas to a registry. A damaged schema is skipped, which affects only its own objects.
    static func loadSchemas(_ database: Database, into registry: TypeRegistry) throws(DatabaseError) {
        let statement = try database.cachedStatement("SELECT fingerprint, record FROM schema")
        while try statement.step() {
            guard registry.schema(fingerprint: UInt64(bitPattern: statement.integer(at: 0))) == nil else { continue }
            if let schema = try? Schema(encoded: statement.bytes(at: 1), registry: registry) { registry.add(schema) }
        }
    }

    /// Records schemas in the transaction of the first object that needs them.
    ///
    /// - Throws: ``PersistenceError/changedWithoutVersion(type:version:differences:)`` if the store has the same
    ///   version of a type in a form that cannot be read as this one.
    private static func record(_ schemas: [Schema], _ database: Database, registry: TypeRegistry) throws {
        for schema in schemas {
            let known = try database.cachedStatement("SELECT 1 FROM schema WHERE fingerprint=?")
            known.bind(Int64(bitPattern: schema.fingerprint), at: 1)
            if try known.step() {
                known.reset()
                continue
            }
            try compare(schema, database: database, registry: registry)
            let insert = try database.cachedStatement("INSERT INTO schema VALUES(?,?,?,?)")
            insert.bind(Int64(bitPattern: schema.fingerprint), at: 1)
            insert.bind(schema.name, at: 2)
            insert.bind(schema.version.description, at: 3)
            insert.bind(schema.encoded, at: 4)
            try insert.run()
        }
    }

    private static func compare(_ schema: Schema, database: Database, registry: TypeRegistry) throws {
        let statement = try database.cachedStatement("SELECT record, version FROM schema WHERE type=?")
        statement.bind(schema.name, at: 1)
        defer { statement.reset() }
        while try statement.step() {
            guard SchemaVersion(statement.text(at: 1)) == schema.version else { continue }
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

    /// All recorded schemas with the number of objects that are stored under each themselves.
    static func versions(_ database: Database) throws(DatabaseError) -> [ObjectStore.StoredVersion] {
        let select = try database.cachedStatement(
            """
            SELECT type, version, fingerprint, (SELECT count(*) FROM object WHERE schema=fingerprint) FROM schema
            """)
        var versions: [ObjectStore.StoredVersion] = []
        while try select.step() {
            versions.append(
                ObjectStore.StoredVersion(
                    type: select.text(at: 0), version: SchemaVersion(select.text(at: 1)),
                    fingerprint: UInt64(bitPattern: select.integer(at: 2)), count: Int(select.integer(at: 3))))
        }
        return versions.sorted { ($0.type, $0.version, $0.fingerprint) < ($1.type, $1.version, $1.fingerprint) }
    }
}
