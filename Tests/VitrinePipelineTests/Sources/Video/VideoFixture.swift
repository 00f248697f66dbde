import Foundation
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// The helper built beside the tests, and the project's own videos (see `Fixtures/video/make-videos`).
enum VideoFixture {
    static let executable =
        (ProcessInfo.processInfo.environment["VITRINE_WORKER"].map { URL(filePath: $0) }
        ?? URL(filePath: "/proc/self/exe").resolvingSymlinksInPath())
        .deletingLastPathComponent().appending(path: "vitrine-video").path

    static func workers(_ count: Int = 1) -> WorkerPool {
        WorkerPool(program: VideoWorkers.program, location: .executable(executable), maximumWorkers: count,
            memory: HelperMemory(total: 64 << 30))
    }

    static func path(_ name: String) throws -> String {
        let folder = try #require(Bundle.module.url(forResource: "Fixtures", withExtension: nil))
        return folder.appending(path: "video").appending(path: name).path
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        try [UInt8](Data(contentsOf: URL(filePath: path(name))))
    }

    static func source(
        _ name: String, at moment: VideoMoment, workers: WorkerPool = workers()
    ) throws -> VideoFrameSource {
        VideoFrameSource(.file(try path(name)), at: moment, workers: workers)
    }

    /// A frame in the size it is shown.
    static func frame(
        _ name: String, at second: Double, _ precision: VideoFrameSource.Precision = .exact,
        workers: WorkerPool = workers()
    ) throws -> PixelImage {
        var source = try source(name, at: .second(second), workers: workers)
        source.precision = precision
        return try source.image(whole)
    }

    static func poster(_ name: String, workers: WorkerPool = workers()) throws -> PixelImage {
        try source(name, at: .poster, workers: workers).image(whole)
    }

    static let whole = RenderRequest(size: .zero, mode: .none)

    /// The colours that films show, second by second.
    static let seconds = ["red", "green", "blue", "yellow", "cyan", "magenta"]
}

extension PixelImage {
    /// The colour at a place between 0 and 1, by name: each channel is on or off.
    func colorName(_ x: Double = 0.5, _ y: Double = 0.5) -> String {
        let color = self[Int(Double(width) * x), Int(Double(height) * y)]
        let names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]
        return names[(color.red > 127 ? 1 : 0) + (color.green > 127 ? 2 : 0) + (color.blue > 127 ? 4 : 0)]
    }
}
