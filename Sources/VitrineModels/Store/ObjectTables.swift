internal import VitrineCore
import VitrineDatabase

/// The tables of a store and the statements on them. All calls block, and changes belong into a transaction.
enum ObjectTables {
    /// "VtrO", in the file's header (https://www.sqlite.org/pragma.html#pragma_application_id).
    private static let applicationIdentifier: Int64 = 0x5674_724F
    private static let format: Int64 = 1

    /// Makes the tables in a new file, or checks that they are what is expected. Empties a store of another version of
    /// the program.
    static func open(
        _ database: Database, _ configuration: ObjectStore.Configuration, _ seal: ValueSeal
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
                    try setMeta("cipher", Array(name.utf8), database)
                    try setMeta("mark", mark, database)
                }
            }
            try adopt(configuration, database)
        }
    }

    /// Whether a store that cannot be written now may be read: false if there is none yet, or if it should be emptied
    /// because another version of the program wrote it.
    static func mayBeRead(
        _ database: Database, _ configuration: ObjectStore.Configuration, _ seal: ValueSeal
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

    /// Whether the file is a store; false for an empty one.
    private static func isStore(_ database: Database) throws -> Bool {
        let identifier = try database.integer("PRAGMA application_id") ?? 0
        if identifier == applicationIdentifier {
            let found = try database.integer("PRAGMA user_version") ?? 0
            guard found == format else {
                throw PersistenceError.notAStore(path: database.path, reason: "its format \(found) is not known")
            }
            return true
        }
        guard identifier == 0, try database.integer("SELECT count(*) FROM sqlite_master") == 0 else {
            throw PersistenceError.notAStore(path: database.path, reason: "it has tables of something else")
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

    // MARK: What is known of the store

    private static func meta(_ name: String, _ database: Database) throws(DatabaseError) -> [UInt8]? {
        let select = try database.cachedStatement("SELECT value FROM meta WHERE name=?")
        select.bind(name, at: 1)
        guard try select.step() else { return nil }
        defer { select.reset() }
        return select.bytes(at: 0)
    }

    private static func setMeta(_ name: String, _ value: [UInt8], _ database: Database) throws(DatabaseError) {
        let insert = try database.cachedStatement("INSERT OR REPLACE INTO meta(name, value) VALUES(?, ?)")
        insert.bind(name, at: 1)
        insert.bind(value, at: 2)
        try insert.run()
    }

    private static func cipherMark(_ database: Database) throws(DatabaseError) -> (name: String, mark: [UInt8])? {
        guard let name = try meta("cipher", database) else { return nil }
        return (String(decoding: name, as: UTF8.self), try meta("mark", database) ?? [])
    }

    /// Removes all but the reserved groups if another version of the program, and none it is compatible with, wrote
    /// last (R49).
    private static func adopt(_ configuration: ObjectStore.Configuration, _ database: Database) throws {
        guard let version = configuration.version else { return }
        let stored = try meta("version", database).map { String(decoding: $0, as: UTF8.self) }
        guard stored != version else { return }
        if let stored, !configuration.compatibleVersions.contains(stored) {
            for group in try groups(below: .root, database) + [.root]
            where !configuration.reservedGroups.contains(where: { $0.contains(group) }) {
                let delete = try database.cachedStatement(
                    "DELETE FROM object WHERE grp=(SELECT id FROM grp WHERE path=?)")
                delete.bind(group.path, at: 1)
                try delete.run()
            }
            Log.logger("models").notice(
                "A store of another version of the program was emptied",
                metadata: ["path": "\(database.path)", "version": "\(stored)"])
        }
        try setMeta("version", Array(version.utf8), database)
    }
}
