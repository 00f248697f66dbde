import ArgumentParser
import VitrineCache
import VitrineCore

/// `vitrine cache audit`: removes entries by age, by last access, or to reach a size.
struct CacheAuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Removes entries by age, by last access, or until the rest fits.",
        discussion: """
            Ages are 90s, 15m, 12h, 30d or 4w; a number without a unit is in days. Sizes are 64k, 500MB or 1.5GiB. At \
            least one criterion is needed.
            """)

    @OptionGroup var selection: CacheSelection
    @OptionGroup var lines: JSONOption

    @Option(help: ArgumentHelp("Remove entries stored longer ago than this. (default: off)", valueName: "age"))
    var olderThan: AgeArgument?

    @Option(help: ArgumentHelp("Remove entries not accessed for this time. (default: off)", valueName: "age"))
    var accessedBefore: AgeArgument?

    @Option(
        help: ArgumentHelp(
            "Remove the least recently used entries until each cache has this size. (default: off)",
            valueName: "bytes"))
    var shrinkTo: ByteCountArgument?

    @Flag(help: "Remove expired entries.")
    var expired = false

    @Flag(help: "Remove nothing, and list the entries that would be removed.")
    var dryRun = false

    private struct Line: Encodable {
        let cache: String
        let examined: Int
        let removed: Int
        let removedBytes: Int
        let kept: Int
        let keptBytes: Int
        let dryRun: Bool
    }

    private var policies: [AuditPolicy] {
        var policies: [AuditPolicy] = []
        if let olderThan { policies.append(.olderThan(olderThan.duration)) }
        if let accessedBefore { policies.append(.notAccessed(for: accessedBefore.duration)) }
        if let shrinkTo { policies.append(.shrinking(to: shrinkTo.size)) }
        if expired { policies.append(.expired) }
        return policies
    }

    func validate() throws {
        if policies.isEmpty {
            throw ValidationError("audit needs --older-than, --accessed-before, --shrink-to or --expired")
        }
    }

    func run() async throws {
        try await reportingFailures {
            for cache in try await selection.all() {
                let report = try await cache.audit(AuditPolicy(policies), dryRun: dryRun)
                try await cache.flush()
                for entry in report.entries { EntryLine(cache.name, entry).print(asJSON: lines.json) }
                let line = Line(
                    cache: cache.name, examined: report.examined, removed: report.removed,
                    removedBytes: report.removedBytes.bytes, kept: report.kept, keptBytes: report.keptBytes.bytes,
                    dryRun: dryRun)
                if lines.json {
                    Output.json(line)
                } else {
                    let verb = dryRun ? "would remove" : "removed"
                    Output.row(
                        "\(cache.name)  \(verb) \(line.removed) entries, \(report.removedBytes)"
                            + "  kept \(line.kept), \(report.keptBytes)")
                }
            }
        }
    }
}

/// `vitrine cache verify`: checks every entry for damage.
struct CacheVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Reads every entry, and reports or removes damaged ones.",
        discussion: "The exit status is 1 if it found damage, also if --remove has repaired it.")

    @OptionGroup var selection: CacheSelection
    @OptionGroup var lines: JSONOption

    @Flag(help: "Remove damaged entries, and files without an entry.")
    var remove = false

    private struct Line: Encodable {
        let cache: String
        let format: String
        let entries: Int
        let bytes: Int
        let damaged: [Damage]
        let orphans: [String]
        let database: [String]
        let removed: Bool
    }

    private struct Damage: Encodable {
        let key: String
        let reason: String
    }

    func run() async throws {
        try await reportingFailures {
            var isSound = true
            for cache in try await selection.all() {
                for format in await cache.storedFormats {
                    let report = try await cache.verify(format, removingDamage: remove)
                    isSound = isSound && report.isSound
                    print(report, of: cache.name, format)
                }
            }
            if !isSound { throw ExitCode(1) }
        }
    }

    private func print(_ report: DiskCache.VerifyReport, of cache: String, _ format: FormatName) {
        if lines.json {
            let line = Line(
                cache: cache, format: format.description, entries: report.entries, bytes: report.bytes.bytes,
                damaged: report.damaged.map { Damage(key: $0.key.identity, reason: $0.reason) },
                orphans: report.orphans, database: report.database, removed: remove)
            Output.json(line)
            return
        }
        let state = report.isSound ? "sound" : remove ? "damaged, removed" : "damaged"
        Output.row("\(cache)  \(format)  \(report.entries) entries  \(report.bytes)  \(state)")
        for damage in report.damaged { Diagnostics.write("\(damage.key.parts): \(damage.reason)") }
        for file in report.orphans { Diagnostics.write("\(file): the file has no entry") }
        for finding in report.database { Diagnostics.write("\(cache)/\(format): \(finding)") }
    }
}
