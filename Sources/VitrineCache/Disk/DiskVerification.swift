import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A search for damage in the entries of a format.
struct DiskVerification {
    /// Files without an entry are left alone for an hour: another process may be about to write its row. In seconds.
    private static let orphanAge = 3600

    private let engine: DiskEngine
    private let format: DiskFormat
    private var report = DiskCache.VerifyReport()
    /// The files of entries.
    private var files: Set<String> = []

    init(of format: DiskFormat, in engine: DiskEngine) {
        self.engine = engine
        self.format = format
    }

    private var generations: GenerationStore { engine.generations }

    /// Reads every entry.
    ///
    /// - Parameter removingDamage: Whether to remove damaged entries, and files without an entry.
    mutating func run(removingDamage: Bool) throws(CacheError) -> DiskCache.VerifyReport {
        try engine.waitForWrites()
        let damage = try generations.withReader { (reader) throws(DatabaseError) in try reader.findDamage() }
        report.database = damage ?? []
        var last: CacheKey?
        while true {
            let after = last.map { EntryKey($0, format).id }
            let page = try generations.withReader { (reader) throws(DatabaseError) in
                try reader.rows(of: format.id, after: after, limit: 256)
            }
            guard let page, let end = page.last else { break }
            for (key, row) in page {
                try verifyEntry(EntryKey(key, format), row: row)
            }
            last = end.key
        }
        report.orphans = try orphans()
        if removingDamage { try removeDamage() }
        return report
    }

    private mutating func verifyEntry(_ key: EntryKey, row: DiskReader.Row) throws(CacheError) {
        let file = DiskLayout.fileName(key.id)
        if row.isFile { files.insert(file) }
        let found = try generations.withReader { (reader) throws(DatabaseError) in try reader.read(key) }
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
    private func orphans() throws(CacheError) -> [String] {
        guard let generation = try generations.generation() else { return [] }
        let root = generation.path + "/files"
        var orphans: [String] = []
        let limit = Int(engine.configuration.clock.now.components.seconds) - Self.orphanAge
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
        let owner = try generations.withReader { (reader) throws(DatabaseError) in try reader.format(ofFile: id) }
        return owner.map { $0 == nil || $0 == format.id } ?? true
    }

    private func removeDamage() throws(CacheError) {
        for orphan in report.orphans { FileTree.remove(orphan) }
        let keys = report.damaged.map { EntryKey($0.key, format) }
        try engine.onWriterAndWait { engine throws(CacheError) in engine.repair(keys) }
        guard !report.database.isEmpty, let generation = try generations.generation() else { return }
        try generations.recover(generation, because: report.database.joined(separator: "; "))
    }
}
