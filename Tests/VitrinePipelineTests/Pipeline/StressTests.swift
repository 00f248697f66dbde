import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline

@Suite struct StressTests {
    /// Requests of a few sources and sizes, cancelled, hurried and executed at random from several threads.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func everyRequestEndsOnce(seed: UInt64) async throws {
        let directory = try TemporaryDirectory()
        let service = ImagePipeline.stored(in: directory, concurrency: 3) {
            $0.cachesPreviews = seed == 2
            $0.usesDiskCache = seed != 3
        }
        let told = Counter()
        let mistold = Counter()
        let delivering = BlockingExecutor(threads: 1)
        let count = 400
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 as Range<UInt64> {
                group.addTask {
                    var generator = SeededGenerator(seed * 100 + worker)
                    var open: [ImageTask] = []
                    var endings: [Counter] = []
                    var spared = Set(0..<count)
                    for index in 0..<count {
                        let request = Self.request(&generator, told, delivering)
                        let ending = Counter()
                        request.onImage(on: index.isMultiple(of: 2) ? .on(delivering) : .immediate) { _ in ending.add(1) }
                        endings.append(ending)
                        if Int.random(in: 0..<20, using: &generator) == 0 {
                            service.start(ImageTaskSequence([request]))
                        } else {
                            service.start(request)
                        }
                        open.append(request)
                        if let other = open.randomElement(using: &generator) {
                            other.priority = RequestPriority.allCases.randomElement(using: &generator)!
                        }
                        if Int.random(in: 0..<3, using: &generator) == 0 {
                            let index = open.indices.randomElement(using: &generator)!
                            spared.remove(index)
                            open[index].cancel()
                        }
                        if Int.random(in: 0..<50, using: &generator) == 0 { try? await service.removeAll(levels: .memory) }
                        if Int.random(in: 0..<10, using: &generator) == 0 { await Task.yield() }
                    }
                    for request in open { _ = await request.ending }
                    // Delivered in order: what was under way has been told afterwards.
                    await delivering.run {}
                    for (index, ending) in endings.enumerated() {
                        let isRight = spared.contains(index) ? ending.value == 1 : ending.value <= 1
                        if !isRight { mistold.add(1) }
                    }
                }
            }
        }
        await service.waitUntilIdle()
        #expect(service.isIdle)
        #expect(service.slots == .init(queued: 0, running: 0))
        #expect(mistold.value == 0)
        #expect(told.value <= 4 * count)
        let statistics = service.statistics
        #expect(
            statistics.made + statistics.fromMemory + statistics.fromDisk + statistics.fromDerived
                + statistics.cancelled + statistics.failed == 4 * count)
        while service.stuckCalls > 0 { await Task.yield() }
    }

    private static func request(
        _ generator: inout SeededGenerator, _ told: Counter, _ delivering: BlockingExecutor
    ) -> ImageTask {
        let number = Int.random(in: 0..<12, using: &generator)
        let source = Sometimes(number: number)
        let size = [16, 40, 100, 250].randomElement(using: &generator)!
        let resizer = ImageResizer(size: PixelSize(size), mode: number % 3 == 0 ? .crop(.center) : .fit)
        var request = ImageRequest(source, resizing: resizer)
        let queue = Bool.random(using: &generator) ? CallbackQueue.immediate : .on(delivering)
        request.priority = RequestPriority.allCases.randomElement(using: &generator)!
        request.cacheLevels = [[], .memory, .disk, .all].randomElement(using: &generator)!
        let task = ImageTask(request)
        if Bool.random(using: &generator) { task.onPreview(on: queue) { _ in told.add(1) } }
        return task
    }

    /// Fails, and hides its identity, now and then.
    private struct Sometimes: BlockingImageSource {
        let number: Int
        var knownIdentity: CacheKey? { number % 2 == 0 ? CacheKey("\(number)") : nil }
        func identity() -> CacheKey { CacheKey("\(number)") }
        func preview(_ request: RenderRequest) -> PixelImage? {
            number % 4 == 0 ? nil : PixelImage(size: PixelSize(1), color: .white)
        }
        func image(_ request: RenderRequest) throws -> PixelImage {
            if number == 7 { throw TestFailure() }
            return try PixelImage(
                size: request.resizer.outputSize(for: PixelSize(width: 300, height: 200)), color: .black)
        }
    }

    @Test func aServiceThatIsLetGoOfFinishesItsRequests() async throws {
        let source = FiringSource()
        let request = ImageTask.counted(source)
        weak var gone: ImagePipeline?
        do {
            let service = ImagePipeline.withoutDisk()
            service.start(request)
            gone = service
        }
        #expect(gone != nil)
        source.fire()
        #expect(try await request.value.width == 100)
        while gone != nil { await Task.yield() }
    }
}
