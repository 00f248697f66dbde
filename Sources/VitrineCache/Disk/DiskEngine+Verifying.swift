import VitrineCore
import VitrineDatabase

/// Looking for damage.
extension DiskEngine {
    /// Files without an entry are left alone for an hour: another process may be about to write its row. In seconds.
    private static let litterAge = 3600

    func verify(_ format: DiskFormat, removingDamage: Bool) throws(CacheError) -> DiskCache.VerifyReport {
        try settle()
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
                try verify(EntryKey(key, format), row, &report, &files)
            }
            last = end.key
        }
        report.orphans = try orphans(of: format, besides: files)
        if removingDamage { try remove(report, format) }
        return report
    }

    private func verify(
        _ key: EntryKey, _ row: DiskReader.Row, _ report: inout DiskCache.VerifyReport, _ files: inout Set<String>
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
        case .nothing, .none: break
        }
    }

    /// Files below `files/` that no entry of any format has, if they are old enough or no file of ours.
    private func orphans(of format: DiskFormat, besides files: Set<String>) throws(CacheError) -> [String] {
        guard let generation = try generation() else { return [] }
        let root = generation.path + "/files"
        var orphans: [String] = []
        let limit = Int(configuration.clock.now.components.seconds) - Self.litterAge
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
                        for key in keys { try repair(key, writer, generation) }
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
        _ key: EntryKey, _ writer: DiskWriter, _ generation: Generation
    ) throws(DatabaseError) {
        // Nobody writes now: what does not fit is damaged.
        let reader = try generation.takeReader()
        let found = try reader.read(key)
        generation.giveBack(reader)
        if case .row(let row) = found, row.isSuccessor {
            BodyFile.promoteSuccessor(of: writer.bodyPath(key.id))
        }
        guard case .damaged = found else { return }
        guard let stored = try writer.find(key.id) else { return }
        try writer.delete(stored)
        key.format.counters.add { $0.damaged += 1 }
        log.error("disk cache removed a damaged entry", metadata: ["key": "\(key.key)"])
    }
}
