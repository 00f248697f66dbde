internal import VitrineCore
import VitrineDatabase

extension ObjectTables {
    static func put(
        _ stored: StoredBytes, _ key: String, _ group: ObjectGroup, _ database: Database, registry: TypeRegistry
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

    /// The row of a group, which is made if there is none.
    private static func row(of group: ObjectGroup, _ database: Database) throws(DatabaseError) -> Int64 {
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

    /// Puts bytes in the place of a row's.
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

    /// The first bytes behind all texts that begin so; nil for the empty text. No byte of UTF-8 is the last there is.
    private static func end(ofPrefix prefix: String) -> [UInt8]? {
        var end = Array(prefix.utf8)
        guard let last = end.popLast() else { return nil }
        return end + [last + 1]
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

    /// The bytes of all values in a group.
    static func size(_ group: ObjectGroup, _ database: Database) throws(DatabaseError) -> Int {
        let select = try database.cachedStatement(
            "SELECT sum(length(value)) FROM object WHERE grp=(SELECT id FROM grp WHERE path=?)")
        select.bind(group.path, at: 1)
        defer { select.reset() }
        return try select.step() ? Int(select.integer(at: 0)) : 0
    }

    static func entries(
        _ group: ObjectGroup, after key: String?, limit: Int, _ database: Database
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

    /// Removes all objects that are stored under a version of a type themselves.
    static func removeAll(
        of type: String, _ version: SchemaVersion, _ database: Database
    ) throws(DatabaseError) -> [(key: String, group: ObjectGroup)] {
        let which = "schema IN (SELECT fingerprint FROM schema WHERE type=? AND version=?)"
        let select = try database.cachedStatement(
            "SELECT key, path FROM object JOIN grp ON grp.id=grp WHERE \(which)")
        select.bind(type, at: 1)
        select.bind(version.description, at: 2)
        var removed: [(key: String, group: ObjectGroup)] = []
        while try select.step() { removed.append((select.text(at: 0), ObjectGroup(select.text(at: 1)))) }
        let delete = try database.cachedStatement("DELETE FROM object WHERE \(which)")
        delete.bind(type, at: 1)
        delete.bind(version.description, at: 2)
        try delete.run()
        return removed
    }
}
