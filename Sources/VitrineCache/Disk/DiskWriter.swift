import VitrineCore
import VitrineDatabase

/// The connection that changes one generation, and its statements.
///
/// Used by one thread at a time, which holds the cache's process lock.
///
/// Unchecked: a C-handle type.
final class DiskWriter: @unchecked Sendable {
    /// What the database knows about all of its entries.
    struct Totals: Equatable {
        var bytes = 0
        var count = 0
        /// The rank of the entry that was evicted last; for the least-recently-used order, the number of uses so far.
        var floor = 0.0
        /// The latest creation of any entry, in nanoseconds since 1970: tells when the clock has gone back.
        var latest: Int64 = 0
    }

    /// What one entry counts and where its body is.
    struct Stored {
        var id: Int64
        var charge: Int
        var hits: Int64
        var ranked: Int64
        var rank: Double
        /// The row in `body`; 0 for a file.
        var body: Int64
        var isFile: Bool { body == 0 }
    }

    /// The format of the tables.
    static let schemaVersion: Int64 = 1
    static let chargeSQL = "size+length(key)+length(tag)+\(DiskCache.entryOverhead)"

    /// The watch must outlive the connection.
    let watch: FileWatch
    let filter: EntryFilter
    let generation: String
    let path: String
    let eviction: DiskCache.Eviction
    /// Set until the end of the object.
    private var core: Core?
    var totals = Totals()
    private var storedTotals = Totals()
    /// Bodies in files that belong to nobody once the transaction is stored.
    private var doomed: [Int64] = []
    var tally = DiskCache.Statistics()
    /// Uses that eviction takes into account before they are written.
    var unwritten: HitRecorder?
    private let mover: LogMover

    struct Core {
        let database: Database
        let meta, setMeta, find, insert, insertBody, delete, deleteBody: Statement
        let lowest, rerank, expired, hit, use: Statement
    }

    init(generation: Generation, eviction: DiskCache.Eviction, version: String?) throws(DatabaseError) {
        watch = generation.watch
        filter = generation.filter
        mover = LogMover(generation: generation)
        self.generation = generation.name
        path = generation.path
        self.eviction = eviction
        var options = Database.Options()
        options.cacheBytes = 4 << 20
        let database = try Database(path: generation.databasePath, options: options)
        // The log is moved between batches, by another thread.
        database.setAutomaticCheckpoint(pages: 0)
        do throws(DatabaseError) {
            try Self.create(database, version: version)
            core = try Self.prepare(database)
        } catch {
            throw error.blamingSchema
        }
        generation.watch.watchIndex()
    }

    deinit { core = nil }

    /// The statements, which are there as long as the object is.
    func statements() throws(DatabaseError) -> Core {
        guard let core else { throw DatabaseError(code: 21, message: "closed", path: path) }
        return core
    }

    private static func create(_ database: Database, version: String?) throws(DatabaseError) {
        guard try database.integer("PRAGMA user_version") != schemaVersion else { return }
        try database.beginTransaction()
        defer { database.rollbackTransaction() }
        // The identifier is the key's hash. Bodies are a table of their own, so that recording a use does not rewrite
        // one (8 times cheaper), and are numbered as they come, so that they are appended.
        try database.execute(
            """
            CREATE TABLE IF NOT EXISTS entry(id INTEGER PRIMARY KEY, key BLOB NOT NULL, size INTEGER NOT NULL,
                rank REAL NOT NULL, hits INTEGER NOT NULL, ranked INTEGER NOT NULL, created INTEGER NOT NULL,
                used INTEGER NOT NULL, expires INTEGER, sum INTEGER NOT NULL, body INTEGER NOT NULL,
                tag BLOB NOT NULL);
            CREATE TABLE IF NOT EXISTS body(id INTEGER PRIMARY KEY, data BLOB NOT NULL);
            CREATE INDEX IF NOT EXISTS entry_rank ON entry(rank);
            CREATE INDEX IF NOT EXISTS entry_expires ON entry(expires) WHERE expires IS NOT NULL;
            CREATE TABLE IF NOT EXISTS meta(id INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, count INTEGER NOT NULL,
                floor REAL NOT NULL, latest INTEGER NOT NULL, version TEXT);
            PRAGMA user_version=\(schemaVersion);
            """)
        let insert = try database.prepare("INSERT OR IGNORE INTO meta VALUES(1,0,0,0.0,0,?)")
        if let version { insert.bind(version, at: 1) } else { insert.bindNull(at: 1) }
        try insert.run()
        try database.commitTransaction()
    }

    private static func prepare(_ database: Database) throws(DatabaseError) -> Core {
        let stored = "SELECT id,\(chargeSQL),hits,ranked,rank,body FROM entry"
        return Core(
            database: database,
            meta: try database.prepare("SELECT bytes,count,floor,latest,version FROM meta WHERE id=1"),
            setMeta: try database.prepare("UPDATE meta SET bytes=?,count=?,floor=?,latest=? WHERE id=1"),
            find: try database.prepare("\(stored) WHERE id=?"),
            insert: try database.prepare("INSERT INTO entry VALUES(?1,?2,?3,?4,?5,?6,?7,?7,?8,?9,?10,?11)"),
            insertBody: try database.prepare("INSERT INTO body(data) VALUES(?)"),
            delete: try database.prepare("DELETE FROM entry WHERE id=?"),
            deleteBody: try database.prepare("DELETE FROM body WHERE id=?"),
            lowest: try database.prepare("\(stored) ORDER BY rank LIMIT 1"),
            rerank: try database.prepare("UPDATE entry SET rank=?2,hits=?3,ranked=?3 WHERE id=?1"),
            expired: try database.prepare(
                "\(stored) WHERE expires IS NOT NULL AND expires<=?1 ORDER BY expires LIMIT ?2"),
            hit: try database.prepare("UPDATE entry SET hits=min(15,hits+?2),used=max(used,?3) WHERE id=?1"),
            use: try database.prepare(
                "UPDATE entry SET hits=min(15,hits+?2),used=max(used,?3),rank=?4 WHERE id=?1"))
    }

    // MARK: Transactions

    /// The application version the entries were written by.
    func version() throws(DatabaseError) -> String? {
        let meta = try statements().meta
        defer { meta.reset() }
        guard try meta.step(), !meta.isNull(at: 4) else { return nil }
        return meta.text(at: 4)
    }

    /// Sets the application version.
    func setVersion(_ version: String) throws(DatabaseError) {
        let update = try statements().database.prepare("UPDATE meta SET version=? WHERE id=1")
        update.bind(version, at: 1)
        try update.run()
    }

    /// Begins a transaction and loads the totals, which other processes may have changed.
    func begin() throws(DatabaseError) {
        let core = try statements()
        doomed = []
        try core.database.beginTransaction()
        do throws(DatabaseError) {
            guard try core.meta.step() else {
                throw DatabaseError(code: 11, message: "no totals", path: path)
            }
            totals = Totals(
                bytes: Int(core.meta.integer(at: 0)), count: Int(core.meta.integer(at: 1)),
                floor: core.meta.double(at: 2), latest: core.meta.integer(at: 3))
            core.meta.reset()
            storedTotals = totals
        } catch {
            rollback()
            throw error
        }
    }

    /// Stores the transaction, and then deletes the files that nobody owns any more.
    func commit() throws(DatabaseError) {
        let core = try statements()
        if totals != storedTotals {
            core.setMeta.bind(totals.bytes, at: 1)
            core.setMeta.bind(totals.count, at: 2)
            core.setMeta.bind(totals.floor, at: 3)
            core.setMeta.bind(totals.latest, at: 4)
            try core.setMeta.run()
        }
        try core.database.commitTransaction()
        storedTotals = totals
        for id in doomed { BodyFile.remove(bodyPath(id)) }
        doomed = []
    }

    /// Drops the transaction, if there is one.
    func rollback() {
        guard let core else { return }
        for statement in [core.meta, core.find, core.lowest, core.expired] { statement.reset() }
        core.database.rollbackTransaction()
        totals = storedTotals
        doomed = []
    }

    /// Runs a body in a transaction.
    func transaction(_ body: () throws -> Void) throws {
        try begin()
        do {
            try body()
            try commit()
        } catch {
            rollback()
            throw error
        }
    }

    /// Remembers what a batch wrote.
    func note(bytes: Int, rows: Int, capacity: Int) {
        if mover.note(bytes: bytes + rows * 4096, capacity: capacity) { checkpoint() }
    }

    /// Moves the log into the database, so that its space can be used again.
    func checkpoint() {
        if let core { mover.moveAll(core.database) }
    }

    func bodyPath(_ id: Int64) -> String { path + "/files/" + DiskLayout.fileName(id) }

    // MARK: Rows

    /// What is stored under an identifier.
    func find(_ id: Int64) throws(DatabaseError) -> Stored? {
        let find = try statements().find
        find.bind(id, at: 1)
        defer { find.reset() }
        return try find.step() ? Self.stored(find) : nil
    }

    static func stored(_ row: Statement) -> Stored {
        Stored(
            id: row.integer(at: 0), charge: Int(row.integer(at: 1)), hits: row.integer(at: 2),
            ranked: row.integer(at: 3), rank: row.double(at: 4), body: row.integer(at: 5))
    }

    /// Removes an entry.
    ///
    /// - Parameter keepingFile: The file is going to be replaced.
    func delete(_ stored: Stored, keepingFile: Bool = false) throws(DatabaseError) {
        let core = try statements()
        core.delete.bind(stored.id, at: 1)
        try core.delete.run()
        if !stored.isFile {
            core.deleteBody.bind(stored.body, at: 1)
            try core.deleteBody.run()
        } else if !keepingFile {
            doomed.append(stored.id)
        }
        totals.bytes -= stored.charge
        totals.count -= 1
    }

    /// Adds an entry for which there is room and which is not there yet.
    ///
    /// - Parameter isFile: Its body is in its file already.
    func insert(
        _ put: Put, bytes: [UInt8], key: CacheKey, hits: Int64, isFile: Bool
    ) throws(DatabaseError) {
        let core = try statements()
        let id = Int64(bitPattern: key.hash)
        var body: Int64 = 0
        if !isFile {
            try core.insertBody.binding(bytes, at: 1) { () throws(DatabaseError) in try core.insertBody.run() }
            body = core.database.lastInsertedRow
        }
        let charge = Self.charge(bytes: bytes.count, key: key, tag: put.tag)
        let sum = bytes.withUnsafeBytes { EntrySum.body($0, id: id) }
            ^ EntrySum.seal(key: key, created: put.created, expires: put.expires, tag: put.tag)
        core.insert.bind(id, at: 1)
        core.insert.bind(Array(key.identity.utf8), at: 2)
        core.insert.bind(bytes.count, at: 3)
        core.insert.bind(newRank(charge: charge, hits: hits), at: 4)
        core.insert.bind(hits, at: 5)
        core.insert.bind(hits, at: 6)
        core.insert.bind(put.created, at: 7)
        core.insert.bind(put.expires, at: 8)
        core.insert.bind(Int64(bitPattern: sum), at: 9)
        core.insert.bind(body, at: 10)
        core.insert.bind(put.tag, at: 11)
        try core.insert.run()
        totals.bytes += charge
        totals.count += 1
        totals.latest = max(totals.latest, put.created)
        tally.insertions += 1
        tally.insertedBytes += bytes.count
    }

    /// What an entry counts.
    static func charge(bytes: Int, key: CacheKey, tag: [UInt8]) -> Int {
        bytes + key.identity.utf8.count + tag.count + DiskCache.entryOverhead
    }
}

extension DatabaseError {
    /// Statements of ours that make no sense to a database mean that its schema was damaged (SQLITE_ERROR becomes
    /// SQLITE_CORRUPT); all others as they are.
    var blamingSchema: DatabaseError {
        code == 1 ? DatabaseError(code: 11, message: "its schema is damaged: \(message)", path: path) : self
    }
}
