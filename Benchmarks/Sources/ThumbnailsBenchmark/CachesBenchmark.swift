import Foundation
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Thumbnails of many photos: made by one and by two at a time, read from disk, read from memory, and made by
/// `vipsthumbnail`.
struct CachesBenchmark {
    static let side = 256
    let photos: Photos

    init(_ photos: Photos) { self.photos = photos }

    func run() async throws {
        let count = Double(photos.paths.count)
        try await all(in: service(at: photos.fresh(), concurrency: 1), of: 8)
        let one = try await Sample.take { try await all(in: service(at: photos.fresh(), concurrency: 1)) }
        let root = photos.fresh()
        let making = service(at: root, concurrency: 2)
        let two = try await Sample.take { try await all(in: making) }
        try await making.cache.flush()
        let vips = try await Sample.take { try vipsthumbnail() }
        let reading = service(at: root, concurrency: 2)
        let disk = try await Sample.take { try await all(in: reading) }
        let memory = try await Sample.take { try await all(in: reading) }
        let sources = photos.sources
        let blocking = await Sample.take { await onThread { inMemory(sources, reading) } }
        print(
            "| \(photos.paths.count) photos → \(Self.side) | CPU ms a photo | wall ms a photo | photos a second "
                + "| CPU, made = 1 |")
        print("|---|---:|---:|---:|---:|")
        let rows = [
            ("made, one at a time", one), ("made, two at a time", two), ("`vipsthumbnail`", vips),
            ("from disk", disk), ("from memory, by tasks", memory), ("from memory, by a thread", blocking),
        ]
        for (name, sample) in rows {
            print(
                "| \(name) | \(digits(sample.cpu / count * 1_000)) | \(digits(sample.wall / count * 1_000)) "
                    + "| \(text(count / sample.wall)) | 1/\(text(two.cpu / sample.cpu)) |")
        }
        print("\ntwo against one, wall: \(text(one.wall / two.wall))")
        print("CPU against vipsthumbnail: \(text(two.cpu / vips.cpu))")
        print("\(reading.statistics)")
    }

    private func service(at root: String, concurrency: Int) -> ImagePipeline {
        var configuration = ImagePipeline.Configuration(root: root, concurrency: concurrency)
        configuration.memoryCapacity = .gigabytes(1)
        return ImagePipeline(configuration)
    }

    private func all(in service: ImagePipeline, of limit: Int = .max) async throws {
        let requests = photos.sources.prefix(limit).map { source in
            var request = ImageRequest(source, resizing: .fit(Self.side))
            request.executionPriority = .normal
            return request
        }
        for task in requests.map({ service.start($0) }) { _ = try await task.value }
    }

    /// The way of a program that asks from a thread which may block: all is told within the call.
    private func inMemory(_ sources: [BuiltInSource], _ service: ImagePipeline) {
        for source in sources {
            let task = service.start(ImageRequest(source, resizing: .fit(Self.side)))
            precondition(task.state == .finished)
        }
    }

    private func onThread(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                body()
                continuation.resume()
            }
        }
    }

    private func vipsthumbnail() throws {
        let output = photos.fresh()
        try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/vipsthumbnail")
        process.arguments = ["-s", "\(Self.side)", "-o", output + "/%s.jpg"] + photos.paths
        try process.run()
        process.waitUntilExit()
    }

    private func digits(_ value: Double) -> String { String(format: "%.3f", value) }
}
