// Measures stores of files against the bare calls of the system. Contenders run alternately, each block in a process
// of its own; the tables give medians of the blocks.
import Foundation

@main
enum StoreBenchmark {
    static func main() async throws {
        let words = CommandLine.arguments
        switch words.dropFirst().first {
        case "block" where words.count == 5:
            guard let contender = Contender(rawValue: words[2]), let count = Int(words[4]) else { exit(64) }
            try await contender.run(words[3], count: count)
        case "run" where words.count == 5:
            guard let count = Int(words[3]), let rounds = Int(words[4]) else { exit(64) }
            try Report(directory: words[2], count: count, rounds: rounds).run()
        default:
            print("usage: StoreBenchmark run DIRECTORY SAVES-IN-A-BLOCK ROUNDS")
            exit(64)
        }
    }
}

/// What a block took.
struct Measurement {
    /// Microseconds for each file, on the wall and of all processors.
    var wall: Double
    var cpu: Double
    /// The most memory, in megabytes.
    var peak: Double

    init?(_ line: String) {
        let words = line.split(separator: " ").compactMap { Double($0) }
        guard words.count == 3 else { return nil }
        (wall, cpu, peak) = (words[0], words[1], words[2])
    }

    /// Measures a body and prints it.
    static func print(count: Int, _ body: () async throws -> Void) async rethrows {
        let wall = microseconds(CLOCK_MONOTONIC), cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID)
        try await body()
        let spent = (microseconds(CLOCK_MONOTONIC) - wall, microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu)
        Swift.print(spent.0 / Double(count), spent.1 / Double(count), peakMegabytes())
    }

    private static func microseconds(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }

    private static func peakMegabytes() -> Double {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
        return (Double(line.filter(\.isNumber)) ?? 0) / 1024
    }
}
