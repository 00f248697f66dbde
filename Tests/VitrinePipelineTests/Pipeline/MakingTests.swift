import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(Glibc)
import Glibc
#endif

/// Calls of sources: how many, in which order, and what ends them.
@Suite struct MakingTests {
    @Test func neverMoreAtOnceThanAllowed() async throws {
        for (configured, concurrency) in [(1, 1), (3, 3), (4, 2), (3, 0)] {
            let service = ImagePipeline.withoutDisk(concurrency: configured)
            service.concurrency = concurrency
            let (running, most) = (Counter(), Counter())
            let requests = (0..<40).map { index in
                let source = ClosureSource(key: CacheKey("\(index)")) { _ in
                    most.raise(to: running.add(1))
                    defer { running.add(-1) }
                    return PixelImage(size: PixelSize(1), color: .black)
                }
                return ImageTask(ImageRequest(source, resizing: .fit(1)))
            }
            for request in requests { service.start(request) }
            for request in requests { _ = try await request.value }
            #expect(most.value <= max(1, concurrency))
            #expect(service.concurrency == max(1, concurrency))
            await service.waitUntilIdle()
        }
    }

    @Test func asManyAtOnceAsAllowed() async throws {
        for concurrency in [1, 3] {
            let service = ImagePipeline.withoutDisk(concurrency: concurrency)
            let sources = (0...concurrency).map { FiringSource(CacheKey("\($0)")) }
            let tasks = sources.map { service.start(ImageRequest($0, resizing: .fit(10))) }
            // All places are taken by calls that have begun, and the last request waits for one of them.
            for source in sources.dropLast() { await source.begun.reach(1) }
            #expect(service.slots.running == concurrency && service.slots.queued == 1)
            #expect(sources[concurrency].begun.count == 0)
            sources[0].fire()
            await sources[concurrency].begun.reach(1)
            for source in sources.dropFirst() { source.fire() }
            for task in tasks { _ = try await task.value }
        }
    }

    @Test func theMostUrgentComesFirst() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 1)
        let order = Recorder<String>()
        func request(_ name: String, _ priority: RequestPriority) -> ImageTask {
            let source = ClosureSource(key: CacheKey(name)) { _ in
                order.add(name)
                return PixelImage(size: PixelSize(1), color: .black)
            }
            return .counted(source, 1, priority: priority)
        }
        service.setSuspended(true)
        let requests = [
            request("low", .low), request("first", .normal), request("second", .normal), request("raised", .veryLow),
            request("lowered", .veryHigh), request("high", .high), request("joined", .low),
        ]
        for request in requests { service.start(request) }
        requests[3].priority = .veryHigh
        requests[4].priority = .veryLow
        let joining = request("joined", .veryHigh)
        service.start(joining)
        service.setSuspended(false)
        for request in requests + [joining] { _ = try await request.value }
        #expect(order.all == ["raised", "joined", "high", "first", "second", "low", "lowered"])
    }

    @Test func sizesThatWaitTogetherAreOneCall() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 1)
        let source = FiringSource()
        service.setSuspended(true)
        let requests = [64, 256, 1_024].map { ImageTask.counted(source, $0) }
        let crop = ImageTask(ImageRequest(source, resizing: ImageResizer(size: PixelSize(50), mode: .crop(.center))))
        for request in requests + [crop] { service.start(request) }
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
        let service = ImagePipeline.withoutDisk(concurrency: 1)
        let source = ClosureSource.picture("a")
        service.setSuspended(true)
        let good = ImageTask.counted(source, 64)
        let bad = ImageTask.counted(source, 100_000)
        service.start(good)
        service.start(bad)
        service.setSuspended(false)
        #expect(try await good.value.width == 64)
        #expect(await bad.ending == .failed)
    }

    @Test func oneSizeMayBeCancelledAmongSeveral() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 1)
        let source = FiringSource()
        let (small, large) = (ImageTask.counted(source, 64), ImageTask.counted(source, 256))
        service.setSuspended(true)
        service.start(small)
        service.start(large)
        service.setSuspended(false)
        await source.begun.reach(1)
        large.cancel()
        #expect(!source.requests.all[0][0].cancellation.isCancelled)
        source.fire()
        #expect(try await small.value.width == 64)
        await service.waitUntilIdle()
        #expect(service.statistics.discarded == 1)
        #expect(service.cachedImage(for: ImageRequest(source, resizing: .fit(256))) == nil)
    }

    @Test func oneSourceServesTwoSizesAtOnce() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 2)
        let source = FiringSource()
        let (small, large) = (ImageTask.counted(source, 200), ImageTask.counted(source, 256))
        service.start(small)
        await source.begun.reach(1)
        service.start(large)
        await source.begun.reach(2)
        source.fire(2)
        #expect(try await small.value.width == 200)
        #expect(try await large.value.width == 256)
    }

    // MARK: Cancelling

    @Test func cancellingFreesThePlaceAtOnce() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 1)
        let stubborn = FiringSource("stubborn", obeys: false)
        let request = ImageTask.counted(stubborn)
        service.start(request)
        await stubborn.begun.reach(1)
        request.cancel()
        #expect(stubborn.requests.all[0][0].cancellation.isCancelled)
        // The source goes on, and the next one has its place all the same.
        #expect(try await service.image(for: ImageRequest(ClosureSource.picture("next"), resizing: .fit(10))).width == 10)
        #expect(service.stuckCalls == 1)
        stubborn.fire()
        await stubborn.ended.reach(1)
        await service.waitUntilIdle()
        while service.stuckCalls > 0 { await Task.yield() }
        // What came too late is not kept.
        #expect(service.statistics.discarded <= 1)
        #expect(service.cachedImage(for: ImageRequest(stubborn, resizing: .fit(100))) == nil)
    }

    @Test func whoComesAfterACancellationSharesTheNewWork() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 2)
        let source = FiringSource(obeys: false)
        let first = ImageTask.counted(source)
        service.start(first)
        await source.begun.reach(1)
        first.cancel()
        let second = ImageTask.counted(source)
        service.start(second)
        await source.begun.reach(2)
        // The old call ends now, which must not be taken for the end of the new one.
        source.fire()
        await source.ended.reach(1)
        let third = ImageTask.counted(source)
        service.start(third)
        source.fire()
        _ = try await second.value
        _ = try await third.value
        #expect(source.begun.count == 2)
    }

    @Test func aCancelledTaskEndsItsRequest() async throws {
        let service = ImagePipeline.withoutDisk()
        let source = FiringSource()
        let task = Task { try await service.image(for: ImageRequest(source, resizing: .fit(10))) }
        await source.begun.reach(1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await source.ended.reach(1)
        await service.waitUntilIdle()
    }

    @Test func whatWaitsIsCancelledWithoutACall() async throws {
        let service = ImagePipeline.withoutDisk()
        let source = FiringSource(knowsItself: false)
        let requests = (0..<20).map { _ in ImageTask.counted(source) }
        service.setSuspended(true)
        for request in requests { service.start(request) }
        for request in requests { request.cancel() }
        await service.waitUntilIdle()
        service.setSuspended(false)
        #expect(source.begun.count == 0)
        #expect(service.statistics.cancelled == 20)
    }

    // MARK: Sources that fail

    @Test func everyoneGetsTheError() async throws {
        let service = ImagePipeline.withoutDisk()
        service.setSuspended(true)
        let calls = Counter()
        let source = ClosureSource(key: CacheKey("file", "/a.jpg", "1")) { _ in
            calls.add(1)
            throw TestFailure()
        }
        let requests = [100, 100, 200].map { ImageTask.counted(source, $0) }
        for request in requests { service.start(request) }
        service.setSuspended(false)
        for request in requests {
            let error = await #expect(throws: ImagePipelineError.self) { try await request.value }
            guard case .underlying("/a.jpg", let underlying)? = error else { return #expect(Bool(false), "\(error!)") }
            #expect(underlying is TestFailure)
        }
        #expect(calls.value == 1)
        // Failures are not kept: the next one is another try.
        await #expect(throws: ImagePipelineError.self) { try await service.image(for: ImageRequest(source, resizing: .fit(100))) }
        #expect(calls.value == 2)
        #expect(service.statistics.failed == 4)
        await service.waitUntilIdle()
    }

    @Test func aSourceThatCancelsItselfHasFailed() async throws {
        let service = ImagePipeline.withoutDisk()
        let request = ImageTask.counted(ClosureSource { _ in throw CancellationError() })
        service.start(request)
        #expect(await request.ending == .failed)
    }

    @Test func aSourceThatMiscountsHasFailed() async throws {
        struct Miscounting: BlockingImageSource {
            func identity() -> CacheKey { "a" }
            func image(_ request: RenderRequest) -> PixelImage { PixelImage(size: PixelSize(1), color: .black) }
            func images(_ requests: [RenderRequest]) -> [PixelImage] { [] }
        }
        let service = ImagePipeline.withoutDisk()
        await #expect(throws: ImagePipelineError.self) {
            try await service.image(for: ImageRequest(Miscounting(), resizing: .fit(1)))
        }
    }

    @Test func aSourceThatIsGoneIsAnError() async throws {
        struct Gone: BlockingImageSource {
            func identity() throws(ImagePipelineError) -> CacheKey { throw .unreadable(source: "/gone", reason: "gone") }
            func image(_ request: RenderRequest) -> PixelImage { PixelImage(size: PixelSize(1), color: .black) }
        }
        let service = ImagePipeline.withoutDisk()
        let request = ImageTask.counted(Gone())
        request.onPreview { _ in }
        service.start(request)
        #expect(await request.ending == .failed)
        #expect(try await request.sourcePreview == nil)
        await service.waitUntilIdle()
        #expect(service.isIdle)
    }

    @Test func aSourceThatHangsIsGivenUp() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 1) { $0.timeLimit = .milliseconds(20) }
        let source = FiringSource(obeys: false)
        let requests = [100, 100, 200].map { ImageTask.counted(source, $0) }
        service.setSuspended(true)
        for request in requests { service.start(request) }
        service.setSuspended(false)
        for request in requests {
            let error = await #expect(throws: ImagePipelineError.self) { try await request.value }
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

    /// As those of this package do: a busy machine is no fault of a file.
    @Test func aSourceThatBoundsItsProcessorTimeMayTakeLonger() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 2) { $0.timeLimit = .seconds(2) }
        let (patient, hanging) = (FiringSource("patient"), FiringSource("hanging"))
        let slow = ImageTask.counted(BoundedSource(base: patient), 100)
        service.start(slow)
        await patient.begun.reach(1)
        let late = ImageTask.counted(hanging, 100)
        service.start(late)
        let error = await #expect(throws: ImagePipelineError.self) { try await late.value }
        guard case .timedOut? = error else { return #expect(Bool(false), "\(error!)") }
        patient.fire()
        #expect(try await slow.value.width == 100)
    }

    @Test func threadsAreNotWrittenOffWithoutEnd() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 2) {
            $0.timeLimit = .milliseconds(20)
            $0.grace = .milliseconds(1)
            $0.maximumAbandonedThreads = 3
        }
        let hanging = (0..<8).map { FiringSource(CacheKey("\($0)"), obeys: false) }
        let requests = hanging.map { ImageTask.counted($0) }
        for request in requests { service.start(request) }
        var refused = 0
        for request in requests {
            let error = await #expect(throws: ImagePipelineError.self) { try await request.value }
            if case .tooManyAbandonedThreads? = error { refused += 1 }
        }
        #expect(refused >= 3)
        #expect(service.stuckCalls <= 3 + 2)
        for source in hanging { source.fire() }
        while service.stuckCalls > 0 { await Task.yield() }
        // The service lives.
        let fresh = ImageTask.counted(ClosureSource.picture("fresh"), 9)
        service.start(fresh)
        _ = await fresh.ending
        guard case .failed = fresh.state else { return }
        await #expect(throws: ImagePipelineError.self) { try await fresh.value }
    }

    @Test func identitiesAndPlaceholdersThatHangAreGivenUp() async throws {
        struct Hanging: BlockingImageSource {
            let gate: FiringSource
            func identity() throws(ImagePipelineError) -> CacheKey {
                _ = try? gate.image(RenderRequest(size: PixelSize(1)))
                return "hanging"
            }
            func image(_ request: RenderRequest) -> PixelImage { PixelImage(size: PixelSize(1), color: .black) }
        }
        let service = ImagePipeline.withoutDisk { $0.timeLimit = .milliseconds(20) }
        let gate = FiringSource(obeys: false)
        await #expect(throws: ImagePipelineError.self) {
            try await service.image(for: ImageRequest(Hanging(gate: gate), resizing: .fit(1)))
        }
        let source = ClosureSource(key: "p") { try gate.image($0) } make: { _ in
            PixelImage(size: PixelSize(1), color: .black)
        }
        let request = ImageTask.counted(source)
        service.start(request)
        #expect(try await request.sourcePreview == nil)
        _ = await request.ending
        gate.fire(2)
        await gate.ended.reach(2)
        await service.waitUntilIdle()
    }

    // MARK: Where sources are called

    @Test func sourcesThatNeedTheMainActorGetIt() async throws {
        let service = ImagePipeline.withoutDisk()
        let places = Recorder<Bool>()
        let source = ClosureSource(requiresMainActor: true) { _ in
            places.add(MainActor.assumeIsolated { true })
            return PixelImage(size: PixelSize(1), color: .white)
        } make: { _ in
            places.add(MainActor.assumeIsolated { true })
            return PixelImage(size: PixelSize(1), color: .white)
        }
        let request = ImageTask(ImageRequest(source, resizing: .fit(1)))
        request.onPreview { _ in }
        service.start(request)
        _ = try await request.value
        #expect(places.all == [true, true])
        #expect(throws: ImagePipelineError.self) {
            try service.execute(ImageTask(ImageRequest(source, resizing: .fit(2))))
        }
        await MainActor.run {
            let request = ImageTask(ImageRequest(source, resizing: .fit(3)))
            #expect(throws: Never.self) { try service.execute(request) }
        }
    }

    #if os(Linux)
    @Test func threadsHaveTheHighestPriorityAskedFor() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 1)
        let nice = Recorder<Int32>()
        let source = ClosureSource { _ in
            nice.add(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0))
            return PixelImage(size: PixelSize(1), color: .black)
        }
        let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        let levels: [[RequestPriority]] = [[.veryLow], [.low], [.veryLow, .low], [.veryLow]]
        for (index, levels) in levels.enumerated() {
            service.setSuspended(true)
            let requests = levels.map { level in
                let request = ImageTask(ImageRequest(source, resizing: .fit(10 + index)))
                request.executionPriority = level
                return request
            }
            for request in requests { service.start(request) }
            service.setSuspended(false)
            for request in requests { _ = try await request.value }
        }
        #expect(nice.all == [10, 5, 5, 10])
        #expect(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) == own)
    }
    #endif
}
