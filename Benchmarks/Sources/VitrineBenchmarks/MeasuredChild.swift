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
                sum.cpu += milliseconds(of: child)
                sum.peak = max(sum.peak, peak(of: child))
            }
        }
        return sum
    }

    /// To the nanosecond: the ticks in `stat` are as long as a dozen small pictures.
    private static func milliseconds(of process: Substring) -> Double {
        #if os(Linux)
        var clock = clockid_t()
        var time = timespec()
        guard let process = pid_t(process), clock_getcpuclockid(process, &clock) == 0,
            clock_gettime(clock, &time) == 0
        else { return 0 }
        return Double(time.tv_sec) * 1_000 + Double(time.tv_nsec) / 1_000_000
        #else
        return 0
        #endif
    }

    private static func peak(of process: Substring) -> Double {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return (line?.split(separator: " ").dropFirst().first.flatMap { Double($0) } ?? 0) / 1024
    }
}
