import VitrineCore
import VitrineDatabase

/// The statements of a ``KeyValueStore``.
enum ValueTable {
    static let schema = """
        CREATE TABLE IF NOT EXISTS item(
            id INTEGER PRIMARY KEY, path TEXT NOT NULL, key TEXT NOT NULL, kind INTEGER NOT NULL, value BLOB NOT NULL,
            UNIQUE(path, key));
        CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL)
        """

    static func value(_ path: String, _ key: String, _ database: Database) throws(DatabaseError) -> StoredValue? {
        let select = try database.cachedStatement("SELECT kind, value FROM item WHERE path=? AND key=?")
        defer { select.reset() }
        select.bind(path, at: 1)
        select.bind(key, at: 2)
        guard try select.step(), let kind = StoredValue.Kind(rawValue: select.integer(at: 0)) else { return nil }
        return StoredValue(kind: kind, bytes: select.bytes(at: 1))
    }

    static func set(
        _ value: StoredValue?, _ path: String, _ key: String, _ database: Database
    ) throws(DatabaseError) {
        guard let value else {
            let delete = try database.cachedStatement("DELETE FROM item WHERE path=? AND key=?")
            delete.bind(path, at: 1)
            delete.bind(key, at: 2)
            return try delete.run()
        }
        let insert = try database.cachedStatement(
            """
            INSERT INTO item(path, key, kind, value) VALUES(?,?,?,?)
            ON CONFLICT(path, key) DO UPDATE SET kind=excluded.kind, value=excluded.value
            """)
        insert.bind(path, at: 1)
        insert.bind(key, at: 2)
        insert.bind(value.kind.rawValue, at: 3)
        try insert.binding(value.bytes, at: 4) { () throws(DatabaseError) in try insert.run() }
    }

    static func remove(_ extent: ValueExtent, _ database: Database) throws(DatabaseError) {
        let (condition, range) = extent.condition
        if let others = try others(extent, database) {
            // Without a condition SQLite frees the pages and looks at no row
            // (https://www.sqlite.org/lang_delete.html, 4).
            try database.cachedStatement("DELETE FROM item").run()
            for (path, key, value) in others { try set(value, path, key, database) }
            return
        }
        let delete = try database.cachedStatement("DELETE FROM item WHERE \(condition)")
        bind(range, to: delete)
        // The rows of a group may lie anywhere in the table.
        try database.withPageCache(bytes: removalCacheBytes) { () throws(DatabaseError) in try delete.run() }
    }

    /// All that is outside of an extent, if it is so little beside what is inside that storing it anew is quicker than
    /// removing the rest row by row; else nil.
    private static func others(
        _ extent: ValueExtent, _ database: Database
    ) throws(DatabaseError) -> [(path: String, key: String, value: StoredValue)]? {
        let (condition, range) = extent.condition
        let count = try database.cachedStatement(
            "SELECT count(*) FROM (SELECT 1 FROM item WHERE \(condition) LIMIT \(manyRemoved))")
        defer { count.reset() }
        bind(range, to: count)
        let isMany = try count.step() && count.integer(at: 0) >= manyRemoved
        let select = try database.cachedStatement(
            "SELECT path, key, kind, value FROM item WHERE \(extent.complement) LIMIT \(fewKept + 1)")
        defer { select.reset() }
        bind(range, to: select)
        var others: [(path: String, key: String, value: StoredValue)] = [], bytes = 0
        while try select.step() {
            let value = select.bytes(at: 3)
            bytes += value.count
            guard isMany, others.count < fewKept, bytes <= fewKeptBytes,
                let kind = StoredValue.Kind(rawValue: select.integer(at: 2))
            else { return nil }
            others.append((select.text(at: 0), select.text(at: 1), StoredValue(kind: kind, bytes: value)))
        }
        return others
    }

    /// From so many values on, up to so many others, of so many bytes, are stored anew.
    private static let manyRemoved = 20_000, fewKept = 2000, fewKeptBytes = 4 << 20

    /// Memory for pages while a group is removed.
    private static let removalCacheBytes = 64 << 20

    /// Values, and bytes in them.
    static func sum(_ extent: ValueExtent, _ database: Database) throws(DatabaseError) -> (count: Int, bytes: Int) {
        let (condition, range) = extent.condition
        let select = try database.cachedStatement(
            "SELECT count(*), total(length(value)) FROM item WHERE \(condition)")
        defer { select.reset() }
        bind(range, to: select)
        guard try select.step() else { return (0, 0) }
        return (Int(select.integer(at: 0)), Int(select.double(at: 1)))
    }

    private static func bind(_ range: (from: String, to: String), to statement: Statement) {
        statement.bind(range.from, at: 1)
        statement.bind(range.to, at: 2)
    }

    /// The names of values directly in a group, in the order of their bytes, behind a name.
    static func keys(
        in path: String, after: String?, limit: Int, _ database: Database
    ) throws(DatabaseError) -> [String] {
        let select = try database.cachedStatement(
            "SELECT key FROM item WHERE path=? AND (?2 IS NULL OR key>?2) ORDER BY key LIMIT ?3")
        defer { select.reset() }
        select.bind(path, at: 1)
        if let after { select.bind(after, at: 2) } else { select.bindNull(at: 2) }
        select.bind(limit, at: 3)
        var keys: [String] = []
        while try select.step() { keys.append(select.text(at: 0)) }
        return keys
    }

    /// The next group directly below a path, in the order of their bytes: one step in the index each, however much is
    /// in the groups.
    static func nextGroup(below path: String, after: String?, _ database: Database) throws(DatabaseError) -> String? {
        let select = try database.cachedStatement("SELECT min(path) FROM item WHERE path>=? AND path<?")
        defer { select.reset() }
        select.bind(after.map { GroupPath.end(of: path + $0 + "/") } ?? path + "\u{0}", at: 1)
        select.bind(GroupPath.end(of: path), at: 2)
        guard try select.step(), !select.isNull(at: 0) else { return nil }
        let found = select.text(at: 0)
        return String(GroupPath.firstName(found[path.endIndex...]).stored)
    }

    // MARK: Version

    /// Whether the values may be read as they are: not if ``adopt(version:compatible:_:)`` would remove some.
    static func accepts(_ version: String?, _ compatible: [String], _ database: Database) throws(DatabaseError) -> Bool {
        guard let version else { return true }
        guard let stored = try storedVersion(database) else { return true }
        return stored == version || compatible.contains(stored)
    }

    private static func storedVersion(_ database: Database) throws(DatabaseError) -> String? {
        let select = try database.prepare("SELECT value FROM meta WHERE name='version'")
        return try select.step() ? select.text(at: 0) : nil
    }

    /// Removes all but the reserve group if another version of the program, and none it is compatible with, wrote
    /// last (R49).
    ///
    /// - Returns: The other version, if values were removed for it.
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

/// A part of a ``KeyValueStore``.
enum ValueExtent: Sendable {
    /// A group and what is below it, by its stored path.
    case group(String)
    case allButReserve
    case everything

    func contains(_ path: String) -> Bool {
        switch self {
        case .group(let group): path.utf8.starts(with: group.utf8)
        case .allButReserve: !path.utf8.starts(with: GroupPath.reserve.text.utf8)
        case .everything: true
        }
    }

    /// Whether a value belongs to it, by the key that memory has for it: path and name. Makes no strings.
    func contains(_ id: CacheKey) -> Bool {
        var identity = id.identity
        return identity.withUTF8 { bytes in
            // A mark, the length of the path in decimal digits, a colon, the path.
            var start = 1, length = 0
            while start < bytes.count, (0x30...0x39).contains(bytes[start]) {
                length = length &* 10 &+ Int(bytes[start] &- 0x30)
                start += 1
            }
            let path = bytes.dropFirst(start + 1).prefix(max(0, length))
            return switch self {
            case .group(let group): path.starts(with: group.utf8)
            case .allButReserve: !path.starts(with: GroupPath.reserve.text.utf8)
            case .everything: true
            }
        }
    }

    /// What is outside of it, with the values of ``condition``.
    fileprivate var complement: String {
        switch self {
        case .group, .everything: "path<? OR path>=?"
        case .allButReserve: "path>=? AND path<?"
        }
    }

    fileprivate var condition: (text: String, range: (from: String, to: String)) {
        switch self {
        case .group(let group): ("path>=? AND path<?", (group, GroupPath.end(of: group)))
        case .allButReserve:
            ("NOT (path>=? AND path<?)", (GroupPath.reserve.text, GroupPath.end(of: GroupPath.reserve.text)))
        // Stored paths begin with a letter.
        case .everything: ("path>=? AND path<?", ("a", "{"))
        }
    }
}
