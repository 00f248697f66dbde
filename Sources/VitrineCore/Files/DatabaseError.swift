#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An error of an SQLite database in a cache, a store or a list of downloads.
public struct DatabaseError: Error, Sendable, Equatable {
    /// The kind of a failure, by the reaction that it calls for.
    package enum Reason: Sendable, Equatable {
        /// Another process or connection holds the lock. Try again.
        case busy
        /// The file is damaged or not a database. Move it aside.
        case corrupt
        /// A row differs from its checksum. The rest of the file may be intact.
        case checksum
        /// The disk is full, or the database has reached its maximum size. Free some space.
        case full
        /// The file or its file system does not allow writing.
        case readOnly
        /// The file does not exist or cannot be opened.
        case cannotOpen
        /// Reading or writing the file failed.
        case inputOutput
        /// The bytes are not in memory, and the connection must not wait for the disk. Read by another one.
        case wouldWait
        /// A constraint of the schema forbids the change.
        case constraint
        /// The statement was interrupted.
        case interrupted
        /// A value or a statement is larger than SQLite's limit of about 1 GB.
        case tooLarge
        /// Any other failure, usually a mistake in the SQL.
        case other
    }

    /// The kind of the failure.
    package let reason: Reason
    /// The path of the database file.
    package let path: String
    /// SQLite's extended result code (https://www.sqlite.org/rescode.html).
    package let code: Int32
    /// SQLite's message.
    package let message: String
    /// The statement that failed, if there is one.
    package let sql: String?

    package init(reason: Reason, code: Int32, message: String, path: String, sql: String?) {
        self.reason = reason
        self.code = code
        self.message = message
        self.path = path
        self.sql = sql
    }
}

extension DatabaseError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// The path, SQLite's message and code, and the statement.
    public var description: String { "\(path): \(textWithoutInput)." }
}

extension DatabaseError: ErrorWithInput {
    package var namedInput: String? { path }

    package var textWithoutInput: String {
        let statement = sql.map { " in \"\($0.split(whereSeparator: \.isWhitespace).joined(separator: " "))\"" } ?? ""
        return "\(ErrorText.withoutStop(message))\(code == 0 ? "" : " (SQLite \(code))")\(statement)"
    }
}
