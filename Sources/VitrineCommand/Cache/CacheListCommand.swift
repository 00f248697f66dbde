import ArgumentParser
import VitrineCache
import VitrineCore

/// `vitrine cache list`: one line per entry.
struct CacheListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the entries: size, last use, format, key.")

    @OptionGroup var selection: CacheSelection

    @Option(help: "Only entries of this format.")
    var format: String?

    @Option(help: "At most so many entries.")
    var limit: Int?

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit is not negative") }
    }

    func run() async throws {
        try await reportingFailures {
            var remaining = limit ?? .max
            for cache in try await selection.all() {
                for name in await cache.storedFormats where format == nil || name.rawValue == format {
                    var last: CacheKey?
                    while remaining > 0 {
                        let page = try await cache.entries(of: name, after: last, limit: min(1000, remaining))
                        guard let end = page.last else { break }
                        for entry in page { EntryLine(cache.name, entry).print(asJSON: selection.json) }
                        remaining -= page.count
                        last = end.key
                    }
                }
            }
        }
    }
}

/// One entry as a line of text or of JSON.
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
        format = entry.format.rawValue
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
            // Keys may hold anything, also what would move the cursor.
            let readable = parts.map { $0.debugDescription }.joined(separator: " ")
            Output.row("\(ByteCount(bytes))  \(lastAccess)  \(cache)/\(format)  \(readable)")
        }
    }
}
