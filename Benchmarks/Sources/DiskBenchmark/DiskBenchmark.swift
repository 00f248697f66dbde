import VitrineCore

/// One contender in this process; `Scripts/disk-benchmark` runs them alternately and makes the table.
@main
enum DiskBenchmark {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count >= 4, let number = Int(words[3]) else {
            return print("usage: DiskBenchmark CONTENDER-PHASE DIRECTORY ENTRIES|CAPACITY [TRACE EVICTION|BYTES]")
        }
        let directory = words[2]
        switch words[1] {
        case "files": FileBenchmark.run(directory, entries: number)
        case "files-fill": FileBenchmark.fill(directory, entries: number)
        case "files-open": FileBenchmark.open(directory)
        // On a thread of its own, as blocking work is to be; the awaiting phase too.
        case "cache": try await Task.detached { try await CacheBenchmark.run(directory, entries: number) }.value
        case "cache-fill": try CacheBenchmark.fill(directory, entries: number)
        case "cache-fulls": try await Task.detached { try await CacheBenchmark.fulls(directory, entries: number) }.value
        case "cache-gets": try CacheBenchmark.gets(directory, entries: number)
        case "cache-gets-ro": try CacheBenchmark.gets(directory, entries: number, readOnly: true)
        case "files-gets": FileBenchmark.gets(directory, entries: number)
        case "cache-open": try CacheBenchmark.open(directory)
        case "cache-memory": try CacheBenchmark.memoryPerEntry(directory, entries: number)
        case "cache-tags":
            let size = words.count > 4 ? Int(words[4]) ?? 0 : 1000
            try await Task.detached { try await TagBenchmark.run(directory, entries: number, size: size) }.value
        case "cache-scale":
            let size = words.count > 4 ? Int(words[4]) ?? 0 : 1000
            try await Task.detached { try await ScaleBenchmark.run(directory, entries: number, size: size) }.value
        case "cache-replay": try Replay.run(directory, trace: words[4], capacity: number, eviction: words[5])
        default: print("error unknown \(words[1])")
        }
    }
}
