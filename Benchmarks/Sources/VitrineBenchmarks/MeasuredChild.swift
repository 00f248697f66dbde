import ArgumentParser
import CPeers
import Foundation
import VitrineImaging

/// What one process measured of itself.
struct Measurement: Codable, Sendable {
    /// Milliseconds of processor time per round over all files, user and system, workers included.
    var cpu: Double
    /// Largest resident memory of the process, in megabytes; of its largest worker beside it.
    var peak: Double
    var childPeak: Double
}

/// Runs one contender in this process and prints the measurement as JSON.
struct MeasuredChild: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "child", shouldDisplay: false)

    @Option var contender: String
    @Option var size: Int
    @Option var minimumSeconds = 0.4
    @Argument var files: [String]

    func run() async throws {
        guard let contender = Contender(rawValue: contender) else { throw ValidationError("no such contender") }
        try contender.prepare()
        try round(contender)
        let before = Usage.now()
        let workersBefore = WorkerProcesses.now()
        var rounds = 0
        repeat {
            try round(contender)
            rounds += 1
        } while Usage.now().cpu - before.cpu < minimumSeconds * 1000 && rounds < 400
        let own = Usage.now()
        let workers = WorkerProcesses.now()
        let result = Measurement(
            cpu: (own.cpu - before.cpu + workers.cpu - workersBefore.cpu) / Double(rounds), peak: own.peak,
            childPeak: workers.peak)
        print(String(decoding: try JSONEncoder().encode(result), as: UTF8.self))
    }

    private func round(_ contender: Contender) throws {
        for file in files { try contender.run(file, size: size) }
    }
}

/// Processor time and peak memory as the system accounts them.
struct Usage {
    var cpu: Double
    var peak: Double

    static func now() -> Usage {
        var usage = Usage(cpu: 0, peak: 0)
        peers_usage(&usage.cpu, &usage.peak)
        return usage
    }
}

/// Processor time and peak memory of the workers this process has started, which still live.
struct WorkerProcesses {
    var cpu = 0.0
    var peak = 0.0

    static func now() -> WorkerProcesses {
        var sum = WorkerProcesses()
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        for task in tasks {
            let children = (try? String(contentsOfFile: "/proc/self/task/\(task)/children", encoding: .utf8)) ?? ""
            for child in children.split(separator: " ") {
                sum.cpu += ticks(of: child) * 1000 / Double(sysconf(Int32(_SC_CLK_TCK)))
                sum.peak = max(sum.peak, peak(of: child))
            }
        }
        return sum
    }

    /// Fields 14 and 15 of `stat`, counted behind the name, which may hold anything (proc(5)).
    private static func ticks(of process: Substring) -> Double {
        let stat = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
        guard fields.count > 13 else { return 0 }
        return (Double(fields[12]) ?? 0) + (Double(fields[13]) ?? 0)
    }

    private static func peak(of process: Substring) -> Double {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return (line?.split(separator: " ").dropFirst().first.flatMap { Double($0) } ?? 0) / 1024
    }
}
