import CVitrineSQLite
package import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A connection for reading that needs neither disk space nor write permission.
///
/// Connections to a file in write-ahead mode share an index of its log, `-shm`. The first connection creates it with 32
/// KiB, which fails on a full disk and in a read-only directory. The reader then opens a connection for each read,
/// which sees everything that was committed:
///
/// - A writable file is locked, so that no other process has it open, and the index is in memory.
/// - Any other file is read without locks. The read is repeated if the file or its log changed meanwhile, or if other
///   processes have them open.
///
/// Each read first tries to share the file again. A connection that fails is closed, and the read is repeated by another
/// one: a state of SQLite that a failure has set ends with the connection.
package final class DatabaseReader: Sendable {
    private struct State {
        var database: Database?
        /// When it was last checked whether the file is still at its path.
        var checked = ContinuousClock.now
        /// Whether it was tried to move the log into the file, which may make room by itself.
        var hasMovedLog = false
    }

    private let path: String
    private let busyMilliseconds: Int32
    private let open: @Sendable () throws(DatabaseError) -> sending Database
    private let state: Locked<State>

    /// How often a read without locks is repeated.
    private static let attempts = 20
    /// How long a deleted or replaced file may go unnoticed.
    private static let checkInterval = Duration.milliseconds(100)

    /// Opens a file for reading.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - busyMilliseconds: How long to wait for others.
    ///   - open: Opens the file as one that is shared.
    /// - Throws: Why the file can be read neither shared nor alone.
    package init(
        path: String, busyMilliseconds: Int32 = 5000,
        open: @escaping @Sendable () throws(DatabaseError) -> sending Database
    ) throws(DatabaseError) {
        (self.path, self.busyMilliseconds, self.open) = (path, busyMilliseconds, open)
        state = Locked(State())
        try withDatabase { _ in }
    }

    /// Lets the next read open the file again. A writer that has opened another file calls this, so that reads see its
    /// changes at once. Waits for a read in progress.
    package func close() { state.withLock { $0.database = nil } }

    /// Reads, one thread at a time.
    package func read<Value>(
        _ body: (Database) throws(DatabaseError) -> sending Value
    ) throws(DatabaseError) -> sending Value {
        do throws(DatabaseError) {
            return try withDatabase { database in
                Self.result { () throws(DatabaseError) in try body(database) }
            }.get()
        } catch where error.mayEndWithConnection {
            state.withLock { $0.database = nil }
            return try withDatabase { database in
                Self.result { () throws(DatabaseError) in try body(database) }
            }.get()
        }
    }

    /// Calls a body with a connection, again if the file changes meanwhile. Returns the result of the last call.
    package func withDatabase<Value>(_ body: (Database) -> sending Value) throws(DatabaseError) -> sending Value {
        try state.withLock { state throws(DatabaseError) in
            var left = busyMilliseconds
            while true {
                if let database = Self.usable(&state) { return body(database) }
                let failure: DatabaseError
                do throws(DatabaseError) {
                    state.database = try open()
                    continue
                } catch {
                    failure = error
                }
                guard failure.mayBeReadAlone else { throw failure }
                let movesLog = !state.hasMovedLog
                state.hasMovedLog = true
                do throws(DatabaseError) {
                    return try alone(movesLog: movesLog, body)
                } catch where error.reason == .busy && left > 0 {
                    // Others read alone, too, or the file can be shared again. Not all at the same time.
                    left -= sqlite3_sleep(Int32.random(in: 1...8))
                } catch where error.reason == .cannotOpen || error.reason == .full {
                    throw failure
                }
            }
        }
    }

    /// The connection, unless it has to be opened again.
    private static func usable(_ state: inout State) -> Database? {
        guard let database = state.database else { return nil }
        let now = ContinuousClock.now
        let isDue = now - state.checked >= checkInterval
        if isDue { state.checked = now }
        do throws(DatabaseError) {
            try database.checkIndex()
            if !isDue || database.isCurrent { return database }
        } catch {
            Log.logger("database").notice("A database is opened again", metadata: ["error": "\(error)"])
        }
        state.database = nil
        return nil
    }

    // MARK: Alone

    private func alone<Value>(
        movesLog: Bool, _ body: (Database) -> sending Value
    ) throws(DatabaseError) -> sending Value {
        // An empty file is no database yet.
        guard let files = FileStates(path), files.size > 0 else {
            throw DatabaseError(code: SQLITE_CANTOPEN, message: "there is no database", path: path)
        }
        if access(path, W_OK) == 0 {
            do throws(DatabaseError) {
                return body(try openExclusively(movesLog: movesLog))
            } catch where error.reason == .full || error.reason == .cannotOpen || error.reason == .readOnly {
                // Not even an empty log can be made.
            }
        }
        var found = files
        for _ in 0..<Self.attempts {
            let outcome = Self.result { () throws(DatabaseError) in body(try openUnlocked(hasLog: found.logSize > 0)) }
            guard let now = FileStates(path) else { break }
            if now == found { return try outcome.get() }
            found = now
        }
        throw DatabaseError(code: SQLITE_BUSY, message: "other processes change the file continuously", path: path)
    }

    private func openExclusively(movesLog: Bool) throws(DatabaseError) -> sending Database {
        var options = Database.Options()
        options.sharing = .exclusive
        options.busyMilliseconds = 0
        let database = try Database(path: path, options: options)
        if !movesLog { database.keepLog() }
        return database
    }

    private func openUnlocked(hasLog: Bool) throws(DatabaseError) -> sending Database {
        var options = Database.Options()
        options.isReadOnly = true
        if hasLog { options.sharing = .unlocked } else { options.isImmutable = true }
        let database = try Database(path: path, options: options)
        database.keepLog()
        return database
    }

    private static func result<Value>(
        _ body: () throws(DatabaseError) -> sending Value
    ) -> sending Result<Value, DatabaseError> {
        do throws(DatabaseError) { return .success(try body()) } catch { return .failure(error) }
    }
}

extension Database {
    /// Lets the log be when the connection closes.
    func keepLog() { _ = csqlite_keep_log(connection.handle) }
}

extension DatabaseError {
    /// Whether a new connection may succeed: the system failed, or the connection has kept a state of an earlier file.
    var mayEndWithConnection: Bool {
        switch reason {
        case .corrupt, .checksum, .inputOutput, .cannotOpen, .readOnly: true
        // A table is missing, with the part of the log that had it. Opening makes it again.
        case .other: code & 0xFF == SQLITE_ERROR
        default: false
        }
    }

    /// Whether a connection that does not share the file may be able to read it.
    package var mayBeReadAlone: Bool { reason == .full || reason == .readOnly || reason == .cannotOpen }

    /// The file must not be written.
    package static func readOnly(_ path: String) -> DatabaseError {
        DatabaseError(code: SQLITE_READONLY, message: "the file is read only", path: path)
    }
}

/// The state of a file and its log. Different states compare as different.
private struct FileStates: Equatable {
    private struct One: Equatable {
        let device, inode, size, seconds, nanoseconds: Int

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            device = Int(truncatingIfNeeded: status.st_dev)
            inode = Int(truncatingIfNeeded: status.st_ino)
            size = Int(status.st_size)
            seconds = Int(status.modified.tv_sec)
            nanoseconds = Int(status.modified.tv_nsec)
        }
    }

    private let file: One
    private let log: One?

    init?(_ path: String) {
        guard let file = One(path) else { return nil }
        self.file = file
        log = One(path + "-wal")
    }

    var size: Int { file.size }
    var logSize: Int { log?.size ?? 0 }
}
