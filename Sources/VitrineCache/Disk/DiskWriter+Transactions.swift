import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Applies batches from the queue.
extension DiskWriter {
    /// The conditions of a batch.
    struct BatchConditions {
        /// The most bytes that all formats may count.
        var total: Int
        var inlineLimit: Int
        /// Nanoseconds since 1970.
        var now: Int64
        /// How long expired entries are kept, in nanoseconds.
        var retention: Int64
        /// Uses that are not written yet.
        var hits: HitRecorder? = nil
        /// See ``DiskCache/Configuration/expiresFutureEntries``.
        var expiresFutureEntries = false
    }

    /// One operation with its bytes made.
    struct Step {
        var key: EntryKey
        var operation: Operation
        var bytes: [UInt8]
    }

    /// A clock that is behind by less is not looked at: processes read it at slightly different times.
    static let clockSlack: Int64 = 1_000_000_000

    /// Applies operations in order, in one transaction but for large bodies and many released blocks. May be repeated after a failure.
    func apply(_ steps: [Step], hits: [Int64: HitRecorder.Hit], conditions: BatchConditions) throws {
        tallies = [:]
        let total = conditions.total
        var conditions = conditions
        unwritten = conditions.hits
        try begin()
        do {
            conditions.total = max(0, total - (try excess(capacity: total)))
            let formats = Dictionary(steps.map { ($0.key.format.id, $0.key.format) }) { first, _ in first }.values
            try prelude(hits: hits, formats: formats, conditions: conditions)
            for step in steps {
                switch step.operation {
                case .put(let put): try self.put(put, bytes: step.bytes, key: step.key, conditions: conditions)
                case .remove:
                    if let stored = try find(step.key.id) { try delete(stored) }
                case .patch(let patch): try apply(patch, to: step.key)
                }
                if space.isReleaseDue {
                    try commit()
                    try begin()
                }
            }
            // A longer validator may have taken it above the capacity.
            for format in formats { try makeRoom(for: 0, in: format, conditions) }
            try commit()
            note(capacity: total)
        } catch {
            rollback()
            throw error
        }
    }

    private func prelude(
        hits: [Int64: HitRecorder.Hit], formats: some Sequence<DiskFormat>, conditions: BatchConditions
    ) throws(DatabaseError) {
        if totals.latest > conditions.now &+ Self.clockSlack {
            try resetFutureTimes(now: conditions.now, expires: conditions.expiresFutureEntries)
        }
        if !hits.isEmpty { try record(hits) }
        _ = try removePurged()
        for format in formats {
            try purge(format.id, before: conditions.now &- conditions.retention)
            // Lowered by this process or written by one with more.
            try makeRoom(for: 0, in: format, conditions)
        }
    }

    private func put(_ put: Put, bytes: [UInt8], key: EntryKey, conditions: BatchConditions) throws {
        let charge = Self.charge(bytes: bytes.count, key: key.key, put)
        let stored = try find(key.id)
        if try isPurged(put.tags) {
            // As if it had been written before the purge.
            if let stored { try delete(stored) }
            return
        }
        guard charge <= min(key.format.limit.load(ordering: .relaxed), conditions.total) else {
            if let stored { try delete(stored) }
            tally(key.format.id) { $0.refusals += 1 }
            return
        }
        guard bytes.count > conditions.inlineLimit else {
            if let stored { try delete(stored) }
            try makeRoom(for: charge, in: key.format, conditions)
            try insert(put, bytes: bytes, key: key, hits: stored?.hits ?? 1, isFile: false)
            return
        }
        // What was evicted so far goes before the file is written; what gives way to it goes when its row is stored. So
        // there is never more than one entry above the capacity, and a crash leaves the older entry or this one.
        let id = key.id
        try addOrphanCandidate(id)
        try commit()
        let file = try writeBody(bytes, id, replacing: stored)
        do {
            try begin(storingFileOf: id)
            if let stored { try delete(stored, keepingFile: true) }
            try makeRoom(for: charge, in: key.format, conditions)
            try insert(put, bytes: bytes, key: key, hits: stored?.hits ?? 1, isFile: true)
            try commit()
        } catch {
            rollback()
            unlink(file)
            throw error
        }
        if stored?.isFile == true { BodyFile.promoteSuccessor(of: bodyPath(id)) }
        try begin()
    }

    /// Writes a large body into its file, or beside the one that it is to replace.
    ///
    /// - Returns: The file.
    private func writeBody(_ bytes: [UInt8], _ id: Int64, replacing stored: Stored?) throws -> String {
        let path = bodyPath(id)
        guard stored?.isFile == true else {
            try BodyFile.write(bytes, to: path, by: temporaryPath)
            return path
        }
        try placeSuccessor(id)
        let successor = BodyFile.successor(of: path)
        try BodyFile.write(bytes, to: successor, by: temporaryPath)
        return successor
    }

    /// Handles the new body that a crash may have left: it replaces the current one if the row describes it, and is
    /// deleted if the row describes the current one.
    func placeSuccessor(_ id: Int64) throws(DatabaseError) {
        let path = bodyPath(id)
        guard FilePath.exists(BodyFile.successor(of: path)) else { return }
        let select = try statements().database.prepare(
            "SELECT key,size,created,expires,validator,sum,tags FROM entry WHERE id=?")
        select.bind(id, at: 1)
        guard try select.step() else { return }
        let seal = select.withBytes(at: 0) { key in
            select.withBytes(at: 4) { validator in
                select.withBytes(at: 6) { tags in
                    EntrySum.seal(
                        key: key, created: select.integer(at: 2), expires: select.integerIfPresent(at: 3),
                        validator: validator, tags: tags)
                }
            }
        }
        let sum = UInt64(bitPattern: select.integer(at: 5)) ^ seal
        // What cannot be read now is found where it is, later.
        let found = try? BodyFile.find(path, size: Int(select.integer(at: 1))) { EntrySum.body($0, id: id) == sum }
        guard let found else { return }
        if found.isSuccessor { BodyFile.promoteSuccessor(of: path) } else { unlink(BodyFile.successor(of: path)) }
    }

    private func apply(_ patch: Patch, to entry: EntryKey) throws(DatabaseError) {
        let database = try statements().database
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
        func seal(_ put: Put) -> UInt64 {
            EntrySum.seal(
                key: key, created: put.created, expires: put.expires, validator: put.validator, tags: tags)
        }
        let change = seal(old) ^ seal(new)
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
        try self.change(entry.format.id, bytes: bytes, files: isFile ? bytes : 0)
    }
}

/// Eviction.
///
/// Lazy greedy dual by size and frequency: the rank of an entry is the rank of the last evicted entry of its format,
/// plus its worth. An access only raises the count of the entry. When eviction meets an entry that was accessed since
/// it was ranked, the entry is ranked again and its count is halved. The count saturates at 15. A miss costs something
/// per entry and something per byte, hence the second term of the worth; without it, large bodies would be evicted.
///
/// In the least-recently-used order, the rank is the number of the last access.
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
    func makeRoom(for charge: Int, in format: DiskFormat, _ conditions: BatchConditions) throws(DatabaseError) {
        let limit = format.limit.load(ordering: .relaxed)
        // Of a lone format the entries go that its own order would evict.
        let isLone = try holdsAll(format.id)
        let own = isLone ? min(limit, conditions.total) : limit
        try makeRoom(in: format.id, to: own == .max ? .max : own - charge, now: conditions.now)
        guard !isLone else { return }
        try makeRoom(to: conditions.total == .max ? .max : conditions.total - charge, now: conditions.now)
    }

    /// Whether all entries are of this format, by the totals.
    private func holdsAll(_ format: Int64) throws(DatabaseError) -> Bool {
        let account = try account(format)
        return account.count == totals.count && account.bytes == totals.bytes
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
        if formats.count == 1, let format = formats.first { return try makeRoom(in: format, to: bytes, now: now) }
        // A little more, as asking all formats costs more than evicting an entry.
        let bytes = max(0, bytes - bytes / 256)
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
        return try lowest.step() ? stored(lowest) : nil
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
        guard try mayHaveExpired(format, before: time) else { return [] }
        let expired = try statements().expired
        expired.bind(format, at: 1)
        expired.bind(time, at: 2)
        expired.bind(limit, at: 3)
        defer { expired.reset() }
        var found: [Stored] = []
        while try expired.step() { found.append(stored(expired)) }
        // The caller removes them.
        earliestExpiry[format] = nil
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
    func resetFutureTimes(now: Int64, expires: Bool) throws(DatabaseError) {
        let database = try statements().database
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
                        EntrySum.seal(key: key, created: created, expires: old, validator: validator, tags: tags)
                            ^ EntrySum.seal(key: key, created: now, expires: renewed, validator: validator, tags: tags)
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
        totals.latest = now
        earliestExpiry = [:]
    }
}

extension DiskWriter {
    /// Evicts the entries above the limits, some hundred in a transaction, so that readers and other writers can run in
    /// between.
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
