import CVitrineSQLite
internal import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// SQLite's handle, closed with its last user: the database or a statement.
///
/// Statements hold this and not the ``Database``, which keeps statements of its own.
final class Connection {
    let handle: OpaquePointer
    let path: String
    /// See ``Database/logFrames``.
    var logFrames = 0
    /// The file that is open.
    private let file: FileState

    /// Opens a file.
    init(path: String, options: Database.Options) throws(DatabaseError) {
        // SQLite would read the path up to the NUL, and take an empty one for a temporary file.
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw DatabaseError(code: SQLITE_CANTOPEN, message: "the path is not valid", path: path)
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
        var status = stat()
        guard flags & SQLITE_OPEN_CREATE == 0 || lstat(path, &status) != 0 || status.st_mode & S_IFMT != S_IFLNK
            || access(path, F_OK) == 0
        else {
            // SQLite would create the file wherever the link leads.
            throw DatabaseError(
                code: SQLITE_CANTOPEN, message: "the path is a link to a file that does not exist. Remove the link",
                path: path)
        }
        // A file that takes its place while it is opened differs from this one, or from a missing one.
        let found = FileState(path: path)
        let layer = csqlite_layer_name(options.layer)
        let code = PathText.withSystemPath(name, failure: SQLITE_CANTOPEN) {
            sqlite3_open_v2($0, &handle, flags, layer)
        }
        guard code == SQLITE_OK, let handle else {
            let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            let systemCode = handle.map { sqlite3_system_errno($0) } ?? 0
            sqlite3_close_v2(handle)
            throw DatabaseError(code: code, message: message, path: path, systemCode: systemCode)
        }
        guard flags & SQLITE_OPEN_READWRITE == 0 || sqlite3_db_readonly(handle, "main") == 0 else {
            sqlite3_close_v2(handle)
            throw .notWritable(path)
        }
        self.handle = handle
        self.path = path
        file = found.identity != nil ? found : FileState(path: path)
    }

    /// Whether the path still has the file that is open. True if the system cannot tell.
    var isCurrent: Bool {
        let now = FileState(path: path)
        return now == file || now == .unknown || file == .unknown
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
        let encoded = PercentEncoding.encoded(PathText.bytes(of: path)) { $0 < 0x80 && !"%?#".utf8.contains($0) }
        return (path.utf8.first == UInt8(ascii: "/") ? "file://" : "file:") + encoded + "?immutable=1"
    }
}

extension Database.Options {
    /// The layer over SQLite's file system for the options.
    fileprivate var layer: csqlite_layer_kind {
        if sharing == .unlocked { return csqlite_unlocked_layer }
        return mayStopWaiting ? csqlite_resident_layer : csqlite_plain_layer
    }
}
