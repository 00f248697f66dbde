import VitrineCore
import VitrineDatabase

/// Looking for damage.
extension DiskEngine {
    /// Files without an entry are left alone for an hour: another process may be about to write its row. In seconds.
    private static let litterAge = 3600

    func verify(removingDamage: Bool) throws(CacheError) -> DiskCache.VerifyReport {
        try settle()
        var report = DiskCache.VerifyReport()
        let damage = try withReader { (reader) throws(DatabaseError) in try reader.findDamage() }
        report.database = damage ?? []
        var last: CacheKey?
        var files: Set<String> = []
        while true {
            let after = last.map { Int64(bitPattern: $0.hash) }
            let page = try withReader { (reader) throws(DatabaseError) in try reader.rows(after: after, limit: 256) }
            guard let page, let end = page.last else { break }
            for (key, row) in page {
                try verify(key, row, &report, &files)
            }
            last = end.key
        }
        report.orphans = try orphans(besides: files)
        if removingDamage { try remove(report) }
        return report
    }

    private func verify(
        _ key: CacheKey, _ row: DiskReader.Row, _ report: inout DiskCache.VerifyReport, _ files: inout Set<String>
    ) throws(CacheError) {
        let file = DiskLayout.fileName(Int64(bitPattern: key.hash))
        if row.isFile { files.insert(file) }
        let found = try withReader { (reader) throws(DatabaseError) in try reader.read(key) }
        switch found {
        case .row(let row):
            if row.isSuccessor { files.insert(BodyFile.successor(of: file)) }
            report.entries += 1
            report.bytes += ByteCount(row.body.count)
        case .damaged:
            let reason = row.isFile ? "its file is missing or damaged" : "it does not fit its checksum"
            report.damaged.append(DiskCache.VerifyReport.Damage(key: key, reason: reason))
        case .nothing, .none: break
        }
    }

    /// Files below `files/` that no entry has, if they are old enough or no file of ours.
    private func orphans(besides files: Set<String>) throws(CacheError) -> [String] {
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
                let digits = name.hasSuffix(BodyFile.successorSuffix) ? name.dropLast(4) : name[...]
                let isOurs = name.hasPrefix(folder) && digits.utf8.count == 16 && UInt64(digits, radix: 16) != nil
                if isOurs, let changed = FileTree.changed(root + "/" + file), changed > limit { continue }
                orphans.append(root + "/" + file)
            }
        }
        return orphans.sorted()
    }

    private func remove(_ report: DiskCache.VerifyReport) throws(CacheError) {
        for orphan in report.orphans { FileTree.remove(orphan) }
        let keys = report.damaged.map(\.key)
        try onWriterAndWait { engine throws(CacheError) in engine.repair(keys) }
        guard !report.database.isEmpty, let generation = try generation() else { return }
        try recover(generation, because: report.database.joined(separator: "; "))
    }

    /// Removes entries that do not fit their checksums, and puts files in their places. On the writing thread.
    func repair(_ keys: [CacheKey]) {
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
                sizes.send(writer.totals.bytes)
            }
        } catch {
            log.error("disk cache could not remove a damaged entry", metadata: ["error": "\(error)"])
        }
    }

    private func repair(
        _ key: CacheKey, _ writer: DiskWriter, _ generation: Generation
    ) throws(DatabaseError) {
        // Nobody writes now: what does not fit is damaged.
        let reader = try generation.takeReader()
        let found = try reader.read(key)
        generation.giveBack(reader)
        if case .row(let row) = found, row.isSuccessor {
            BodyFile.promoteSuccessor(of: writer.bodyPath(Int64(bitPattern: key.hash)))
        }
        guard case .damaged = found else { return }
        guard let stored = try writer.find(Int64(bitPattern: key.hash)) else { return }
        try writer.delete(stored)
        counters.add { $0.damaged += 1 }
        log.error("disk cache removed a damaged entry", metadata: ["key": "\(key)"])
    }
}
