import Foundation
import VitrineImaging
import VitrinePipeline

/// Posters of videos at 320 pixels as JPEG, against `ffmpegthumbnailer`, which takes the key frame at a tenth.
struct VideoBenchmark {
    static let side = 320
    /// Posters that a helper takes before it ends, where several share its start.
    static let postersPerHelper = 20
    let paths: [String]
    let rounds: Int

    /// Contenders run alternately; the table gives medians.
    func run() async throws {
        print("| poster → \(Self.side) | one of \(Self.postersPerHelper) of a helper, CPU ms | a helper for it alone "
            + "| frame at half | `ffmpegthumbnailer` | ratio | ratio alone |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for path in paths { try await run(path) }
    }

    private func run(_ path: String) async throws {
        // A helper keeps its last file open: two that are equal make it open one each time.
        let copies = try (0..<2).map { _ in try Copy(path) }
        var samples: [[Double]] = [[], [], [], []]
        let half = (try VideoInfo(of: .file(path)).duration ?? 0) / 2
        let count = Self.postersPerHelper
        for round in 0...rounds {
            let results = [
                try await Sample.take {
                    for index in 0..<count { try await encode(.video(copies[index % 2].path)) }
                    ImagePipeline.endIdleHelpers()
                }.cpu / Double(count),
                try await Sample.take {
                    try await encode(.video(path))
                    ImagePipeline.endIdleHelpers()
                }.cpu,
                try await Sample.take {
                    for index in 0..<count {
                        try await encode(.video(copies[index % 2].path, at: .second(half)))
                    }
                    ImagePipeline.endIdleHelpers()
                }.cpu / Double(count),
                try await Sample.take { try ffmpegthumbnailer(path) }.cpu,
            ]
            // The first round only warms up.
            if round > 0 { for index in results.indices { samples[index].append(results[index] * 1_000) } }
        }
        let medians = samples.map(median)
        let columns = medians + [medians[0] / medians[3], medians[1] / medians[3]]
        print("| \(URL(filePath: path).lastPathComponent) | " + columns.map(text).joined(separator: " | ") + " |")
    }

    private func encode(_ source: BuiltInSource) async throws {
        let image = try await source.image(RenderRequest(size: PixelSize(Self.side)))
        _ = try image.encoded(as: .jpeg(quality: 0.75))
    }

    private func ffmpegthumbnailer(_ path: String) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/ffmpegthumbnailer")
        process.arguments = ["-i", path, "-o", "/dev/null", "-c", "jpeg", "-q", "8", "-s", "\(Self.side)"]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
    }

    /// A file of its own with the same bytes, removed with it.
    private final class Copy {
        let path: String

        init(_ original: String) throws {
            path = FileManager.default.temporaryDirectory.appending(path: "vitrine-\(UUID().uuidString)").path
            try FileManager.default.copyItem(atPath: original, toPath: path)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }
}
