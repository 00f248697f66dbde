#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineDatabase

/// The connection that changes one generation, and its statements.
///
/// Used by one thread at a time, which holds the cache's process lock.
///
/// Unchecked: a C-handle type.
final class DiskWriter: @unchecked Sendable {
    /// The totals of all entries in the database.
    struct Totals: Equatable {
        var bytes = 0
        var count = 0
        /// The size of the entries with body files, in bytes.
        var fileBytes = 0
        /// In the least-recently-used order, the number of uses so far.
        var uses = 0.0
        /// The latest creation of any entry, in nanoseconds since 1970: tells when the clock has gone back.
        var latest: Int64 = 0
    }

    /// The totals of a format's entries.
    struct Account: Equatable {
        var bytes = 0
        var count = 0
        /// The rank of the entry that was evicted last.
        var floor = 0.0
    }

    /// The size of an entry and the place of its body.
    struct Stored {
        var id: Int64
        var format: Int64
        var charge: Int
        var hits: Int64
        var ranked: Int64
        var rank: Double
        /// When it was last used, in nanoseconds since 1970.
        var used: Int64
        /// The row in `body`; 0 for a file, negative for blocks.
        var body: Int64
        var tags = EntryTags.none
        /// The blocks of the body.
        var extents: [Extent] = []
        var isFile: Bool { body == 0 }
    }

    /// The format of the tables. 3 had no blocks.
    static let schemaVersion: Int64 = 4
    /// In the place of a row in `body`: the body lies in blocks of ``BlockFile``.
    static let blockBody: Int64 = -1
    /// The account of all entries.
    static let totalID: Int64 = 0
    static let chargeSQL = "size+length(key)+length(validator)+5*length(tags)+\(DiskCache.entryOverhead)"

    /// The watch must outlive the connection.
    let watch: FileWatch
    let purgeOrigin: PurgeOrigin
    let generation: String
    let path: String
    let eviction: DiskCache.Eviction
    /// Set until the end of the object.
    private var core: Core?
    var totals = Totals()
    private var storedTotals = Totals()
    /// The accounts that the transaction has looked at, as they are now and as they are stored.
    private var accounts: [Int64: Account] = [:]
    private var storedAccounts: [Int64: Account] = [:]
    /// Lower bounds of the earliest expiry of each format in the transaction, in nanoseconds since 1970; absent where
    /// it is unknown.
    var earliestExpiry: [Int64: Int64] = [:]
    /// The names of formats that were written.
    var names: [Int64: String] = [:]
    /// The body files to delete after the transaction.
    var filesToDelete: [Int64] = []
    /// The counters of each format since they were last read.
    var tallies: [Int64: DiskCache.Statistics] = [:]
    /// The changed sizes of formats since they were last read, in bytes.
    var sizes: [Int64: Int] = [:]
    /// Uses that eviction takes into account before they are written.
    var unwritten: HitRecorder?
    let blocks: BlockFile
    let blockWriter: BlockWriter
    /// The blocks in use, as the transaction leaves them. Loaded when another connection has changed the database.
    var space = BlockSpace()
    /// The number of changes by other connections when ``space`` was loaded; nil if it is to be loaded.
    var spaceVersion: Int64?
    private let checkpointer: WALCheckpointer

    struct Core {
        let database: Database
        let total, account, setAccount, deleteAccount: Statement
        let find, insert, insertBody, delete, deleteBody: Statement
        let orphanCandidates, addOrphanCandidate, clearOrphans: Statement
        let lowest, rerank, expired, earliest, hit, use: Statement
        let addTag, deleteTag, tagged: Statement
        let storeChunk, deleteChunk: Statement
    }

    init(generation: Generation, eviction: DiskCache.Eviction, version: String?) throws(DatabaseError) {
        watch = generation.watch
        purgeOrigin = generation.purgeOrigin
        checkpointer = WALCheckpointer(generation: generation)
        blocks = generation.blocks
        blockWriter = BlockWriter(file: generation.blocks)
        self.generation = generation.name
        path = generation.path
        self.eviction = eviction
        var options = Database.Options()
        options.cacheBytes = 4 << 20
        let database = try Database(path: generation.databasePath, options: options)
        // The log is moved between batches, by another thread.
        database.countLogFrames()
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
            CREATE TABLE IF NOT EXISTS litter(id INTEGER PRIMARY KEY);
            CREATE TABLE IF NOT EXISTS space(id INTEGER PRIMARY KEY, bits BLOB NOT NULL);
            CREATE TABLE IF NOT EXISTS version(id INTEGER PRIMARY KEY, name TEXT);
            INSERT OR IGNORE INTO account VALUES(\(totalID),'',0,0,0.0,0,0);
            PRAGMA user_version=\(schemaVersion);
            """)
        // Schema 3 had all bodies that are no files in rows. Those stay where they are.
        let known = "SELECT count(*) FROM pragma_table_info('entry') WHERE name='blocks'"
        if try database.integer(known) == 0 {
            try database.execute("ALTER TABLE entry ADD COLUMN blocks BLOB NOT NULL DEFAULT x''")
        }
        let insert = try database.prepare("INSERT OR IGNORE INTO version VALUES(1,?)")
        if let version { insert.bind(version, at: 1) } else { insert.bindNull(at: 1) }
        try insert.run()
        try database.commitTransaction()
    }

    private static func prepare(_ database: Database) throws(DatabaseError) -> Core {
        let stored = "SELECT id,format,\(chargeSQL),hits,ranked,rank,used,body,tags,blocks FROM entry"
        return Core(
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
            orphanCandidates: try database.prepare("SELECT id FROM litter"),
            addOrphanCandidate: try database.prepare("INSERT OR IGNORE INTO litter VALUES(?)"),
            clearOrphans: try database.prepare("DELETE FROM litter"),
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

    // MARK: Accounts

    /// Returns the totals of a format.
    func account(_ format: Int64) throws(DatabaseError) -> Account {
        if let known = accounts[format] { return known }
        let select = try statements().account
        select.bind(format, at: 1)
        defer { select.reset() }
        var account = Account()
        if try select.step() {
            let floor = select.double(at: 2)
            account = Account(
                bytes: Self.clamped(select.integer(at: 0)), count: Self.clamped(select.integer(at: 1)),
                floor: floor.isFinite ? floor : 0)
        }
        accounts[format] = account
        storedAccounts[format] = account
        return account
    }

    /// Changes the totals of a format and the overall totals.
    ///
    /// - Parameter files: The part of the bytes that belongs to entries with body files.
    func change(_ format: Int64, bytes: Int, count: Int = 0, files: Int) throws(DatabaseError) {
        var account = try account(format)
        account.bytes += bytes
        account.count += count
        accounts[format] = account
        totals.bytes += bytes
        totals.count += count
        totals.fileBytes += files
    }

    /// Raises the floor of a format. The floor never falls.
    func raiseFloor(of format: Int64, to rank: Double) throws(DatabaseError) {
        let floor = try account(format).floor
        accounts[format]?.floor = max(floor, rank)
    }

    /// Whether an entry of a format may have expired by a time. One query for each transaction and format, as long as
    /// none has.
    func mayHaveExpired(_ format: Int64, before time: Int64) throws(DatabaseError) -> Bool {
        if let known = earliestExpiry[format] { return known <= time }
        let earliest = try statements().earliest
        earliest.bind(format, at: 1)
        defer { earliest.reset() }
        let found = try earliest.step() ? earliest.integer(at: 0) : .max
        earliestExpiry[format] = found
        return found <= time
    }

    /// An entry of a format gets an expiry.
    func noteExpiry(_ expires: Int64?, of format: Int64) {
        guard let expires, let known = earliestExpiry[format] else { return }
        earliestExpiry[format] = min(known, expires)
    }

    /// The formats that have entries.
    func storedFormats() throws(DatabaseError) -> Set<Int64> {
        let select = try statements().database.cachedStatement("SELECT id FROM account WHERE id<>\(Self.totalID)")
        defer { select.reset() }
        var formats = Set(accounts.filter { $0.value.count > 0 }.keys)
        while try select.step() {
            let id = select.integer(at: 0)
            if accounts[id].map({ $0.count > 0 }) ?? true { formats.insert(id) }
        }
        return formats
    }

    /// Whether no other format has entries.
    func isAlone(_ format: Int64) throws(DatabaseError) -> Bool {
        let select = try statements().database.cachedStatement(
            "SELECT EXISTS(SELECT 1 FROM account WHERE count>0 AND id<>\(Self.totalID) AND id<>?)")
        select.bind(format, at: 1)
        defer { select.reset() }
        return try select.step() && select.integer(at: 0) == 0
    }

    private func storeAccounts() throws(DatabaseError) {
        let core = try statements()
        for (id, account) in accounts where account != storedAccounts[id] {
            if account.count > 0 {
                try store(
                    id: id, name: names[id] ?? "", bytes: account.bytes, count: account.count, floor: account.floor,
                    latest: 0, files: 0)
            } else {
                core.deleteAccount.bind(id, at: 1)
                try core.deleteAccount.run()
            }
        }
        guard totals != storedTotals else { return }
        try store(
            id: Self.totalID, name: "", bytes: totals.bytes, count: totals.count, floor: totals.uses,
            latest: totals.latest, files: totals.fileBytes)
    }

    private func store(
        id: Int64, name: String, bytes: Int, count: Int, floor: Double, latest: Int64, files: Int
    ) throws(DatabaseError) {
        let set = try statements().setAccount
        set.bind(id, at: 1)
        set.bind(name, at: 2)
        set.bind(bytes, at: 3)
        set.bind(count, at: 4)
        set.bind(floor, at: 5)
        set.bind(latest, at: 6)
        set.bind(files, at: 7)
        try set.run()
    }

    /// Counts all entries anew.
    func recount() throws(DatabaseError) {
        let count = try statements().database.prepare(
            """
            SELECT format,count(*),total(\(Self.chargeSQL)),total((\(Self.chargeSQL))*(body=0))
            FROM entry GROUP BY format
            """)
        for format in try storedFormats() { _ = try account(format) }
        for format in accounts.keys {
            accounts[format]?.bytes = 0
            accounts[format]?.count = 0
        }
        totals.bytes = 0
        totals.count = 0
        totals.fileBytes = 0
        while try count.step() {
            try change(
                count.integer(at: 0), bytes: Self.clamped(count.integer(at: 2)), count: Self.clamped(count.integer(at: 1)),
                files: Self.clamped(count.integer(at: 3)))
        }
        try rebuildSpace()
    }

    // MARK: Transactions

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

    /// Begins a transaction and loads the totals, which other processes may have changed.
    ///
    /// - Parameter id: The entry whose file was written for a row that this transaction stores.
    func begin(storingFileOf id: Int64? = nil) throws(DatabaseError) {
        let core = try statements()
        filesToDelete = []
        accounts = [:]
        storedAccounts = [:]
        earliestExpiry = [:]
        try core.database.beginTransaction()
        do throws(DatabaseError) {
            guard try core.total.step() else {
                throw DatabaseError(code: 11, message: "no totals", path: path)
            }
            totals = Totals(
                bytes: Int(clamping: core.total.integer(at: 0)), count: Int(clamping: core.total.integer(at: 1)),
                fileBytes: Int(clamping: core.total.integer(at: 4)), uses: core.total.double(at: 2),
                latest: core.total.integer(at: 3))
            core.total.reset()
            storedTotals = totals
            // A damaged row: what is counted from it would overflow, or evict everything.
            let numbers = [totals.bytes, totals.count, totals.fileBytes]
            if !numbers.allSatisfy(Self.plausible.contains) { try recount() }
            if !totals.uses.isFinite { totals.uses = 0 }
            try loadSpace()
            try clearOrphans(besides: id)
        } catch {
            rollback()
            throw error
        }
    }

    /// Commits the transaction, and then deletes the body files without an entry.
    func commit() throws {
        let core = try statements()
        try blockWriter.flush()
        try storeAccounts()
        let freed = try storeSpace()
        for id in filesToDelete { try addOrphanCandidate(id) }
        try core.database.commitTransaction()
        storedTotals = totals
        storedAccounts = accounts
        for (id, account) in accounts { sizes[id] = account.bytes }
        for id in filesToDelete { BodyFile.remove(bodyPath(id)) }
        filesToDelete = []
        giveBack(freed)
    }

    /// Drops the transaction, if there is one.
    func rollback() {
        guard let core else { return }
        let readers = [
            core.total, core.account, core.find, core.lowest, core.expired, core.earliest, core.orphanCandidates,
            core.tagged,
        ]
        for statement in readers { statement.reset() }
        core.database.rollbackTransaction()
        blockWriter.drop()
        spaceVersion = nil
        totals = storedTotals
        accounts = storedAccounts
        filesToDelete = []
    }

    // MARK: Files without rows

    /// Records in the transaction that a body file may lose its entry: it is about to be written or deleted. The next
    /// transaction, of any process, checks this (``clearOrphans(besides:)``).
    func addOrphanCandidate(_ id: Int64) throws(DatabaseError) {
        let core = try statements()
        core.addOrphanCandidate.bind(id, at: 1)
        try core.addOrphanCandidate.run()
    }

    /// Deletes the files that a writer has left which was killed between a file and its row.
    private func clearOrphans(besides stored: Int64?) throws(DatabaseError) {
        let core = try statements()
        var ids: [Int64] = []
        while try core.orphanCandidates.step() { ids.append(core.orphanCandidates.integer(at: 0)) }
        guard !ids.isEmpty else { return }
        for id in ids where id != stored {
            if try find(id)?.isFile == true { try placeSuccessor(id) } else { BodyFile.remove(bodyPath(id)) }
        }
        try core.clearOrphans.run()
    }

    /// Deletes the temporary files of killed writers when a generation is opened. The caller holds the process lock.
    func clearTemporaries() throws {
        unlink(temporaryPath)
        guard try statements().database.integer("SELECT EXISTS(SELECT 1 FROM litter)") == 1 else { return }
        try begin()
        try commit()
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

    /// Sees to the log before the first batch. The caller holds the process lock.
    func openLog(capacity: Int) {
        guard let core else { return }
        checkpointer.begin(core.database, capacity: capacity)
        cutBlocks(capacity: capacity)
    }

    /// A batch was written.
    func note(capacity: Int) {
        if let core, checkpointer.note(frames: core.database.logFrames, capacity: capacity) { checkpoint() }
    }

    /// Bytes on disk that count towards the capacity beside the entries' own: of a log that is too long, and of pages
    /// and blocks that are used in part or kept in reserve. In a transaction.
    func excess(capacity: Int) throws(DatabaseError) -> Int {
        let database = try statements().database
        let pages = Int(
            try (database.integer("PRAGMA page_count") ?? 0) &- (database.integer("PRAGMA freelist_count") ?? 0))
        noteBlockRoom(capacity: capacity, pages: pages)
        let stored = totals.bytes &- totals.fileBytes
        let partial = (pages &+ space.occupied) &* 4096 &- stored &- Self.pageAllowance
        return checkpointer.excess(capacity: capacity) + max(0, partial)
    }

    /// The number of bytes by which pages may exceed their contents.
    static let pageAllowance = 8 << 20

    /// Moves the log into the database, so that its space can be used again.
    func checkpoint() {
        if let core { checkpointer.moveAll(core.database) }
    }

    func bodyPath(_ id: Int64) -> String { path + "/files/" + DiskLayout.fileName(id) }

    /// Where a body is written before it appears at its path: one file, for only one process at a time writes.
    var temporaryPath: String { path + "/" + DiskLayout.temporaryName }
}

extension DatabaseError {
    /// Statements of ours that make no sense to a database mean that its schema was damaged (SQLITE_ERROR becomes
    /// SQLITE_CORRUPT); all others as they are.
    var blamingSchema: DatabaseError {
        code == 1 ? DatabaseError(code: 11, message: "its schema is damaged: \(message)", path: path) : self
    }
}
