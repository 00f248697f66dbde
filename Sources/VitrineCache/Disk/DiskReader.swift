import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A connection for reading one generation.
///
/// Unchecked: a C-handle type. A connection taken from the pool is used by one thread at a time.
final class DiskReader: @unchecked Sendable {
    /// The result of a lookup.
    enum Found {
        case nothing
        case row(Row)
        /// The entry does not fit its checksum.
        case damaged
        /// The body cannot be read now. That says nothing about the entry.
        case unreadable(FileError)
    }

    /// An entry's row, and its body if that was wanted.
    struct Row {
        var body: [UInt8] = []
        var size = 0
        var created: Int64 = 0
        var expires: Int64?
        var used: Int64 = 0
        var hits = 0
        var validator: [UInt8] = []
        var tags = EntryTags.none
        var isFile = false
        /// The body's file has not taken the place of the one before yet.
        var isSuccessor = false
    }

    /// SQLite's own upper limit for mapped bytes (SQLITE_MAX_MMAP_SIZE).
    private static let mappedBytes = 0x7fff_0000
    /// The largest body that is read where nothing may wait: an event loop reads and checks it in about 30 µs.
    private static let largestAtOnce = 128 << 10
    private static let columns =
        "e.key,e.size,e.created,e.expires,e.used,e.hits,e.validator,e.sum,e.body,e.format,e.tags"
    private static let infoSQL = "SELECT \(columns) FROM entry e WHERE e.id=?"
    /// A body in blocks that does not fit is read so often, each time with the newest state of the database.
    private static let blockReads = 3

    /// The watch must outlive the connection.
    private let watch: FileWatch
    private let path: String
    private let blocks: BlockFile
    private let origin: PurgeOrigin
    private var core: Core?
    /// Whether it may wait for the disk and for other connections. Otherwise reads throw
    /// `DatabaseError.Reason.wouldWait` instead.
    let waits: Bool

    private struct Core {
        let database: Database
        let select: Statement
        let body: Statement
        /// Whether the database has bodies in blocks (``DiskWriter/schemaVersion``).
        let hasBlocks: Bool
    }

    /// - Parameter waits: Opening a connection that does not wait may wait itself.
    /// - Throws: Also `DatabaseError.Reason.wouldWait` where no connection can do without waiting.
    init(generation: Generation, waits: Bool = true) throws(DatabaseError) {
        self.waits = waits
        watch = generation.watch
        path = generation.path
        blocks = generation.blocks
        origin = generation.purgeOrigin
        var options = Database.Options()
        options.isReadOnly = true
        options.mappedBytes = waits && generation.mapsDatabase ? Self.mappedBytes : 0
        options.mayStopWaiting = !waits
        options.cacheBytes = 256 << 10
        let database = try generation.openForReading(options)
        do throws(DatabaseError) {
            let hasBlocks = try Self.hasBlocks(database)
            let columns = Self.columns + (hasBlocks ? ",e.blocks" : ",x''")
            core = Core(
                database: database, select: try database.prepare("SELECT \(columns) FROM entry e WHERE e.id=?"),
                body: try database.prepare("SELECT data FROM body WHERE id=?"), hasBlocks: hasBlocks)
            guard !waits else { return }
            for sql in [TagPurges.pendingPurgesSQL, TagPurges.lastPurgeSQL, Self.infoSQL] {
                _ = try database.cachedStatement(sql)
            }
        } catch {
            throw error.blamingSchema
        }
        guard database.stopWaiting(descriptor: watch.descriptor) else {
            throw DatabaseError(
                reason: .wouldWait, code: 0, message: "reads without waiting are not supported", path: path,
                sql: nil)
        }
    }

    deinit { core = nil }

    /// Whether rows name blocks: not in a database that only the version before has written.
    static func hasBlocks(_ database: Database) throws(DatabaseError) -> Bool {
        try database.integer("PRAGMA user_version") ?? 0 >= DiskConnection.blockSchemaVersion
    }

    // MARK: With bodies

    /// Reads an entry and compares it with its checksum.
    func read(_ key: EntryKey) throws(DatabaseError) -> Found {
        for _ in 1..<Self.blockReads {
            switch try readOnce(key) {
            case (.damaged, isInBlocks: true):
                guard waits else { return .nothing }
                // Another body may have got the blocks since the row was read.
                blocks.refresh()
            case (let found, _): return found
            }
        }
        return try readOnce(key).0
    }

    private func readOnce(_ key: EntryKey) throws(DatabaseError) -> (Found, isInBlocks: Bool) {
        guard let core else { return (.nothing, false) }
        let select = core.select, id = key.id
        select.bind(id, at: 1)
        guard try select.step() else { return (.nothing, false) }
        // Until then the statement holds the read transaction, so that its body and the purges are of the same state.
        defer { select.reset() }
        // Another entry with the same identifier.
        guard select.integer(at: 9) == key.format.id else { return (.nothing, false) }
        var row = Row()
        let properties = EntryChecksum.withBytes(of: key.key) { key -> UInt64? in
            select.withBytes(at: 0) { stored in
                guard stored.count == key.count else { return nil }
                if let a = stored.baseAddress, let b = key.baseAddress, memcmp(a, b, key.count) != 0 { return nil }
                return fill(&row, select, key: key)
            }
        }
        guard let properties else { return (.nothing, false) }
        if try isPending(row) { return (.nothing, false) }
        let sum = UInt64(bitPattern: select.integer(at: 7)) ^ properties
        let body = select.integer(at: 8)
        if row.isFile { return (try readFile(id: id, row: row, sum: sum), false) }
        guard body < 0 else { return (try readBody(body, of: id, row: &row, sum: sum) ? .row(row) : .damaged, false) }
        return (try readBlocks(select.withBytes(at: 11) { Extent.decode($0) }, of: id, row: row, sum: sum), true)
    }

    private func readBlocks(
        _ extents: [Extent], of id: Int64, row: Row, sum: UInt64
    ) throws(DatabaseError) -> Found {
        // Another process has changed the schema since this connection was opened.
        guard core?.hasBlocks == true else {
            throw DatabaseError(code: 14, message: "its schema was changed", path: path)
        }
        if !waits, row.size > Self.largestAtOnce { return .nothing }
        switch blocks.read(extents, size: row.size, waits: waits) {
        case .damaged: return .damaged
        case .unreadable(let error): return waits ? .unreadable(error) : .nothing
        case .wouldWait:
            throw DatabaseError(reason: .wouldWait, code: 0, message: "a body is not in memory", path: path, sql: nil)
        case .bytes(let bytes):
            guard bytes.withUnsafeBytes({ EntryChecksum.body($0, id: id) }) == sum else { return .damaged }
            var row = row
            row.body = bytes
            return .row(row)
        }
    }

    /// Reads a body into the row.
    ///
    /// - Returns: Whether the body is intact.
    private func readBody(
        _ number: Int64, of id: Int64, row: inout Row, sum: UInt64
    ) throws(DatabaseError) -> Bool {
        guard let select = core?.body else { return false }
        select.bind(number, at: 1)
        defer { select.reset() }
        guard try select.step() else { return false }
        row.body = select.bytes(at: 0)
        return row.body.count == row.size && row.body.withUnsafeBytes { EntryChecksum.body($0, id: id) } == sum
    }

    private func readFile(id: Int64, row: Row, sum: UInt64) throws(DatabaseError) -> Found {
        var row = row
        let file = path + "/files/" + DiskLayout.fileName(id)
        if !waits, row.size > Self.largestAtOnce { return .nothing }
        let found: (bytes: [UInt8], isSuccessor: Bool)?
        do throws(FileError) {
            found = try BodyFile.find(file, size: row.size, waits: waits) { EntryChecksum.body($0, id: id) == sum }
        } catch {
            return waits ? .unreadable(error) : .nothing
        }
        guard let found else { return waits ? .damaged : .nothing }
        row.body = found.bytes
        row.isSuccessor = found.isSuccessor
        return .row(row)
    }

    private func fill(_ row: inout Row, _ select: Statement, key: UnsafeRawBufferPointer) -> UInt64 {
        row.size = Int(clamping: select.integer(at: 1))
        row.created = select.integer(at: 2)
        row.expires = select.integerIfPresent(at: 3)
        row.used = select.integer(at: 4)
        row.hits = Int(select.integer(at: 5))
        row.isFile = select.integer(at: 8) == 0
        return select.withBytes(at: 6) { validator in
            if !validator.isEmpty { row.validator = [UInt8](validator) }
            return select.withBytes(at: 10) { tags in
                if !tags.isEmpty { row.tags = EntryTags(encoded: tags, generation: origin.generation) }
                return EntryChecksum.properties(
                    key: key, created: row.created, expires: row.expires, validator: validator, tags: tags)
            }
        }
    }

    // MARK: Purges

    /// Whether an entry is still to be removed by a purge.
    private func isPending(_ row: Row) throws(DatabaseError) -> Bool {
        guard !row.tags.isEmpty, let database = core?.database else { return false }
        let began = row.tags.sequence(in: origin.generation)
        let select = try database.cachedStatement(TagPurges.pendingPurgesSQL)
        defer { select.reset() }
        while try select.step() {
            let tag = UInt64(bitPattern: select.integer(at: 0))
            if select.integer(at: 1) > began, row.tags.hashes.contains(tag) { return true }
        }
        return false
    }

    /// The last purge.
    func lastPurge() throws(DatabaseError) -> PurgeMark? {
        guard let database = core?.database else { return nil }
        let select = try database.cachedStatement(TagPurges.lastPurgeSQL)
        defer { select.reset() }
        let sequence = try select.step() ? select.integer(at: 0) : 0
        return PurgeMark(generation: origin.generation, sequence: sequence)
    }

    /// Whether one of the tags was purged since the work on an entry began.
    func isPurged(_ tags: EntryTags) throws(DatabaseError) -> Bool {
        guard let database = core?.database else { return false }
        return try TagPurges.isPurged(tags, origin: origin, database: database)
    }

    // MARK: Without bodies

    /// Returns the properties of an entry.
    func info(_ key: EntryKey) throws(DatabaseError) -> Row? {
        guard let database = core?.database else { return nil }
        let select = try database.cachedStatement(Self.infoSQL)
        defer { select.reset() }
        select.bind(key.id, at: 1)
        guard try select.step(), select.integer(at: 9) == key.format.id else { return nil }
        var row = Row()
        let isSame = EntryChecksum.withBytes(of: key.key) { key in
            select.withBytes(at: 0) { stored in
                let isSame = stored.elementsEqual(key)
                if isSame { _ = fill(&row, select, key: key) }
                return isSame
            }
        }
        guard isSame else { return nil }
        return try isPending(row) ? nil : row
    }

    /// A page of a format's entries by their identifiers.
    func rows(of format: Int64, after id: Int64?, limit: Int) throws(DatabaseError) -> [(key: CacheKey, row: Row)] {
        guard let database = core?.database, limit > 0 else { return [] }
        let select = try database.prepare(
            """
            SELECT \(Self.columns) FROM entry e WHERE e.id\(id == nil ? ">=" : ">")?1 AND e.id<=?2 AND e.format=?3
            ORDER BY e.id
            """)
        let ids = DiskFormat.entryIDs(of: format)
        select.bind(id ?? ids.lowerBound, at: 1)
        select.bind(ids.upperBound, at: 2)
        select.bind(format, at: 3)
        var rows: [(key: CacheKey, row: Row)] = []
        while rows.count < limit, try select.step() {
            var row = Row()
            let key = select.withBytes(at: 0) { stored in
                _ = fill(&row, select, key: stored)
                return CacheKey(identity: String(decoding: stored, as: UTF8.self))
            }
            if try isPending(row) { continue }
            rows.append((key, row))
        }
        return rows
    }

    /// Returns the size and number of the entries of a format, or of all formats.
    func totals(of format: Int64?) throws(DatabaseError) -> (bytes: Int, count: Int) {
        guard let database = core?.database else { return (0, 0) }
        let select = try database.prepare("SELECT bytes,count FROM account WHERE id=?")
        select.bind(format ?? DiskConnection.totalID, at: 1)
        guard try select.step() else { return (0, 0) }
        return (Int(select.integer(at: 0)), Int(select.integer(at: 1)))
    }

    /// The formats that have entries.
    func formats() throws(DatabaseError) -> [(name: String, bytes: Int, count: Int)] {
        guard let database = core?.database else { return [] }
        let select = try database.prepare("SELECT name,bytes,count FROM account WHERE id<>? AND count>0")
        select.bind(DiskConnection.totalID, at: 1)
        var formats: [(name: String, bytes: Int, count: Int)] = []
        while try select.step() {
            formats.append((select.text(at: 0), Int(select.integer(at: 1)), Int(select.integer(at: 2))))
        }
        return formats
    }

    /// The format of an entry whose body is a file; nil if there is no such entry.
    func format(ofFile id: Int64) throws(DatabaseError) -> Int64? {
        guard let database = core?.database else { return nil }
        let select = try database.prepare("SELECT format FROM entry WHERE id=? AND body=0")
        select.bind(id, at: 1)
        return try select.step() ? select.integer(at: 0) : nil
    }

    /// Returns the damage that SQLite finds. Reads the whole file.
    func findDamage() throws(DatabaseError) -> [String] {
        return try core?.database.findDamage() ?? []
    }
}
