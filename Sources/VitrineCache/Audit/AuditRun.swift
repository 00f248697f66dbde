#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// One audit on its way through a cache.
struct AuditRun<Value: CacheableValue>: Sendable {
    let cache: Cache<Value>
    let policy: AuditPolicy
    let isDryRun: Bool
    let sparesMemory: Bool
    let progress: (@Sendable (AuditProgress) -> Void)?

    /// What is known of an entry that may have to go for room.
    private struct Candidate {
        let entry: AuditEntry
        let area: FormatArea<Value>
    }

    /// Runs the audit.
    func result() async -> Result<AuditReport, CacheError> {
        do throws(CacheError) {
            return .success(try await run())
        } catch {
            return .failure(error)
        }
    }

    /// What a cancelled audit throws: the last key it looked at, or an empty one.
    static func cancelled(after key: CacheKey?) -> CacheError { .cancelled(key: key ?? CacheKey(parts: [String]())) }

    private func run() async throws(CacheError) -> AuditReport {
        cache.passOnMemoryHits()
        let areas = cache.formats.all
        var total = 0
        for area in areas {
            await area.outbox.settle()
            total += try await area.disk.count
        }
        var report = AuditReport()
        var candidates: [Candidate] = []
        let started = cache.configuration.clock.now
        for area in areas {
            try await examine(area, started: started, total: total, &report, &candidates)
        }
        if let target = policy.target { await shrink(to: target, candidates, &report) }
        report.foreignFiles = await foreignFiles()
        return report
    }

    private func examine(
        _ area: FormatArea<Value>, started: Duration, total: Int, _ report: inout AuditReport,
        _ candidates: inout [Candidate]
    ) async throws(CacheError) {
        let moment = AuditPolicy.Moment(now: started)
        var last: CacheKey?
        while true {
            if Task.isCancelled { throw Self.cancelled(after: last) }
            let page = try await cache.page(of: area, after: last, limit: Cache<Value>.auditPage)
            guard let end = page.last?.key else { return }
            last = end
            // Policies are anyone's code and may block.
            let verdicts = await cache.configuration.executor.run { [policy] in
                page.map { policy.removes($0, moment) }
            }
            var doomed: [AuditEntry] = []
            for (entry, isDoomed) in zip(page, verdicts) {
                report.examined += 1
                if sparesMemory, entry.isInMemory {
                    if isDoomed { report.spared += 1 }
                    keep(entry, &report)
                } else if isDoomed {
                    doomed.append(entry)
                } else {
                    keep(entry, &report)
                    if policy.target != nil { candidates.append(Candidate(entry: entry, area: area)) }
                }
            }
            for entry in doomed { await remove(entry, from: area, &report) }
            progress?(AuditProgress(examined: report.examined, total: total, removed: report.removed))
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
            let ticket = cache.register.begin(slot)
            guard let info = try? await area.disk.info(forKey: entry.key) else { return }
            guard info.created == entry.created, !(sparesMemory && area.memory.contains(slot)) else {
                return keep(entry, &report)
            }
            await area.outbox.send(.remove, forKey: entry.key) { send in
                let sent = ticket.ifValid { (area.memory.remove(slot), send()) }
                return sent?.1 ?? true
            }
            guard ticket.isValid else { return keep(entry, &report) }
        }
        report.removed += 1
        report.removedBytes += entry.size
    }

    /// Removes what was not used for the longest time.
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
        let (directory, removes) = (cache.directory, !isDryRun)
        return await cache.configuration.executor.run {
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
