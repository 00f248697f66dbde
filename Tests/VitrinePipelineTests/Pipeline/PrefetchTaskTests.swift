import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Thumbnails put on disk ahead of time.
@Suite struct PrefetchTaskTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func fillsTheDiskAndSkipsWhatIsThere() async throws {
        let service = ImagePipeline.stored(in: directory)
        let calls = Counter()
        let sources = (0..<30).map { ClosureSource.picture(CacheKey("\($0)"), calls: calls) }
        _ = try await service.image(for: ImageRequest(sources[3], resizing: .fit(20)))
        let broken = ClosureSource(key: "broken") { _ in throw TestFailure() }
        let precaching = service.prefetch((sources + [broken]).map { ImageRequest($0, resizing: .fit(20)) })
        var last: PrefetchTask.Progress?
        for await progress in precaching.progress { last = progress }
        #expect(last?.made == 29)
        #expect(last?.skipped == 1)
        #expect(last?.failed == 1)
        #expect(last?.total == 31)
        #expect(await precaching.finished == last)
        // The end is told again to who asks later.
        var replay: [PrefetchTask.Progress] = []
        for await progress in precaching.progress { replay.append(progress) }
        #expect(replay.last == last)
        #expect(service.cache.memorySize.bytes <= 20 * 10 * 4 + 64)
        #expect(await service.contains(ImageRequest(sources[29], resizing: .fit(20)), at: .disk))
        #expect(calls.value == 30)
        let again = await service.prefetch(sources.map { ImageRequest($0, resizing: .fit(20)) }).finished
        #expect(again.skipped == 30)
        #expect(await service.prefetch([]).finished.total == 0)
        await service.waitUntilIdle()
    }

    @Test func leavesAPlaceToWhatIsVisible() async throws {
        let service = ImagePipeline.stored(in: directory, concurrency: 2)
        let sources = (0..<6).map { FiringSource(CacheKey("\($0)")) }
        let precaching = service.prefetch(sources.map { ImageRequest($0, resizing: .fit(20)) })
        while sources.allSatisfy({ $0.begun.count == 0 }) { await Task.yield() }
        // One runs, the others wait, and there is a place for this one.
        let image = try await service.image(for: ImageRequest(ClosureSource.picture("seen"), resizing: .fit(20)))
        #expect(image.width == 20)
        #expect(sources.map(\.begun.count).reduce(0, +) == 1)
        precaching.cancel()
        while sources.allSatisfy({ $0.ended.count == 0 }) { await Task.yield() }
        await service.waitUntilIdle()
        #expect(await precaching.finished.completed == 0)
    }

    @Test func aVisibleRequestJoinsAndRaisesIt() async throws {
        let service = ImagePipeline.stored(in: directory, concurrency: 1)
        service.setSuspended(true)
        let source = FiringSource()
        let precaching = service.prefetch([source].map { ImageRequest($0, resizing: .fit(20)) })
        let request = ImageTask.counted(source, 20, priority: .high)
        let key = service.key(of: request.request, identity: "test")
        while service.slots.queued == 0 { await Task.yield() }
        #expect(service.workPriority(ofKey: key) == .veryLow)
        service.start(request)
        #expect(service.workPriority(ofKey: key) == .high)
        service.setSuspended(false)
        source.fire()
        #expect(try await request.value.width == 20)
        #expect(await precaching.finished.made == 1)
        #expect(source.begun.count == 1)
        #expect(await service.contains(ImageTask.counted(source, 20).request, at: .memory))
    }

    @Test func cancellingItSparesWhatOthersWant() async throws {
        let service = ImagePipeline.stored(in: directory, concurrency: 1)
        let source = FiringSource()
        let precaching = service.prefetch([source].map { ImageRequest($0, resizing: .fit(20)) })
        await source.begun.reach(1)
        let request = ImageTask.counted(source, 20)
        service.start(request)
        precaching.cancel()
        _ = await precaching.finished
        source.fire()
        #expect(try await request.value.width == 20)
        await service.waitUntilIdle()
    }

    @Test func cancellingOthersSparesIt() async throws {
        let service = ImagePipeline.stored(in: directory, concurrency: 1)
        let source = FiringSource()
        let precaching = service.prefetch([ImageRequest(source, resizing: .fit(20))])
        await source.begun.reach(1)
        let request = ImageTask.counted(source, 20)
        service.start(request)
        request.cancel()
        source.fire()
        #expect(await precaching.finished.made == 1)
        #expect(source.ended.count == 1)
        #expect(await service.contains(ImageRequest(source, resizing: .fit(20)), at: .disk))
        await service.waitUntilIdle()
    }

    @Test func writesWhatIsInMemoryOnly() async throws {
        let service = ImagePipeline.stored(in: directory)
        let calls = Counter()
        let source = ClosureSource.picture("a", calls: calls)
        let request = ImageTask.counted(source, 20, levels: .memory)
        service.start(request)
        _ = try await request.value
        #expect(await service.prefetch([source].map { ImageRequest($0, resizing: .fit(20)) }).finished.made == 1)
        #expect(await service.contains(ImageTask.counted(source, 20).request, at: .disk))
        #expect(await service.contains(ImageTask.counted(source, 20).request, at: .memory))
        #expect(calls.value == 1)
    }

    @Test func hasNothingToDoWithoutADisk() async throws {
        let service = ImagePipeline.withoutDisk()
        #expect(await service.prefetch([FiringSource()].map { ImageRequest($0, resizing: .fit(20)) }).finished.skipped == 1)
    }
}
