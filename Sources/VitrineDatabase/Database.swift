import CVitrineSQLite

/// One connection to an SQLite file: statements, transactions and nothing else.
///
/// A connection is used by one thread at a time. Keep it in a `Mutex`, or behind a ``DatabaseWriter``; the type is not
/// `Sendable`, so the compiler sees to it. Its calls block: none of them belongs on the cooperative pool.
///
/// ```swift
/// let database = try Database(path: path)
/// try database.execute("CREATE TABLE IF NOT EXISTS word(id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
/// try database.transaction {
///     let insert = try database.cachedStatement("INSERT INTO word(text) VALUES(?)")
///     for word in words {
///         insert.bind(word, at: 1)
///         try insert.run()
///     }
/// }
/// ```
///
/// Files are in write-ahead mode: readers never wait, one writer at a time. Several processes may share a file on a
/// local file system.
///
/// ## Topics
/// ### Statements
/// - ``execute(_:)``
/// - ``prepare(_:)``
/// - ``cachedStatement(_:)``
/// - ``integer(_:)``
/// ### Transactions
/// - ``transaction(_:_:)``
/// - ``savepoint(_:)``
/// ### State
/// - ``checkpoint(_:)``
/// - ``findDamage()``
/// - ``changesOfOthers()``
/// - ``interrupter``
public final class Database {
    let connection: Connection
    private var statements: [String: Statement] = [:]
    private let cacheBytes: Int
    private var handle: OpaquePointer { connection.handle }

    /// The file.
    public var path: String { connection.path }

    /// Opens a file, and creates it unless `isReadOnly`. `:memory:` is a database without a file.
    ///
    /// - Throws: ``DatabaseError``; ``DatabaseError/Reason/corrupt`` for a file that is no database.
    public init(path: String, options: Options = Options()) throws(DatabaseError) {
        connection = try Connection(path: path, options: options)
        cacheBytes = options.cacheBytes
        sqlite3_busy_timeout(handle, options.busyMilliseconds)
        guard csqlite_harden(handle) == SQLITE_OK else { throw connection.error(code: SQLITE_ERROR) }
        // Before anything is read (https://www.sqlite.org/wal.html, "Use of WAL Without Shared-Memory").
        if options.sharing != .shared { try execute("PRAGMA locking_mode=EXCLUSIVE") }
        try execute("PRAGMA mmap_size=\(options.mappedBytes);PRAGMA cache_size=-\(options.cacheBytes >> 10)")
        if options.isReadOnly || options.sharing != .shared {
            // Reads the header, so that a file which is no database is found now.
            try execute("PRAGMA schema_version")
            guard options.sharing == .exclusive else { return }
        } else {
            try enterWriteAheadMode(milliseconds: options.busyMilliseconds)
        }
        // Some builds of SQLite overwrite what is deleted, and so write pages that are free.
        try execute(
            "PRAGMA synchronous=\(options.durability.rawValue);PRAGMA foreign_keys=ON;PRAGMA secure_delete=OFF")
    }

    /// Two connections that switch a new file at once would wait for each other, so SQLite fails one of them without
    /// waiting, whatever its busy timeout.
    private func enterWriteAheadMode(milliseconds: Int32) throws(DatabaseError) {
        var left = milliseconds
        while true {
            do throws(DatabaseError) {
                return try execute("PRAGMA journal_mode=WAL")
            } catch where error.reason == .busy && left > 0 {
                left -= sqlite3_sleep(2)
            }
        }
    }

    // MARK: Statements

    /// Runs statements without values, separated by semicolons. What they return is dropped.
    public func execute(_ sql: String) throws(DatabaseError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw connection.error(code: code, sql: sql) }
    }

    /// A statement to be run any number of times.
    public func prepare(_ sql: String) throws(DatabaseError) -> Statement {
        try Statement(sql, connection: connection)
    }

    /// A statement that the connection keeps: prepared at the first call with this text, ready to run at each.
    ///
    /// For a fixed set of texts. Two uses of one text must not overlap: the second call ends the first one's run.
    public func cachedStatement(_ sql: String) throws(DatabaseError) -> Statement {
        if let statement = statements[sql] {
            statement.reset()
            return statement
        }
        let statement = try prepare(sql)
        statements[sql] = statement
        return statement
    }

    /// The number in the first column of the first row; nil for no row or NULL. The statement is kept.
    public func integer(_ sql: String) throws(DatabaseError) -> Int64? {
        let statement = try cachedStatement(sql)
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        return statement.integerIfPresent(at: 0)
    }

    // MARK: Transactions

    /// How a transaction begins.
    public enum TransactionKind: String, Sendable {
        /// Takes the write lock at once, so that nothing inside has to wait or fail for it.
        case immediate = "IMMEDIATE"
        /// Reads see one state of the file; the write lock is taken by the first change, which may fail.
        case deferred = "DEFERRED"
    }

    /// Runs a body in a transaction: all of it is stored or, if it throws, nothing. Inside another transaction it is a
    /// ``savepoint(_:)``.
    ///
    /// - Throws: What the body throws, or why beginning or committing failed, as ``DatabaseError``.
    public func transaction<Result>(
        _ kind: TransactionKind = .immediate, _ body: () throws -> Result
    ) throws -> Result {
        if isInTransaction { return try savepoint(body) }
        try beginTransaction(kind)
        do {
            let result = try body()
            try commitTransaction()
            return result
        } catch {
            rollbackTransaction()
            throw error
        }
    }

    /// Runs a body inside a transaction so that, if it throws, only what it did is undone.
    ///
    /// A full disk or a failing one can make SQLite give up the whole transaction: ask ``isInTransaction`` before going
    /// on after an error.
    public func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
        precondition(isInTransaction, "a savepoint stands in a transaction")
        try cachedStatement("SAVEPOINT s").run()
        do {
            let result = try body()
            try cachedStatement("RELEASE s").run()
            return result
        } catch {
            if isInTransaction {
                try cachedStatement("ROLLBACK TO s").run()
                try cachedStatement("RELEASE s").run()
            }
            throw error
        }
    }

    /// Begins a transaction that is ended by ``commitTransaction()`` or ``rollbackTransaction()``.
    public func beginTransaction(_ kind: TransactionKind = .immediate) throws(DatabaseError) {
        try cachedStatement(kind == .immediate ? "BEGIN IMMEDIATE" : "BEGIN DEFERRED").run()
    }

    /// Stores the changes of the transaction. One that fails is still open: roll it back.
    public func commitTransaction() throws(DatabaseError) {
        try cachedStatement("COMMIT").run()
    }

    /// Drops the changes of the transaction, if there is one.
    public func rollbackTransaction() {
        guard isInTransaction else { return }
        // A failing rollback means that SQLite has rolled back by itself.
        try? cachedStatement("ROLLBACK").run()
    }

    /// Whether a transaction is open.
    public var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    // MARK: State

    /// The rowid of the last INSERT.
    public var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

    /// A number that changes whenever another connection, of this or another process, has changed the file; this
    /// connection's own changes leave it as it is (https://www.sqlite.org/pragma.html#pragma_data_version).
    public func changesOfOthers() throws(DatabaseError) -> Int64 {
        try integer("PRAGMA data_version") ?? 0
    }

    /// How far a checkpoint goes (https://www.sqlite.org/c3ref/wal_checkpoint_v2.html).
    public enum Checkpoint: Sendable {
        /// What can be moved without waiting for anybody.
        case passive
        /// All of it, waiting for readers, so that the log begins anew.
        case restarting
        /// The same, and the log is cut to nothing.
        case truncating
    }

    /// Moves what the write-ahead log holds into the file.
    public func checkpoint(_ kind: Checkpoint = .passive) throws(DatabaseError) {
        let mode =
            switch kind {
            case .passive: SQLITE_CHECKPOINT_PASSIVE
            case .restarting: SQLITE_CHECKPOINT_RESTART
            case .truncating: SQLITE_CHECKPOINT_TRUNCATE
            }
        let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, nil, nil)
        guard code == SQLITE_OK else { throw connection.error(code: code) }
    }

    /// Runs a body with room for more pages in memory.
    ///
    /// A statement that changes rows all over a large table reads and writes a page for each of them unless the pages
    /// stay in memory until the commit.
    package func withPageCache<Result, Failure: Error>(
        bytes: Int, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // A cache that keeps its size costs time only.
        try? execute("PRAGMA cache_size=-\(bytes >> 10)")
        defer { try? execute("PRAGMA cache_size=-\(cacheBytes >> 10)") }
        return try body()
    }

    /// Limits the length that the log's file keeps when it begins anew, in bytes.
    package func setLogLimit(bytes: Int) throws(DatabaseError) {
        try execute("PRAGMA journal_size_limit=\(bytes)")
    }

    /// Sets how long to wait for another connection's lock.
    package func setBusyTimeout(milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    /// How many pages the log may have before a commit moves them into the file; 0 for never.
    public func setAutomaticCheckpoint(pages: Int32) {
        sqlite3_wal_autocheckpoint(handle, pages)
    }

    /// What SQLite finds wrong with the file; empty if nothing. Reads all of it.
    public func findDamage() throws(DatabaseError) -> [String] {
        let statement = try prepare("PRAGMA quick_check")
        var found: [String] = []
        while try statement.step() { found.append(statement.text(at: 0)) }
        return found == ["ok"] ? [] : found
    }

    /// Stops the running statement from another thread.
    public var interrupter: Interrupter { Interrupter(connection: connection) }
}

extension Database {
    /// Stops a connection's running statement, with ``DatabaseError/Reason/interrupted``. Holds the connection open.
    ///
    /// Unchecked: a C-handle type. `sqlite3_interrupt` is the one call that SQLite allows from any thread while the
    /// connection is open (https://www.sqlite.org/c3ref/interrupt.html).
    public struct Interrupter: @unchecked Sendable {
        private let connection: Connection

        init(connection: Connection) { self.connection = connection }

        /// Stops the statement that runs now, if one does.
        public func interrupt() { sqlite3_interrupt(connection.handle) }
    }
}
