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
        var capacity: Int
        var inlineLimit: Int
        /// Nanoseconds since 1970.
        var now: Int64
        /// How long expired entries are kept, in nanoseconds.
        var retention: Int64
        /// Uses that are not written yet.
        var hits: HitRecorder? = nil
    }

    /// One operation with its bytes made.
    struct Step {
        var key: CacheKey
        var operation: Operation
        var bytes: [UInt8]
    }

    /// A clock that is behind by less is not looked at: processes read it at slightly different times.
    private static let clockSlack: Int64 = 1_000_000_000

    /// Applies operations in order, in one transaction but for large bodies. May be repeated after a failure.
    func apply(_ steps: [Step], hits: [Int64: HitRecorder.Hit], terms: Terms) throws {
        tally = DiskCache.Statistics()
        unwritten = terms.hits
        let version = watch.version
        // Also after a failure: part of it may have been stored.
        defer {
            if let version, let new = watch.version, new != version {
                filter.advance(from: version, to: new, adding: steps.map { Int64(bitPattern: $0.key.hash) })
            }
        }
        try begin()
        do {
            try prelude(hits: hits, terms: terms)
            for step in steps {
                switch step.operation {
                case .put(let put): try self.put(put, step.bytes, step.key, terms)
                case .remove:
                    if let stored = try find(Int64(bitPattern: step.key.hash)) { try delete(stored) }
                case .patch(let patch): try apply(patch, to: step.key)
                }
            }
            // Longer tags may have taken it above the capacity.
            if totals.bytes > terms.capacity { try makeRoom(for: 0, capacity: terms.capacity, now: terms.now) }
            try commit()
            note(bytes: tally.insertedBytes, rows: 2 * steps.count + hits.count / 4, capacity: terms.capacity)
        } catch {
            rollback()
            throw error
        }
    }

    private func prelude(hits: [Int64: HitRecorder.Hit], terms: Terms) throws(DatabaseError) {
        if totals.latest > terms.now &+ Self.clockSlack { try anchor(now: terms.now) }
        if !hits.isEmpty { try record(hits) }
        try purge(before: terms.now &- terms.retention)
        // Lowered by this process or written by one with more.
        if totals.bytes > terms.capacity { try makeRoom(for: 0, capacity: terms.capacity, now: terms.now) }
    }

    private func put(_ put: Put, _ bytes: [UInt8], _ key: CacheKey, _ terms: Terms) throws {
        let charge = Self.charge(bytes: bytes.count, key: key, tag: put.tag)
        let stored = try find(Int64(bitPattern: key.hash))
        guard charge <= terms.capacity else {
            if let stored { try delete(stored) }
            tally.refusals += 1
            return
        }
        guard bytes.count > terms.inlineLimit else {
            if let stored { try delete(stored) }
            try makeRoom(for: charge, capacity: terms.capacity, now: terms.now)
            try insert(put, bytes: bytes, key: key, hits: stored?.hits ?? 1, isFile: false)
            return
        }
        // What was evicted so far goes before the file is written; what gives way to it goes when its row is stored. So
        // there is never more than one entry above the capacity, and a crash leaves the older entry or this one.
        try commit()
        let file = try writeBody(bytes, key, replacing: stored)
        do {
            try begin()
            if let stored { try delete(stored, keepingFile: true) }
            try makeRoom(for: charge, capacity: terms.capacity, now: terms.now)
            try insert(put, bytes: bytes, key: key, hits: stored?.hits ?? 1, isFile: true)
            try commit()
        } catch {
            rollback()
            unlink(file)
            throw error
        }
        if stored?.isFile == true { BodyFile.promoteSuccessor(of: bodyPath(Int64(bitPattern: key.hash))) }
        try begin()
    }

    /// Writes a large body into its file, or beside the one that it is to replace.
    ///
    /// - Returns: The file.
    private func writeBody(_ bytes: [UInt8], _ key: CacheKey, replacing stored: Stored?) throws -> String {
        let path = bodyPath(Int64(bitPattern: key.hash))
        guard stored?.isFile == true else {
            try BodyFile.write(bytes, to: path)
            return path
        }
        let successor = BodyFile.successor(of: path)
        if FilePath.exists(successor) { try settleSuccessor(of: path, key) }
        try BodyFile.write(bytes, to: successor)
        return successor
    }

    /// A crash has left a successor: it takes its place if it is what the row tells of, for another is to be written.
    private func settleSuccessor(of path: String, _ key: CacheKey) throws(DatabaseError) {
        let id = Int64(bitPattern: key.hash)
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
        if found?.isSuccessor == true { BodyFile.promoteSuccessor(of: path) }
    }

    private func apply(_ patch: Patch, to key: CacheKey) throws(DatabaseError) {
        let database = try statements().database
        let select = try database.prepare("SELECT key,created,expires,tag,sum FROM entry WHERE id=?")
        let id = Int64(bitPattern: key.hash)
        select.bind(id, at: 1)
        guard try select.step() else { return }
        let old = Put(
            body: .ready([]), created: select.integer(at: 1), expires: select.integerIfPresent(at: 2),
            tag: select.bytes(at: 3))
        let sum = UInt64(bitPattern: select.integer(at: 4))
        // Another key with the same hash.
        guard select.bytes(at: 0) == Array(key.identity.utf8) else { return }
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
        totals.bytes += new.tag.count - old.tag.count
    }
}
