import CVitrineSQLite

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Why the database did not do what it was asked.
public struct DatabaseError: Error, Sendable, Equatable {
    /// What kind of failure it is, by what a caller can do about it.
    public enum Reason: Sendable, Equatable {
        /// Another connection kept its lock longer than the busy timeout. Try again.
        case busy
        /// The file is damaged or no database. Move it aside.
        case corrupt
        /// The disk is full, or the database has reached its maximum size. Make room.
        case full
        /// The file or its file system does not allow writing.
        case readOnly
        /// There is no such file, or no permission to open it.
        case cannotOpen
        /// Reading or writing failed below the database.
        case inputOutput
        /// A constraint of the schema forbids the change.
        case constraint
        /// ``Database/Interrupter/interrupt()`` was called.
        case interrupted
        /// A value or a statement is larger than SQLite takes (about 1 GB).
        case tooLarge
        /// Anything else; usually a mistake in the SQL.
        case other
    }

    /// What kind of failure it is.
    public let reason: Reason
    /// SQLite's extended result code (https://www.sqlite.org/rescode.html).
    public let code: Int32
    /// SQLite's message.
    public let message: String
    /// The database file.
    public let path: String
    /// The statement that failed, if one did.
    public let sql: String?

    /// - Parameter systemCode: The `errno` behind a failure to open, read or write; 0 if there is none.
    package init(code: Int32, message: String, path: String, sql: String? = nil, systemCode: Int32 = 0) {
        self.code = code
        self.message = message
        self.path = path
        self.sql = sql
        reason = Self.reason(of: code, systemCode)
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
        case SQLITE_IOERR: .inputOutput
        case SQLITE_CONSTRAINT: .constraint
        case SQLITE_INTERRUPT: .interrupted
        case SQLITE_TOOBIG: .tooLarge
        default: .other
        }
    }
}

extension DatabaseError: CustomStringConvertible {
    public var description: String {
        let place = sql.map { " in \"\($0)\"" } ?? ""
        return "\(path): \(message) (SQLite \(code))\(place)."
    }
}
