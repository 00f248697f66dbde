import ArgumentParser
import Foundation
import VitrineCore
import VitrineImaging

/// How long after a cancellation the caller has its answer.
struct CancellationBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "cancellation")

    @Option(help: "The directory Scripts/make-inputs wrote.")
    var inputs: String

    @Option var rounds = 15

    func run() async throws {
        print("| decode cancelled | where | median ms | largest ms | target |")
        print("|---|---|---:|---:|---:|")
        for (name, file, size, isolation, target) in [
            ("100 MP JPEG → 200", "100mp.jpg", 200, Isolation.inProcess, 10),
            ("24 MP JPEG → 1600", "24mp.jpg", 1600, .inProcess, 10),
            ("24 MP JPEG, every pixel", "24mp.jpg", 0, .inProcess, 10),
            ("12 MP PNG → 200", "12mp.png", 200, .inProcess, 10),
            ("12 MP AVIF → 200", "12mp.avif", 200, .automatic, 50),
            ("12 MP HEIC → 400", "photo.heic", 400, .inProcess, 10),
        ] {
            let decoder = ImageDecoder(isolation: isolation)
            let resizer = size == 0 ? ImageResizer.none : .fit(width: size, height: size)
            let path = "\(inputs)/\(file)"
            var times: [Double] = []
            for _ in 0..<rounds {
                let task = Task { try await decoder.image(from: .file(path), at: resizer) }
                try await Task.sleep(for: .milliseconds(12))
                let start = ContinuousClock.now
                task.cancel()
                if case .failure(is CancellationError) = await task.result {
                    times.append((ContinuousClock.now - start) / .milliseconds(1))
                }
            }
            print(
                "| \(name) | \(isolation == .inProcess ? "in process" : "worker") "
                    + "| \(times.isEmpty ? "finished first" : String(format: "%.2f", median(times))) "
                    + "| \(String(format: "%.2f", times.max() ?? .nan)) | ≤ \(target) |")
        }
    }
}
