import ArgumentParser
import Foundation

/// Hit ratios on recorded requests beside other policies.
struct TracesBenchmark: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "traces", abstract: "Replays recorded requests and tells how many hit.")

    @Argument(help: "The folder with the traces, .bin.gz files.") var folder: String

    private static let names = ["LRU", "MemoryCache", "SIEVE", "S3-FIFO as published", "W-TinyLFU", "Belady"]

    func run() throws {
        let names = Self.names
        let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        let traces = try files.filter { $0.hasSuffix(".bin.gz") }.map {
            try RequestTrace(URL(filePath: folder).appending(path: $0))
        }
        print("| trace | size | \(names.joined(separator: " | ")) |")
        print("|---|---:|" + String(repeating: "---:|", count: names.count))
        var gains = [[Double]](repeating: [], count: names.count)
        for trace in traces {
            for share in [0.005, 0.01, 0.02, 0.05, 0.1, 0.2] {
                let ratios = measure(trace, capacity: max(1, Int(Double(trace.footprint) * share)))
                for index in ratios.indices { gains[index].append(ratios[index] - ratios[0]) }
                let cells = ratios.map { text($0, 1) }.joined(separator: " | ")
                print("| \(trace.name) | \(text(share * 100, 1)) % | \(cells) |")
            }
        }
        print("\n| policy | mean against LRU | worst | best |\n|---|---:|---:|---:|")
        for index in names.indices.dropFirst() {
            let values = gains[index]
            let mean = values.reduce(0, +) / Double(values.count)
            print("| \(names[index]) | \(text(mean, 2)) | \(text(values.min() ?? 0, 2)) |",
                "\(text(values.max() ?? 0, 2)) |")
        }
    }

    private func measure(_ trace: RequestTrace, capacity: Int) -> [Double] {
        [
            LeastRecentlyUsed.hitRatio(trace, capacity: capacity),
            VitrinePolicy.hitRatio(trace, capacity: capacity),
            Sieve.hitRatio(trace, capacity: capacity),
            PublishedS3FIFO.hitRatio(trace, capacity: capacity),
            WindowTinyLFU.hitRatio(trace, capacity: capacity),
            Belady.hitRatio(trace, capacity: capacity),
        ]
    }
}
