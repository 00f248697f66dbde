import ArgumentParser
import VitrineCache
import VitrineCore

/// `vitrine cache stats`: one line per cache and format.
struct CacheStatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Prints the number and size of entries, for each cache and format.")

    @OptionGroup var selection: CacheSelection
    @OptionGroup var lines: JSONOption

    private struct Line: Encodable {
        let cache: String
        let format: String
        let entries: Int
        let bytes: Int
    }

    func run() async throws {
        try await reportingFailures {
            for cache in try await selection.all() {
                for format in await cache.storedFormats {
                    let line = Line(
                        cache: cache.name, format: format.description, entries: try await cache.count(of: format),
                        bytes: try await cache.size(of: format).bytes)
                    if lines.json {
                        Output.json(line)
                    } else {
                        Output.row("\(line.cache)  \(line.format)  \(line.entries) entries  \(ByteCount(line.bytes))")
                    }
                }
            }
        }
    }
}

/// `vitrine cache list`: one line per entry.
struct CacheListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists entries with size, last access, format and key.")

    @OptionGroup var selection: CacheSelection
    @OptionGroup var lines: JSONOption

    @Option(help: "List only entries of this format. (default: all formats)")
    var format: String?

    @Option(help: "Largest number of entries to list. (default: no limit)")
    var limit: Int?

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit is a number from 0") }
    }

    func run() async throws {
        try await reportingFailures {
            var remaining = limit ?? .max
            for cache in try await selection.all() {
                for name in await cache.storedFormats where format == nil || name.description == format {
                    var last: CacheKey?
                    while remaining > 0 {
                        let page = try await cache.entries(of: name, after: last, limit: min(1000, remaining))
                        guard let end = page.last else { break }
                        for entry in page { EntryLine(cache.name, entry).print(asJSON: lines.json) }
                        remaining -= page.count
                        last = end.key
                    }
                }
            }
        }
    }
}

/// One entry, as a line of text or JSON.
struct EntryLine: Encodable {
    let cache: String
    let format: String
    let key: String
    let parts: [String]
    let bytes: Int
    let created: String
    let lastAccess: String
    let expires: String?

    init(_ cache: String, _ entry: AuditEntry) {
        self.cache = cache
        format = entry.format.description
        key = entry.key.identity
        parts = entry.key.parts
        bytes = entry.size.bytes
        created = CacheMoment.text(entry.created)
        lastAccess = CacheMoment.text(entry.lastAccess)
        expires = entry.expires.map(CacheMoment.text)
    }

    func print(asJSON: Bool) {
        if asJSON {
            Output.json(self)
        } else {
            // Keys can contain control characters.
            let readable = parts.map { $0.debugDescription }.joined(separator: " ")
            Output.row("\(ByteCount(bytes))  \(lastAccess)  \(cache)/\(format)  \(readable)")
        }
    }
}
