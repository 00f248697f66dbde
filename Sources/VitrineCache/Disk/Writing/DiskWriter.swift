import VitrineCore
import VitrineDatabase

/// Changes one generation in transactions, through parts that share its connection: the entries with their bodies,
/// their accounts, the order of eviction and the purges of tags.
///
/// Used by one thread at a time, which holds the cache's process lock.
///
/// Unchecked: a C-handle type.
final class DiskWriter: @unchecked Sendable {
    let accounts: AccountBook
    let entries: EntryTable
    let files: BodyFileStore
    let blocks: BlockStore
    let eviction: EvictionPolicy
    let purges: TagPurges
    let purgeOrigin: PurgeOrigin
    private let connection: DiskConnection
    private let checkpointer: WALCheckpointer

    init(generation: Generation, eviction order: DiskCache.Eviction, version: String?) throws(DatabaseError) {
        connection = try DiskConnection(generation: generation, version: version)
        purgeOrigin = generation.purgeOrigin
        checkpointer = WALCheckpointer(generation: generation)
        accounts = AccountBook(connection)
        blocks = BlockStore(connection, file: generation.blocks)
        files = BodyFileStore(connection)
        entries = EntryTable(connection, accounts: accounts, blocks: blocks, files: files, purgeOrigin: purgeOrigin)
        eviction = EvictionPolicy(order, connection: connection, accounts: accounts, entries: entries)
        purges = TagPurges(connection, entries: entries, origin: purgeOrigin)
    }

    /// The application version the entries were written by.
    func version() throws(DatabaseError) -> String? { try connection.version() }

    /// Sets the application version.
    func setVersion(_ version: String) throws(DatabaseError) { try connection.setVersion(version) }

    // MARK: Transactions

    /// Begins a transaction and loads the totals, which other processes may have changed.
    ///
    /// - Parameter id: The entry whose file was written for a row that this transaction stores.
    func begin(storingFileOf id: Int64? = nil) throws(DatabaseError) {
        let database = try connection.statements().database
        files.forgetRemovals()
        accounts.forgetAccounts()
        entries.forgetExpiries()
        try database.beginTransaction()
        do throws(DatabaseError) {
            if try !accounts.loadTotals() { try entries.recount() }
            try blocks.loadMap()
            try files.clearOrphans(besides: id) { id throws(DatabaseError) in try entries.find(id)?.isFile == true }
        } catch {
            rollback()
            throw error
        }
    }

    /// Commits the transaction, and then deletes the body files without an entry.
    func commit() throws {
        let database = try connection.statements().database
        try blocks.flush()
        try accounts.storeAccounts()
        let freed = try blocks.storeMap()
        try files.storeRemovals()
        try database.commitTransaction()
        accounts.markStored()
        files.performRemovals()
        blocks.giveBackBlocks(freed)
    }

    /// Drops the transaction, if there is one.
    func rollback() {
        connection.rollback()
        blocks.rollback()
        accounts.restoreStored()
        files.forgetRemovals()
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

    /// Deletes the temporary files of killed writers when a generation is opened. The caller holds the process lock.
    func clearTemporaries() throws {
        guard try files.clearTemporary() else { return }
        try begin()
        try commit()
    }

    // MARK: The log

    /// Sees to the log before the first batch. The caller holds the process lock.
    func openLog(capacity: Int) {
        guard let database = try? connection.statements().database else { return }
        checkpointer.begin(database, capacity: capacity)
        guard (try? transaction { _ = try excess(capacity: capacity) }) != nil else { return }
        blocks.cutEnd()
    }

    /// Has the log moved if it has become long. Called after each batch.
    func noteBatch(capacity: Int) {
        guard let database = try? connection.statements().database else { return }
        if checkpointer.note(frames: database.logFrames, capacity: capacity) { checkpoint() }
    }

    /// Bytes on disk that count towards the capacity beside the entries' own: of a log that is too long, and of pages
    /// and blocks that are used in part or kept in reserve. In a transaction.
    func excess(capacity: Int) throws(DatabaseError) -> Int {
        let database = try connection.statements().database, totals = accounts.totals
        let pages = Int(
            try (database.integer("PRAGMA page_count") ?? 0) &- (database.integer("PRAGMA freelist_count") ?? 0))
        blocks.noteCapacity(capacity, pages: pages, fileBytes: totals.fileBytes)
        let stored = totals.bytes &- totals.fileBytes
        let partial = (pages &+ blocks.occupied) &* 4096 &- stored &- BlockStore.pageAllowance
        return checkpointer.excess(capacity: capacity) + max(0, partial)
    }

    /// Moves the log into the database, so that its space can be used again.
    func checkpoint() {
        if let database = try? connection.statements().database { checkpointer.moveAll(database) }
    }
}
