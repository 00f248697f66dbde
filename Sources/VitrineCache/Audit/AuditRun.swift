public import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension ValueCache {
    /// Examines every entry of every registered format on disk, and removes those that a policy selects.
    ///
    /// The cache can be used meanwhile. Entries stored after the start of the audit stay. Audits of one cache run one
    /// after the other in the order of the calls, at low priority.
    ///
    /// - Parameters:
    ///   - policy: The entries to remove; several policies as an array.
    ///   - dryRun: Whether to remove nothing and list the entries instead.
    ///   - sparesMemory: Whether to keep entries that are in memory or alive elsewhere. Default true.
    ///   - progress: Called with the numbers so far after each page of entries, on any thread.
    /// - Returns: The numbers of examined, removed and kept entries.
    /// - Throws: ``CacheError/database(_:)`` or ``CacheError/file(_:)`` if entries cannot be listed. If the task is
    ///   cancelled, ``CacheError/cancelled(key:)`` after the current page; entries removed until then stay removed.
    @discardableResult
    public func audit(
        _ policy: AuditPolicy, dryRun: Bool = false, sparesMemory: Bool = true,
        progress: (@Sendable (AuditReport) -> Void)? = nil
    ) async throws(CacheError) -> AuditReport {
        try await AuditRun(
            storage: storage, policy: policy, isDryRun: dryRun, sparesMemory: sparesMemory, progress: progress
        ).result(in: audits)
    }

    /// A page of a format's entries as audits see them, in an order of their own that stays the same.
    ///
    /// - Parameters:
    ///   - format: Whose entries.
    ///   - key: The last key of the page before; nil for the first page.
    ///   - limit: The most entries a page has. Default 1000.
    public func entries(
        of format: FormatName = .original, after key: CacheKey? = nil, limit: Int = 1000
    ) async throws(CacheError) -> [AuditEntry] {
        let area = try storage.area(format)
        storage.reportMemoryHits()
        await area.pendingWrites.waitUntilIdle()
        return try await storage.page(of: area, after: key, limit: limit)
    }
}

/// One audit on its way through a cache.
struct AuditRun<Value: CacheableValue>: Sendable {
    let storage: EntryStorage<Value>
    let policy: AuditPolicy
    let isDryRun: Bool
    let sparesMemory: Bool
    let progress: (@Sendable (AuditReport) -> Void)?

    /// An entry that may be removed to reach the target size.
    private struct Candidate {
        let entry: AuditEntry
        let area: FormatArea<Value>
    }

    /// Entries are listed so many at a time; between pages others get their turn.
    private static var pageSize: Int { 500 }

    /// Runs the audit after those that wait in a queue.
    func result(in queue: WorkQueue) async throws(CacheError) -> AuditReport {
        // A task made here would run a page before it learns that nobody wants it.
        if Task.isCancelled { throw Self.cancelled(after: nil) }
        let task = Task(priority: .utility) { () -> Result<AuditReport, CacheError> in
            do {
                return try await queue.run {
                    do throws(CacheError) {
                        return .success(try await run())
                    } catch {
                        return .failure(error)
                    }
                }
            } catch {
                // Only an audit that has not begun ends here.
                return .failure(Self.cancelled(after: nil))
            }
        }
        return try await withTaskCancellationHandler { await task.value } onCancel: { task.cancel() }.get()
    }

    /// Returns the error of a cancelled audit, with the last examined key or an empty one.
    private static func cancelled(after key: CacheKey?) -> CacheError {
        .cancelled(key: key ?? CacheKey(parts: [String]()))
    }

    private func run() async throws(CacheError) -> AuditReport {
        storage.reportMemoryHits()
        let areas = storage.formats.all
        var total = 0
        for area in areas {
            await area.pendingWrites.waitUntilIdle()
            total += try await area.disk.count
        }
        var report = AuditReport()
        report.total = total
        var candidates: [Candidate] = []
        let started = storage.configuration.clock.now
        for area in areas {
            try await examine(area, started: started, report: &report, candidates: &candidates)
        }
        if let target = policy.target { await shrink(to: target, candidates, &report) }
        report.foreignFiles = await foreignFiles()
        return report
    }

    private func examine(
        _ area: FormatArea<Value>, started: Duration, report: inout AuditReport,
        candidates: inout [Candidate]
    ) async throws(CacheError) {
        let moment = AuditPolicy.Moment(now: started)
        var last: CacheKey?
        while true {
            if Task.isCancelled { throw Self.cancelled(after: last) }
            let page = try await storage.page(of: area, after: last, limit: Self.pageSize)
            guard let end = page.last?.key else { return }
            last = end
            // Policies are anyone's code and may block.
            let verdicts = await storage.configuration.executor.run { [policy] in
                page.map { policy.removes($0, moment) }
            }
            var removals: [AuditEntry] = []
            for (entry, isRemoved) in zip(page, verdicts) {
                report.examined += 1
                if sparesMemory, entry.isInMemory {
                    if isRemoved { report.spared += 1 }
                    keep(entry, &report)
                } else if isRemoved {
                    removals.append(entry)
                } else {
                    keep(entry, &report)
                    if policy.target != nil { candidates.append(Candidate(entry: entry, area: area)) }
                }
            }
            for entry in removals { await remove(entry, from: area, &report) }
            progress?(report)
            await Task.yield()
        }
    }

    private func keep(_ entry: AuditEntry, _ report: inout AuditReport) {
        report.kept += 1
        report.keptBytes += entry.size
    }

    /// Removes an entry, unless it was stored anew since it was listed.
    private func remove(_ entry: AuditEntry, from area: FormatArea<Value>, _ report: inout AuditReport) async {
        if isDryRun {
            report.entries.append(entry)
        } else {
            // Void as soon as anyone stores or removes the entry.
            let slot = area.slot(entry.key)
            let ticket = storage.register.begin(slot)
            guard let info = try? await area.disk.info(forKey: entry.key) else { return }
            guard info.created == entry.created, !(sparesMemory && area.memory.contains(slot)) else {
                return keep(entry, &report)
            }
            await area.pendingWrites.send(.remove, forKey: entry.key) { send in
                let sent = ticket.ifValid { (area.memory.remove(slot), send()) }
                return sent?.1 ?? true
            }
            guard ticket.isValid else { return keep(entry, &report) }
        }
        report.removed += 1
        report.removedBytes += entry.size
    }

    /// Removes the least recently accessed entries.
    private func shrink(to target: ByteCount, _ candidates: [Candidate], _ report: inout AuditReport) async {
        for candidate in candidates.sorted(by: { $0.entry.lastAccess < $1.entry.lastAccess }) {
            guard report.keptBytes > target, !Task.isCancelled else { return }
            report.kept -= 1
            report.keptBytes -= candidate.entry.size
            await remove(candidate.entry, from: candidate.area, &report)
        }
    }

    /// Files beside the layouts of this and other releases: nothing that this cache has made.
    private func foreignFiles() async -> [String] {
        let (directory, removes) = (storage.directory, !isDryRun)
        return await storage.configuration.executor.run {
            var found = Self.foreignFiles(in: directory)
            // Each format had a directory once.
            for name in (try? Directory.names(in: directory)) ?? [] where !DiskLayout.isLayout(name) {
                found += Self.foreignFiles(in: FilePath.join(directory, name))
            }
            if removes { for path in found { unlink(path) } }
            return found.sorted()
        }
    }

    private static func foreignFiles(in directory: String) -> [String] {
        let names = (try? Directory.names(in: directory)) ?? []
        return names.filter { $0 != "CACHEDIR.TAG" }.map { FilePath.join(directory, $0) }
            .filter { !Directory.isDirectory($0) }
    }
}
