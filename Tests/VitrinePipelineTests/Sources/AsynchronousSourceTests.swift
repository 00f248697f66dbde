import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Sources whose methods suspend.
@Suite struct AsynchronousSourceTests {
    /// A picture of 1,000 by 500 pixels, made when a gate is open.
    private struct Drawing: ImageSource {
        var key: CacheKey = "drawing"
        var knowsItself = false
        var hasPreview = false
        var failure: ImagePipelineError?
        /// Opened when a call for an image has begun, and when its task was cancelled.
        let begun = Gate(), cancelled = Gate()
        let gate: Gate
        let requests = Recorder<RenderRequest>()

        init(isOpen: Bool = true) {
            gate = Gate()
            if isOpen { gate.open() }
        }

        var knownIdentity: CacheKey? { knowsItself ? key : nil }

        func identity() async throws(ImagePipelineError) -> CacheKey {
            await Task.yield()
            if let failure { throw failure }
            return key
        }

        func preview(_ request: RenderRequest) async throws -> PixelImage? {
            await Task.yield()
            return hasPreview ? PixelImage(size: PixelSize(2), color: .white) : nil
        }

        func image(_ request: RenderRequest) async throws -> PixelImage {
            requests.add(request)
            begun.open()
            await withTaskCancellationHandler { await gate.wait() } onCancel: { cancelled.open() }
            try Task.checkCancellation()
            let size = try request.resizer.outputSize(for: PixelSize(width: 1_000, height: 500))
            return PixelImage(size: size, color: .black)
        }
    }

    @Test func imagesAreMadeOnceAndCached() async throws {
        let directory = try TemporaryDirectory()
        let pipeline = ImagePipeline.stored(in: directory)
        let drawing = Drawing()
        let request = ImageRequest(drawing, resizing: .fit(100))
        #expect(pipeline.cachedImage(for: request) == nil)
        #expect(try await pipeline.image(for: request).size == PixelSize(width: 100, height: 50))
        #expect(await pipeline.contains(request, at: .memory))
        try await pipeline.removeAll(levels: .memory)
        #expect(try await pipeline.image(for: request).size == PixelSize(width: 100, height: 50))
        #expect(drawing.requests.all.count == 1 && pipeline.statistics.fromDisk == 1)
    }

    @Test func severalSizesAreOneCall() async throws {
        let pipeline = ImagePipeline.withoutDisk(concurrency: 1)
        var drawing = Drawing()
        drawing.knowsItself = true
        pipeline.setSuspended(true)
        let tasks = [100, 300, 200].map { ImageTask.counted(drawing, $0) }
        for task in tasks { pipeline.start(task) }
        pipeline.setSuspended(false)
        for (task, width) in zip(tasks, [100, 300, 200]) { #expect(try await task.value.width == width) }
        #expect(drawing.requests.all.map(\.size) == [PixelSize(300)])
        #expect(pipeline.statistics.calls == 1)
        await pipeline.waitUntilIdle()
    }

    @Test func processorsAndPreviewsWork() async throws {
        for isKept in [false, true] {
            let directory = try TemporaryDirectory()
            let pipeline = ImagePipeline.stored(in: directory) { $0.cachesPreviews = isKept }
            var drawing = Drawing(isOpen: false)
            drawing.hasPreview = true
            let task = ImageTask(ImageRequest(drawing, resizing: .fit(100), processors: [.roundCorners(20)]))
            pipeline.start(task)
            #expect(try await task.sourcePreview?.width == 2)
            #expect(!task.state.isFinal)
            drawing.gate.open()
            #expect(try await task.value[0, 0].alpha == 0)
        }
    }

    @Test func cancellationReachesTheTaskAndFreesTheSlot() async throws {
        let pipeline = ImagePipeline.withoutDisk(concurrency: 1)
        let drawing = Drawing(isOpen: false), next = Drawing()
        let task = pipeline.start(ImageRequest(drawing, resizing: .fit(100)))
        await drawing.begun.wait()
        task.cancel()
        await drawing.cancelled.wait()
        #expect(try #require(drawing.requests.all.first).cancellation.isCancelled)
        #expect(try await pipeline.image(for: ImageRequest(next, resizing: .fit(50))).width == 50)
        drawing.gate.open()
        await pipeline.waitUntilIdle()
    }

    @Test func aSourceThatTakesTooLongIsCancelled() async throws {
        let pipeline = ImagePipeline.withoutDisk { $0.timeLimit = .milliseconds(20) }
        var drawing = Drawing(isOpen: false)
        // Its identity is not asked for, so that the time cannot pass there.
        drawing.knowsItself = true
        let error = await #expect(throws: ImagePipelineError.self) {
            try await pipeline.image(for: ImageRequest(drawing, resizing: .fit(100)))
        }
        guard case .timedOut? = error else { return #expect(Bool(false), "\(error!)") }
        await drawing.cancelled.wait()
        #expect(pipeline.slots == .init(queued: 0, running: 0))
        drawing.gate.open()
        while pipeline.stuckCalls > 0 { await Task.yield() }
    }

    @Test func errorsAreThoseOfTheSource() async throws {
        let pipeline = ImagePipeline.withoutDisk()
        var drawing = Drawing()
        drawing.failure = .unreadable(source: "drawing", reason: "gone")
        let error = await #expect(throws: ImagePipelineError.self) {
            try await pipeline.image(for: ImageRequest(drawing, resizing: .fit(100)))
        }
        guard case .unreadable? = error else { return #expect(Bool(false), "\(error!)") }
        #expect(drawing.requests.all.isEmpty)
        await pipeline.waitUntilIdle()
    }

    /// A source that makes no two images in one call, and none of 200 pixels.
    private struct OneByOne: ImageSource {
        let sizes = Recorder<Int>()
        var knownIdentity: CacheKey? { "one by one" }

        func identity() async throws(ImagePipelineError) -> CacheKey { "one by one" }

        func image(_ request: RenderRequest) async throws -> PixelImage { try drawing(request) }

        func images(_ requests: [RenderRequest]) async throws -> [PixelImage] {
            throw ImageError.invalidRequest(reason: "several images")
        }

        func drawing(_ request: RenderRequest) throws -> PixelImage {
            sizes.add(request.size.width)
            guard request.size.width != 200 else { throw TestFailure() }
            return PixelImage(size: request.size, color: .black)
        }
    }

    /// The same, on a thread.
    private struct BlockingOneByOne: BlockingImageSource {
        let base: OneByOne
        var knownIdentity: CacheKey? { "one by one" }

        func identity() throws(ImagePipelineError) -> CacheKey { "one by one" }

        func image(_ request: RenderRequest) throws -> PixelImage { try base.drawing(request) }

        func images(_ requests: [RenderRequest]) throws -> [PixelImage] {
            throw ImageError.invalidRequest(reason: "several images")
        }
    }

    @Test(arguments: [false, true]) func aRequestThatCannotBeMetFailsAlone(blocks: Bool) async throws {
        let pipeline = ImagePipeline.withoutDisk(concurrency: 1)
        let oneByOne = OneByOne()
        let source: any ImageSource = blocks ? BlockingOneByOne(base: oneByOne) : oneByOne
        pipeline.setSuspended(true)
        let tasks = [100, 200, 300].map { ImageTask.counted(source, $0) }
        for task in tasks { pipeline.start(task) }
        pipeline.setSuspended(false)
        #expect(try await tasks[0].value.width == 100)
        #expect(try await tasks[2].value.width == 300)
        let error = await #expect(throws: ImagePipelineError.self) { try await tasks[1].value }
        guard case .underlying(_, is TestFailure)? = error else { return #expect(Bool(false), "\(error!)") }
        #expect(oneByOne.sizes.all == [100, 200, 300] && pipeline.statistics.calls == 1)
        await pipeline.waitUntilIdle()
    }

    @Test func aThreadMayWaitForTheImage() async throws {
        let pipeline = ImagePipeline.withoutDisk()
        let drawing = Drawing()
        let task = ImageTask.counted(drawing)
        #expect(try await onThread { try pipeline.execute(task).width } == 100)
        #expect(task.state == .finished)
        await pipeline.waitUntilIdle()
    }
}
