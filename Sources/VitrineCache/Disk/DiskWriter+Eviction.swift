import VitrineDatabase

/// What goes when room is needed.
///
/// Greedy dual by size and frequency, lazy (notes/cache-engines §1.4): an entry's rank is the rank of what was evicted
/// last, plus what it is worth. A use only raises its count; when eviction meets an entry that was used since it was
/// ranked, it is ranked again and its count halved. The count saturates at 15. A miss costs something for each entry
/// and
/// something for each byte, hence the second term of the worth; without it large bodies are driven out.
///
/// In the least-recently-used order the rank is the number of the last use.
extension DiskWriter {
    /// Bytes whose transfer costs as much as the request itself.
    private static let bytesPerRequest = 32768.0

    static func worth(charge: Int, hits: Int64) -> Double {
        Double(hits) * (1 / Double(max(1, charge)) + 1 / bytesPerRequest)
    }

    /// The rank of a new entry.
    func newRank(charge: Int, hits: Int64) -> Double {
        switch eviction {
        case .sizeAndFrequency: return totals.floor + Self.worth(charge: charge, hits: hits)
        case .leastRecentlyUsed:
            totals.floor += 1
            return totals.floor
        }
    }

    /// Evicts until an entry fits in: expired ones first, then by rank.
    func makeRoom(for charge: Int, capacity: Int, now: Int64) throws(DatabaseError) {
        var mayHaveExpired = true
        while totals.bytes > 0 || totals.count > 0, totals.bytes > capacity - charge {
            if mayHaveExpired {
                let expired = try self.expired(before: now, limit: 1)
                mayHaveExpired = !expired.isEmpty
                for entry in expired { try expire(entry) }
                if mayHaveExpired { continue }
            }
            guard try evictLowest() else {
                // The totals speak of entries that are not there: count anew rather than evict for ever.
                try recount()
                return
            }
        }
    }

    /// Evicts the entry with the lowest rank, or ranks it again if it was used.
    ///
    /// - Returns: false if there is none.
    private func evictLowest() throws(DatabaseError) -> Bool {
        let core = try statements()
        guard try core.lowest.step() else { return false }
        var entry = Self.stored(core.lowest)
        core.lowest.reset()
        if let hit = unwritten?.take(entry.id) { entry.hits = min(15, entry.hits + hit.count) }
        if eviction == .sizeAndFrequency {
            // The floor never falls, whatever order entries were ranked in.
            totals.floor = max(totals.floor, entry.rank)
            if entry.hits > entry.ranked {
                core.rerank.bind(entry.id, at: 1)
                core.rerank.bind(entry.rank + Self.worth(charge: entry.charge, hits: entry.hits), at: 2)
                core.rerank.bind(max(1, entry.hits / 2), at: 3)
                try core.rerank.run()
                return true
            }
        }
        try delete(entry)
        tally.evictions += 1
        tally.evictedBytes += entry.charge
        return true
    }

    private func expire(_ entry: Stored) throws(DatabaseError) {
        try delete(entry)
        tally.expirations += 1
    }

    private func expired(before time: Int64, limit: Int) throws(DatabaseError) -> [Stored] {
        let expired = try statements().expired
        expired.bind(time, at: 1)
        expired.bind(limit, at: 2)
        defer { expired.reset() }
        var found: [Stored] = []
        while try expired.step() { found.append(Self.stored(expired)) }
        return found
    }

    /// Removes entries whose time passed before then, at most so many.
    ///
    /// - Returns: How many.
    @discardableResult
    func purge(before time: Int64, limit: Int = 64) throws(DatabaseError) -> Int {
        let entries = try expired(before: time, limit: limit)
        for entry in entries { try expire(entry) }
        return entries.count
    }

    /// Records uses.
    func record(_ hits: [Int64: HitRecorder.Hit]) throws(DatabaseError) {
        let core = try statements()
        switch eviction {
        case .sizeAndFrequency:
            // In the order of the table, so that each page is changed once.
            for (id, hit) in hits.sorted(by: { $0.key < $1.key }) {
                core.hit.bind(id, at: 1)
                core.hit.bind(hit.count, at: 2)
                core.hit.bind(hit.used, at: 3)
                try core.hit.run()
            }
        case .leastRecentlyUsed:
            for (id, hit) in hits.sorted(by: { $0.value.sequence < $1.value.sequence }) {
                totals.floor += 1
                core.use.bind(id, at: 1)
                core.use.bind(hit.count, at: 2)
                core.use.bind(hit.used, at: 3)
                core.use.bind(totals.floor, at: 4)
                try core.use.run()
            }
        }
    }

    /// Counts all entries anew.
    func recount() throws(DatabaseError) {
        let count = try statements().database.prepare("SELECT count(*),coalesce(sum(\(Self.chargeSQL)),0) FROM entry")
        guard try count.step() else { return }
        totals.count = Int(count.integer(at: 0))
        totals.bytes = Int(count.integer(at: 1))
    }

    /// Lets entries that were created in the future be created now, with the same lifetime: the clock has gone back.
    func anchor(now: Int64) throws(DatabaseError) {
        let database = try statements().database
        let select = try database.prepare("SELECT id,key,created,expires,tag,sum FROM entry WHERE created>?")
        let update = try database.prepare("UPDATE entry SET created=?2,expires=?3,sum=?4 WHERE id=?1")
        select.bind(now, at: 1)
        var changes: [(id: Int64, expires: Int64?, sum: UInt64)] = []
        while try select.step() {
            let created = select.integer(at: 2), expires = select.integerIfPresent(at: 3)
            let renewed = expires.map { now &+ max(0, $0 &- created) }
            let change = select.withBytes(at: 1) { key in
                select.withBytes(at: 4) { tag in
                    EntrySum.seal(key: key, created: created, expires: expires, tag: tag)
                        ^ EntrySum.seal(key: key, created: now, expires: renewed, tag: tag)
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
        totals.latest = now
    }
}

extension DiskWriter {
    /// Evicts what is above a number of bytes, some hundred entries in a transaction so that readers' and other
    /// writers' turns come.
    func shrink(to bytes: Int, now: Int64) throws {
        tally = DiskCache.Statistics()
        var isDone = false
        while !isDone {
            try transaction {
                // A step of the log's size at most: on a full disk there is room for no more.
                let step = max(bytes, totals.bytes - (1 << 20))
                try makeRoom(for: 0, capacity: step, now: now)
                isDone = totals.bytes <= bytes
            }
        }
    }
}
