import VitrineCore
import VitrineDatabase

/// Chooses the entries that are evicted, and removes them.
///
/// Lazy greedy dual by size and frequency: the rank of an entry is the rank of the last evicted entry of its format,
/// plus its worth. An access only raises the count of the entry. When eviction meets an entry that was accessed since
/// it was ranked, the entry is ranked again and its count is halved. The count saturates at 15. A miss costs something
/// per entry and something per byte, hence the second term of the worth; without it, large bodies would be evicted.
///
/// In the least-recently-used order, the rank is the number of the last access.
final class EvictionPolicy {
    /// Uses that eviction takes into account before they are written.
    var unwrittenHits: HitRecorder?
    private let order: DiskCache.Eviction
    private let connection: DiskConnection
    private let accounts: AccountBook
    private let entries: EntryTable

    init(
        _ order: DiskCache.Eviction, connection: DiskConnection, accounts: AccountBook, entries: EntryTable
    ) {
        self.order = order
        self.connection = connection
        self.accounts = accounts
        self.entries = entries
    }

    /// Bytes whose transfer costs as much as the request itself.
    private static let bytesPerRequest = 32768.0

    private static func worth(charge: Int, hits: Int64) -> Double {
        Double(hits) * (1 / Double(max(1, charge)) + 1 / bytesPerRequest)
    }

    /// The rank of a new entry.
    func newRank(in format: Int64, charge: Int, hits: Int64) throws(DatabaseError) -> Double {
        switch order {
        case .sizeAndFrequency: return try accounts.account(format).floor + Self.worth(charge: charge, hits: hits)
        case .leastRecentlyUsed: return accounts.countUse()
        }
    }

    /// Evicts until an entry fits into its format and into the total.
    func evictEntries(for charge: Int, in format: DiskFormat, total: Int, now: Int64) throws(DatabaseError) {
        let limit = format.limit.load(ordering: .relaxed)
        // Of a lone format the entries go that its own order would evict.
        let isLone = try accounts.holdsAll(format.id)
        let own = isLone ? min(limit, total) : limit
        try evictEntries(of: format.id, to: own == .max ? .max : own - charge, now: now)
        guard !isLone else { return }
        try evictEntries(to: total == .max ? .max : total - charge, now: now)
    }

    /// Evicts until a format counts no more than that: expired entries first, then by rank.
    func evictEntries(of format: Int64, to bytes: Int, now: Int64) throws(DatabaseError) {
        var mayHaveExpired = true
        while true {
            let account = try accounts.account(format)
            guard account.bytes > bytes, account.bytes > 0 || account.count > 0 else { return }
            if mayHaveExpired {
                let expired = try entries.expiredEntries(of: format, before: now, limit: 1)
                mayHaveExpired = !expired.isEmpty
                for entry in expired { try removeExpired(entry) }
                if mayHaveExpired { continue }
            }
            guard try evictLowestEntry(of: format) else {
                // The account speaks of entries that are not there: count anew rather than evict for ever.
                return try entries.recount()
            }
        }
    }

    /// Evicts until all formats together count no more than that: expired entries first. Then each format names the
    /// entry that its own order would evict, and of those the one goes that was not used for the longest time, of the
    /// larger format if that is the same. Formats that no program uses any more so lose theirs first.
    func evictEntries(to bytes: Int, now: Int64) throws(DatabaseError) {
        guard accounts.totals.bytes > bytes else { return }
        let formats = try accounts.storedFormats()
        if formats.count == 1, let format = formats.first { return try evictEntries(of: format, to: bytes, now: now) }
        // A little more, as asking all formats costs more than evicting an entry.
        let bytes = max(0, bytes - bytes / 256)
        for format in formats {
            while accounts.totals.bytes > bytes {
                let expired = try entries.expiredEntries(of: format, before: now, limit: 1)
                guard let entry = expired.first else { break }
                try removeExpired(entry)
            }
        }
        var candidates: [(format: Int64, used: Int64, bytes: Int)] = []
        for format in formats where accounts.totals.bytes > bytes {
            guard let entry = try lowestEntry(of: format) else { continue }
            candidates.append((format, lastUse(of: entry), try accounts.account(format).bytes))
        }
        while accounts.totals.bytes > bytes, accounts.totals.bytes > 0 || accounts.totals.count > 0 {
            let next = candidates.indices.min { (first, second) in
                let (first, second) = (candidates[first], candidates[second])
                return first.used == second.used ? first.bytes > second.bytes : first.used < second.used
            }
            guard let next else { return try entries.recount() }
            let format = candidates[next].format
            _ = try evictLowestEntry(of: format)
            if let entry = try lowestEntry(of: format) {
                candidates[next] = (format, lastUse(of: entry), try accounts.account(format).bytes)
            } else {
                candidates.remove(at: next)
            }
        }
    }

    private func lastUse(of entry: EntryTable.Stored) -> Int64 {
        max(entry.used, unwrittenHits?.lastUse(of: entry.id) ?? .min)
    }

    private func lowestEntry(of format: Int64) throws(DatabaseError) -> EntryTable.Stored? {
        let lowest = try connection.statements().lowest
        lowest.bind(format, at: 1)
        defer { lowest.reset() }
        return try lowest.step() ? entries.stored(lowest) : nil
    }

    /// Evicts the entry of a format with the lowest rank, or ranks it again if it was used.
    ///
    /// - Returns: false if there is none.
    private func evictLowestEntry(of format: Int64) throws(DatabaseError) -> Bool {
        guard var entry = try lowestEntry(of: format) else { return false }
        if let hit = unwrittenHits?.take(entry.id) { entry.hits = min(15, entry.hits + hit.count) }
        if order == .sizeAndFrequency {
            try accounts.raiseFloor(of: format, to: entry.rank)
            if entry.hits > entry.ranked {
                let rerank = try connection.statements().rerank
                rerank.bind(entry.id, at: 1)
                rerank.bind(entry.rank + Self.worth(charge: entry.charge, hits: entry.hits), at: 2)
                rerank.bind(max(1, entry.hits / 2), at: 3)
                try rerank.run()
                return true
            }
        }
        try entries.delete(entry)
        entries.count(in: format) {
            $0.evictions += 1
            $0.evictedBytes += entry.charge
        }
        return true
    }

    private func removeExpired(_ entry: EntryTable.Stored) throws(DatabaseError) {
        try entries.delete(entry)
        entries.count(in: entry.format) { $0.expirations += 1 }
    }

    /// Removes some of a format's entries whose time passed before then.
    func removeExpired(from format: Int64, before time: Int64) throws(DatabaseError) {
        for entry in try entries.expiredEntries(of: format, before: time, limit: 64) { try removeExpired(entry) }
    }

    /// Records uses.
    func recordHits(_ hits: [Int64: HitRecorder.Hit]) throws(DatabaseError) {
        let core = try connection.statements()
        switch order {
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
                core.use.bind(id, at: 1)
                core.use.bind(hit.count, at: 2)
                core.use.bind(hit.used, at: 3)
                core.use.bind(accounts.countUse(), at: 4)
                try core.use.run()
            }
        }
    }
}
