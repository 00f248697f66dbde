import CSQLite

/// SQLite's handle, closed with its last user: the database, a statement or an interrupter.
///
/// Statements hold this and not the ``Database``, which keeps statements of its own.
final class Connection {
    let handle: OpaquePointer
    let path: String

    /// Opens a file.
    init(path: String, options: Database.Options) throws(DatabaseError) {
        // SQLite would read the path up to the NUL, and take an empty one for a temporary file.
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw DatabaseError(code: SQLITE_CANTOPEN, message: "no file can have this name", path: path)
        }
        var handle: OpaquePointer?
        var flags = options.isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        var name = path
        if options.isReadOnly, options.isImmutable {
            flags |= SQLITE_OPEN_URI
            name = Self.immutableName(path)
        }
        let code = sqlite3_open_v2(name, &handle, flags, nil)
        guard code == SQLITE_OK, let handle else {
            let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            sqlite3_close_v2(handle)
            throw DatabaseError(code: code, message: message, path: path)
        }
        self.handle = handle
        self.path = path
    }

    deinit {
        sqlite3_close_v2(handle)
    }

    func error(code: Int32, sql: String? = nil) -> DatabaseError {
        // A code that did not come from the last call (a bind's, say) has a text of its own.
        let isLast = sqlite3_extended_errcode(handle) == code
        let text = isLast ? sqlite3_errmsg(handle) : sqlite3_errstr(code)
        return DatabaseError(code: code, message: text.map { String(cString: $0) } ?? "", path: path, sql: sql)
    }

    /// The path as a URI (https://www.sqlite.org/uri.html) whose file is taken to be unchanging.
    private static func immutableName(_ path: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var name = Array((path.utf8.first == UInt8(ascii: "/") ? "file://" : "file:").utf8)
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"), 0x80...:
                name += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: name.append(byte)
            }
        }
        return String(decoding: name, as: UTF8.self) + "?immutable=1"
    }
}
