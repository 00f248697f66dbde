import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Three sizes of each photo asked for together, against the largest alone.
struct SizesBenchmark {
    static let sizes = [64, 256, 1_024]
    static let rounds = 3
    let photos: Photos

    init(_ photos: Photos) { self.photos = photos }

    func run() async throws {
        print("| \(photos.paths.count) photos | CPU ms a photo | ratio | calls |")
        print("|---|---:|---:|---:|")
        for usesDisk in [false, true] {
            var together: [Double] = [], alone: [Double] = []
            var calls = 0
            for _ in 0..<Self.rounds {
                alone.append(try await make([1_024], usesDisk).cpu)
                let result = try await make(Self.sizes, usesDisk)
                together.append(result.cpu)
                calls = result.calls
            }
            let place = usesDisk ? "kept on disk" : "in memory only"
            let count = Double(photos.paths.count)
            print("| 1024, \(place) | \(text(median(alone) / count * 1_000)) | 1 | |")
            print(
                "| 64, 256 and 1024, \(place) | \(text(median(together) / count * 1_000)) "
                    + "| \(text(median(together) / median(alone))) | \(calls) |")
        }
    }

    private func make(_ sizes: [Int], _ usesDisk: Bool) async throws -> (cpu: Double, calls: Int) {
        var configuration = ImagePipeline.Configuration(root: photos.fresh(), concurrency: 2)
        configuration.usesDiskCache = usesDisk
        let service = ImagePipeline(configuration)
        let sample = try await Sample.take {
            let tasks = photos.sources.flatMap { source in
                sizes.map { service.start(ImageRequest(source, resizing: .fit($0))) }
            }
            for task in tasks { _ = try await task.value }
            if usesDisk { try await service.cache.flush() }
        }
        return (sample.cpu, service.statistics.calls)
    }
}
