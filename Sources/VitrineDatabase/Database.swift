import CVitrineSQLite
package import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

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
package final class Database {
    let connection: Connection
    private var statements: [String: Statement] = [:]
    private let cacheBytes: Int
    private var handle: OpaquePointer { connection.handle }

    /// The file.
    package var path: String { connection.path }

    /// Opens a file, and creates it unless `isReadOnly`. `:memory:` is a database without a file.
    ///
    /// - Throws: ``DatabaseError``; ``DatabaseError/Reason/corrupt`` for a file that is no database.
    package init(path: String, options: Options = Options()) throws(DatabaseError) {
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
        let synchronous = options.durability == .full ? "FULL" : "NORMAL"
        try execute("PRAGMA synchronous=\(synchronous);PRAGMA foreign_keys=ON;PRAGMA secure_delete=OFF")
    }

    /// Switches the file to write-ahead mode. If two connections switch a new file at once, SQLite fails one of them
    /// immediately, regardless of its busy timeout.
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

    /// Runs statements without parameters, separated by semicolons. Their results are ignored.
    package func execute(_ sql: String) throws(DatabaseError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw connection.error(code: code, sql: sql) }
    }

    /// A statement to be run any number of times.
    package func prepare(_ sql: String) throws(DatabaseError) -> Statement {
        try Statement(sql, connection: connection)
    }

    /// A statement that the connection keeps: prepared at the first call with this text, ready to run at each.
    ///
    /// For a fixed set of texts. Two uses of one text must not overlap: the second call ends the first one's run.
    package func cachedStatement(_ sql: String) throws(DatabaseError) -> Statement {
        if let statement = statements[sql] {
            statement.reset()
            return statement
        }
        let statement = try prepare(sql)
        statements[sql] = statement
        return statement
    }

    /// The number in the first column of the first row; nil for no row or NULL. The statement is kept.
    package func integer(_ sql: String) throws(DatabaseError) -> Int64? {
        let statement = try cachedStatement(sql)
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        return statement.integerIfPresent(at: 0)
    }

    // MARK: Transactions

    /// How a transaction begins.
    package enum TransactionKind: String, Sendable {
        /// Takes the write lock at once, so that nothing inside has to wait or fail for it.
        case immediate = "IMMEDIATE"
        /// Reads see one state of the file; the write lock is taken by the first change, which may fail.
        case deferred = "DEFERRED"
    }

    /// Runs a body in a transaction. If the body throws, all its changes are undone. Inside another transaction this is
    /// a ``savepoint(_:)``.
    ///
    /// - Throws: The error of the body, or a ``DatabaseError`` of beginning or committing.
    package func transaction<Result>(
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

    /// Runs a body inside a transaction. If the body throws, only its changes are undone.
    ///
    /// A full or failing disk can make SQLite roll back the whole transaction. Check ``isInTransaction`` after an
    /// error.
    package func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
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
    package func beginTransaction(_ kind: TransactionKind = .immediate) throws(DatabaseError) {
        try cachedStatement(kind == .immediate ? "BEGIN IMMEDIATE" : "BEGIN DEFERRED").run()
    }

    /// Stores the changes of the transaction. One that fails is still open: roll it back.
    package func commitTransaction() throws(DatabaseError) {
        try cachedStatement("COMMIT").run()
    }

    /// Drops the changes of the transaction, if there is one.
    package func rollbackTransaction() {
        guard isInTransaction else { return }
        // A failing rollback means that SQLite has rolled back by itself.
        try? cachedStatement("ROLLBACK").run()
    }

    /// Whether a transaction is open.
    package var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    // MARK: State

    /// The rowid of the last INSERT.
    package var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

    /// A number that changes whenever another connection, of this or another process, has changed the file; this
    /// connection's own changes leave it as it is (https://www.sqlite.org/pragma.html#pragma_data_version).
    package func changesOfOthers() throws(DatabaseError) -> Int64 {
        try integer("PRAGMA data_version") ?? 0
    }

    /// How far a checkpoint goes (https://www.sqlite.org/c3ref/wal_checkpoint_v2.html).
    package enum Checkpoint: Sendable {
        /// Moves the part that needs no waiting.
        case passive
        /// All of it, waiting for readers, so that the log begins anew.
        case restarting
        /// The same, and the log is cut to nothing.
        case truncating
    }

    /// The number of frames in the log, and of those that are in the file.
    package struct LogCounts: Sendable {
        package var frames = 0
        package var moved = 0

        /// Those of an empty log.
        package init() {}
    }

    /// Moves the write-ahead log into the file.
    ///
    /// - Returns: The counts after that. A log that has begun anew has no frames.
    @discardableResult
    package func checkpoint(_ kind: Checkpoint = .passive) throws(DatabaseError) -> LogCounts {
        let mode =
            switch kind {
            case .passive: SQLITE_CHECKPOINT_PASSIVE
            case .restarting: SQLITE_CHECKPOINT_RESTART
            case .truncating: SQLITE_CHECKPOINT_TRUNCATE
            }
        var frames: Int32 = 0, moved: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, &frames, &moved)
        guard code == SQLITE_OK else { throw connection.error(code: code) }
        guard kind == .passive else {
            connection.logFrames = 0
            return LogCounts()
        }
        var counts = LogCounts()
        (counts.frames, counts.moved) = (max(0, Int(frames)), max(0, Int(moved)))
        return counts
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

    /// Lets all reads from now on throw ``DatabaseError/Reason/wouldWait`` where they would have to wait for the disk
    /// or for another connection. The connection was opened with ``Options/mayStopWaiting``.
    ///
    /// - Parameter descriptor: A descriptor of the file that outlives the connection.
    /// - Returns: Whether that is supported. It is not on other systems than Linux, nor on some file systems, such as
    ///   tmpfs.
    package func stopWaiting(descriptor: Int32) -> Bool {
        csqlite_stop_waiting(handle, descriptor) == SQLITE_OK
    }

    /// Whether the file that is open is still the one at the path. True if the system cannot tell.
    package var isCurrent: Bool { connection.isCurrent }

    /// Checks the index of the log, which must not be read if another program has cut its file. Called before each use
    /// of a connection that is kept open.
    ///
    /// - Throws: ``DatabaseError/Reason/inputOutput`` if the connection must be closed.
    func checkIndex() throws(DatabaseError) {
        switch csqlite_check_index(handle) {
        case csqlite_files_intact: return
        case csqlite_files_mended:
            Log.logger("database").error(
                "Another program has cut the index of a database's log", metadata: ["path": "\(path)"])
        default: throw changedFiles
        }
    }

    /// Checks the log, too. Called before changes: a change behind a gap in the log is lost.
    ///
    /// - Throws: ``DatabaseError/Reason/inputOutput`` if the file must be opened again, as tables may be missing.
    func checkLog() throws(DatabaseError) {
        try checkIndex()
        let state = csqlite_check_log(handle)
        guard state != csqlite_files_intact else { return }
        Log.logger("database").error(
            "Another program has cut or deleted the log of a database; the last changes may be lost",
            metadata: ["path": "\(path)"])
        // This connection still has a deleted log. What is moved is not lost.
        if state == csqlite_log_missing { try checkpoint(.truncating) }
        throw changedFiles
    }

    private var changedFiles: DatabaseError {
        DatabaseError(code: SQLITE_IOERR, message: "another program has changed the files of the database", path: path)
    }

    /// Sets how long to wait for another connection's lock.
    package func setBusyTimeout(milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    /// Lets commits count the frames of the log instead of moving a long log into the file
    /// (https://www.sqlite.org/c3ref/wal_hook.html).
    package func countLogFrames() {
        // The handle is closed before the connection is deallocated.
        let context = Unmanaged.passUnretained(connection).toOpaque()
        _ = sqlite3_wal_hook(
            handle,
            { context, _, _, frames in
                guard let context else { return SQLITE_MISUSE }
                Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue().logFrames = Int(frames)
                return SQLITE_OK
            }, context)
    }

    /// The number of frames in the log after the last commit of this connection, written by any. 0 before the first
    /// commit and after the log has begun anew. See ``countLogFrames()``.
    package var logFrames: Int { connection.logFrames }

    /// Returns the damage that SQLite finds; empty if there is none. Reads the whole file.
    package func findDamage() throws(DatabaseError) -> [String] {
        let statement = try prepare("PRAGMA quick_check")
        var found: [String] = []
        while try statement.step() { found.append(statement.text(at: 0)) }
        return found == ["ok"] ? [] : found
    }

    /// Returns whether a file is damaged: whether several new connections, one after the other, find damage in it.
    ///
    /// One failed read does not make a file damaged. An error of the system says nothing about it and is thrown.
    ///
    /// - Parameters:
    ///   - path: The file, which is created if it is missing.
    ///   - attempts: The number of connections.
    ///   - prepare: Creates the tables. It throws ``DatabaseError/Reason/corrupt`` if a table is missing that the file
    ///     had.
    package static func isDamaged(
        path: String, attempts: Int = 3, preparing prepare: (Database) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> Bool {
        for _ in 0..<attempts {
            do throws(DatabaseError) {
                let database = try Database(path: path)
                try prepare(database)
                if try database.findDamage().isEmpty { return false }
            } catch {
                guard error.reason == .corrupt else { throw error }
            }
        }
        return true
    }
}

extension Database {
    /// The version of SQLite, for example `3.40.1`.
    package static var libraryVersion: String { String(cString: sqlite3_libversion()) }
}

extension Database {
    /// How a connection is opened.
    package struct Options: Sendable {
        /// Opens an existing file for reading only. Its directory must allow writing or already hold the log's files,
        /// or the file must be ``isImmutable``.
        package var isReadOnly = false
        /// With ``isReadOnly``: the file does not change while it is open, so locks and the log are ignored. This is
        /// the only way to read from a read-only directory.
        package var isImmutable = false
        /// With whom the file is shared while it is open. See ``DatabaseReader``.
        package var sharing = Sharing.shared
        /// Whether commits survive a power failure. Default relaxed. It never damages the file
        /// (https://www.sqlite.org/pragma.html#pragma_synchronous).
        package var durability = Durability.relaxed
        /// The bytes of the file to map into the address space; 0 for none. If another program cuts a mapped file, this
        /// program ends, so map only private files.
        package var mappedBytes = 0
        /// Pages kept in memory, in bytes. Default 2 MiB.
        package var cacheBytes = 2 << 20
        /// Whether ``Database/stopWaiting(descriptor:)`` is called later. The file is not mapped then.
        package var mayStopWaiting = false
        /// How long to wait for another connection's lock, in milliseconds. Default 5000.
        package var busyMilliseconds: Int32 = 5000

        /// The other users of the file.
        package enum Sharing: Sendable {
            /// Everybody, by an index of the log in a file that all of them map.
            case shared
            /// None: a lock excludes them, and the index is in memory. For existing files that can be written.
            case exclusive
            /// None, ensured by the caller: no locks, and the index is in memory. For reading.
            case unlocked
        }

        /// The defaults: reading and writing, normal durability.
        package init() {}
    }
}

/// The file at a path.
package enum FileState: Equatable {
    case file(InodeIdentity), missing
    /// The system cannot tell now.
    case unknown

    package init(path: String) {
        if let identity = InodeIdentity(path: path) {
            self = .file(identity)
        } else {
            self = errno == ENOENT || errno == ENOTDIR ? .missing : .unknown
        }
    }

    var identity: InodeIdentity? { if case .file(let identity) = self { identity } else { nil } }

    /// Whether this is another file than the one that was opened, or none. False if the system cannot tell.
    ///
    /// - Parameter opened: The file that was opened; nil if it could not be asked.
    package func isLoss(of opened: InodeIdentity?) -> Bool {
        switch self {
        case .file(let found): found != opened
        case .missing: true
        case .unknown: false
        }
    }
}

/// The identity of a file, independent of its name: its inode number and device.
package struct InodeIdentity: Hashable, Sendable {
    private let device: UInt64
    private let file: UInt64

    /// The identity of a file whose status is known.
    package init(_ status: stat) {
        device = UInt64(truncatingIfNeeded: status.st_dev)
        file = UInt64(truncatingIfNeeded: status.st_ino)
    }

    /// The identity of the file at a path; nil if there is none, or if it cannot be asked.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }
}

extension DatabaseError {
    /// The file cannot be written, or could not be opened for writing.
    static func notWritable(_ path: String) -> DatabaseError {
        let isForbidden = access(path, W_OK) != 0 && (errno == EACCES || errno == EROFS)
        return DatabaseError(
            code: isForbidden ? SQLITE_PERM : SQLITE_CANTOPEN, message: "the file could not be opened for writing",
            path: path)
    }

    /// - Parameter systemCode: The `errno` behind a failure to open, read or write; 0 if there is none.
    package init(code: Int32, message: String, path: String, sql: String? = nil, systemCode: Int32 = 0) {
        let text = systemCode == 0 ? message : "\(message): \(String(cString: strerror(systemCode)))"
        self.init(reason: Self.reason(of: code, systemCode), code: code, message: text, path: path, sql: sql)
    }

    private static func reason(of code: Int32, _ systemCode: Int32) -> Reason {
        switch code & 0xFF {
        // Also where SQLite does not call it so: for its index of the log (SQLITE_IOERR_SHMSIZE), for a log that cannot
        // be made, and for quotas.
        case SQLITE_IOERR where code == SQLITE_IOERR | (19 << 8): .full
        case SQLITE_IOERR where systemCode == ENOSPC || systemCode == EDQUOT: .full
        case SQLITE_CANTOPEN where systemCode == ENOSPC || systemCode == EDQUOT: .full
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: .busy
        case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT: .corrupt
        case SQLITE_FULL: .full
        case SQLITE_READONLY, SQLITE_PERM: .readOnly
        case SQLITE_CANTOPEN: .cannotOpen
        // A read that ends too early is a file that was cut.
        case SQLITE_IOERR where code == SQLITE_IOERR | (2 << 8): .corrupt
        // SQLITE_IOERR_BLOCKED, which SQLite itself uses no longer (https://www.sqlite.org/rescode.html).
        case SQLITE_IOERR where code == SQLITE_IOERR | (11 << 8): .wouldWait
        case SQLITE_IOERR: .inputOutput
        case SQLITE_CONSTRAINT: .constraint
        case SQLITE_INTERRUPT: .interrupted
        case SQLITE_TOOBIG: .tooLarge
        default: .other
        }
    }
}
