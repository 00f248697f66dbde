import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

@Suite struct ImageTaskSequenceTests {
    private let service = ImagePipeline.withoutDisk(concurrency: 1)

    private func picture(_ key: CacheKey = "picture", _ size: Int = 100) -> ImageTask {
        .counted(ClosureSource.picture(key), size)
    }

    private func failing() -> ImageTask {
        .counted(ClosureSource(key: "broken") { _ in throw TestFailure() })
    }

    @Test func advancesBeyondACancelledRequest() async throws {
        let source = FiringSource()
        let requests = [ImageTask.counted(source), picture("a"), picture("b")]
        let sequence = ImageTaskSequence(requests)
        requests[1].cancel()
        service.start(sequence)
        await source.begun.reach(1)
        requests[0].cancel()
        try await sequence.finished()
        #expect(requests.map(\.state) == [.cancelled, .cancelled, .finished])
    }

    @Test func advancesBeyondAFailure() async throws {
        let requests = [failing(), picture()]
        let sequence = ImageTaskSequence(requests)
        service.start(sequence)
        try await sequence.finished()
        #expect(requests.map(\.state) == [.failed, .finished])
    }

    @Test func anEmptyOneFinishes() async throws {
        let sequence = ImageTaskSequence()
        #expect(!sequence.isFinished)
        service.start(sequence)
        try await sequence.finished()
        sequence.waitUntilFinished()
        var stages = sequence.stages.makeAsyncIterator()
        #expect(try await stages.next() == nil)
        #expect(!sequence.add(picture()))
    }

    @Test func anyNumberMayWaitAnyNumberOfTimes() async throws {
        let source = FiringSource()
        let sequence = ImageTaskSequence([.counted(source)])
        service.start(sequence)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<5 { group.addTask { try await sequence.finished() } }
            source.fire()
            try await group.waitForAll()
        }
        try await sequence.finished()
        sequence.waitUntilFinished()
    }

    @Test func givesStagesInOrderToAll() async throws {
        let sequence = ImageTaskSequence([picture("a", 50), failing(), picture("a", 400)])
        let early = sequence.stages
        service.start(sequence)
        for stages in [early, sequence.stages] {
            var seen: [(Int, Int)] = []
            for try await stage in stages { seen.append((stage.index, stage.image.width)) }
            #expect(seen.map(\.0) == [0, 2])
            #expect(seen.map(\.1) == [50, 400])
        }
    }

    @Test func stagesEndWithTheLastError() async throws {
        let sequence = ImageTaskSequence([picture(), failing()])
        service.start(sequence)
        var indexes: [Int] = []
        await #expect(throws: ImagePipelineError.self) {
            for try await stage in sequence.stages { indexes.append(stage.index) }
        }
        #expect(indexes == [0])
    }

    @Test func stagesEndWithACancellation() async throws {
        let sequence = ImageTaskSequence([picture(), .counted(FiringSource())])
        service.start(sequence)
        await #expect(throws: CancellationError.self) {
            for try await _ in sequence.stages { sequence.cancel() }
        }
    }

    @Test func canBeCancelledBeforeItBegins() async throws {
        let request = picture()
        let sequence = ImageTaskSequence([request])
        sequence.cancel()
        try await sequence.finished()
        service.start(sequence)
        #expect(request.state == .cancelled)
        #expect(service.statistics.calls == 0)
    }

    @Test func aLongOneOfMemoryHitsDoesNotRecurse() async throws {
        let first = picture()
        service.start(first)
        _ = try await first.value
        let sequence = ImageTaskSequence((0..<20_000).map { _ in picture() })
        service.start(sequence)
        try await sequence.finished()
        #expect(service.statistics.fromMemory == 20_000)
    }

    @Test func requestsOfGroupsAreNotEnqueuedByOthers() async throws {
        let request = picture()
        let sequence = ImageTaskSequence([request])
        service.start(request)
        #expect(request.state == .new)
        #expect(!ImageTaskSequence().add(request))
        service.start(sequence)
        #expect(await request.ending == .finished)
    }

    /// Two at a time, by a rule of its own.
    private final class Pairs: ImageTaskGroup {
        private let state: Locked<(left: [ImageTask], running: Int, most: Int)>
        let end = Progression()

        init(_ requests: [ImageTask]) { state = Locked((requests, 0, 0)) }

        var most: Int { state.withLock { $0.most } }
        var isFinished: Bool { state.withLock { $0.left.isEmpty && $0.running == 0 } }
        func cancel() { state.withLock { $0.left = [] } }

        func nextTasks() -> [ImageTask] {
            state.withLock { state in
                let count = min(2 - state.running, state.left.count)
                defer { state.left.removeFirst(count) }
                state.running += count
                state.most = max(state.most, state.running)
                return Array(state.left.prefix(count))
            }
        }

        func taskDidEnd(_ request: ImageTask) {
            state.withLock { $0.running -= 1 }
            end.advance()
        }
    }

    @Test func groupsMayHaveRulesOfTheirOwn() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 4)
        let pairs = Pairs((0..<9).map { picture(CacheKey("\($0)")) })
        service.run(pairs)
        await pairs.end.reach(9)
        #expect(pairs.isFinished)
        #expect(pairs.most == 2)
    }
}
