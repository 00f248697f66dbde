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

    /// Applies operations in order, in one transaction but for large bodies and many released blocks. May be repeated
    /// after a failure.
    func apply(_ steps: [Step], hits: [Int64: HitRecorder.Hit], conditions: BatchConditions) throws {
        entries.takeStatistics()
        let total = conditions.total
        var conditions = conditions
        eviction.unwrittenHits = conditions.hits
        try begin()
        do {
            conditions.total = max(0, total - (try excess(capacity: total)))
            let formats = Dictionary(steps.map { ($0.key.format.id, $0.key.format) }) { first, _ in first }.values
            try beginBatch(hits: hits, formats: formats, conditions: conditions)
            for step in steps {
                switch step.operation {
                case .put(let put): try self.put(put, bytes: step.bytes, key: step.key, conditions: conditions)
                case .remove:
                    if let stored = try entries.find(step.key.id) { try entries.delete(stored) }
                case .patch(let patch): try entries.applyPatch(patch, to: step.key)
                }
                if blocks.isReleaseDue {
                    try commit()
                    try begin()
                }
            }
            // A longer validator may have taken it above the capacity.
            for format in formats { try evictEntries(for: 0, in: format, conditions: conditions) }
            try commit()
            noteBatch(capacity: total)
        } catch {
            rollback()
            throw error
        }
    }

    /// Brings the database up to date before a batch: times, uses, purges, expired entries and limits.
    private func beginBatch(
        hits: [Int64: HitRecorder.Hit], formats: some Sequence<DiskFormat>, conditions: BatchConditions
    ) throws(DatabaseError) {
        if accounts.totals.latest > conditions.now &+ Self.clockSlack {
            try entries.resetFutureTimes(now: conditions.now, expires: conditions.expiresFutureEntries)
        }
        if !hits.isEmpty { try eviction.recordHits(hits) }
        _ = try purges.removePurgedEntries()
        for format in formats {
            try eviction.removeExpired(from: format.id, before: conditions.now &- conditions.retention)
            // Lowered by this process or written by one with more.
            try evictEntries(for: 0, in: format, conditions: conditions)
        }
    }

    private func put(_ put: Put, bytes: [UInt8], key: EntryKey, conditions: BatchConditions) throws {
        let charge = EntryTable.charge(bytes: bytes.count, key: key.key, put)
        let stored = try entries.find(key.id)
        if try purges.isPurged(put.tags) {
            // As if it had been written before the purge.
            if let stored { try entries.delete(stored) }
            return
        }
        guard charge <= min(key.format.limit.load(ordering: .relaxed), conditions.total) else {
            if let stored { try entries.delete(stored) }
            entries.count(in: key.format.id) { $0.refusals += 1 }
            return
        }
        guard bytes.count > conditions.inlineLimit else {
            if let stored { try entries.delete(stored) }
            try evictEntries(for: charge, in: key.format, conditions: conditions)
            try insert(put, bytes: bytes, key: key, hits: stored?.hits ?? 1, isFile: false)
            return
        }
        // The evictions so far are committed before the file is written, further ones with its row. So there is never
        // more than one entry above the capacity, and a crash leaves the older entry or this one.
        let id = key.id
        try files.addOrphanCandidate(id)
        try commit()
        let file = try files.writeBody(bytes, of: id, replaces: stored?.isFile == true)
        do {
            try begin(storingFileOf: id)
            if let stored { try entries.delete(stored, keepingFile: true) }
            try evictEntries(for: charge, in: key.format, conditions: conditions)
            try insert(put, bytes: bytes, key: key, hits: stored?.hits ?? 1, isFile: true)
            try commit()
        } catch {
            rollback()
            unlink(file)
            throw error
        }
        if stored?.isFile == true { BodyFile.promoteSuccessor(of: files.bodyPath(id)) }
        try begin()
    }

    /// Adds an entry for which there is room and which is not there yet.
    ///
    /// - Parameter isFile: Its body is in its file already.
    func insert(_ put: Put, bytes: [UInt8], key: EntryKey, hits: Int64, isFile: Bool) throws {
        let charge = EntryTable.charge(bytes: bytes.count, key: key.key, put)
        let rank = try eviction.newRank(in: key.format.id, charge: charge, hits: hits)
        try entries.insert(put, bytes: bytes, key: key, hits: hits, rank: rank, isFile: isFile)
    }

    private func evictEntries(
        for charge: Int, in format: DiskFormat, conditions: BatchConditions
    ) throws(DatabaseError) {
        try eviction.evictEntries(for: charge, in: format, total: conditions.total, now: conditions.now)
    }

    /// Evicts the entries above the limits, some hundred in a transaction, so that readers and other writers can run in
    /// between.
    func shrink(to limits: Limits, now: Int64) throws {
        entries.takeStatistics()
        var isDone = false
        while !isDone {
            try transaction {
                isDone = true
                for (format, bytes) in limits.formats {
                    let account = try accounts.account(format)
                    guard account.bytes > bytes else { continue }
                    // A step of the log's size at most: on a full disk there is room for no more.
                    try eviction.evictEntries(of: format, to: max(bytes, account.bytes - (1 << 20)), now: now)
                    isDone = try isDone && accounts.account(format).bytes <= bytes
                }
                guard accounts.totals.bytes > limits.total else { return }
                try eviction.evictEntries(to: max(limits.total, accounts.totals.bytes - (1 << 20)), now: now)
                isDone = isDone && accounts.totals.bytes <= limits.total
            }
        }
    }

    /// Records the purge of a tag, or continues pending purges, in one transaction.
    ///
    /// - Parameter tag: nil to continue.
    func purge(_ tag: UInt64?) throws -> TagPurges.Progress {
        entries.takeStatistics()
        var progress = TagPurges.Progress()
        try transaction {
            if let tag { try purges.recordPurge(of: tag) }
            progress = try purges.removePurgedEntries()
        }
        return progress
    }

    /// Removes some of a format's entries in one transaction.
    ///
    /// - Parameter id: Only those behind it.
    /// - Returns: The last one removed; nil at the end.
    func removeSome(of format: Int64, after id: Int64) throws -> Int64? {
        var last: Int64?
        try transaction { last = try entries.removeSome(of: format, after: id) }
        return last
    }
}
