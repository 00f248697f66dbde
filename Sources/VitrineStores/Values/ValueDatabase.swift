import VitrineCache
import VitrineCore
import VitrineDatabase

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The database file of a ``KeyValueStore``. Its name contains the version of the format, so that a later format never
/// reads the bytes of this one.
struct ValueDatabase {
    let directory: String
    let path: String
    /// The file by whose lock a session shows that it uses the database.
    private var presencePath: String { FilePath.join(directory, "users") }

    init(directory: String) {
        self.directory = directory
        path = FilePath.join(directory, "values-1.sqlite")
    }

    /// Creates the directory and the file if needed. A file that is damaged or not a database is renamed first, unless
    /// another process uses it.
    ///
    /// - Parameter suspect: The session that has found damage in the file. It gives up its presence.
    /// - Returns: The new path of the damaged file, if there was one.
    /// - Throws: Also if the file is damaged and in use, or if the system cannot tell. The file stays then.
    func prepare(replacing suspect: ValueSession?) throws(StoreError) -> String? {
        do {
            try Directory.create(directory, isDurable: true)
            _ = try? AtomicFile.removeTemporariesOfDeadWriters(in: directory)
            let lock: ProcessLock
            do throws(FileError) {
                lock = try ProcessLock(directory: directory)
                try lock.acquire()
            } catch .noSpace {
                // Files cannot be created or renamed now, but existing ones can be read.
                return nil
            }
            defer { lock.release() }
            if access(path, F_OK) != 0 {
                // They belong to a deleted file. Only connections that are still open may use them.
                for end in ["-wal", "-shm"] { unlink(path + end) }
            }
            guard try isDamaged(suspect != nil) else { return nil }
            suspect?.presence?.end()
            let moved = try FilePresence.whileAlone(at: presencePath) { () throws -> String? in
                // No other process writes now, so this is certain.
                guard try Database.isDamaged(path: path, preparing: ValueTable.create) else { return nil }
                return try moveAside()
            }
            if let moved { return moved }
            throw DatabaseError(
                reason: .corrupt, code: 11,
                message: "the file is damaged. It is set aside when no other process uses it", path: path, sql: nil)
        } catch let error as FileError {
            throw .file(error)
        } catch let error as DatabaseError {
            throw .database(error)
        } catch {
            throw .invalidData(name: path, underlying: error)
        }
    }

    /// Whether a new connection finds damage: in the whole file if it is suspect, else in its first pages.
    private func isDamaged(_ isSuspect: Bool) throws(DatabaseError) -> Bool {
        if isSuspect { return try Database.isDamaged(path: path, attempts: 1, preparing: ValueTable.create) }
        do throws(DatabaseError) {
            try ValueTable.create(in: Database(path: path))
            return false
        } catch {
            // Whoever opens it now meets any other error, too, and may have a way around it.
            return error.reason == .corrupt
        }
    }

    /// Shows other processes that a session uses the file; nil where there is no room or permission for that.
    func takePresence() -> FilePresence? { try? FilePresence(path: presencePath) }

    private func moveAside() throws(FileError) -> String? {
        let suffix = ".damaged-\(WallClock.system.now.components.seconds)"
        var target = path + suffix, number = 0
        while access(target, F_OK) == 0 {
            number += 1
            target = "\(path)\(suffix)-\(number)"
        }
        // The log must move with its file. Otherwise SQLite would replay it into a new file of that name.
        for end in ["-wal", "-shm", ""] where rename(path + end, target + end) != 0 && errno != ENOENT {
            throw FileError(operation: "rename", path: path + end, code: errno)
        }
        return access(target, F_OK) == 0 ? target : nil
    }

    /// Opens the two connections of a session, creates the tables and records the version. On a full disk, the
    /// connection for writing is opened later, when there is space.
    func open(_ configuration: KeyValueStore.Configuration) throws(StoreError) -> (DatabaseReader, DatabaseWriter) {
        let openToWrite: @Sendable () throws -> sending Database = {
            let database = try connect(configuration)
            try database.transaction { try adopt(configuration, database) }
            return database
        }
        do {
            do {
                let lock = try ProcessLock(directory: directory)
                let reader = try reader(configuration)
                let writer = DatabaseWriter(try connect(configuration), lock: lock) { () throws -> sending Database in
                    reader.close()
                    return try openToWrite()
                }
                try writer.writeBlocking { database in try adopt(configuration, database) }
                return (reader, writer)
            } catch where Self.isOutOfSpace(error) {
                let failure = error
                let reader = try reader(configuration)
                let isAccepted = try reader.read { database throws(DatabaseError) in
                    guard try ValueTable.isAdopted(database) else { return false }
                    return try ValueTable.accepts(
                        configuration.version, compatible: configuration.compatibleVersions, database: database)
                }
                guard isAccepted else { throw failure }
                return (reader, DatabaseWriter(lock: try? ProcessLock(directory: directory), opening: openToWrite))
            }
        } catch let error as StoreError {
            throw error
        } catch let error as DatabaseError {
            throw .database(error)
        } catch let error as FileError {
            throw .file(error)
        } catch {
            throw .invalidData(name: path, underlying: error)
        }
    }

    private static func isOutOfSpace(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError: error.reason == .full
        case FileError.noSpace: true
        default: false
        }
    }

    private func connect(_ configuration: KeyValueStore.Configuration) throws(DatabaseError) -> sending Database {
        var options = Database.Options()
        options.durability = configuration.durability
        return try Database(path: path, options: options)
    }

    private func reader(_ configuration: KeyValueStore.Configuration) throws(DatabaseError) -> DatabaseReader {
        try DatabaseReader(path: path) { () throws(DatabaseError) in
            let database = try connect(configuration)
            try ValueTable.create(in: database)
            return database
        }
    }

    private func adopt(_ configuration: KeyValueStore.Configuration, _ database: Database) throws {
        try ValueTable.create(in: database)
        try ValueTable.adoptRowsWithoutSums(database)
        let other = try ValueTable.adopt(
            version: configuration.version, compatible: configuration.compatibleVersions, database)
        if let other {
            Log.logger("values").notice("Removed the values of version \(other)", metadata: ["path": "\(path)"])
        }
    }
}

/// The statements of a ``KeyValueStore``.
enum ValueTable {
    private static let schema = """
        CREATE TABLE IF NOT EXISTS entry(
            id INTEGER PRIMARY KEY, path TEXT NOT NULL, key TEXT NOT NULL, kind INTEGER NOT NULL, sum INTEGER NOT NULL,
            value BLOB NOT NULL, UNIQUE(path, key));
        CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL);
        PRAGMA user_version=1
        """

    /// Creates the tables of a new file.
    ///
    /// - Throws: ``DatabaseError/Reason/corrupt`` if a file that had them lacks one. Only another program can have
    ///   dropped it, and an empty one in its place would hide that.
    static func create(in database: Database) throws(DatabaseError) {
        // Set last, so that a file with this number has all of them.
        guard try database.integer("PRAGMA user_version") == 1 else { return try database.execute(schema) }
        let count = "SELECT count(*) FROM sqlite_master WHERE type='table' AND name IN ('entry', 'meta')"
        guard try database.integer(count) != 2 else { return }
        throw DatabaseError(
            reason: .corrupt, code: 11, message: "a table is missing; another program has dropped it",
            path: database.path, sql: nil)
    }

    /// Moves the rows of the first format, which had no checksums, into this one. A program of that format that writes
    /// later creates its table again, so its rows are newer.
    static func adoptRowsWithoutSums(_ database: Database) throws(DatabaseError) {
        guard try database.integer("SELECT count(*) FROM sqlite_master WHERE type='table' AND name='item'") == 1 else {
            return
        }
        let select = try database.prepare("SELECT path, key, kind, value FROM item")
        while try select.step() {
            guard let kind = StoredValue.Kind(rawValue: select.integer(at: 2)) else { continue }
            let value = StoredValue(kind: kind, bytes: select.bytes(at: 3))
            try set(value, path: select.text(at: 0), key: select.text(at: 1), database: database)
        }
        try database.execute("DROP TABLE item")
    }

    /// Whether the file has the tables of this format alone.
    static func isAdopted(_ database: Database) throws(DatabaseError) -> Bool {
        let names = "SELECT group_concat(name) FROM sqlite_master WHERE type='table' AND name IN ('entry', 'item')"
        let select = try database.prepare(names)
        return try select.step() && select.text(at: 0) == "entry"
    }

    static func value(_ path: String, key: String, database: Database) throws(DatabaseError) -> StoredValue? {
        let select = try database.cachedStatement("SELECT kind, sum, value FROM entry WHERE path=? AND key=?")
        defer { select.reset() }
        select.bind(path, at: 1)
        select.bind(key, at: 2)
        guard try select.step() else { return nil }
        let kind = select.integer(at: 0)
        let bytes = select.bytes(at: 2)
        guard sum(path: path, key: key, kind: kind, bytes: bytes) == select.integer(at: 1),
            let kind = StoredValue.Kind(rawValue: kind)
        else {
            throw DatabaseError(
                reason: .checksum, code: 0, message: "the stored bytes differ from their checksum", path: database.path,
                sql: nil)
        }
        return StoredValue(kind: kind, bytes: bytes)
    }

    /// The checksum of a row. It finds damage, and no changes on purpose.
    private static func sum(path: String, key: String, kind: Int64, bytes: [UInt8]) -> Int64 {
        let name = StableHash.hash(key, seed: StableHash.hash(path, seed: UInt64(bitPattern: kind)))
        return Int64(bitPattern: bytes.withUnsafeBytes { StableHash.hash($0, seed: name) })
    }

    static func set(
        _ value: StoredValue?, path: String, key: String, database: Database
    ) throws(DatabaseError) {
        guard let value else {
            let delete = try database.cachedStatement("DELETE FROM entry WHERE path=? AND key=?")
            delete.bind(path, at: 1)
            delete.bind(key, at: 2)
            return try delete.run()
        }
        let kind = value.kind.rawValue, bytes = value.bytes
        let sum = sum(path: path, key: key, kind: kind, bytes: bytes)
        try insert(Row(path: path, key: key, kind: kind, sum: sum, bytes: bytes), database)
    }

    /// A row as it is in the file.
    private struct Row {
        let path: String, key: String
        let kind: Int64, sum: Int64
        let bytes: [UInt8]
    }

    private static func insert(_ row: Row, _ database: Database) throws(DatabaseError) {
        let insert = try database.cachedStatement(
            """
            INSERT INTO entry(path, key, kind, sum, value) VALUES(?,?,?,?,?)
            ON CONFLICT(path, key) DO UPDATE SET kind=excluded.kind, sum=excluded.sum, value=excluded.value
            """)
        insert.bind(row.path, at: 1)
        insert.bind(row.key, at: 2)
        insert.bind(row.kind, at: 3)
        insert.bind(row.sum, at: 4)
        try insert.binding(row.bytes, at: 5) { () throws(DatabaseError) in try insert.run() }
    }

    static func remove(_ extent: ValueExtent, _ database: Database) throws(DatabaseError) {
        let (condition, range) = extent.condition
        if let others = try others(extent, database) {
            // Without a condition, SQLite frees the pages without visiting the rows
            // (https://www.sqlite.org/lang_delete.html, 4).
            try database.cachedStatement("DELETE FROM entry").run()
            for row in others { try insert(row, database) }
            return
        }
        let delete = try database.cachedStatement("DELETE FROM entry WHERE \(condition)")
        bind(range, to: delete)
        // The rows of a group may be anywhere in the table.
        try database.withPageCache(bytes: removalCacheBytes) { () throws(DatabaseError) in try delete.run() }
    }

    /// Returns the values outside an extent if storing them again is faster than deleting the extent row by row.
    private static func others(
        _ extent: ValueExtent, _ database: Database
    ) throws(DatabaseError) -> [Row]? {
        let (condition, range) = extent.condition
        let count = try database.cachedStatement(
            "SELECT count(*) FROM (SELECT 1 FROM entry WHERE \(condition) LIMIT \(manyRemoved))")
        defer { count.reset() }
        bind(range, to: count)
        let isMany = try count.step() && count.integer(at: 0) >= manyRemoved
        let select = try database.cachedStatement(
            "SELECT path, key, kind, sum, value FROM entry WHERE \(extent.complement) LIMIT \(fewKept + 1)")
        defer { select.reset() }
        bind(range, to: select)
        var others: [Row] = [], bytes = 0
        while try select.step() {
            let value = select.bytes(at: 4)
            bytes += value.count
            guard isMany, others.count < fewKept, bytes <= fewKeptBytes else { return nil }
            others.append(
                Row(
                    path: select.text(at: 0), key: select.text(at: 1), kind: select.integer(at: 2),
                    sum: select.integer(at: 3), bytes: value))
        }
        return others
    }

    /// Removing at least `manyRemoved` values stores the others again if they are at most `fewKept` values with at most
    /// `fewKeptBytes` bytes.
    private static let manyRemoved = 20_000, fewKept = 2000, fewKeptBytes = 4 << 20

    /// The page cache of SQLite while a group is removed.
    private static let removalCacheBytes = 64 << 20

    /// Returns the number of values in an extent, and the number of their bytes.
    static func sum(_ extent: ValueExtent, _ database: Database) throws(DatabaseError) -> (count: Int, bytes: Int) {
        let (condition, range) = extent.condition
        let select = try database.cachedStatement(
            "SELECT count(*), total(length(value)) FROM entry WHERE \(condition)")
        defer { select.reset() }
        bind(range, to: select)
        guard try select.step() else { return (0, 0) }
        return (Int(select.integer(at: 0)), Int(select.double(at: 1)))
    }

    private static func bind(_ range: (from: String, to: String), to statement: Statement) {
        statement.bind(range.from, at: 1)
        statement.bind(range.to, at: 2)
    }

    /// Returns the keys directly in a group after a key, sorted by their bytes.
    static func keys(
        in path: String, after: String?, limit: Int, _ database: Database
    ) throws(DatabaseError) -> [String] {
        let select = try database.cachedStatement(
            "SELECT key FROM entry WHERE path=? AND (?2 IS NULL OR key>?2) ORDER BY key LIMIT ?3")
        defer { select.reset() }
        select.bind(path, at: 1)
        if let after { select.bind(after, at: 2) } else { select.bindNull(at: 2) }
        select.bind(limit, at: 3)
        var keys: [String] = []
        while try select.step() { keys.append(select.text(at: 0)) }
        return keys
    }

    /// Returns the next group directly below a path, sorted by bytes. Takes one step in the index, independently of the
    /// size of the groups.
    static func nextGroup(below path: String, after: String?, _ database: Database) throws(DatabaseError) -> String? {
        let select = try database.cachedStatement("SELECT min(path) FROM entry WHERE path>=? AND path<?")
        defer { select.reset() }
        select.bind(after.map { GroupPath.upperBound(ofStored: path + $0 + "/") } ?? path + "\u{0}", at: 1)
        select.bind(GroupPath.upperBound(ofStored: path), at: 2)
        guard try select.step(), !select.isNull(at: 0) else { return nil }
        let found = select.text(at: 0)
        return String(GroupPath.firstName(ofStored: found[path.endIndex...]).stored)
    }

    // MARK: Version

    /// Returns whether the values can be read unchanged: ``adopt(version:compatible:_:)`` would not remove any.
    static func accepts(_ version: String?, compatible: [String], database: Database) throws(DatabaseError) -> Bool {
        guard let version else { return true }
        guard let stored = try storedVersion(database) else { return true }
        return stored == version || compatible.contains(stored)
    }

    private static func storedVersion(_ database: Database) throws(DatabaseError) -> String? {
        let select = try database.prepare("SELECT value FROM meta WHERE name='version'")
        return try select.step() ? select.text(at: 0) : nil
    }

    /// Removes all groups but the reserve group if an incompatible version of the program wrote last, and records this
    /// version.
    ///
    /// - Returns: The incompatible version, if values were removed.
    static func adopt(
        version: String?, compatible: [String], _ database: Database
    ) throws(DatabaseError) -> String? {
        guard let version else { return nil }
        let stored = try storedVersion(database)
        guard stored != version else { return nil }
        let isForeign = stored.map { !compatible.contains($0) } ?? false
        if isForeign { try remove(.allButReserve, database) }
        let insert = try database.prepare("INSERT OR REPLACE INTO meta(name, value) VALUES('version', ?)")
        insert.bind(version, at: 1)
        try insert.run()
        return isForeign ? stored : nil
    }
}

/// A set of groups in a ``KeyValueStore``.
enum ValueExtent: Sendable {
    /// A group and the groups inside it, by its stored path.
    case group(String)
    case allButReserve
    case everything

    func contains(_ path: String) -> Bool {
        switch self {
        case .group(let group): path.utf8.starts(with: group.utf8)
        case .allButReserve: !path.utf8.starts(with: GroupPath.reserve.storedText.utf8)
        case .everything: true
        }
    }

    /// Returns whether a memory key, made of path and name, belongs to the extent. Creates no strings.
    func contains(_ id: CacheKey) -> Bool {
        var identity = id.identity
        return identity.withUTF8 { bytes in
            // The format is: a mark, the length of the path in decimal digits, a colon, the path.
            var start = 1, length = 0
            while start < bytes.count, (0x30...0x39).contains(bytes[start]) {
                length = length &* 10 &+ Int(bytes[start] &- 0x30)
                start += 1
            }
            let path = bytes.dropFirst(start + 1).prefix(max(0, length))
            return switch self {
            case .group(let group): path.starts(with: group.utf8)
            case .allButReserve: !path.starts(with: GroupPath.reserve.storedText.utf8)
            case .everything: true
            }
        }
    }

    /// The SQL condition for values outside the extent, with the parameters of ``condition``.
    fileprivate var complement: String {
        switch self {
        case .group, .everything: "path<? OR path>=?"
        case .allButReserve: "path>=? AND path<?"
        }
    }

    fileprivate var condition: (text: String, range: (from: String, to: String)) {
        switch self {
        case .group(let group): ("path>=? AND path<?", (group, GroupPath.upperBound(ofStored: group)))
        case .allButReserve:
            (
                "NOT (path>=? AND path<?)",
                (GroupPath.reserve.storedText, GroupPath.upperBound(ofStored: GroupPath.reserve.storedText))
            )
        // Stored paths begin with a letter.
        case .everything: ("path>=? AND path<?", ("a", "{"))
        }
    }
}

/// A value as a ``KeyValueStore`` keeps it: its bytes and the kind of type that encoded them.
struct StoredValue: Sendable, Equatable {
    /// The kinds of types. Only a type of the kind that wrote a value can read it, so that text is never read as a
    /// number. The raw values are on disk and must not change.
    enum Kind: Int64, Sendable {
        case opaque = 0, text = 1, scalar = 2, list = 3, codable = 4

        /// The kind of a type.
        init(of type: any CacheableValue.Type) {
            if type == String.self {
                self = .text
            } else if type == [UInt8].self || type == Data.self || type == UUID.self {
                self = .opaque
            } else if type is any CompactValue.Type {
                self = .scalar
            } else if type is any ListValue.Type {
                self = .list
            } else if type is any CodableValue.Type || type is any CacheableCodable.Type {
                self = .codable
            } else {
                self = .opaque
            }
        }
    }

    var kind: Kind
    var bytes: [UInt8]

    /// Decodes the value, which must have the kind of the type.
    func value<Value: CacheableValue>(as type: Value.Type) throws -> Value {
        guard kind == Kind(of: type) else { throw CacheableValueError.notRepresentable(type: "\(type)") }
        return try Value(cacheBytes: bytes)
    }

    init(kind: Kind, bytes: [UInt8]) {
        self.kind = kind
        self.bytes = bytes
    }

    init<Value: CacheableValue>(_ value: Value) throws {
        self.init(kind: Kind(of: Value.self), bytes: try value.cacheBytes())
    }
}

/// Identifies ``CacheableList`` types.
private protocol ListValue {}
extension CacheableList: ListValue {}
/// Identifies ``CodableBox`` types.
private protocol CodableValue {}
extension CodableBox: CodableValue {}
