import VitrineCore
import VitrineDatabase

/// The rows of entries, their bodies and their tags.
///
/// Every change is part of the transaction of a ``DiskWriter``, and changes the accounts in step.
final class EntryTable {
    /// The size of an entry and the place of its body.
    struct Stored {
        var id: Int64
        var format: Int64
        var charge: Int
        var hits: Int64
        var ranked: Int64
        var rank: Double
        /// When it was last used, in nanoseconds since 1970.
        var used: Int64
        /// The row in `body`; 0 for a file, negative for blocks.
        var body: Int64
        var tags = EntryTags.none
        /// The blocks of the body.
        var extents: [Extent] = []
        var isFile: Bool { body == 0 }
    }

    /// The counters of each format since they were last read.
    private var statistics: [Int64: DiskCache.Statistics] = [:]
    /// Lower bounds of the earliest expiry of each format in the transaction, in nanoseconds since 1970; absent where
    /// it is unknown.
    private var earliestExpiry: [Int64: Int64] = [:]
    private let connection: DiskConnection
    private let accounts: AccountBook
    private let blocks: BlockStore
    private let files: BodyFileStore
    private let purgeOrigin: PurgeOrigin

    init(
        _ connection: DiskConnection, accounts: AccountBook, blocks: BlockStore, files: BodyFileStore,
        purgeOrigin: PurgeOrigin
    ) {
        self.connection = connection
        self.accounts = accounts
        self.blocks = blocks
        self.files = files
        self.purgeOrigin = purgeOrigin
    }

    /// Returns the stored entry with an identifier.
    func find(_ id: Int64) throws(DatabaseError) -> Stored? {
        let find = try connection.statements().find
        find.bind(id, at: 1)
        defer { find.reset() }
        return try find.step() ? stored(find) : nil
    }

    /// Returns the entry of a row.
    func stored(_ row: Statement) -> Stored {
        let tags = row.withBytes(at: 8) { EntryTags(encoded: $0, generation: purgeOrigin.generation) }
        let extents = row.withBytes(at: 9) { Extent.decode($0) }
        return Stored(
            id: row.integer(at: 0), format: row.integer(at: 1), charge: AccountBook.clamped(row.integer(at: 2)),
            hits: max(0, min(15, row.integer(at: 3))), ranked: max(0, min(15, row.integer(at: 4))),
            rank: row.double(at: 5), used: row.integer(at: 6), body: row.integer(at: 7), tags: tags,
            extents: extents)
    }

    /// Returns the size of an entry.
    static func charge(bytes: Int, key: CacheKey, _ put: Put) -> Int {
        let tags = put.tags.isEmpty ? 0 : put.tags.hashes.count + 1
        return bytes + key.identity.utf8.count + put.validator.count + 40 * tags + DiskCache.entryOverhead
    }

    /// Counts an operation in a format.
    func count(in format: Int64, _ change: (inout DiskCache.Statistics) -> Void) {
        change(&statistics[format, default: DiskCache.Statistics()])
    }

    /// Returns the counters of each format since the last call.
    @discardableResult
    func takeStatistics() -> [Int64: DiskCache.Statistics] {
        defer { statistics = [:] }
        return statistics
    }

    // MARK: Changing

    /// Adds an entry for which there is room and which is not there yet.
    ///
    /// - Parameters:
    ///   - rank: Its rank in the order of eviction.
    ///   - isFile: Its body is in its file already.
    func insert(
        _ put: Put, bytes: [UInt8], key entry: EntryKey, hits: Int64, rank: Double, isFile: Bool
    ) throws {
        let core = try connection.statements()
        let id = entry.id, key = entry.key
        var body: Int64 = 0, extents: [Extent] = []
        if !isFile, let found = try blocks.placeBody(bytes) {
            (body, extents) = (BlockStore.bodyID, found)
        } else if !isFile {
            try core.insertBody.binding(bytes, at: 1) { () throws(DatabaseError) in try core.insertBody.run() }
            body = core.database.lastInsertedRow
        }
        let charge = Self.charge(bytes: bytes.count, key: key, put)
        let tags = put.tags.encoded(in: purgeOrigin.generation)
        let sum = bytes.withUnsafeBytes { EntryChecksum.body($0, id: id) }
            ^ EntryChecksum.properties(
                key: key, created: put.created, expires: put.expires, validator: put.validator, tags: tags)
        core.insert.bind(id, at: 1)
        core.insert.bind(Array(key.identity.utf8), at: 2)
        core.insert.bind(bytes.count, at: 3)
        core.insert.bind(rank, at: 4)
        core.insert.bind(hits, at: 5)
        core.insert.bind(hits, at: 6)
        core.insert.bind(put.created, at: 7)
        core.insert.bind(put.expires, at: 8)
        core.insert.bind(Int64(bitPattern: sum), at: 9)
        core.insert.bind(body, at: 10)
        core.insert.bind(put.validator, at: 11)
        core.insert.bind(entry.format.id, at: 12)
        core.insert.bind(tags, at: 13)
        core.insert.bind(Extent.encode(extents), at: 14)
        try core.insert.run()
        for tag in put.tags.hashes { try addTag(tag, of: id) }
        noteExpiry(put.expires, of: entry.format.id)
        accounts.setName(entry.format.name, of: entry.format.id)
        try accounts.changeAccount(
            of: entry.format.id, bytes: charge, count: 1, files: isFile ? charge : 0)
        accounts.noteCreation(put.created)
        count(in: entry.format.id) {
            $0.insertions += 1
            $0.insertedBytes += bytes.count
        }
    }

    /// Removes an entry.
    ///
    /// - Parameter keepingFile: The file is going to be replaced.
    func delete(_ stored: Stored, keepingFile: Bool = false) throws(DatabaseError) {
        let core = try connection.statements()
        core.delete.bind(stored.id, at: 1)
        try core.delete.run()
        if stored.body < 0 {
            blocks.release(stored.extents)
        } else if !stored.isFile {
            core.deleteBody.bind(stored.body, at: 1)
            try core.deleteBody.run()
        } else if !keepingFile {
            files.removeAfterCommit(stored.id)
        }
        for tag in stored.tags.hashes { try deleteTag(tag, of: stored.id) }
        try accounts.changeAccount(
            of: stored.format, bytes: -stored.charge, count: -1, files: stored.isFile ? -stored.charge : 0)
        if accounts.isDamaged { try recount() }
    }

    /// Counts all entries anew, and makes the map of the blocks anew.
    func recount() throws(DatabaseError) {
        try accounts.recount()
        try blocks.rebuildMap()
    }

    // MARK: Tags

    private func addTag(_ tag: UInt64, of entry: Int64) throws(DatabaseError) {
        let add = try connection.statements().addTag
        add.bind(Int64(bitPattern: tag), at: 1)
        add.bind(entry, at: 2)
        try add.run()
    }

    /// Removes a tag of an entry from the table of tags.
    func deleteTag(_ tag: UInt64, of entry: Int64) throws(DatabaseError) {
        let delete = try connection.statements().deleteTag
        delete.bind(Int64(bitPattern: tag), at: 1)
        delete.bind(entry, at: 2)
        try delete.run()
    }
}

/// Changes of more than one row, and of properties.
extension EntryTable {
    /// Removes some of a format's entries in the transaction.
    ///
    /// - Parameter id: Only those behind it.
    /// - Returns: The last one removed; nil at the end.
    func removeSome(of format: Int64, after id: Int64) throws(DatabaseError) -> Int64? {
        let database = try connection.statements().database
        let last = try database.prepare(
            """
            SELECT max(id),count(*),total(charge),total(charge*(body=0)) FROM
            (SELECT id,body,\(DiskConnection.chargeSQL) AS charge FROM entry WHERE id>?1 AND id<=?2 AND format=?3
            ORDER BY id LIMIT 2000)
            """)
        last.bind(id, at: 1)
        last.bind(DiskFormat.entryIDs(of: format).upperBound, at: 2)
        last.bind(format, at: 3)
        guard try last.step(), let found = last.integerIfPresent(at: 0) else { return nil }
        let (count, bytes) = (AccountBook.clamped(last.integer(at: 1)), AccountBook.clamped(last.integer(at: 2)))
        let fileBytes = AccountBook.clamped(last.integer(at: 3))
        last.reset()
        func part(_ sql: String) throws(DatabaseError) -> Statement {
            let statement = try database.prepare(sql)
            statement.bind(id, at: 1)
            statement.bind(found, at: 2)
            statement.bind(format, at: 3)
            return statement
        }
        let range = "FROM entry WHERE id>?1 AND id<=?2 AND format=?3"
        let files = try part("SELECT id \(range) AND body=0")
        while try files.step() { self.files.removeAfterCommit(files.integer(at: 0)) }
        let inBlocks = try part("SELECT blocks \(range) AND body<0")
        while try inBlocks.step() { blocks.release(inBlocks.withBytes(at: 0) { Extent.decode($0) }) }
        let tagged = try part("SELECT id,tags \(range) AND length(tags)>0")
        while try tagged.step() {
            let entry = tagged.integer(at: 0)
            let tags = tagged.withBytes(at: 1) { EntryTags(encoded: $0, generation: purgeOrigin.generation) }
            for tag in tags.hashes { try deleteTag(tag, of: entry) }
        }
        try part("DELETE FROM body WHERE id IN (SELECT body \(range))").run()
        try part("DELETE \(range)").run()
        try accounts.changeAccount(of: format, bytes: -bytes, count: -count, files: -fileBytes)
        return found
    }

    /// Changes the times or the validator of an entry. Its checksum is changed with them, without reading its body.
    func applyPatch(_ patch: Patch, to entry: EntryKey) throws(DatabaseError) {
        let database = try connection.statements().database
        let select = try database.prepare(
            "SELECT key,created,expires,validator,sum,format,body,tags FROM entry WHERE id=?")
        let id = entry.id, key = entry.key
        select.bind(id, at: 1)
        guard try select.step() else { return }
        let old = Put(
            body: .ready([]), created: select.integer(at: 1), expires: select.integerIfPresent(at: 2),
            validator: select.bytes(at: 3))
        let sum = UInt64(bitPattern: select.integer(at: 4))
        // Another entry with the same identifier.
        guard select.bytes(at: 0) == Array(key.identity.utf8), select.integer(at: 5) == entry.format.id else { return }
        let isFile = select.integer(at: 6) == 0
        let new = patch.applied(to: old)
        let tags = select.bytes(at: 7)
        func properties(_ put: Put) -> UInt64 {
            EntryChecksum.properties(
                key: key, created: put.created, expires: put.expires, validator: put.validator, tags: tags)
        }
        let change = properties(old) ^ properties(new)
        select.reset()
        let update = try database.prepare("UPDATE entry SET created=?2,expires=?3,validator=?4,sum=?5 WHERE id=?1")
        update.bind(id, at: 1)
        update.bind(new.created, at: 2)
        update.bind(new.expires, at: 3)
        update.bind(new.validator, at: 4)
        update.bind(Int64(bitPattern: sum ^ change), at: 5)
        try update.run()
        noteExpiry(new.expires, of: entry.format.id)
        let bytes = new.validator.count - old.validator.count
        try accounts.changeAccount(of: entry.format.id, bytes: bytes, files: isFile ? bytes : 0)
    }

    /// Changes entries that were created in the future, before the clock was set back, to be created now: with the same
    /// lifetime, or expired.
    func resetFutureTimes(now: Int64, expires: Bool) throws(DatabaseError) {
        let database = try connection.statements().database
        let select = try database.prepare("SELECT id,key,created,expires,validator,sum,tags FROM entry WHERE created>?")
        let update = try database.prepare("UPDATE entry SET created=?2,expires=?3,sum=?4 WHERE id=?1")
        select.bind(now, at: 1)
        var changes: [(id: Int64, expires: Int64?, sum: UInt64)] = []
        while try select.step() {
            let created = select.integer(at: 2), old = select.integerIfPresent(at: 3)
            let renewed = old.map { expires ? now : now &+ max(0, $0 &- created) }
            let change = select.withBytes(at: 1) { key in
                select.withBytes(at: 4) { validator in
                    select.withBytes(at: 6) { tags in
                        func properties(created: Int64, expires: Int64?) -> UInt64 {
                            EntryChecksum.properties(
                                key: key, created: created, expires: expires, validator: validator, tags: tags)
                        }
                        return properties(created: created, expires: old) ^ properties(created: now, expires: renewed)
                    }
                }
            }
            changes.append((select.integer(at: 0), renewed, UInt64(bitPattern: select.integer(at: 5)) ^ change))
        }
        for change in changes {
            update.bind(change.id, at: 1)
            update.bind(now, at: 2)
            update.bind(change.expires, at: 3)
            update.bind(Int64(bitPattern: change.sum), at: 4)
            try update.run()
        }
        accounts.resetLatestCreation(to: now)
        earliestExpiry = [:]
    }

    // MARK: Expiry

    /// Forgets the known expiries, which other processes may change before the next transaction.
    func forgetExpiries() { earliestExpiry = [:] }

    /// Whether an entry of a format may have expired by a time. One query for each transaction and format, as long as
    /// none has.
    func mayHaveExpired(_ format: Int64, before time: Int64) throws(DatabaseError) -> Bool {
        if let known = earliestExpiry[format] { return known <= time }
        let earliest = try connection.statements().earliest
        earliest.bind(format, at: 1)
        defer { earliest.reset() }
        let found = try earliest.step() ? earliest.integer(at: 0) : .max
        earliestExpiry[format] = found
        return found <= time
    }

    /// An entry of a format gets an expiry.
    func noteExpiry(_ expires: Int64?, of format: Int64) {
        guard let expires, let known = earliestExpiry[format] else { return }
        earliestExpiry[format] = min(known, expires)
    }

    /// Returns entries of a format that expired before a time, the earliest first. The caller removes them.
    func expiredEntries(of format: Int64, before time: Int64, limit: Int) throws(DatabaseError) -> [Stored] {
        guard try mayHaveExpired(format, before: time) else { return [] }
        let expired = try connection.statements().expired
        expired.bind(format, at: 1)
        expired.bind(time, at: 2)
        expired.bind(limit, at: 3)
        defer { expired.reset() }
        var found: [Stored] = []
        while try expired.step() { found.append(stored(expired)) }
        // The bound is unknown once they are removed.
        earliestExpiry[format] = nil
        return found
    }
}
