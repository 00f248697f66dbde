import VitrineCore
import VitrineDatabase

/// The rows of entries.
extension DiskWriter {
    /// Returns the stored entry with an identifier.
    func find(_ id: Int64) throws(DatabaseError) -> Stored? {
        let find = try statements().find
        find.bind(id, at: 1)
        defer { find.reset() }
        return try find.step() ? stored(find) : nil
    }

    /// Bytes and counts that a cache can have: sums of them are far from overflowing.
    static let plausible = 0...(1 << 48)

    /// A number of bytes or entries out of a row, which may be damaged.
    static func clamped(_ number: Int64) -> Int {
        min(max(Int(clamping: number), plausible.lowerBound), plausible.upperBound)
    }

    func stored(_ row: Statement) -> Stored {
        let tags = row.withBytes(at: 8) { EntryTags(encoded: $0, generation: purgeOrigin.generation) }
        let extents = row.withBytes(at: 9) { Extent.decode($0) }
        return Stored(
            id: row.integer(at: 0), format: row.integer(at: 1), charge: Self.clamped(row.integer(at: 2)),
            hits: max(0, min(15, row.integer(at: 3))), ranked: max(0, min(15, row.integer(at: 4))),
            rank: row.double(at: 5), used: row.integer(at: 6), body: row.integer(at: 7), tags: tags,
            extents: extents)
    }

    /// Removes an entry.
    ///
    /// - Parameter keepingFile: The file is going to be replaced.
    func delete(_ stored: Stored, keepingFile: Bool = false) throws(DatabaseError) {
        let core = try statements()
        core.delete.bind(stored.id, at: 1)
        try core.delete.run()
        if stored.body < 0 {
            space.release(stored.extents)
        } else if !stored.isFile {
            core.deleteBody.bind(stored.body, at: 1)
            try core.deleteBody.run()
        } else if !keepingFile {
            filesToDelete.append(stored.id)
        }
        for tag in stored.tags.hashes { try deleteTag(tag, of: stored.id) }
        try change(stored.format, bytes: -stored.charge, count: -1, files: stored.isFile ? -stored.charge : 0)
        // Less than nothing: this row or the totals were damaged.
        if totals.bytes < 0 || totals.count < 0 || totals.fileBytes < 0 { try recount() }
    }

    /// Removes some of a format's entries in one transaction.
    ///
    /// - Parameter id: Only those behind it.
    /// - Returns: The last one removed; nil at the end.
    func removeSome(of format: Int64, after id: Int64) throws -> Int64? {
        let database = try statements().database
        let last = try database.prepare(
            """
            SELECT max(id),count(*),total(charge),total(charge*(body=0)) FROM
            (SELECT id,body,\(Self.chargeSQL) AS charge FROM entry WHERE id>?1 AND id<=?2 AND format=?3
            ORDER BY id LIMIT 2000)
            """)
        last.bind(id, at: 1)
        last.bind(DiskFormat.entryIDs(of: format).upperBound, at: 2)
        last.bind(format, at: 3)
        var end: Int64?
        try transaction {
            guard try last.step(), let found = last.integerIfPresent(at: 0) else { return }
            end = found
            let (count, bytes) = (Self.clamped(last.integer(at: 1)), Self.clamped(last.integer(at: 2)))
            let fileBytes = Self.clamped(last.integer(at: 3))
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
            while try files.step() { filesToDelete.append(files.integer(at: 0)) }
            let inBlocks = try part("SELECT blocks \(range) AND body<0")
            while try inBlocks.step() { space.release(inBlocks.withBytes(at: 0) { Extent.decode($0) }) }
            let tagged = try part("SELECT id,tags \(range) AND length(tags)>0")
            while try tagged.step() {
                let entry = tagged.integer(at: 0)
                let tags = tagged.withBytes(at: 1) { EntryTags(encoded: $0, generation: purgeOrigin.generation) }
                for tag in tags.hashes { try deleteTag(tag, of: entry) }
            }
            try part("DELETE FROM body WHERE id IN (SELECT body \(range))").run()
            try part("DELETE \(range)").run()
            try change(format, bytes: -bytes, count: -count, files: -fileBytes)
        }
        return end
    }

    /// Adds an entry for which there is room and which is not there yet.
    ///
    /// - Parameter isFile: Its body is in its file already.
    func insert(
        _ put: Put, bytes: [UInt8], key entry: EntryKey, hits: Int64, isFile: Bool
    ) throws {
        let core = try statements()
        let id = entry.id, key = entry.key
        var body: Int64 = 0, extents: [Extent] = []
        if !isFile, let found = try place(bytes) {
            (body, extents) = (Self.blockBody, found)
        } else if !isFile {
            try core.insertBody.binding(bytes, at: 1) { () throws(DatabaseError) in try core.insertBody.run() }
            body = core.database.lastInsertedRow
        }
        let charge = Self.charge(bytes: bytes.count, key: key, put)
        let tags = put.tags.encoded(in: purgeOrigin.generation)
        let sum = bytes.withUnsafeBytes { EntrySum.body($0, id: id) }
            ^ EntrySum.seal(key: key, created: put.created, expires: put.expires, validator: put.validator, tags: tags)
        core.insert.bind(id, at: 1)
        core.insert.bind(Array(key.identity.utf8), at: 2)
        core.insert.bind(bytes.count, at: 3)
        core.insert.bind(try newRank(entry.format.id, charge: charge, hits: hits), at: 4)
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
        names[entry.format.id] = entry.format.name
        try change(entry.format.id, bytes: charge, count: 1, files: isFile ? charge : 0)
        totals.latest = max(totals.latest, put.created)
        tally(entry.format.id) {
            $0.insertions += 1
            $0.insertedBytes += bytes.count
        }
    }

    /// Counts something that was done in a format.
    func tally(_ format: Int64, _ change: (inout DiskCache.Statistics) -> Void) {
        change(&tallies[format, default: DiskCache.Statistics()])
    }

    /// Returns the size of an entry.
    static func charge(bytes: Int, key: CacheKey, _ put: Put) -> Int {
        let tags = put.tags.isEmpty ? 0 : put.tags.hashes.count + 1
        return bytes + key.identity.utf8.count + put.validator.count + 40 * tags + DiskCache.entryOverhead
    }
}
