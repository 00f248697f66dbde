import VitrineCore
import VitrineDatabase

/// What goes when room is needed.
///
/// Greedy dual by size and frequency, lazy (notes/cache-engines §1.4): an entry's rank is the rank of what was evicted
/// last in its format, plus what it is worth. A use only raises its count; when eviction meets an entry that was used
/// since it was ranked, it is ranked again and its count halved. The count saturates at 15. A miss costs something for
/// each entry and something for each byte, hence the second term of the worth; without it large bodies are driven out.
///
/// In the least-recently-used order the rank is the number of the last use.
extension DiskWriter {
    /// Bytes whose transfer costs as much as the request itself.
    private static let bytesPerRequest = 32768.0

    static func worth(charge: Int, hits: Int64) -> Double {
        Double(hits) * (1 / Double(max(1, charge)) + 1 / bytesPerRequest)
    }

    /// The rank of a new entry.
    func newRank(_ format: Int64, charge: Int, hits: Int64) throws(DatabaseError) -> Double {
        switch eviction {
        case .sizeAndFrequency: return try account(format).floor + Self.worth(charge: charge, hits: hits)
        case .leastRecentlyUsed:
            totals.uses += 1
            return totals.uses
        }
    }

    /// Evicts until an entry fits into its format and into the total.
    func makeRoom(for charge: Int, in format: DiskFormat, _ terms: Terms) throws(DatabaseError) {
        let limit = format.limit.load(ordering: .relaxed)
        try makeRoom(in: format.id, to: limit == .max ? .max : limit - charge, now: terms.now)
        try makeRoom(to: terms.total == .max ? .max : terms.total - charge, now: terms.now)
    }

    /// Evicts until a format counts no more than that: expired entries first, then by rank.
    func makeRoom(in format: Int64, to bytes: Int, now: Int64) throws(DatabaseError) {
        var mayHaveExpired = true
        while true {
            let account = try account(format)
            guard account.bytes > bytes, account.bytes > 0 || account.count > 0 else { return }
            if mayHaveExpired {
                let expired = try self.expired(format, before: now, limit: 1)
                mayHaveExpired = !expired.isEmpty
                for entry in expired { try expire(entry) }
                if mayHaveExpired { continue }
            }
            guard try evictLowest(format) else {
                // The account speaks of entries that are not there: count anew rather than evict for ever.
                return try recount()
            }
        }
    }

    /// Evicts until all formats together count no more than that: expired entries first. Then each format names the
    /// entry that its own order would evict, and of those the one goes that was not used for the longest time, of the
    /// larger format if that is the same. Formats that no program uses any more so lose theirs first.
    func makeRoom(to bytes: Int, now: Int64) throws(DatabaseError) {
        guard totals.bytes > bytes else { return }
        let formats = try storedFormats()
        // A little more, as asking all formats costs more than evicting an entry.
        let bytes = max(0, formats.count > 1 ? bytes - bytes / 256 : bytes)
        for format in formats {
            while totals.bytes > bytes {
                let expired = try self.expired(format, before: now, limit: 1)
                guard let entry = expired.first else { break }
                try expire(entry)
            }
        }
        var candidates: [(format: Int64, used: Int64, bytes: Int)] = []
        for format in formats where totals.bytes > bytes {
            guard let entry = try lowest(format) else { continue }
            candidates.append((format, lastUse(of: entry), try account(format).bytes))
        }
        while totals.bytes > bytes, totals.bytes > 0 || totals.count > 0 {
            let next = candidates.indices.min { (first, second) in
                let (first, second) = (candidates[first], candidates[second])
                return first.used == second.used ? first.bytes > second.bytes : first.used < second.used
            }
            guard let next else { return try recount() }
            let format = candidates[next].format
            _ = try evictLowest(format)
            if let entry = try lowest(format) {
                candidates[next] = (format, lastUse(of: entry), try account(format).bytes)
            } else {
                candidates.remove(at: next)
            }
        }
    }

    private func lastUse(of entry: Stored) -> Int64 { max(entry.used, unwritten?.lastUse(of: entry.id) ?? .min) }

    private func lowest(_ format: Int64) throws(DatabaseError) -> Stored? {
        let lowest = try statements().lowest
        lowest.bind(format, at: 1)
        defer { lowest.reset() }
        return try lowest.step() ? Self.stored(lowest) : nil
    }

    /// Evicts the entry of a format with the lowest rank, or ranks it again if it was used.
    ///
    /// - Returns: false if there is none.
    private func evictLowest(_ format: Int64) throws(DatabaseError) -> Bool {
        guard var entry = try lowest(format) else { return false }
        if let hit = unwritten?.take(entry.id) { entry.hits = min(15, entry.hits + hit.count) }
        if eviction == .sizeAndFrequency {
            try raiseFloor(of: format, to: entry.rank)
            if entry.hits > entry.ranked {
                let rerank = try statements().rerank
                rerank.bind(entry.id, at: 1)
                rerank.bind(entry.rank + Self.worth(charge: entry.charge, hits: entry.hits), at: 2)
                rerank.bind(max(1, entry.hits / 2), at: 3)
                try rerank.run()
                return true
            }
        }
        try delete(entry)
        tally(format) {
            $0.evictions += 1
            $0.evictedBytes += entry.charge
        }
        return true
    }

    private func expire(_ entry: Stored) throws(DatabaseError) {
        try delete(entry)
        tally(entry.format) { $0.expirations += 1 }
    }

    private func expired(_ format: Int64, before time: Int64, limit: Int) throws(DatabaseError) -> [Stored] {
        let expired = try statements().expired
        expired.bind(format, at: 1)
        expired.bind(time, at: 2)
        expired.bind(limit, at: 3)
        defer { expired.reset() }
        var found: [Stored] = []
        while try expired.step() { found.append(Self.stored(expired)) }
        return found
    }

    /// Removes some of a format's entries whose time passed before then.
    func purge(_ format: Int64, before time: Int64) throws(DatabaseError) {
        for entry in try expired(format, before: time, limit: 64) { try expire(entry) }
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
                totals.uses += 1
                core.use.bind(id, at: 1)
                core.use.bind(hit.count, at: 2)
                core.use.bind(hit.used, at: 3)
                core.use.bind(totals.uses, at: 4)
                try core.use.run()
            }
        }
    }

    /// Changes entries that were created in the future, before the clock was set back, to be created now: with the same
    /// lifetime, or expired.
    func anchor(now: Int64, expires: Bool) throws(DatabaseError) {
        let database = try statements().database
        let select = try database.prepare("SELECT id,key,created,expires,tag,sum FROM entry WHERE created>?")
        let update = try database.prepare("UPDATE entry SET created=?2,expires=?3,sum=?4 WHERE id=?1")
        select.bind(now, at: 1)
        var changes: [(id: Int64, expires: Int64?, sum: UInt64)] = []
        while try select.step() {
            let created = select.integer(at: 2), old = select.integerIfPresent(at: 3)
            let renewed = old.map { expires ? now : now &+ max(0, $0 &- created) }
            let change = select.withBytes(at: 1) { key in
                select.withBytes(at: 4) { tag in
                    EntrySum.seal(key: key, created: created, expires: old, tag: tag)
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
    /// Evicts what is above the limits, some hundred entries in a transaction so that readers' and other writers' turns
    /// come.
    func shrink(to limits: Limits, now: Int64) throws {
        tallies = [:]
        var isDone = false
        while !isDone {
            try transaction {
                isDone = true
                for (format, bytes) in limits.formats {
                    let account = try account(format)
                    guard account.bytes > bytes else { continue }
                    // A step of the log's size at most: on a full disk there is room for no more.
                    try makeRoom(in: format, to: max(bytes, account.bytes - (1 << 20)), now: now)
                    isDone = try isDone && self.account(format).bytes <= bytes
                }
                guard totals.bytes > limits.total else { return }
                try makeRoom(to: max(limits.total, totals.bytes - (1 << 20)), now: now)
                isDone = isDone && totals.bytes <= limits.total
            }
        }
    }
}
