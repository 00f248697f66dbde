import VitrineCore
import VitrineDatabase

/// Lookups, on the caller's thread.
extension DiskEngine {
    func entry(forKey key: EntryKey, includingExpired: Bool) throws(CacheError) -> DiskCache.Entry? {
        guard let row = try row(forKey: key, includingExpired: includingExpired) else { return nil }
        return DiskCache.Entry(
            key: key.key, bytes: row.body, created: .nanoseconds(row.created),
            expires: row.expires.map { .nanoseconds($0) }, isExpired: isExpired(row, now), validator: row.validator,
            tags: row.tags)
    }

    func bytes(forKey key: EntryKey) throws(CacheError) -> [UInt8]? {
        try row(forKey: key, includingExpired: false)?.body
    }

    /// Returns an entry if all of it is in memory, without waiting for the disk or for other connections: for threads
    /// that must not wait. nil says nothing about the entry. Counts as a use if it returns one.
    func residentEntry(forKey key: EntryKey) -> DiskCache.Entry? {
        guard queue.pending(key) == nil,
            case .row(let row)? = generations.withPromptReader({ (reader) throws(DatabaseError) in try reader.read(key) }),
            !row.isSuccessor
        else { return nil }
        let now = now
        guard !isExpired(row, now) else { return nil }
        recordUse(of: row, key: key, now: now)
        return DiskCache.Entry(
            key: key.key, bytes: row.body, created: .nanoseconds(row.created),
            expires: row.expires.map { .nanoseconds($0) }, isExpired: false, validator: row.validator, tags: row.tags)
    }

    /// Returns whether a key certainly has no entry, without waiting for the disk or for other connections. A miss so
    /// costs no switch to another thread.
    func excludes(_ key: EntryKey) -> Bool {
        guard queue.pending(key) == nil else { return false }
        return generations.withPromptReader { (reader) throws(DatabaseError) in try reader.info(key) == nil } ?? false
    }

    /// Looks up, checks expiry, counts and records the use.
    private func row(forKey key: EntryKey, includingExpired: Bool) throws(CacheError) -> DiskReader.Row? {
        guard let row = try lookUp(key) else {
            key.format.counters.miss()
            return nil
        }
        let now = now
        guard includingExpired || !isExpired(row, now) else {
            key.format.counters.miss()
            return nil
        }
        recordUse(of: row, key: key, now: now)
        return row
    }

    private func recordUse(of row: DiskReader.Row, key: EntryKey, now: Int64) {
        key.format.counters.hit()
        let isSaturated = row.hits >= 15 && configuration.eviction == .sizeAndFrequency
        if !isSaturated || now &- row.used > HitRecorder.useInterval {
            record(key.id, stored: row.hits, used: row.used, now)
        }
    }

    /// An entry that was created in the future, before the clock was set back, counts as created now, or as expired.
    private func isExpired(_ row: DiskReader.Row, _ now: Int64) -> Bool {
        guard let expires = row.expires else { return false }
        if configuration.expiresFutureEntries, row.created > now &+ DiskWriter.clockSlack { return true }
        return expires <= now && row.created <= now
    }

    /// Records a use without reading.
    func touch(_ key: EntryKey) { record(key.id, stored: 1, used: 0, now) }

    private func record(_ id: Int64, stored: Int, used: Int64, _ now: Int64) {
        guard hits.record(id, stored: stored, used: used, now: now), !isReadOnly else { return }
        onWriter { engine in engine.writeHits() }
    }

    /// The queue first, then the disk.
    private func lookUp(_ key: EntryKey) throws(CacheError) -> DiskReader.Row? {
        var patch: Patch?
        switch queue.pending(key) {
        case nil: break
        case .put(let put): return try pendingRow(put)
        case .remove: return nil
        case .patch(let pending): patch = pending
        }
        let found = try generations.withReader { (reader) throws(DatabaseError) in try reader.read(key) }
        switch found {
        case .none, .nothing: return nil
        case .unreadable(let error): throw .file(error)
        case .row(let row):
            if row.isSuccessor { requestRepair(of: key) }
            return patch.map { applied($0, to: row) } ?? row
        case .damaged:
            // A large body's file may have gone after its row was read: look again before calling it damaged.
            let again = try generations.withReader { (reader) throws(DatabaseError) in try reader.read(key) }
            if case .row(let row) = again { return patch.map { applied($0, to: row) } ?? row }
            if case .damaged = again { requestRepair(of: key) }
            return nil
        }
    }

    private func pendingRow(_ put: Put) throws(CacheError) -> DiskReader.Row? {
        // The writer will find this out as well.
        if try isPurged(put.tags) { return nil }
        // Bytes that cannot be made are reported by the writer.
        guard let bytes = try? put.body.bytes() else { return nil }
        return DiskReader.Row(
            body: bytes, size: bytes.count, created: put.created, expires: put.expires, used: put.created, hits: 1,
            validator: put.validator, tags: put.tags, isFile: bytes.count > configuration.inlineLimit.bytes)
    }

    private func applied(_ patch: Patch, to row: DiskReader.Row) -> DiskReader.Row {
        var row = row
        row.created = patch.created ?? row.created
        if let expires = patch.expires { row.expires = expires }
        row.validator = patch.validator ?? row.validator
        return row
    }

    /// Has the writer look at an entry that did not fit its checksum, and remove it if it still does not; or that a
    /// crash has left with an older file in its place.
    private func requestRepair(of key: EntryKey) {
        guard !isReadOnly else { return }
        onWriter { engine in engine.repair([key]) }
    }

    // MARK: Purges

    /// The last purge, if it can be read without waiting. For any thread.
    func promptPurgeMark() -> PurgeMark? {
        generations.withPromptReader { (reader) throws(DatabaseError) in try reader.lastPurge() } ?? nil
    }

    /// The last purge, for work that begins now; nil if nothing is stored yet.
    ///
    /// - Throws: If it cannot be read. Without it, an entry with tags would count as older than all purges.
    func purgeMark() throws(CacheError) -> PurgeMark? {
        try generations.withReader { (reader) throws(DatabaseError) in try reader.lastPurge() } ?? nil
    }

    /// Whether one of the tags was purged since the work on an entry began.
    func isPurged(_ tags: EntryTags) throws(CacheError) -> Bool {
        guard !tags.isEmpty else { return false }
        return try generations.withReader { (reader) throws(DatabaseError) in try reader.isPurged(tags) } ?? false
    }

    // MARK: Without bodies

    func info(forKey key: EntryKey) throws(CacheError) -> DiskCache.EntryInfo? {
        var patch: Patch?
        switch queue.pending(key) {
        case nil: break
        case .put(let put): return try pendingRow(put).map { info(key.key, $0) }
        case .remove: return nil
        case .patch(let pending): patch = pending
        }
        let found = try generations.withReader { (reader) throws(DatabaseError) in try reader.info(key) }
        guard let row = found ?? nil else {
            return nil
        }
        return info(key.key, patch.map { applied($0, to: row) } ?? row)
    }

    private func info(_ key: CacheKey, _ row: DiskReader.Row) -> DiskCache.EntryInfo {
        let now = now
        return DiskCache.EntryInfo(
            key: key, size: ByteCount(row.size), created: .nanoseconds(row.created),
            lastAccess: .nanoseconds(min(row.used, max(now, row.created))),
            expires: row.expires.map { .nanoseconds($0) }, isExpired: isExpired(row, now), hits: row.hits,
            validator: row.validator, isFile: row.isFile)
    }

    func entries(of format: DiskFormat, after key: CacheKey?, limit: Int) throws(CacheError) -> [DiskCache.EntryInfo] {
        try waitForWrites()
        let after = key.map { EntryKey($0, format).id }
        let rows = try generations.withReader { (reader) throws(DatabaseError) in
            try reader.rows(of: format.id, after: after, limit: limit)
        }
        return (rows ?? []).map { info($0.key, $0.row) }
    }

    /// Returns the size and number of the entries of a format, or of all formats, after pending writes.
    func totals(of format: DiskFormat?) throws(CacheError) -> (bytes: Int, count: Int) {
        try waitForWrites()
        return try knownTotals(of: format)
    }

    private func knownTotals(of format: DiskFormat?) throws(CacheError) -> (bytes: Int, count: Int) {
        let totals = try generations.withReader { (reader) throws(DatabaseError) in try reader.totals(of: format?.id) }
        // No directory yet: nothing is stored, which is known.
        (format?.sizes ?? formats.sizes).send(totals?.bytes ?? 0)
        return totals ?? (0, 0)
    }

    /// All formats that have entries, whether or not they are registered here, after pending writes.
    func storedFormats() throws(CacheError) -> [(name: String, bytes: Int, count: Int)] {
        try waitForWrites()
        return try generations.withReader { (reader) throws(DatabaseError) in try reader.formats() } ?? []
    }

    /// The size of a format, or of all, whenever it changes.
    func sizeUpdates(of format: DiskFormat?) -> AsyncStream<ByteCount?> {
        let sizes = format?.sizes ?? formats.sizes
        if !sizes.isKnown {
            // What fails is told to those who read or write.
            onWriter { engine in _ = try? engine.knownTotals(of: format) }
        }
        return sizes.stream()
    }

    // MARK: Damage

    /// Reads and checks every entry of a format.
    func verify(_ format: DiskFormat, removingDamage: Bool) throws(CacheError) -> DiskCache.VerifyReport {
        var verification = DiskVerification(of: format, in: self)
        return try verification.run(removingDamage: removingDamage)
    }

    /// Removes entries that do not fit their checksums, and puts files in their places. On the writing thread.
    func repair(_ keys: [EntryKey]) {
        do throws(CacheError) {
            try generations.withProcessLock { () throws(CacheError) in
                let writer = try generations.writerLocked()
                guard let generation = generations.current else { return }
                do {
                    try writer.transaction {
                        for key in keys { try repair(key, writer: writer, generation: generation) }
                    }
                } catch {
                    throw CacheError.ofDisk(error, path: layout.root)
                }
                formats.publishChanges(of: writer)
            }
        } catch {
            log.error("disk cache could not remove a damaged entry", metadata: ["error": "\(error)"])
        }
    }

    private func repair(
        _ key: EntryKey, writer: DiskWriter, generation: Generation
    ) throws(DatabaseError) {
        // Nobody writes now: what does not fit is damaged.
        let reader = try generation.takeReader()
        let found = try reader.read(key)
        generation.giveBack(reader)
        if case .row(let row) = found, row.isSuccessor {
            BodyFile.promoteSuccessor(of: writer.files.bodyPath(key.id))
        }
        guard case .damaged = found else { return }
        guard let stored = try writer.entries.find(key.id) else { return }
        try writer.entries.delete(stored)
        key.format.counters.add { $0.damaged += 1 }
        log.error("disk cache removed a damaged entry", metadata: ["key": "\(key.key)"])
    }
}
