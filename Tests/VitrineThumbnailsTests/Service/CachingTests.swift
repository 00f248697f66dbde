import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineThumbnails

/// What is kept, where, and when it is used.
@Suite struct CachingTests {
    private let directory: TemporaryDirectory
    private let calls = Counter()

    init() throws { directory = try TemporaryDirectory() }

    private func request(
        _ key: CacheKey = "a", _ size: Int = 100, mode: ImageResizer.Mode = .aspectFit,
        _ options: ThumbnailCacheOptions = .all
    ) -> ThumbnailRequest {
        let request = ThumbnailRequest(
            ClosureSource.picture(key, calls: calls), size: PixelSize(size), mode: mode)
        request.cacheOptions = options
        return request
    }

    private func run(_ request: ThumbnailRequest, in service: ThumbnailService) async throws -> Image {
        service.enqueue(request)
        return try await request.value
    }

    // MARK: Levels

    @Test func memoryAnswersAtOnceAndDiskLater() async throws {
        let service = ThumbnailService.stored(in: directory)
        let made = try await run(request(), in: service)
        let again = request()
        again.delivery = .immediate
        let seen = Counter()
        again.onThumbnail { _ in seen.add(1) }
        service.enqueue(again)
        #expect(seen.value == 1)
        #expect(again.state == .finished)
        #expect(
            service.cachedThumbnail(for: ClosureSource.picture("a"), size: PixelSize(100))?.size == made.size)
        try await service.thumbnails.flush()

        let next = ThumbnailService.stored(in: directory)
        #expect(try await run(request(), in: next).size == made.size)
        #expect(calls.value == 1)
        #expect(next.statistics.fromDisk == 1)
        #expect(await next.hasMemoryCache(for: request()))
    }

    @Test func callersThatMayBlockGetMemoryHitsOfFilesAtOnce() async throws {
        let service = ThumbnailService.stored(in: directory)
        let source = FiringSource(knowsItself: false)
        source.fire()
        _ = try await service.thumbnail(for: source, size: PixelSize(10))
        let state = try await onThread {
            let request = ThumbnailRequest(source, size: PixelSize(10))
            service.enqueue(request)
            return request.state
        }
        #expect(state == .finished)
    }

    @Test func flagsOfRequestsAreUnited() async throws {
        let service = ThumbnailService.stored(in: directory)
        service.setSuspended(true)
        let requests = [request("a", 100, []), request("a", 100, .memory), request("a", 100, .disk)]
        for request in requests { service.enqueue(request) }
        service.setSuspended(false)
        for request in requests { _ = try await request.value }
        #expect(await service.hasMemoryCache(for: request()))
        #expect(await service.hasDiskCache(for: request()))
        #expect(await !service.hasDiskCache(for: request("a", 100, .memory)))
        #expect(await !service.hasMemoryCache(for: request("a", 100, .disk)))
    }

    @Test func flagsSayWhatIsKeptAndWhatIsUsed() async throws {
        let service = ThumbnailService.stored(in: directory)
        _ = try await run(request("none", 100, []), in: service)
        #expect(await !service.hasMemoryCache(for: request("none")))
        #expect(await !service.hasDiskCache(for: request("none")))
        _ = try await run(request("disk", 100, .disk), in: service)
        #expect(await !service.hasMemoryCache(for: request("disk")))
        #expect(await service.hasDiskCache(for: request("disk")))
        _ = try await run(request("disk", 100, .disk), in: service)
        #expect(await !service.hasMemoryCache(for: request("disk")))
        #expect(calls.value == 2)
        _ = try await run(request("disk", 100, .memory), in: service)
        #expect(calls.value == 3)
    }

    @Test func aServiceWithoutALevelDoesNotUseIt() async throws {
        let withoutMemory = ThumbnailService.stored(in: directory) { $0.usesMemoryCache = false }
        _ = try await run(request(), in: withoutMemory)
        #expect(withoutMemory.cachedThumbnail(for: ClosureSource.picture("a"), size: PixelSize(100)) == nil)
        #expect(await !withoutMemory.hasMemoryCache(for: request()))
        _ = try await run(request(), in: withoutMemory)
        #expect(withoutMemory.statistics.fromDisk == 1)
        try await withoutMemory.thumbnails.flush()

        let withoutDisk = ThumbnailService.stored(in: directory) { $0.usesDiskCache = false }
        #expect(await !withoutDisk.hasDiskCache(for: request()))
        let other = request()
        #expect(try await onThread { !withoutDisk.executeIfCachedOnDiskOrEnqueue(other) })
        _ = try await other.value
        #expect(withoutDisk.statistics.made == 1)
        // It does not use the disk, and clears it all the same.
        try await withoutDisk.clear(.disk)
        let third = ThumbnailService.stored(in: directory)
        #expect(await !third.hasDiskCache(for: request()))
    }

    @Test func contextsDoNotLeakIntoEachOther() async throws {
        let one = ThumbnailService.stored(in: directory) { $0.name = "one" }
        let two = ThumbnailService.stored(in: directory) { $0.name = "two" }
        _ = try await run(request(), in: one)
        #expect(await !two.hasMemoryCache(for: request()))
        #expect(await !two.hasDiskCache(for: request()))
        #expect(one.thumbnails.name == "Thumbnails_one")
        #expect(two.placeholders.name == "Placeholders_two")
        #expect(ThumbnailService.stored(in: directory).thumbnails.name == "Thumbnails")
    }

    @Test func keysWithSlashesReachTheDisk() async throws {
        let service = ThumbnailService.stored(in: directory)
        let key = CacheKey("../reports/2024: a/b\u{0}c")
        _ = try await run(request(key), in: service)
        try await service.clear(.memory)
        _ = try await run(request(key), in: service)
        #expect(service.statistics.fromDisk == 1)
        #expect(calls.value == 1)
    }

    @Test func clearingForgets() async throws {
        let service = ThumbnailService.stored(in: directory)
        _ = try await run(request(), in: service)
        try await service.clear()
        #expect(await !service.hasMemoryCache(for: request()))
        #expect(await !service.hasDiskCache(for: request()))
        _ = try await run(request("a", 40), in: service)
        #expect(calls.value == 2)
    }

    @Test func memoryPressureEmptiesMemory() async throws {
        let pressure = MemoryPressure(source: nil)
        let service = ThumbnailService.stored(in: directory) { $0.memoryPressure = pressure }
        _ = try await run(request(), in: service)
        pressure.send(.critical)
        #expect(service.cachedThumbnail(for: ClosureSource.picture("a"), size: PixelSize(100)) == nil)
    }

    @Test func theLeanPresetIsLean() {
        let lean = ThumbnailService.Configuration.memoryLean
        #expect(lean.concurrency == 1)
        #expect(lean.memoryCapacity == .mebibytes(3))
        #expect(ThumbnailService.Configuration.standard.concurrency == ProcessorCount.active)
    }

    // MARK: Damage and change

    @Test func damagedEntriesAreMadeAgain() async throws {
        let service = ThumbnailService.stored(in: directory)
        let key = service.key(of: request(), identity: "a")
        let disk = try #require(service.thumbnails.disk())
        try await disk.set([1, 2, 3], forKey: key)
        #expect(try await run(request(), in: service).width == 100)
        #expect(calls.value == 1)
        try await service.thumbnails.flush()
        #expect(try await disk.bytes(forKey: key) != [1, 2, 3])
    }

    /// The size of a file's text, as a picture.
    private struct TextSource: ThumbnailSource {
        let path: String
        func identity() throws(ThumbnailError) -> CacheKey { try FileIdentity.key(of: path) }
        func thumbnail(_ request: RenderRequest) throws -> Image {
            let text = try FileContents.read(path)
            return Image(size: PixelSize(width: 10, height: text.count), color: .black)
        }
    }

    @Test func editedFilesAreNotShownStale() async throws {
        let service = ThumbnailService.stored(in: directory)
        let source = TextSource(path: directory.file("text"))
        try directory.write("four", to: "text")
        #expect(try await service.thumbnail(for: source, size: PixelSize(99)).height == 4)
        try directory.write("seven..", to: "text")
        #expect(try await service.thumbnail(for: source, size: PixelSize(99)).height == 7)
        #expect(service.statistics.made == 2)
        try FileManager.default.removeItem(atPath: source.path)
        await #expect(throws: ThumbnailError.self) { try await service.thumbnail(for: source, size: PixelSize(99)) }
    }

    // MARK: Siblings

    @Test func smallerOnesAreMadeFromLargerOnes() async throws {
        let service = ThumbnailService.stored(in: directory)
        _ = try await run(request("a", 400), in: service)
        #expect(try await run(request("a", 200), in: service).size == PixelSize(width: 200, height: 100))
        #expect(try await run(request("a", 100, mode: .crop(.center)), in: service).size == PixelSize(100))
        #expect(calls.value == 1)
        #expect(service.statistics.fromSibling == 2)
        // Not twice the pixels, and a crop lacks what was cut off.
        _ = try await run(request("a", 201), in: service)
        #expect(calls.value == 2)
        _ = try await run(request("b", 400, mode: .crop(.center)), in: service)
        _ = try await run(request("b", 100), in: service)
        #expect(calls.value == 4)
        // They are kept as well.
        #expect(await service.hasDiskCache(for: request("a", 200)))
    }

    @Test func largerOnesOfEarlierRunsServeToo() async throws {
        let first = ThumbnailService.stored(in: directory)
        for key in ["a", "b"] as [CacheKey] { _ = try await run(request(key, 400), in: first) }
        try await first.thumbnails.flush()
        let second = ThumbnailService.stored(in: directory)
        _ = try await run(request("a", 400), in: second)
        try await second.clear(.memory)
        let service = ThumbnailService.stored(in: directory)
        _ = try await run(request("a", 400), in: service)
        // Only sizes this service has used are looked for.
        #expect(try await run(request("b", 100), in: service).width == 100)
        #expect(calls.value == 2)
        #expect(service.statistics.fromSibling == 1)
    }

    @Test func whatMayNotGrowIsNotMadeFromWhatHasGrown() async throws {
        let service = ThumbnailService.stored(in: directory)
        let source = ClosureSource.picture("a", calls: calls)
        _ = try await service.thumbnail(for: source, size: PixelSize(4_000))
        let small = ThumbnailRequest(source, size: PixelSize(2_000), allowsUpscaling: false)
        #expect(try await run(small, in: service).size == PixelSize(width: 1_000, height: 500))
        #expect(calls.value == 2)
    }

    @Test func aLargerOneThatComesWhileOneWaitsServesIt() async throws {
        let service = ThumbnailService.withoutDisk(concurrency: 1)
        let source = FiringSource()
        let large = ThumbnailRequest.counted(source, 400)
        service.enqueue(large)
        await source.begun.reach(1)
        let small = ThumbnailRequest.counted(source, 100)
        service.enqueue(small)
        source.fire()
        #expect(try await small.value.width == 100)
        #expect(source.begun.count == 1)
        #expect(service.statistics.fromSibling == 1)
    }

    // MARK: Placeholders

    @Test(arguments: [true, false])
    func placeholdersAreKeptIfAskedFor(isKept: Bool) async throws {
        let made = Counter()
        let source = ClosureSource(key: "a") { _ in
            made.add(1)
            return Image(size: PixelSize(2), color: .white)
        } make: { _ in
            Image(size: PixelSize(3), color: .black)
        }
        for run in 0..<2 {
            let service = ThumbnailService.stored(in: directory) { $0.cachesPlaceholders = isKept }
            for size in [10, 10] {
                let request = ThumbnailRequest.counted(source, size)
                request.cacheOptions = []
                service.enqueue(request)
                #expect(try await request.placeholder?.width == 2)
                _ = try await request.value
            }
            try await service.placeholders.flush()
            #expect(made.value == (isKept ? 1 : 2 * (run + 1)))
        }
    }
}
