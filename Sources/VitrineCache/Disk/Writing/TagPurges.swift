import VitrineCore
import VitrineDatabase

/// The removal of entries by tag.
///
/// The table `tag` leads from tags to entries. A purge is a row of `purge` with the next number. It concerns the
/// entries that have the tag and that were begun before, which the number in their `tags` tells. Writes that were begun
/// before and come later are refused by the same comparison, whichever process they come from.
///
/// The transaction that records a purge also removes its entries, up to a limit, as each changes several pages. If
/// there are more, the purge is pending: readers pass over its entries, and the next transactions of any process remove
/// them. So a purge takes effect as a whole and the log stays short.
final class TagPurges {
    /// The result of one transaction of a purge.
    struct Progress {
        var count = 0
        /// Whether no purge is pending now.
        var isDone = true
    }

    /// The most entries that one transaction removes.
    static let purgeLimit = 2000
    /// The number of recorded purges. When there are more, the older half is forgotten; the row of the tag 0 has the
    /// number of the last of these.
    static let purgeRecordLimit = 4096
    static let lastPurgeSQL = "SELECT max(sequence) FROM purge"
    static let pendingPurgesSQL = "SELECT tag,sequence FROM purge WHERE pending=1 ORDER BY tag"

    private let connection: DiskConnection
    private let entries: EntryTable
    private let origin: PurgeOrigin

    init(_ connection: DiskConnection, entries: EntryTable, origin: PurgeOrigin) {
        self.connection = connection
        self.entries = entries
        self.origin = origin
    }

    /// Records the purge of a tag in the transaction.
    func recordPurge(of tag: UInt64) throws(DatabaseError) {
        let database = try connection.statements().database
        let next = try (database.integer(Self.lastPurgeSQL) ?? 0) + 1
        try storeRow(tag, sequence: next, pending: 1)
        guard try database.integer("SELECT count(*) FROM purge") ?? 0 > Self.purgeRecordLimit else { return }
        let floor = next - Int64(Self.purgeRecordLimit / 2)
        let forget = try database.cachedStatement("DELETE FROM purge WHERE sequence<=? AND pending=0")
        forget.bind(floor, at: 1)
        try forget.run()
        try storeRow(0, sequence: floor, pending: 0)
    }

    private func storeRow(_ tag: UInt64, sequence: Int64, pending: Int) throws(DatabaseError) {
        let database = try connection.statements().database
        let store = try database.cachedStatement("INSERT OR REPLACE INTO purge VALUES(?1,?2,?3)")
        store.bind(Int64(bitPattern: tag), at: 1)
        store.bind(sequence, at: 2)
        store.bind(pending, at: 3)
        try store.run()
    }

    /// Removes entries of pending purges in the transaction, up to the limit.
    func removePurgedEntries() throws(DatabaseError) -> Progress {
        let database = try connection.statements().database
        let pending = try database.cachedStatement(Self.pendingPurgesSQL + " LIMIT 1")
        var purged = Progress()
        while try pending.step() {
            let (tag, sequence) = (UInt64(bitPattern: pending.integer(at: 0)), pending.integer(at: 1))
            pending.reset()
            guard try removeEntries(withTag: tag, before: sequence, count: &purged.count) else {
                purged.isDone = false
                return purged
            }
            let end = try database.cachedStatement("UPDATE purge SET pending=0 WHERE tag=?")
            end.bind(Int64(bitPattern: tag), at: 1)
            try end.run()
        }
        return purged
    }

    /// - Returns: Whether all are removed. Otherwise the limit is reached.
    private func removeEntries(
        withTag tag: UInt64, before sequence: Int64, count: inout Int
    ) throws(DatabaseError) -> Bool {
        var after = Int64.min
        while true {
            let page = try taggedEntries(tag, after: after)
            for id in page {
                guard count < Self.purgeLimit else { return false }
                let stored = try entries.find(id)
                if let stored, stored.tags.hashes.contains(tag) {
                    // A newer entry stays.
                    guard stored.tags.sequence(in: origin.generation) < sequence else { continue }
                    try entries.delete(stored)
                    count += 1
                } else {
                    // A damaged row: its entry is gone or another.
                    try entries.deleteTag(tag, of: id)
                }
            }
            guard let last = page.last else { return true }
            after = last
        }
    }

    private func taggedEntries(_ tag: UInt64, after id: Int64) throws(DatabaseError) -> [Int64] {
        let tagged = try connection.statements().tagged
        tagged.bind(Int64(bitPattern: tag), at: 1)
        tagged.bind(id, at: 2)
        tagged.bind(500, at: 3)
        var ids: [Int64] = []
        while try tagged.step() { ids.append(tagged.integer(at: 0)) }
        return ids
    }

    /// Whether one of the tags of an entry was purged after the work on it began.
    func isPurged(_ tags: EntryTags) throws(DatabaseError) -> Bool {
        guard !tags.isEmpty else { return false }
        return try Self.isPurged(tags, origin: origin, database: try connection.statements().database)
    }

    /// The same in any connection. Everything of an earlier generation was removed, so that work which began in one,
    /// or in an unknown one, counts as purged, unless that one was damaged.
    static func isPurged(
        _ tags: EntryTags, origin: PurgeOrigin, database: Database
    ) throws(DatabaseError) -> Bool {
        guard let began = tags.began, origin.continues(began.generation) else { return !tags.isEmpty }
        let select = try database.cachedStatement(
            "SELECT EXISTS(SELECT 1 FROM purge WHERE tag IN (0,?1) AND sequence>?2)")
        defer { select.reset() }
        for tag in tags.hashes {
            select.bind(Int64(bitPattern: tag), at: 1)
            select.bind(tags.sequence(in: origin.generation), at: 2)
            if try select.step(), select.integer(at: 0) == 1 { return true }
        }
        return false
    }
}

/// The generation that the tags of entries refer to, and the damaged one that it has replaced.
final class PurgeOrigin: Sendable {
    /// The generation as marks name it.
    let generation: UInt64
    /// The damaged generation that this one has replaced in this process.
    private let damaged = Locked<UInt64?>(nil)

    init(generation: UInt64) { self.generation = generation }

    /// This generation takes the place of a damaged one. Its entries were not removed.
    func replace(damaged other: PurgeOrigin) { damaged.withLock { $0 = other.generation } }

    /// Whether work that began in a generation continues in this one.
    func continues(_ other: UInt64) -> Bool { other == generation || damaged.withLock { $0 } == other }
}
