import ArgumentParser
import CPeers
import Foundation
import VitrineCore
import VitrineImaging

/// One large image on one processor and on all that are idle: wall-clock time and processor time, helpers included.
struct LatencyBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "latency")

    @Option(help: "Longest side, in pixels.")
    var size = 400

    @Option(help: "Decodes of each kind; the median of wall-clock times and the mean of processor times are printed.")
    var rounds = 15

    @Argument(help: "Pictures.")
    var files: [String]

    func run() async throws {
        let all = ProcessorCount.active
        print("| picture | threads | wall ms | CPU ms | wall ratio | CPU ratio |")
        print("|---|---:|---:|---:|---:|---:|")
        for file in files {
            var times: [Int: (wall: [Double], cpu: [Double])] = [1: ([], []), all: ([], [])]
            for round in 0...rounds {
                for threads in [1, all] {
                    IdleCores.shared.limit(to: threads)
                    let (wall, cpu) = try measure(file)
                    // The first ones start helpers and fill caches.
                    guard round > 0 else { continue }
                    times[threads]?.wall.append(wall)
                    times[threads]?.cpu.append(cpu)
                }
            }
            let one = times[1].map { (median($0.wall), mean($0.cpu)) } ?? (.nan, .nan)
            for threads in Set([1, all]).sorted() {
                let now = times[threads].map { (median($0.wall), mean($0.cpu)) } ?? (.nan, .nan)
                print(
                    "| \(threads == 1 ? URL(filePath: file).lastPathComponent : "") | \(threads) "
                        + String(
                            format: "| %.1f | %.1f | %.2f | %.2f |", now.0, now.1, now.0 / one.0, now.1 / one.1))
            }
        }
    }

    private func measure(_ file: String) throws -> (wall: Double, cpu: Double) {
        var resizer = ImageResizer.fit(width: size, height: size)
        resizer.allowsUpscaling = false
        let (start, before) = (ContinuousClock.now, processorTime())
        _ = try ImageDecoder().decode(.file(file), at: resizer)
        return ((ContinuousClock.now - start) / .milliseconds(1), processorTime() - before)
    }

    /// The system counts the time of other processes in steps of several milliseconds.
    private func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(max(1, values.count)) }

    /// Milliseconds of this process and, on Linux, of its helpers.
    private func processorTime() -> Double {
        var (own, peak) = (0.0, 0.0)
        peers_usage(&own, &peak)
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        let tick = 1000 / Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
        return processes.reduce(own) { sum, name in
            guard Int32(name) != nil, let stat = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
                let end = stat.lastIndex(of: ")")
            else { return sum }
            let fields = stat[end...].split(separator: " ")
            guard fields.count > 13, Int32(fields[2]) == getpid(), let user = Double(fields[12]),
                let system = Double(fields[13])
            else { return sum }
            return sum + (user + system) * tick
        }
    }
}
