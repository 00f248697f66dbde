import ArgumentParser
import Foundation
import VitrineImaging

/// What a worker costs: the same picture in this process and in a worker, in many short rounds by turns.
///
/// One process measures both, so that load from outside meets both alike: what counts is the ratio of each round, and
/// its quartiles say how far to trust it. The lowest tenth of the wall times shows the machine as if at rest.
struct IsolationBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "isolation")

    @Option(help: "The directory Scripts/make-inputs wrote.")
    var inputs: String

    @Option(help: "The file there.")
    var file = "640.jpg"

    @Option var rounds = 100

    @Option(help: "Pictures of each kind per round.")
    var pictures = 20

    /// Milliseconds per picture of one kind in one round.
    private struct Round {
        var cpu: Double
        var walls: [Double]
    }

    func run() async throws {
        var local: [Round] = []
        var isolated: [Round] = []
        for contender in [Contender.vitrine, .vitrineWorker] { _ = try round(contender) }
        for i in 0..<rounds {
            if i % 2 == 0 { local.append(try round(.vitrine)) }
            isolated.append(try round(.vitrineWorker))
            if i % 2 == 1 { local.append(try round(.vitrine)) }
        }
        let walls = (local.flatMap(\.walls), isolated.flatMap(\.walls))
        print("| \(file) → 200, ms | in process | worker | ratio: lower quartile | median | upper quartile |")
        print("|---|---:|---:|---:|---:|---:|")
        row("CPU", local.map(\.cpu), isolated.map(\.cpu))
        row("wall", local.map { median($0.walls) }, isolated.map { median($0.walls) })
        let lowest = (quantile(walls.0, 0.1), quantile(walls.1, 0.1))
        print("| wall, lowest tenth | \(text(lowest.0)) | \(text(lowest.1)) | | \(text(lowest.1 / lowest.0)) | |")
    }

    private func row(_ name: String, _ local: [Double], _ isolated: [Double]) {
        let ratios = zip(isolated, local).map { $0 / $1 }
        let columns = [median(local), median(isolated)] + [0.25, 0.5, 0.75].map { quantile(ratios, $0) }
        print("| \(name) | \(columns.map(text).joined(separator: " | ")) |")
    }

    private func round(_ contender: Contender) throws -> Round {
        var walls: [Double] = []
        let workers = WorkerProcesses.now()
        let before = Usage.now()
        for _ in 0..<pictures {
            let start = ContinuousClock.now
            try contender.run("\(inputs)/\(file)", size: 200)
            walls.append((ContinuousClock.now - start) / .milliseconds(1))
        }
        let own = Usage.now().cpu - before.cpu
        return Round(cpu: (own + WorkerProcesses.now().cpu - workers.cpu) / Double(pictures), walls: walls)
    }

    private func quantile(_ values: [Double], _ part: Double) -> Double {
        let sorted = values.sorted()
        return sorted.isEmpty ? .nan : sorted[Int((Double(sorted.count - 1) * part).rounded())]
    }

    private func text(_ value: Double) -> String { String(format: "%.3f", value) }
}
