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
            case .row(let row)? = withPromptReader({ (reader) throws(DatabaseError) in try reader.read(key) }),
            !row.isSuccessor
        else { return nil }
        let now = now
        guard !isExpired(row, now) else { return nil }
        used(row, key: key, now: now)
        return DiskCache.Entry(
            key: key.key, bytes: row.body, created: .nanoseconds(row.created),
            expires: row.expires.map { .nanoseconds($0) }, isExpired: false, validator: row.validator, tags: row.tags)
    }

    /// Returns whether a key certainly has no entry, without waiting for the disk or for other connections. A miss so
    /// costs no switch to another thread.
    func excludes(_ key: EntryKey) -> Bool {
        guard queue.pending(key) == nil else { return false }
        return withPromptReader { (reader) throws(DatabaseError) in try reader.info(key) == nil } ?? false
    }

    /// Runs a body with a connection that does not wait; nil if there is none or if it would have to wait.
    private func withPromptReader<Result>(
        _ body: (DiskReader) throws(DatabaseError) -> Result
    ) -> Result? {
        guard let generation = knownGeneration(), generation.watch.check() == .intact,
            let reader = generation.takePromptReader()
        else { return nil }
        do throws(DatabaseError) {
            let result = try body(reader)
            generation.giveBack(reader)
            return result
        } catch {
            if error.reason == .wouldWait { generation.giveBack(reader) } else { generation.close(prompt: reader) }
            return nil
        }
    }

    /// The generation in use, if it was looked at lately: the link's file is in memory then.
    private func knownGeneration() -> Generation? {
        let time = Self.coarseTime()
        let (known, checked) = state.withLock { ($0.generation, $0.checked) }
        guard let known, !known.isTemporary else { return nil }
        guard time &- checked >= Self.checkInterval else { return known }
        guard time &- checked < 20 * Self.checkInterval, isCurrent(known) else { return nil }
        state.withLock { $0.checked = time }
        return known
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
        used(row, key: key, now: now)
        return row
    }

    private func used(_ row: DiskReader.Row, key: EntryKey, now: Int64) {
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
        let found = try withReader { (reader) throws(DatabaseError) in try reader.read(key) }
        switch found {
        case .none, .nothing: return nil
        case .unreadable(let error): throw .file(error)
        case .row(let row):
            if row.isSuccessor { suspect(key) }
            return patch.map { applied($0, to: row) } ?? row
        case .damaged:
            // A large body's file may have gone after its row was read: look again before calling it damaged.
            let again = try withReader { (reader) throws(DatabaseError) in try reader.read(key) }
            if case .row(let row) = again { return patch.map { applied($0, to: row) } ?? row }
            if case .damaged = again { suspect(key) }
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
    private func suspect(_ key: EntryKey) {
        guard !isReadOnly else { return }
        onWriter { engine in engine.repair([key]) }
    }

    /// Runs a body with a connection; nil if there is no cache. Begins anew when the files are replaced meanwhile.
    func withReader<Result>(
        _ body: (DiskReader) throws(DatabaseError) -> Result
    ) throws(CacheError) -> Result? {
        var last: CacheError?
        var wasDamaged = false
        for _ in 0..<Self.attempts {
            guard let generation = try generation() else { return nil }
            switch generation.watch.check() {
            case .intact: break
            case .deleted:
                abandon(generation)
                continue
            case .cut:
                try recover(generation, because: "its database was cut")
                continue
            }
            do throws(DatabaseError) {
                let reader = try generation.takeReader()
                let result = try body(reader)
                generation.giveBack(reader)
                return result
            } catch {
                // The connection that failed is closed.
                last = .database(error)
                switch error.reason {
                case _ where error.isDamage:
                    // What a new connection finds as well is damaged.
                    if wasDamaged { try recover(generation, because: error.description) } else { abandon(generation) }
                    wasDamaged.toggle()
                case .cannotOpen, .inputOutput, .readOnly: abandon(generation)
                default: throw .database(error)
                }
            }
        }
        if let last { throw last }
        return nil
    }

    // MARK: Purges

    /// The last purge, if it can be read without waiting. For any thread.
    func promptPurgeMark() -> PurgeMark? {
        withPromptReader { (reader) throws(DatabaseError) in try reader.lastPurge() } ?? nil
    }

    /// The last purge, for work that begins now; nil if nothing is stored yet.
    ///
    /// - Throws: If it cannot be read. Without it, an entry with tags would count as older than all purges.
    func purgeMark() throws(CacheError) -> PurgeMark? {
        try withReader { (reader) throws(DatabaseError) in try reader.lastPurge() } ?? nil
    }

    /// Whether one of the tags was purged since the work on an entry began.
    func isPurged(_ tags: EntryTags) throws(CacheError) -> Bool {
        guard !tags.isEmpty else { return false }
        return try withReader { (reader) throws(DatabaseError) in try reader.isPurged(tags) } ?? false
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
        let found = try withReader { (reader) throws(DatabaseError) in try reader.info(key) }
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
        let rows = try withReader { (reader) throws(DatabaseError) in
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
        let totals = try withReader { (reader) throws(DatabaseError) in try reader.totals(of: format?.id) }
        // No directory yet: nothing is stored, which is known.
        (format?.sizes ?? sizes).send(totals?.bytes ?? 0)
        return totals ?? (0, 0)
    }

    /// All formats that have entries, whether or not they are registered here, after pending writes.
    func storedFormats() throws(CacheError) -> [(name: String, bytes: Int, count: Int)] {
        try waitForWrites()
        return try withReader { (reader) throws(DatabaseError) in try reader.formats() } ?? []
    }

    /// The size of a format, or of all, whenever it changes.
    func sizeUpdates(of format: DiskFormat?) -> AsyncStream<ByteCount?> {
        let sizes = format?.sizes ?? sizes
        if !sizes.isKnown {
            // What fails is told to those who read or write.
            onWriter { engine in _ = try? engine.knownTotals(of: format) }
        }
        return sizes.stream()
    }
}

/// Looking for damage.
extension DiskEngine {
    /// Files without an entry are left alone for an hour: another process may be about to write its row. In seconds.
    private static let orphanAge = 3600

    func verify(_ format: DiskFormat, removingDamage: Bool) throws(CacheError) -> DiskCache.VerifyReport {
        try waitForWrites()
        var report = DiskCache.VerifyReport()
        let damage = try withReader { (reader) throws(DatabaseError) in try reader.findDamage() }
        report.database = damage ?? []
        var last: CacheKey?
        var files: Set<String> = []
        while true {
            let after = last.map { EntryKey($0, format).id }
            let page = try withReader { (reader) throws(DatabaseError) in
                try reader.rows(of: format.id, after: after, limit: 256)
            }
            guard let page, let end = page.last else { break }
            for (key, row) in page {
                try verify(EntryKey(key, format), row: row, report: &report, files: &files)
            }
            last = end.key
        }
        report.orphans = try orphans(of: format, besides: files)
        if removingDamage { try remove(report, format) }
        return report
    }

    private func verify(
        _ key: EntryKey, row: DiskReader.Row, report: inout DiskCache.VerifyReport, files: inout Set<String>
    ) throws(CacheError) {
        let file = DiskLayout.fileName(key.id)
        if row.isFile { files.insert(file) }
        let found = try withReader { (reader) throws(DatabaseError) in try reader.read(key) }
        switch found {
        case .row(let row):
            if row.isSuccessor { files.insert(BodyFile.successor(of: file)) }
            report.entries += 1
            report.bytes += ByteCount(row.body.count)
        case .damaged:
            let reason = row.isFile ? "its file is missing or damaged" : "it does not fit its checksum"
            report.damaged.append(DiskCache.VerifyReport.Damage(key: key.key, reason: reason))
        case .unreadable(let error): throw .file(error)
        case .nothing, .none: break
        }
    }

    /// Files below `files/` that no entry of any format has, if they are old enough or no file of ours.
    private func orphans(of format: DiskFormat, besides files: Set<String>) throws(CacheError) -> [String] {
        guard let generation = try generation() else { return [] }
        let root = generation.path + "/files"
        var orphans: [String] = []
        let limit = Int(configuration.clock.now.components.seconds) - Self.orphanAge
        for folder in (try? Directory.names(in: root)) ?? [] {
            guard Directory.isDirectory(root + "/" + folder) else {
                orphans.append(root + "/" + folder)
                continue
            }
            for name in (try? Directory.names(in: root + "/" + folder)) ?? [] {
                let file = folder + "/" + name
                guard !files.contains(file) else { continue }
                if let id = DiskLayout.entryID(file: name, in: folder) {
                    guard try isFree(id, for: format) else { continue }
                    if let changed = FileTree.changed(root + "/" + file), changed > limit { continue }
                }
                orphans.append(root + "/" + file)
            }
        }
        return orphans.sorted()
    }

    /// Whether no other format has an entry with this identifier whose body is a file.
    private func isFree(_ id: Int64, for format: DiskFormat) throws(CacheError) -> Bool {
        let owner = try withReader { (reader) throws(DatabaseError) in try reader.format(ofFile: id) }
        return owner.map { $0 == nil || $0 == format.id } ?? true
    }

    private func remove(_ report: DiskCache.VerifyReport, _ format: DiskFormat) throws(CacheError) {
        for orphan in report.orphans { FileTree.remove(orphan) }
        let keys = report.damaged.map { EntryKey($0.key, format) }
        try onWriterAndWait { engine throws(CacheError) in engine.repair(keys) }
        guard !report.database.isEmpty, let generation = try generation() else { return }
        try recover(generation, because: report.database.joined(separator: "; "))
    }

    /// Removes entries that do not fit their checksums, and puts files in their places. On the writing thread.
    func repair(_ keys: [EntryKey]) {
        do throws(CacheError) {
            try withProcessLock { () throws(CacheError) in
                let writer = try writerLocked()
                guard let generation = state.withLock({ $0.generation }) else { return }
                do {
                    try writer.transaction {
                        for key in keys { try repair(key, writer: writer, generation: generation) }
                    }
                } catch {
                    throw Self.error(error, path: layout.root)
                }
                finish(writer)
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
