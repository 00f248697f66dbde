import VitrineDatabase

/// The statements of a ``ValueStore``.
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
        let delete = try database.cachedStatement("DELETE FROM item WHERE \(condition)")
        bind(range, to: delete)
        try delete.run()
    }

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

    /// Removes all but the reserve group if another version of the program, and none it is compatible with, wrote
    /// last (R49).
    ///
    /// - Returns: The other version, if values were removed for it.
    static func adopt(
        version: String?, compatible: [String], _ database: Database
    ) throws(DatabaseError) -> String? {
        guard let version else { return nil }
        let select = try database.prepare("SELECT value FROM meta WHERE name='version'")
        let stored = try select.step() ? select.text(at: 0) : nil
        select.reset()
        guard stored != version else { return nil }
        let isForeign = stored.map { !compatible.contains($0) } ?? false
        if isForeign { try remove(.allButReserve, database) }
        let insert = try database.prepare("INSERT OR REPLACE INTO meta(name, value) VALUES('version', ?)")
        insert.bind(version, at: 1)
        try insert.run()
        return isForeign ? stored : nil
    }
}

/// A part of a ``ValueStore``.
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
