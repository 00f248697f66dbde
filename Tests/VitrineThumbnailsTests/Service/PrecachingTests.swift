import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineThumbnails

/// Thumbnails put on disk ahead of time (R107).
@Suite struct PrecachingTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func fillsTheDiskAndSkipsWhatIsThere() async throws {
        let service = ThumbnailService.stored(in: directory)
        let calls = Counter()
        let sources = (0..<30).map { ClosureSource.picture(CacheKey("\($0)"), calls: calls) }
        _ = try await service.thumbnail(for: sources[3], size: PixelSize(20))
        let broken = ClosureSource(key: "broken") { _ in throw TestFailure() }
        let precaching = service.precache(sources + [broken], size: PixelSize(20))
        var last: Precaching.Progress?
        for await progress in precaching.progress { last = progress }
        #expect(last?.made == 29)
        #expect(last?.skipped == 1)
        #expect(last?.failed == 1)
        #expect(last?.total == 31)
        #expect(await precaching.finished == last)
        // The end is told again to who asks later.
        var replay: [Precaching.Progress] = []
        for await progress in precaching.progress { replay.append(progress) }
        #expect(replay.last == last)
        #expect(service.thumbnails.memorySize.bytes <= 20 * 10 * 4 + 64)
        #expect(await service.hasDiskCache(for: ThumbnailRequest(sources[29], size: PixelSize(20))))
        #expect(calls.value == 30)
        let again = await service.precache(sources, size: PixelSize(20)).finished
        #expect(again.skipped == 30)
        #expect(await service.precache([], size: PixelSize(20)).finished.total == 0)
        await service.waitUntilIdle()
    }

    @Test func leavesAPlaceToWhatIsVisible() async throws {
        let service = ThumbnailService.stored(in: directory, concurrency: 2)
        let sources = (0..<6).map { FiringSource(CacheKey("\($0)")) }
        let precaching = service.precache(sources, size: PixelSize(20))
        while sources.allSatisfy({ $0.begun.count == 0 }) { await Task.yield() }
        // One runs, the others wait, and there is a place for this one.
        let image = try await service.thumbnail(for: ClosureSource.picture("seen"), size: PixelSize(20))
        #expect(image.width == 20)
        #expect(sources.map(\.begun.count).reduce(0, +) == 1)
        precaching.cancel()
        while sources.allSatisfy({ $0.ended.count == 0 }) { await Task.yield() }
        await service.waitUntilIdle()
        #expect(await precaching.finished.completed == 0)
    }

    @Test func aVisibleRequestJoinsAndRaisesIt() async throws {
        let service = ThumbnailService.stored(in: directory, concurrency: 1)
        service.setSuspended(true)
        let source = FiringSource()
        let precaching = service.precache([source], size: PixelSize(20))
        let request = ThumbnailRequest.counted(source, 20, priority: .high)
        let key = service.key(of: request, identity: "test")
        while service.slots.queued == 0 { await Task.yield() }
        #expect(service.workPriority(ofKey: key) == .veryLow)
        service.enqueue(request)
        #expect(service.workPriority(ofKey: key) == .high)
        service.setSuspended(false)
        source.fire()
        #expect(try await request.value.width == 20)
        #expect(await precaching.finished.made == 1)
        #expect(source.begun.count == 1)
        #expect(await service.hasMemoryCache(for: .counted(source, 20)))
    }

    @Test func cancellingItSparesWhatOthersWant() async throws {
        let service = ThumbnailService.stored(in: directory, concurrency: 1)
        let source = FiringSource()
        let precaching = service.precache([source], size: PixelSize(20))
        await source.begun.reach(1)
        let request = ThumbnailRequest.counted(source, 20)
        service.enqueue(request)
        precaching.cancel()
        _ = await precaching.finished
        source.fire()
        #expect(try await request.value.width == 20)
        await service.waitUntilIdle()
    }

    @Test func writesWhatIsInMemoryOnly() async throws {
        let service = ThumbnailService.stored(in: directory)
        let calls = Counter()
        let source = ClosureSource.picture("a", calls: calls)
        let request = ThumbnailRequest.counted(source, 20)
        request.cacheOptions = .memory
        service.enqueue(request)
        _ = try await request.value
        #expect(await service.precache([source], size: PixelSize(20)).finished.made == 1)
        #expect(await service.hasDiskCache(for: .counted(source, 20)))
        #expect(await service.hasMemoryCache(for: .counted(source, 20)))
        #expect(calls.value == 1)
    }

    @Test func hasNothingToDoWithoutADisk() async throws {
        let service = ThumbnailService.withoutDisk()
        #expect(await service.precache([FiringSource()], size: PixelSize(20)).finished.skipped == 1)
    }
}
