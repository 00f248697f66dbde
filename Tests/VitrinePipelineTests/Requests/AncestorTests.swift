import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// The six tests of the library that requests and groups come from, without its delays.
@Suite struct AncestorTests {
    private let source = FiringSource()
    private let service = ImagePipeline.withoutDisk(concurrency: 1)
    private let placeholders = Counter()
    private let thumbnails = Counter()

    private func request(_ priority: RequestPriority = .normal, size: Int = 100) -> ImageTask {
        .counted(source, size, priority: priority, placeholders: placeholders, thumbnails: thumbnails)
    }

    private var workPriority: RequestPriority? {
        service.workPriority(ofKey: service.key(of: request().request, identity: "test"))
    }

    @Test func givesPlaceholderAndThumbnailOnceEach() async throws {
        let request = request()
        service.start(request)
        _ = try await request.sourcePreview
        #expect(thumbnails.value == 0)
        source.fire()
        _ = try await request.value
        #expect(placeholders.value == 1)
        #expect(thumbnails.value == 1)
        #expect(request.state == .finished)
        await service.waitUntilIdle()
    }

    @Test func equalRequestsShareOneCallOfTheHighestPriority() async throws {
        let requests = [request(), request(.high), request(.low)]
        service.start(requests[0])
        await source.begun.reach(1)
        #expect(workPriority == .normal)
        service.start(requests[1])
        #expect(workPriority == .high)
        service.start(requests[2])
        #expect(workPriority == .high)
        for request in requests { _ = try await request.sourcePreview }
        source.fire()
        for request in requests { _ = try await request.value }
        #expect(placeholders.value == 3)
        #expect(thumbnails.value == 3)
        #expect(source.begun.count == 1)
        await service.waitUntilIdle()
    }

    @Test func cancellingTheMostUrgentLowersThePriority() async throws {
        let requests = [request(), request(.high), request(.low)]
        for request in requests { service.start(request) }
        for request in requests { _ = try await request.sourcePreview }
        #expect(workPriority == .high)
        requests[1].cancel()
        #expect(workPriority == .normal)
        await #expect(throws: CancellationError.self) { try await requests[1].value }
        source.fire()
        _ = try await requests[0].value
        _ = try await requests[2].value
        #expect(thumbnails.value == 2)
        #expect(placeholders.value == 3)
        await service.waitUntilIdle()
    }

    @Test func cancellingAllStopsTheCall() async throws {
        let requests = [request(), request(.high), request(.low)]
        for request in requests { service.start(request) }
        for request in requests { _ = try await request.sourcePreview }
        await source.begun.reach(1)
        for request in requests { request.cancel() }
        #expect(service.slots == .init(queued: 0, running: 0))
        await source.ended.reach(1)
        await service.waitUntilIdle()
        #expect(thumbnails.value == 0)
        #expect(placeholders.value == 3)
        #expect(service.statistics.cancelled == 3)
    }

    @Test func aSequenceRunsToItsEnd() async throws {
        let requests = [request(size: 100), request(size: 200), request(size: 300)]
        let sequence = ImageTaskSequence(requests)
        service.start(sequence)
        for (index, request) in requests.enumerated() {
            await source.begun.reach(index + 1)
            #expect(source.begun.count == index + 1)
            #expect(requests.map(\.state.isFinal) == [0, 1, 2].map { $0 < index })
            _ = try await request.sourcePreview
            source.fire()
        }
        try await sequence.finished()
        #expect(thumbnails.value == 3)
        #expect(placeholders.value == 3)
        await service.waitUntilIdle()
    }

    @Test func aCancelledSequenceKeepsWhatItHas() async throws {
        let sequence = ImageTaskSequence([request(size: 100), request(size: 200), request(size: 300)])
        service.start(sequence)
        source.fire(2)
        await source.begun.reach(3)
        sequence.cancel()
        source.fire()
        try await sequence.finished()
        #expect(sequence.isFinished)
        #expect(thumbnails.value == 2)
        await service.waitUntilIdle()
    }
}
