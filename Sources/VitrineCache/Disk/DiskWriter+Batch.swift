#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineDatabase

/// Applies what waited in the queue.
extension DiskWriter {
    /// What holds for a batch.
    struct Terms {
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

    /// Applies operations in order, in one transaction but for large bodies. May be repeated after a failure.
    func apply(_ steps: [Step], hits: [Int64: HitRecorder.Hit], terms: Terms) throws {
        tallies = [:]
        let total = terms.total
        var terms = terms
        unwritten = terms.hits
        let version = watch.version
        // Also after a failure: part of it may have been stored.
        defer {
            if let version, let new = watch.version, new != version {
                filter.advance(from: version, to: new, adding: steps.map(\.key.id))
            }
        }
        try begin()
        do {
            terms.total = max(0, total - (try excess(capacity: total)))
            let formats = Dictionary(steps.map { ($0.key.format.id, $0.key.format) }) { first, _ in first }.values
            try prelude(hits: hits, formats: formats, terms: terms)
            for step in steps {
                switch step.operation {
                case .put(let put): try self.put(put, step.bytes, step.key, terms)
                case .remove:
                    if let stored = try find(step.key.id) { try delete(stored) }
                case .patch(let patch): try apply(patch, to: step.key)
                }
            }
            // Longer tags may have taken it above the capacity.
            for format in formats { try makeRoom(for: 0, in: format, terms) }
            try commit()
            note(capacity: total)
        } catch {
            rollback()
            throw error
        }
    }

    private func prelude(
        hits: [Int64: HitRecorder.Hit], formats: some Sequence<DiskFormat>, terms: Terms
    ) throws(DatabaseError) {
        if totals.latest > terms.now &+ Self.clockSlack { try anchor(now: terms.now, expires: terms.expiresFutureEntries) }
        if !hits.isEmpty { try record(hits) }
        for format in formats {
            try purge(format.id, before: terms.now &- terms.retention)
            // Lowered by this process or written by one with more.
            try makeRoom(for: 0, in: format, terms)
        }
    }

    private func put(_ put: Put, _ bytes: [UInt8], _ key: EntryKey, _ terms: Terms) throws {
        let charge = Self.charge(bytes: bytes.count, key: key.key, tag: put.tag)
        let stored = try find(key.id)
        guard charge <= min(key.format.limit.load(ordering: .relaxed), terms.total) else {
            if let stored { try delete(stored) }
            tally(key.format.id) { $0.refusals += 1 }
            return
        }
        guard bytes.count > terms.inlineLimit else {
            if let stored { try delete(stored) }
            try makeRoom(for: charge, in: key.format, terms)
            try insert(put, bytes: bytes, key: key, hits: stored?.hits ?? 1, isFile: false)
            return
        }
        // What was evicted so far goes before the file is written; what gives way to it goes when its row is stored. So
        // there is never more than one entry above the capacity, and a crash leaves the older entry or this one.
        let id = key.id
        try addLitter(id)
        try commit()
        let file = try writeBody(bytes, id, replacing: stored)
        do {
            try begin(storingFileOf: id)
            if let stored { try delete(stored, keepingFile: true) }
            try makeRoom(for: charge, in: key.format, terms)
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
        try settleSuccessor(id)
        let successor = BodyFile.successor(of: path)
        try BodyFile.write(bytes, to: successor, by: temporaryPath)
        return successor
    }

    /// A crash may have left a successor: it takes its place if it is what the row tells of, and goes if the file in
    /// the place is.
    func settleSuccessor(_ id: Int64) throws(DatabaseError) {
        let path = bodyPath(id)
        guard FilePath.exists(BodyFile.successor(of: path)) else { return }
        let select = try statements().database.prepare("SELECT key,size,created,expires,tag,sum FROM entry WHERE id=?")
        select.bind(id, at: 1)
        guard try select.step() else { return }
        let seal = select.withBytes(at: 0) { key in
            select.withBytes(at: 4) { tag in
                EntrySum.seal(
                    key: key, created: select.integer(at: 2), expires: select.integerIfPresent(at: 3), tag: tag)
            }
        }
        let sum = UInt64(bitPattern: select.integer(at: 5)) ^ seal
        let found = BodyFile.find(path, size: Int(select.integer(at: 1))) { EntrySum.body($0, id: id) == sum }
        guard let found else { return }
        if found.isSuccessor { BodyFile.promoteSuccessor(of: path) } else { unlink(BodyFile.successor(of: path)) }
    }

    private func apply(_ patch: Patch, to entry: EntryKey) throws(DatabaseError) {
        let database = try statements().database
        let select = try database.prepare("SELECT key,created,expires,tag,sum,format,body FROM entry WHERE id=?")
        let id = entry.id, key = entry.key
        select.bind(id, at: 1)
        guard try select.step() else { return }
        let old = Put(
            body: .ready([]), created: select.integer(at: 1), expires: select.integerIfPresent(at: 2),
            tag: select.bytes(at: 3))
        let sum = UInt64(bitPattern: select.integer(at: 4))
        // Another entry with the same identifier.
        guard select.bytes(at: 0) == Array(key.identity.utf8), select.integer(at: 5) == entry.format.id else { return }
        let isFile = select.integer(at: 6) == 0
        let new = patch.applied(to: old)
        let change = EntrySum.seal(key: key, created: old.created, expires: old.expires, tag: old.tag)
            ^ EntrySum.seal(key: key, created: new.created, expires: new.expires, tag: new.tag)
        select.reset()
        let update = try database.prepare("UPDATE entry SET created=?2,expires=?3,tag=?4,sum=?5 WHERE id=?1")
        update.bind(id, at: 1)
        update.bind(new.created, at: 2)
        update.bind(new.expires, at: 3)
        update.bind(new.tag, at: 4)
        update.bind(Int64(bitPattern: sum ^ change), at: 5)
        try update.run()
        let bytes = new.tag.count - old.tag.count
        try self.change(entry.format.id, bytes: bytes, files: isFile ? bytes : 0)
    }
}
