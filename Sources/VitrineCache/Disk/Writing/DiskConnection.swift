import VitrineCore
import VitrineDatabase

/// The connection that changes one generation, with its schema and its prepared statements. The parts of a
/// ``DiskWriter`` share it.
final class DiskConnection {
    struct Statements {
        let database: Database
        let total, account, setAccount, deleteAccount: Statement
        let find, insert, insertBody, delete, deleteBody: Statement
        let orphanCandidates, addOrphanCandidate, clearOrphans: Statement
        let lowest, rerank, expired, earliest, hit, use: Statement
        let addTag, deleteTag, tagged: Statement
        let storeChunk, deleteChunk: Statement
    }

    /// The format of the tables. 3 had no blocks.
    static let schemaVersion: Int64 = 5
    /// The first format that has bodies in blocks.
    static let blockSchemaVersion: Int64 = 4
    /// The account of all entries.
    static let totalID: Int64 = 0
    /// The bytes of an entry that count towards the capacity.
    static let chargeSQL = "size+length(key)+length(validator)+5*length(tags)+\(DiskCache.entryOverhead)"

    /// The directory of the generation.
    let path: String
    /// The watch must outlive the connection.
    private let watch: FileWatch
    /// Set until the end of the object.
    private var open: Statements?

    init(generation: Generation, version: String?) throws(DatabaseError) {
        watch = generation.watch
        path = generation.path
        var options = Database.Options()
        options.cacheBytes = 4 << 20
        let database = try Database(path: generation.databasePath, options: options)
        // The log is moved between batches, by another thread.
        database.countLogFrames()
        do throws(DatabaseError) {
            try Self.create(database, version: version)
            open = try Self.prepare(database)
        } catch {
            throw error.blamingSchema
        }
        generation.watch.watchIndex()
    }

    deinit { open = nil }

    /// The statements, which are there as long as the object is.
    func statements() throws(DatabaseError) -> Statements {
        guard let open else { throw DatabaseError(code: 21, message: "closed", path: path) }
        return open
    }

    /// Drops the transaction, if there is one.
    func rollback() {
        guard let open else { return }
        let readers = [
            open.total, open.account, open.find, open.lowest, open.expired, open.earliest, open.orphanCandidates,
            open.tagged,
        ]
        for statement in readers { statement.reset() }
        open.database.rollbackTransaction()
    }

    // MARK: Version of the application

    /// The application version the entries were written by.
    func version() throws(DatabaseError) -> String? {
        let select = try statements().database.prepare("SELECT name FROM version WHERE id=1")
        guard try select.step(), !select.isNull(at: 0) else { return nil }
        return select.text(at: 0)
    }

    /// Sets the application version.
    func setVersion(_ version: String) throws(DatabaseError) {
        let update = try statements().database.prepare("UPDATE version SET name=? WHERE id=1")
        update.bind(version, at: 1)
        try update.run()
    }

    // MARK: Schema

    private static func create(_ database: Database, version: String?) throws(DatabaseError) {
        guard try database.integer("PRAGMA user_version") != schemaVersion else { return }
        try database.beginTransaction()
        defer { database.rollbackTransaction() }
        // The identifier is made of the format's and the key's hash, so that a format's rows lie together. Bodies are a
        // table of their own, so that recording a use does not rewrite one (8 times cheaper), and are numbered as they
        // come, so that they are appended. The account of all entries lies on one page with those of the formats.
        try database.execute(
            """
            CREATE TABLE IF NOT EXISTS entry(id INTEGER PRIMARY KEY, key BLOB NOT NULL, size INTEGER NOT NULL,
                rank REAL NOT NULL, hits INTEGER NOT NULL, ranked INTEGER NOT NULL, created INTEGER NOT NULL,
                used INTEGER NOT NULL, expires INTEGER, sum INTEGER NOT NULL, body INTEGER NOT NULL,
                validator BLOB NOT NULL, format INTEGER NOT NULL, tags BLOB NOT NULL, blocks BLOB NOT NULL DEFAULT x'');
            CREATE TABLE IF NOT EXISTS body(id INTEGER PRIMARY KEY, data BLOB NOT NULL);
            CREATE INDEX IF NOT EXISTS entry_rank ON entry(format,rank);
            CREATE INDEX IF NOT EXISTS entry_expires ON entry(format,expires) WHERE expires IS NOT NULL;
            CREATE TABLE IF NOT EXISTS account(id INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes INTEGER NOT NULL,
                count INTEGER NOT NULL, floor REAL NOT NULL, latest INTEGER NOT NULL, files INTEGER NOT NULL);
            CREATE TABLE IF NOT EXISTS tag(tag INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY(tag,entry))
                WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS purge(tag INTEGER PRIMARY KEY, sequence INTEGER NOT NULL,
                pending INTEGER NOT NULL);
            CREATE INDEX IF NOT EXISTS purge_sequence ON purge(sequence);
            CREATE INDEX IF NOT EXISTS purge_pending ON purge(tag) WHERE pending=1;
            CREATE TABLE IF NOT EXISTS orphan_candidate(id INTEGER PRIMARY KEY);
            CREATE TABLE IF NOT EXISTS space(id INTEGER PRIMARY KEY, bits BLOB NOT NULL);
            CREATE TABLE IF NOT EXISTS version(id INTEGER PRIMARY KEY, name TEXT);
            INSERT OR IGNORE INTO account VALUES(\(totalID),'',0,0,0.0,0,0);
            PRAGMA user_version=\(schemaVersion);
            """)
        // Schema 3 had all bodies that are no files in rows. Those stay where they are. Schema 4 had another name for
        // the table of orphan candidates.
        let known = "SELECT count(*) FROM pragma_table_info('entry') WHERE name='blocks'"
        if try database.integer(known) == 0 {
            try database.execute("ALTER TABLE entry ADD COLUMN blocks BLOB NOT NULL DEFAULT x''")
        }
        let insert = try database.prepare("INSERT OR IGNORE INTO version VALUES(1,?)")
        if let version { insert.bind(version, at: 1) } else { insert.bindNull(at: 1) }
        try insert.run()
        try database.commitTransaction()
    }

    private static func prepare(_ database: Database) throws(DatabaseError) -> Statements {
        let stored = "SELECT id,format,\(chargeSQL),hits,ranked,rank,used,body,tags,blocks FROM entry"
        return Statements(
            database: database,
            total: try database.prepare("SELECT bytes,count,floor,latest,files FROM account WHERE id=\(totalID)"),
            account: try database.prepare("SELECT bytes,count,floor FROM account WHERE id=?"),
            setAccount: try database.prepare(
                """
                INSERT INTO account VALUES(?1,?2,?3,?4,?5,?6,?7) ON CONFLICT(id) DO UPDATE SET
                name=coalesce(nullif(?2,''),name),bytes=?3,count=?4,floor=?5,latest=?6,files=?7
                """),
            deleteAccount: try database.prepare("DELETE FROM account WHERE id=?"),
            find: try database.prepare("\(stored) WHERE id=?"),
            insert: try database.prepare("INSERT INTO entry VALUES(?1,?2,?3,?4,?5,?6,?7,?7,?8,?9,?10,?11,?12,?13,?14)"),
            insertBody: try database.prepare("INSERT INTO body(data) VALUES(?)"),
            delete: try database.prepare("DELETE FROM entry WHERE id=?"),
            deleteBody: try database.prepare("DELETE FROM body WHERE id=?"),
            orphanCandidates: try database.prepare("SELECT id FROM orphan_candidate"),
            addOrphanCandidate: try database.prepare("INSERT OR IGNORE INTO orphan_candidate VALUES(?)"),
            clearOrphans: try database.prepare("DELETE FROM orphan_candidate"),
            lowest: try database.prepare("\(stored) WHERE format=? ORDER BY rank LIMIT 1"),
            rerank: try database.prepare("UPDATE entry SET rank=?2,hits=?3,ranked=?3 WHERE id=?1"),
            expired: try database.prepare(
                "\(stored) WHERE format=?1 AND expires IS NOT NULL AND expires<=?2 ORDER BY expires LIMIT ?3"),
            earliest: try database.prepare(
                "SELECT expires FROM entry WHERE format=? AND expires IS NOT NULL ORDER BY expires LIMIT 1"),
            hit: try database.prepare("UPDATE entry SET hits=min(15,hits+?2),used=max(used,?3) WHERE id=?1"),
            use: try database.prepare(
                "UPDATE entry SET hits=min(15,hits+?2),used=max(used,?3),rank=?4 WHERE id=?1"),
            addTag: try database.prepare("INSERT OR IGNORE INTO tag VALUES(?1,?2)"),
            deleteTag: try database.prepare("DELETE FROM tag WHERE tag=?1 AND entry=?2"),
            tagged: try database.prepare("SELECT entry FROM tag WHERE tag=?1 AND entry>?2 ORDER BY entry LIMIT ?3"),
            storeChunk: try database.prepare("INSERT OR REPLACE INTO space VALUES(?1,?2)"),
            deleteChunk: try database.prepare("DELETE FROM space WHERE id=?"))
    }
}

extension DatabaseError {
    /// Statements of ours that make no sense to a database mean that its schema was damaged (SQLITE_ERROR becomes
    /// SQLITE_CORRUPT); all others as they are.
    var blamingSchema: DatabaseError {
        code == 1 ? DatabaseError(code: 11, message: "its schema is damaged: \(message)", path: path) : self
    }
}
