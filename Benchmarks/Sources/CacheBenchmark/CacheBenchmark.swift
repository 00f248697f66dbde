import ArgumentParser

/// Measures the cache module against its peers.
@main
struct CacheBenchmark: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "CacheBenchmark", abstract: "Measures Vitrine's caches against their peers.",
        subcommands: [MemoryBenchmark.self, TracesBenchmark.self, GroupsBenchmark.self])
}
