import Foundation
import TestSupport
import Testing
import VitrineCompatibility
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Images made on the calling thread if they are on disk.
struct ExecuteIfOnDiskTests {
    private struct Drawing: BlockingImageSource {
        let calls = Counter()
        /// Signalled once for each call that may return.
        let permits = DispatchSemaphore(value: 0)

        func identity() -> CacheKey { "drawing" }

        func image(_ request: RenderRequest) throws -> PixelImage {
            permits.wait()
            calls.add(1)
            return PixelImage(size: request.size, color: .black)
        }
    }

    private static func pipeline(_ directory: TemporaryDirectory, usesDisk: Bool = true) -> ImagePipeline {
        var configuration = ImagePipeline.Configuration(root: directory.path)
        configuration.memoryPressure = nil
        configuration.timeLimit = .seconds(3_600)
        configuration.usesDiskCache = usesDisk
        return ImagePipeline(configuration)
    }

    @Test func executesWhatIsOnDiskAndEnqueuesTheRest() async throws {
        let directory = try TemporaryDirectory()
        let pipeline = Self.pipeline(directory), drawing = Drawing()
        let first = ImageTask(ImageRequest(drawing, resizing: .fit(100)))
        // It returns although the source does not.
        #expect(try await offPool { !pipeline.executeIfOnDisk(first) })
        #expect(!first.state.isFinal)
        drawing.permits.signal()
        _ = try await first.value
        try await pipeline.removeAll(levels: .memory)
        let second = ImageTask(ImageRequest(drawing, resizing: .fit(100)))
        #expect(try await offPool { pipeline.executeIfOnDisk(second) })
        #expect(second.state == .finished)
        #expect(drawing.calls.value == 1)
    }

    @Test func withoutTheDiskItEnqueues() async throws {
        let directory = try TemporaryDirectory()
        let drawing = Drawing(), pipeline = Self.pipeline(directory)
        drawing.permits.signal()
        _ = try await pipeline.image(for: ImageRequest(drawing, resizing: .fit(100)))
        try await pipeline.cache.flush()
        // Neither the pipeline nor the request may do without.
        let withoutDisk = Self.pipeline(directory, usesDisk: false)
        let first = ImageTask(ImageRequest(drawing, resizing: .fit(100)))
        #expect(try await offPool { !withoutDisk.executeIfOnDisk(first) })
        var request = ImageRequest(drawing, resizing: .fit(100))
        request.cacheLevels = .writeOnly
        let second = ImageTask(request)
        #expect(try await offPool { !pipeline.executeIfOnDisk(second) })
        for _ in 0..<2 { drawing.permits.signal() }
        _ = try await (first.value, second.value)
        #expect(drawing.calls.value == 3)
    }
}
