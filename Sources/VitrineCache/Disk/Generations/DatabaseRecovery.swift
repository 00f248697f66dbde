import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Copies the intact entries of a damaged generation, so that a damaged page costs only the entries on it.
///
/// Reads without mapping the file. Entries are looked up one by one: by walking the table from both ends as far as
/// possible, then by the index.
struct DatabaseRecovery {
    /// The time in seconds after which recovery stops, because other processes wait. Entries not copied by then are
    /// lost.
    static let timeLimit = 5

    let from: Generation
    let to: DiskWriter
    private let database: Database
    private let select: Statement
    /// The formats of the entries by their numbers: those that are registered, and those the database names.
    private var formats: [Int64: DiskFormat] = [:]
    private var pendingPurges: [UInt64: Int64] = [:]
    private(set) var saved = 0

    /// - Throws: If the database cannot even be opened.
    init(from: Generation, to: DiskWriter, formats registered: [DiskFormat]) throws(DatabaseError) {
        self.from = from
        self.to = to
        var options = Database.Options()
        options.isReadOnly = true
        options.busyMilliseconds = 100
        database = try Database(path: from.databasePath, options: options)
        let blocks = try DiskReader.hasBlocks(database) ? "e.blocks" : "x''"
        select = try database.prepare(
            """
            SELECT e.key,e.size,e.created,e.expires,e.validator,e.sum,e.hits,b.data,e.body,e.format,e.tags,\(blocks)
            FROM entry e LEFT JOIN body b ON b.id=e.body WHERE e.id=?
            """)
        if let names = try? database.prepare("SELECT name FROM account WHERE id<>\(DiskConnection.totalID)") {
            while (try? names.step()) == true {
                let format = DiskFormat(names.text(at: 0), capacity: .unlimited, timeToLive: nil)
                formats[format.id] = format
            }
        }
        for format in registered { formats[format.id] = format }
        guard let pending = try? database.prepare(TagPurges.pendingPurgesSQL) else { return }
        while (try? pending.step()) == true {
            pendingPurges[UInt64(bitPattern: pending.integer(at: 0))] = pending.integer(at: 1)
        }
    }

    private func isPending(_ tags: EntryTags) -> Bool {
        let began = tags.sequence(in: from.purgeOrigin.generation)
        return tags.hashes.contains { pendingPurges[$0].map { $0 > began } ?? false }
    }

    /// Copies the entries that fit the capacities.
    mutating func run(_ limits: Limits) {
        let end = time(nil) + Self.timeLimit
        for id in identifiers() {
            guard time(nil) <= end else { return }
            // What cannot be read is what was damaged.
            guard let (step, put, hits, isFile) = try? read(id) else { continue }
            let format = step.key.format
            let charge = EntryTable.charge(bytes: step.bytes.count, key: step.key.key, put)
            guard charge <= limits.total - to.accounts.totals.bytes, let account = try? to.accounts.account(format.id),
                charge <= format.limit.load(ordering: .relaxed) - account.bytes
            else { continue }
            // A failing write leaves the new generation as it is: a cache may lose entries.
            guard (try? keep(step, put: put, hits: hits, isFile: isFile)) != nil else { continue }
            saved += 1
        }
    }

    private func identifiers() -> Set<Int64> {
        var found: Set<Int64> = []
        for order in ["id", "id DESC", "format,rank", "format DESC,rank DESC"] {
            guard let list = try? database.prepare("SELECT id FROM entry ORDER BY \(order)") else { continue }
            // Ends at the damage, or at the end.
            while (try? list.step()) == true { found.insert(list.integer(at: 0)) }
            list.reset()
        }
        return found
    }

    private func read(_ id: Int64) throws(DatabaseError) -> (DiskWriter.Step, Put, Int64, Bool)? {
        select.bind(id, at: 1)
        defer { select.reset() }
        guard try select.step() else { return nil }
        let identity = select.bytes(at: 0)
        guard let format = formats[select.integer(at: 9)] else { return nil }
        let entry = EntryKey(CacheKey(identity: String(decoding: identity, as: UTF8.self)), format), key = entry.key
        guard entry.id == id, Array(key.identity.utf8) == identity else { return nil }
        let isFile = select.integer(at: 8) == 0
        let size = AccountBook.clamped(select.integer(at: 1))
        let encoded = select.bytes(at: 10)
        let tags = encoded.withUnsafeBytes { EntryTags(encoded: $0, generation: from.purgeOrigin.generation) }
        // Removed already, as far as readers are concerned.
        guard !isPending(tags) else { return nil }
        let put = Put(
            body: .ready([]), created: select.integer(at: 2), expires: select.integerIfPresent(at: 3),
            validator: select.bytes(at: 4), tags: tags)
        let sum = UInt64(bitPattern: select.integer(at: 5))
            ^ EntryChecksum.properties(
                key: key, created: put.created, expires: put.expires, validator: put.validator, tags: encoded)
        guard let bytes = body(id, size: size, isFile: isFile, sum: sum) else { return nil }
        let hits = max(1, min(15, select.integer(at: 6)))
        return (DiskWriter.Step(key: entry, operation: .put(put), bytes: bytes), put, hits, isFile)
    }

    private func body(_ id: Int64, size: Int, isFile: Bool, sum: UInt64) -> [UInt8]? {
        guard !isFile else {
            let path = from.bodyPath(id)
            let found = try? BodyFile.find(path, size: size) { EntryChecksum.body($0, id: id) == sum }
            if found?.isSuccessor == true { BodyFile.promoteSuccessor(of: path) }
            return found?.bytes
        }
        let bytes: [UInt8]
        if select.integer(at: 8) < 0 {
            let extents = select.withBytes(at: 11) { Extent.decode($0) }
            guard case .bytes(let found) = from.blocks.read(extents, size: size, waits: true) else { return nil }
            bytes = found
        } else {
            bytes = select.bytes(at: 7)
        }
        let isWhole = bytes.count == size && bytes.withUnsafeBytes { EntryChecksum.body($0, id: id) } == sum
        return isWhole ? bytes : nil
    }

    private func keep(_ step: DiskWriter.Step, put: Put, hits: Int64, isFile: Bool) throws {
        if isFile {
            let id = step.key.id, target = to.files.bodyPath(id)
            try Directory.create(FilePath.parent(of: target))
            guard rename(from.bodyPath(id), target) == 0 else {
                throw FileError(operation: "rename", path: target, code: errno)
            }
        }
        try to.insert(put, bytes: step.bytes, key: step.key, hits: hits, isFile: isFile)
    }
}

extension DatabaseError {
    /// Whether the file or its log ends too early (SQLITE_IOERR_SHORT_READ).
    var isCut: Bool { code == 10 | 2 << 8 }

    /// Whether the error can only be caused by a damaged database.
    ///
    /// This includes errors that SQLite does not call damage. The statements are constants and fit the schema: a
    /// missing table or column, or a violated constraint, means that a byte of the schema or of an index is wrong. A
    /// writable file that is refused for writing has a damaged version in its header
    /// (https://www.sqlite.org/fileformat.html#file_format_version_numbers).
    var isDamage: Bool {
        switch (reason, code & 0xFF) {
        case (.corrupt, _), (.constraint, _): true
        case (.other, 1), (.other, 20), (.other, 25): true
        // The plain code only: the extended ones tell of files that were moved or locks that cannot be had.
        case (.readOnly, _):
            code == 8 && access(path, W_OK) == 0 && access(FilePath.parent(of: path), W_OK) == 0
        default: false
        }
    }
}
