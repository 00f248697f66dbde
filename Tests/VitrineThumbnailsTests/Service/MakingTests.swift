import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineThumbnails

#if canImport(Glibc)
import Glibc
#endif

/// Calls of sources: how many, in which order, and what ends them.
@Suite struct MakingTests {
    @Test func neverMoreAtOnceThanAllowed() async throws {
        for (configured, concurrency) in [(1, 1), (3, 3), (4, 2), (3, 0)] {
            let service = ThumbnailService.withoutDisk(concurrency: configured)
            service.concurrency = concurrency
            let (running, most) = (Counter(), Counter())
            let requests = (0..<40).map { index in
                ThumbnailRequest(
                    ClosureSource(key: CacheKey("\(index)")) { _ in
                        most.raise(to: running.add(1))
                        defer { running.add(-1) }
                        return Image(size: PixelSize(1), color: .black)
                    }, size: PixelSize(1))
            }
            for request in requests { service.enqueue(request) }
            for request in requests { _ = try await request.value }
            #expect(most.value <= max(1, concurrency))
            #expect(service.concurrency == max(1, concurrency))
            await service.waitUntilIdle()
        }
    }

    @Test func theMostUrgentComesFirst() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 1)
        let order = Recorder<String>()
        func request(_ name: String, _ priority: Priority) -> ThumbnailRequest {
            let source = ClosureSource(key: CacheKey(name)) { _ in
                order.add(name)
                return Image(size: PixelSize(1), color: .black)
            }
            return .counted(source, 1, priority: priority)
        }
        service.setSuspended(true)
        let requests = [
            request("low", .low), request("first", .normal), request("second", .normal), request("raised", .veryLow),
            request("lowered", .veryHigh), request("high", .high), request("joined", .low),
        ]
        for request in requests { service.enqueue(request) }
        requests[3].queuePriority = .veryHigh
        requests[4].queuePriority = .veryLow
        let joining = request("joined", .veryHigh)
        service.enqueue(joining)
        service.setSuspended(false)
        for request in requests + [joining] { _ = try await request.value }
        #expect(order.all == ["raised", "joined", "high", "first", "second", "low", "lowered"])
    }

    @Test func sizesThatWaitTogetherAreOneCall() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 1)
        let source = FiringSource()
        service.setSuspended(true)
        let requests = [64, 256, 1_024].map { ThumbnailRequest.counted(source, $0) }
        let crop = ThumbnailRequest(source, size: PixelSize(50), mode: .crop(.center))
        for request in requests + [crop] { service.enqueue(request) }
        service.setSuspended(false)
        source.fire()
        #expect(try await requests[0].value.size == PixelSize(width: 64, height: 32))
        #expect(try await requests[1].value.size == PixelSize(width: 256, height: 128))
        #expect(try await requests[2].value.size == PixelSize(width: 1_024, height: 512))
        #expect(try await crop.value.size == PixelSize(50))
        #expect(source.begun.count == 1)
        #expect(service.statistics.made == 4)
    }

    @Test func aBadSizeDoesNotFailTheOthers() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 1)
        let source = ClosureSource.picture("a")
        service.setSuspended(true)
        let good = ThumbnailRequest.counted(source, 64)
        let bad = ThumbnailRequest.counted(source, 100_000)
        service.enqueue(good)
        service.enqueue(bad)
        service.setSuspended(false)
        #expect(try await good.value.width == 64)
        #expect(await bad.ending == .failed)
    }

    @Test func oneSizeMayBeCancelledAmongSeveral() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 1)
        let source = FiringSource()
        let (small, large) = (ThumbnailRequest.counted(source, 64), ThumbnailRequest.counted(source, 256))
        service.setSuspended(true)
        service.enqueue(small)
        service.enqueue(large)
        service.setSuspended(false)
        await source.begun.reach(1)
        large.cancel()
        #expect(!source.requests.all[0][0].cancellation.isCancelled)
        source.fire()
        #expect(try await small.value.width == 64)
        await service.waitUntilIdle()
        #expect(service.statistics.discarded == 1)
        #expect(service.cachedThumbnail(for: source, size: PixelSize(256)) == nil)
    }

    @Test func oneSourceServesTwoSizesAtOnce() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 2)
        let source = FiringSource()
        let (small, large) = (ThumbnailRequest.counted(source, 200), ThumbnailRequest.counted(source, 256))
        service.enqueue(small)
        await source.begun.reach(1)
        service.enqueue(large)
        await source.begun.reach(2)
        source.fire(2)
        #expect(try await small.value.width == 200)
        #expect(try await large.value.width == 256)
    }

    // MARK: Cancelling

    @Test func cancellingFreesThePlaceAtOnce() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 1)
        let stubborn = FiringSource("stubborn", obeys: false)
        let request = ThumbnailRequest.counted(stubborn)
        service.enqueue(request)
        await stubborn.begun.reach(1)
        request.cancel()
        #expect(stubborn.requests.all[0][0].cancellation.isCancelled)
        // The source goes on, and the next one has its place all the same.
        #expect(try await service.thumbnail(for: ClosureSource.picture("next"), size: PixelSize(10)).width == 10)
        #expect(service.stuckCalls == 1)
        stubborn.fire()
        await stubborn.ended.reach(1)
        await service.waitUntilIdle()
        while service.stuckCalls > 0 { await Task.yield() }
        // What came too late is not kept.
        #expect(service.statistics.discarded <= 1)
        #expect(service.cachedThumbnail(for: stubborn, size: PixelSize(100)) == nil)
    }

    @Test func whoComesAfterACancellationSharesTheNewWork() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 2)
        let source = FiringSource(obeys: false)
        let first = ThumbnailRequest.counted(source)
        service.enqueue(first)
        await source.begun.reach(1)
        first.cancel()
        let second = ThumbnailRequest.counted(source)
        service.enqueue(second)
        await source.begun.reach(2)
        // The old call ends now, which must not be taken for the end of the new one.
        source.fire()
        await source.ended.reach(1)
        let third = ThumbnailRequest.counted(source)
        service.enqueue(third)
        source.fire()
        _ = try await second.value
        _ = try await third.value
        #expect(source.begun.count == 2)
    }

    @Test func aCancelledTaskEndsItsRequest() async throws {
        let service = ThumbnailService.withoutDisk()
        let source = FiringSource()
        let task = Task { try await service.thumbnail(for: source, size: PixelSize(10)) }
        await source.begun.reach(1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await source.ended.reach(1)
        await service.waitUntilIdle()
    }

    @Test func whatWaitsIsCancelledWithoutACall() async throws {
        let service = ThumbnailService.withoutDisk()
        let source = FiringSource(knowsItself: false)
        let requests = (0..<20).map { _ in ThumbnailRequest.counted(source) }
        service.setSuspended(true)
        for request in requests { service.enqueue(request) }
        for request in requests { request.cancel() }
        await service.waitUntilIdle()
        service.setSuspended(false)
        #expect(source.begun.count == 0)
        #expect(service.statistics.cancelled == 20)
    }

    // MARK: Sources that fail

    @Test func everyoneGetsTheError() async throws {
        let service = ThumbnailService.withoutDisk()
        service.setSuspended(true)
        let calls = Counter()
        let source = ClosureSource(key: CacheKey("file", "/a.jpg", "1")) { _ in
            calls.add(1)
            throw TestFailure()
        }
        let requests = [100, 100, 200].map { ThumbnailRequest.counted(source, $0) }
        for request in requests { service.enqueue(request) }
        service.setSuspended(false)
        for request in requests {
            let error = await #expect(throws: ThumbnailError.self) { try await request.value }
            guard case .underlying("/a.jpg", let underlying)? = error else { return #expect(Bool(false), "\(error!)") }
            #expect(underlying is TestFailure)
        }
        #expect(calls.value == 1)
        // Failures are not kept: the next one is another try.
        await #expect(throws: ThumbnailError.self) { try await service.thumbnail(for: source, size: PixelSize(100)) }
        #expect(calls.value == 2)
        #expect(service.statistics.failed == 4)
        await service.waitUntilIdle()
    }

    @Test func aSourceThatCancelsItselfHasFailed() async throws {
        let service = ThumbnailService.withoutDisk()
        let request = ThumbnailRequest.counted(ClosureSource { _ in throw CancellationError() })
        service.enqueue(request)
        #expect(await request.ending == .failed)
    }

    @Test func aSourceThatMiscountsHasFailed() async throws {
        struct Miscounting: ThumbnailSource {
            func identity() -> CacheKey { "a" }
            func thumbnail(_ request: RenderRequest) -> Image { Image(size: PixelSize(1), color: .black) }
            func thumbnails(_ requests: [RenderRequest]) -> [Image] { [] }
        }
        let service = ThumbnailService.withoutDisk()
        await #expect(throws: ThumbnailError.self) {
            try await service.thumbnail(for: Miscounting(), size: PixelSize(1))
        }
    }

    @Test func aSourceThatIsGoneIsAnError() async throws {
        struct Gone: ThumbnailSource {
            func identity() throws(ThumbnailError) -> CacheKey { throw .unreadable(source: "/gone", reason: "gone") }
            func thumbnail(_ request: RenderRequest) -> Image { Image(size: PixelSize(1), color: .black) }
        }
        let service = ThumbnailService.withoutDisk()
        let request = ThumbnailRequest.counted(Gone())
        request.onPlaceholder { _ in }
        service.enqueue(request)
        #expect(await request.ending == .failed)
        #expect(try await request.placeholder == nil)
        await service.waitUntilIdle()
        #expect(service.isIdle)
    }

    @Test func aSourceThatHangsIsGivenUp() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 1) { $0.timeLimit = .milliseconds(20) }
        let source = FiringSource(obeys: false)
        let requests = [100, 100, 200].map { ThumbnailRequest.counted(source, $0) }
        service.setSuspended(true)
        for request in requests { service.enqueue(request) }
        service.setSuspended(false)
        for request in requests {
            let error = await #expect(throws: ThumbnailError.self) { try await request.value }
            guard case .timedOut? = error else { return #expect(Bool(false), "\(error!)") }
        }
        await source.begun.reach(1)
        #expect(source.requests.all[0][0].cancellation.isCancelled)
        #expect(service.slots == .init(queued: 0, running: 0))
        #expect(service.stuckCalls == 1)
        source.fire()
        await source.ended.reach(1)
        while service.stuckCalls > 0 { await Task.yield() }
    }

    @Test func threadsAreNotWrittenOffWithoutEnd() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 2) {
            $0.timeLimit = .milliseconds(20)
            $0.grace = .milliseconds(1)
            $0.maximumStuckCalls = 3
        }
        let hanging = (0..<8).map { FiringSource(CacheKey("\($0)"), obeys: false) }
        let requests = hanging.map { ThumbnailRequest.counted($0) }
        for request in requests { service.enqueue(request) }
        var refused = 0
        for request in requests {
            let error = await #expect(throws: ThumbnailError.self) { try await request.value }
            if case .tooManyStuck? = error { refused += 1 }
        }
        #expect(refused >= 3)
        #expect(service.stuckCalls <= 3 + 2)
        for source in hanging { source.fire() }
        while service.stuckCalls > 0 { await Task.yield() }
        // The service lives.
        let fresh = ThumbnailRequest.counted(ClosureSource.picture("fresh"), 9)
        service.enqueue(fresh)
        _ = await fresh.ending
        guard case .failed = fresh.state else { return }
        await #expect(throws: ThumbnailError.self) { try await fresh.value }
    }

    @Test func identitiesAndPlaceholdersThatHangAreGivenUp() async throws {
        struct Hanging: ThumbnailSource {
            let gate: FiringSource
            func identity() throws(ThumbnailError) -> CacheKey {
                _ = try? gate.thumbnail(RenderRequest(size: PixelSize(1)))
                return "hanging"
            }
            func thumbnail(_ request: RenderRequest) -> Image { Image(size: PixelSize(1), color: .black) }
        }
        let service = ThumbnailService.withoutDisk { $0.timeLimit = .milliseconds(20) }
        let gate = FiringSource(obeys: false)
        await #expect(throws: ThumbnailError.self) {
            try await service.thumbnail(for: Hanging(gate: gate), size: PixelSize(1))
        }
        let source = ClosureSource(key: "p") { try gate.thumbnail($0) } make: { _ in
            Image(size: PixelSize(1), color: .black)
        }
        let request = ThumbnailRequest.counted(source)
        service.enqueue(request)
        #expect(try await request.placeholder == nil)
        _ = await request.ending
        gate.fire(2)
        await gate.ended.reach(2)
        await service.waitUntilIdle()
    }

    // MARK: Where sources are called

    @Test func sourcesThatNeedTheMainActorGetIt() async throws {
        let service = ThumbnailService.withoutDisk()
        let places = Recorder<Bool>()
        let source = ClosureSource(requiresMainActor: true) { _ in
            places.add(MainActor.assumeIsolated { true })
            return Image(size: PixelSize(1), color: .white)
        } make: { _ in
            places.add(MainActor.assumeIsolated { true })
            return Image(size: PixelSize(1), color: .white)
        }
        let request = ThumbnailRequest(source, size: PixelSize(1))
        request.onPlaceholder { _ in }
        service.enqueue(request)
        _ = try await request.value
        #expect(places.all == [true, true])
        #expect(throws: ThumbnailError.self) {
            try service.execute(ThumbnailRequest(source, size: PixelSize(2)))
        }
        await MainActor.run {
            let request = ThumbnailRequest(source, size: PixelSize(3))
            #expect(throws: Never.self) { try service.execute(request) }
        }
    }

    #if os(Linux)
    @Test func threadsHaveTheHighestPriorityAskedFor() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 1)
        let nice = Recorder<Int32>()
        let source = ClosureSource { _ in
            nice.add(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0))
            return Image(size: PixelSize(1), color: .black)
        }
        let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        let levels: [[ExecutionPriority]] = [[.background], [.low], [.background, .low], [.background]]
        for (index, levels) in levels.enumerated() {
            service.setSuspended(true)
            let requests = levels.map { level in
                let request = ThumbnailRequest(source, size: PixelSize(10 + index))
                request.executionPriority = level
                return request
            }
            for request in requests { service.enqueue(request) }
            service.setSuspended(false)
            for request in requests { _ = try await request.value }
        }
        #expect(nice.all == [10, 5, 5, 10])
        #expect(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) == own)
    }
    #endif
}
