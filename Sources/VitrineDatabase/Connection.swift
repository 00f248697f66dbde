import CVitrineSQLite
internal import VitrineCore

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
        var flags =
            switch options.sharing {
            case .shared: options.isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            case .exclusive: SQLITE_OPEN_READWRITE
            case .unlocked: SQLITE_OPEN_READONLY
            }
        flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        var name = path
        if options.isReadOnly, options.isImmutable {
            flags |= SQLITE_OPEN_URI
            name = Self.immutableName(path)
        }
        // https://www.sqlite.org/vfs.html, 2.1
        let system = options.sharing == .unlocked ? "unix-none" : nil
        let code = PathText.withSystemPath(name, failure: SQLITE_CANTOPEN) {
            sqlite3_open_v2($0, &handle, flags, system)
        }
        guard code == SQLITE_OK, let handle else {
            let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            let systemCode = handle.map { sqlite3_system_errno($0) } ?? 0
            sqlite3_close_v2(handle)
            throw DatabaseError(code: code, message: message, path: path, systemCode: systemCode)
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
        return DatabaseError(
            code: code, message: text.map { String(cString: $0) } ?? "", path: path, sql: sql,
            systemCode: isLast ? sqlite3_system_errno(handle) : 0)
    }

    /// The path as a URI (https://www.sqlite.org/uri.html) whose file is taken to be unchanging.
    private static func immutableName(_ path: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var name = Array((path.utf8.first == UInt8(ascii: "/") ? "file://" : "file:").utf8)
        for byte in PathText.bytes(of: path) {
            switch byte {
            case UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"), 0x80...:
                name += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: name.append(byte)
            }
        }
        return String(decoding: name, as: UTF8.self) + "?immutable=1"
    }
}
