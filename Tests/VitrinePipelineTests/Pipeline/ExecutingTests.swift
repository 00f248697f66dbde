import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Thumbnails made on the calling thread.
@Suite struct ExecutingTests {
    @Test func cachesWhatItMakes() async throws {
        let directory = try TemporaryDirectory()
        let service = ImagePipeline.stored(in: directory)
        let calls = Counter()
        let source = ClosureSource.picture("a", calls: calls)
        let seen = Counter()
        let request = ImageTask.counted(source, thumbnails: seen)
        let size = try await onThread { try service.execute(request).size }
        #expect(size == PixelSize(width: 100, height: 50))
        #expect(seen.value == 1)
        #expect(await service.contains(ImageTask.counted(source).request, at: .memory))
        #expect(await service.contains(ImageTask.counted(source).request, at: .disk))
        try await service.removeAll(levels: .memory)
        let second = try await onThread { try service.execute(.counted(source)).size }
        #expect(second == size)
        #expect(calls.value == 1)
        #expect(service.statistics.fromDisk == 1)
        await service.waitUntilIdle()
    }

    @Test func servesAllThatWaitForTheSame() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 1)
        let calls = Counter()
        let source = ClosureSource.picture("a", calls: calls)
        service.setSuspended(true)
        let waiting = (0..<3).map { _ in ImageTask.counted(source) }
        let other = ImageTask.counted(source, 600)
        for request in waiting + [other] { service.start(request) }
        _ = try await onThread { try service.execute(.counted(source)).size }
        for request in waiting { #expect(try await request.value.width == 100) }
        #expect(other.state == .queued)
        #expect(calls.value == 1)
        service.setSuspended(false)
        _ = try await other.value
        await service.waitUntilIdle()
    }

    @Test func waitsForWhatRunsAlready() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 1)
        let source = FiringSource()
        let running = ImageTask.counted(source)
        service.start(running)
        await source.begun.reach(1)
        let executing = Task {
            try await onThread { try service.execute(.counted(source)).width }
        }
        source.fire()
        #expect(try await executing.value == 100)
        #expect(try await running.value.width == 100)
        #expect(source.begun.count == 1)
    }

    @Test func throwsAndLetsGo() async throws {
        let service = ImagePipeline.withoutDisk { $0.timeLimit = .milliseconds(20) }
        await #expect(throws: ImagePipelineError.self) {
            try await onThread {
                try service.execute(.counted(ClosureSource { _ in throw TestFailure() })).size
            }
        }
        let hanging = FiringSource()
        let error = await #expect(throws: ImagePipelineError.self) {
            try await onThread { try service.execute(.counted(hanging)).size }
        }
        guard case .timedOut? = error else { return #expect(Bool(false), "\(error!)") }
        await service.waitUntilIdle()
    }
}
