import ArgumentParser
import VitrineCache
import VitrineCore

/// `vitrine cache stats`: one line per cache and format.
struct CacheStatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Says how many entries each cache has in each format, and their bytes.")

    @OptionGroup var selection: CacheSelection

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
                        cache: cache.name, format: format.rawValue, entries: try await cache.count(of: format),
                        bytes: try await cache.size(of: format).bytes)
                    if selection.json {
                        Output.json(line)
                    } else {
                        Output.row("\(line.cache)  \(line.format)  \(line.entries) entries  \(ByteCount(line.bytes))")
                    }
                }
            }
        }
    }
}
