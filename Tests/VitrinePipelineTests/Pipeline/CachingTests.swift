import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// What is kept, where, and when it is used.
@Suite struct CachingTests {
    private let directory: TemporaryDirectory
    private let calls = Counter()

    init() throws { directory = try TemporaryDirectory() }

    private func request(
        _ key: CacheKey = "a", _ size: Int = 100, mode: ImageResizer.Mode = .fit,
        _ options: CacheLevels = .all
    ) -> ImageTask {
        let size = ImageResizer(size: PixelSize(size), mode: mode)
        var request = ImageRequest(ClosureSource.picture(key, calls: calls), resizing: size)
        request.cacheLevels = options
        return ImageTask(request)
    }

    private func run(_ request: ImageTask, in service: ImagePipeline) async throws -> PixelImage {
        service.start(request)
        return try await request.value
    }

    // MARK: Levels

    @Test func memoryAnswersAtOnceAndDiskLater() async throws {
        let service = ImagePipeline.stored(in: directory)
        let made = try await run(request(), in: service)
        let again = request()
        let seen = Counter()
        again.onImage(on: .immediate) { _ in seen.add(1) }
        service.start(again)
        #expect(seen.value == 1)
        #expect(again.state == .finished)
        #expect(
            service.cachedImage(for: ImageRequest(ClosureSource.picture("a"), resizing: .fit(100)))?.size == made.size)
        try await service.cache.flush()

        let next = ImagePipeline.stored(in: directory)
        #expect(try await run(request(), in: next).size == made.size)
        #expect(calls.value == 1)
        #expect(next.statistics.fromDisk == 1)
        #expect(await next.contains(request().request, at: .memory))
    }

    @Test func resultsAreStoredInTheFormatOfTheirStyle() async throws {
        let small = ImageStyle("small", resizing: .fit(100), format: .webp(quality: 0.5))
        let source = ClosureSource.picture("a", calls: calls)
        let styled = ImageRequest(source, style: small)
        let service = ImagePipeline.stored(in: directory)
        let key = service.key(of: styled, identity: "a")
        // Requests in other formats have other results.
        var other = styled
        other.format = .webp(quality: 0.6)
        #expect(key != service.key(of: other, identity: "a"))
        let made = try await service.image(for: styled)
        _ = try await service.image(for: request().request)
        try await service.cache.flush()
        let bytes = try #require(try await service.cache.bytes(forKey: key))
        #expect(ImageFormat.detect(Array(bytes.prefix(64))) == .webp)
        #expect(bytes == (try made.encoded(as: .webp(quality: 0.5))))
        let plainKey = service.key(of: request().request, identity: "a")
        let plain = try #require(try await service.cache.bytes(forKey: plainKey))
        #expect(ImageFormat.detect(Array(plain.prefix(64))) == .jpeg)
        #expect(calls.value == 2)

        let next = ImagePipeline.stored(in: directory)
        #expect(try await next.image(for: styled).size == made.size)
        #expect(next.statistics.fromDisk == 1)
        // A format may have lost details, so smaller images are not made of its results.
        let smaller = ImageRequest(source, resizing: .fit(10))
        try await next.removeAll(levels: .all)
        _ = try await next.image(for: styled)
        _ = try await next.image(for: smaller)
        #expect(calls.value == 4)
        await next.waitUntilIdle()
    }

    /// However quickly the disk answers: the task has ended before its closures are added.
    @Test @MainActor func whatWasNotInMemoryIsNeverToldWithinTheCall() async throws {
        let service = ImagePipeline.stored(in: directory)
        _ = try await service.image(for: request().request)
        try await service.cache.flush()
        let next = ImagePipeline.stored(in: directory)
        let seen = Recorder<String>()
        let fromDisk = next.start(request().request)
        _ = try await fromDisk.value
        await withCheckedContinuation { done in
            fromDisk.onImage { _ in
                seen.add("disk")
                done.resume()
            }
            #expect(seen.all.isEmpty)
        }
        next.start(request().request).onImage { _ in seen.add("memory") }
        #expect(seen.all == ["disk", "memory"])
        #expect(next.statistics.fromDisk == 1 && next.statistics.fromMemory == 1)
    }

    @Test func callersThatMayBlockGetMemoryHitsOfFilesAtOnce() async throws {
        let service = ImagePipeline.stored(in: directory)
        let source = FiringSource(knowsItself: false)
        source.fire()
        _ = try await service.image(for: ImageRequest(source, resizing: .fit(10)))
        let state = try await onThread {
            let request = ImageTask(ImageRequest(source, resizing: .fit(10)))
            service.start(request)
            return request.state
        }
        #expect(state == .finished)
    }

    @Test func flagsOfRequestsAreUnited() async throws {
        let service = ImagePipeline.stored(in: directory)
        service.setSuspended(true)
        let requests = [request("a", 100, []), request("a", 100, .memory), request("a", 100, .disk)]
        for request in requests { service.start(request) }
        service.setSuspended(false)
        for request in requests { _ = try await request.value }
        #expect(await service.contains(request().request, at: .memory))
        #expect(await service.contains(request().request, at: .disk))
        #expect(await !service.contains(request("a", 100, .memory).request, at: .disk))
        #expect(await !service.contains(request("a", 100, .disk).request, at: .memory))
    }

    @Test func flagsSayWhatIsKeptAndWhatIsUsed() async throws {
        let service = ImagePipeline.stored(in: directory)
        _ = try await run(request("none", 100, []), in: service)
        #expect(await !service.contains(request("none").request, at: .memory))
        #expect(await !service.contains(request("none").request, at: .disk))
        _ = try await run(request("disk", 100, .disk), in: service)
        #expect(await !service.contains(request("disk").request, at: .memory))
        #expect(await service.contains(request("disk").request, at: .disk))
        _ = try await run(request("disk", 100, .disk), in: service)
        #expect(await !service.contains(request("disk").request, at: .memory))
        #expect(calls.value == 2)
        _ = try await run(request("disk", 100, .memory), in: service)
        #expect(calls.value == 3)
    }

    @Test func aServiceWithoutALevelDoesNotUseIt() async throws {
        let withoutMemory = ImagePipeline.stored(in: directory) { $0.usesMemoryCache = false }
        _ = try await run(request(), in: withoutMemory)
        #expect(withoutMemory.cachedImage(for: ImageRequest(ClosureSource.picture("a"), resizing: .fit(100))) == nil)
        #expect(await !withoutMemory.contains(request().request, at: .memory))
        _ = try await run(request(), in: withoutMemory)
        #expect(withoutMemory.statistics.fromDisk == 1)
        try await withoutMemory.cache.flush()

        let withoutDisk = ImagePipeline.stored(in: directory) { $0.usesDiskCache = false }
        #expect(await !withoutDisk.contains(request().request, at: .disk))
        let other = request()
        #expect(!withoutDisk.isOnDisk(other.request))
        withoutDisk.start(other)
        _ = try await other.value
        #expect(withoutDisk.statistics.made == 1)
        // It does not use the disk, and clears it all the same.
        try await withoutDisk.removeAll(levels: .disk)
        let third = ImagePipeline.stored(in: directory)
        #expect(await !third.contains(request().request, at: .disk))
    }

    @Test func contextsDoNotLeakIntoEachOther() async throws {
        let one = ImagePipeline.stored(in: directory) { $0.name = "one" }
        let two = ImagePipeline.stored(in: directory) { $0.name = "two" }
        _ = try await run(request(), in: one)
        #expect(await !two.contains(request().request, at: .memory))
        #expect(await !two.contains(request().request, at: .disk))
        #expect(one.cache.name == "Thumbnails_one")
        #expect(two.sourcePreviews.name == "SourcePreviews_two")
        #expect(ImagePipeline.stored(in: directory).cache.name == "Thumbnails")
    }

    @Test func keysWithSlashesReachTheDisk() async throws {
        let service = ImagePipeline.stored(in: directory)
        let key = CacheKey("../reports/2024: a/b\u{0}c")
        _ = try await run(request(key), in: service)
        try await service.removeAll(levels: .memory)
        _ = try await run(request(key), in: service)
        #expect(service.statistics.fromDisk == 1)
        #expect(calls.value == 1)
    }

    @Test func clearingForgets() async throws {
        let service = ImagePipeline.stored(in: directory)
        _ = try await run(request(), in: service)
        try await service.removeAll()
        #expect(await !service.contains(request().request, at: .memory))
        #expect(await !service.contains(request().request, at: .disk))
        _ = try await run(request("a", 40), in: service)
        #expect(calls.value == 2)
    }

    @Test func memoryPressureEmptiesMemory() async throws {
        let pressure = MemoryPressure(source: nil)
        let service = ImagePipeline.stored(in: directory) { $0.memoryPressure = pressure }
        weak let pixels = try await run(request(), in: service).sharedPixels
        pressure.send(.critical)
        // Whoever still holds the image lets memory find it again: the thread that made it may do so for a moment.
        for _ in 0..<1_000_000 where pixels != nil { await Task.yield() }
        #expect(service.cachedImage(for: ImageRequest(ClosureSource.picture("a"), resizing: .fit(100))) == nil)
    }

    @Test func theLeanPresetIsLean() {
        let lean = ImagePipeline.Configuration.memoryLean
        #expect(lean.concurrency == 1)
        #expect(lean.memoryCapacity == .mebibytes(3))
        #expect(ImagePipeline.Configuration().concurrency == ProcessorCount.active)
    }

    @Test func keysOnDiskNeverChange() {
        let service = ImagePipeline.stored(in: directory)
        func key(_ size: ImageResizer, _ scale: Double = 1) -> CacheKey {
            service.key(of: ImageRequest(ClosureSource.picture("a"), resizing: size, scale: scale), identity: "a")
        }
        #expect(key(.none) == CacheKey("a", "0x0", "none"))
        #expect(key(.fit(width: 300, height: 20), 2) == CacheKey("a", "600x40", "fit"))
        #expect(key(.fit(width: 100, height: 50), 1.1) == CacheKey("a", "110x55", "fit"))
        #expect(key(.limit(width: 12_345, height: 0)) == CacheKey("a", "12345x0", "limit", "no-upscaling"))
        var small = ImageResizer.fill(width: 1, height: 2)
        small.allowsUpscaling = false
        #expect(key(small) == CacheKey("a", "1x2", "cover", "no-upscaling"))
    }

    // MARK: Damage and change

    @Test func damagedEntriesAreMadeAgain() async throws {
        let service = ImagePipeline.stored(in: directory)
        let key = service.key(of: request().request, identity: "a")
        let disk = try #require(service.cache.disk())
        try await disk.set([1, 2, 3], forKey: key)
        #expect(try await run(request(), in: service).width == 100)
        #expect(calls.value == 1)
        try await service.cache.flush()
        #expect(try await disk.bytes(forKey: key) != [1, 2, 3])
    }

    /// The size of a file's text, as a picture.
    private struct TextSource: BlockingImageSource {
        let path: String
        func identity() throws(ImagePipelineError) -> CacheKey { try FileIdentity.key(of: path) }
        func image(_ request: RenderRequest) throws -> PixelImage {
            let text = try FileContents.read(path)
            return PixelImage(size: PixelSize(width: 10, height: text.count), color: .black)
        }
    }

    @Test func editedFilesAreNotShownStale() async throws {
        let service = ImagePipeline.stored(in: directory)
        let source = TextSource(path: directory.file("text"))
        try directory.write("four", to: "text")
        #expect(try await service.image(for: ImageRequest(source, resizing: .fit(99))).height == 4)
        try directory.write("seven..", to: "text")
        #expect(try await service.image(for: ImageRequest(source, resizing: .fit(99))).height == 7)
        #expect(service.statistics.made == 2)
        try FileManager.default.removeItem(atPath: source.path)
        await #expect(throws: ImagePipelineError.self) { try await service.image(for: ImageRequest(source, resizing: .fit(99))) }
    }

    // MARK: Siblings

    @Test func smallerOnesAreMadeFromLargerOnes() async throws {
        let service = ImagePipeline.stored(in: directory)
        _ = try await run(request("a", 400), in: service)
        #expect(try await run(request("a", 200), in: service).size == PixelSize(width: 200, height: 100))
        #expect(try await run(request("a", 100, mode: .crop(.center)), in: service).size == PixelSize(100))
        #expect(calls.value == 1)
        #expect(service.statistics.fromDerived == 2)
        // Not twice the pixels, and a crop lacks what was cut off.
        _ = try await run(request("a", 201), in: service)
        #expect(calls.value == 2)
        _ = try await run(request("b", 400, mode: .crop(.center)), in: service)
        _ = try await run(request("b", 100), in: service)
        #expect(calls.value == 4)
        // They are kept as well.
        #expect(await service.contains(request("a", 200).request, at: .disk))
    }

    @Test func largerOnesOfEarlierRunsServeToo() async throws {
        let first = ImagePipeline.stored(in: directory)
        for key in ["a", "b"] as [CacheKey] { _ = try await run(request(key, 400), in: first) }
        try await first.cache.flush()
        let second = ImagePipeline.stored(in: directory)
        _ = try await run(request("a", 400), in: second)
        try await second.removeAll(levels: .memory)
        let service = ImagePipeline.stored(in: directory)
        _ = try await run(request("a", 400), in: service)
        // Only sizes this service has used are looked for.
        #expect(try await run(request("b", 100), in: service).width == 100)
        #expect(calls.value == 2)
        #expect(service.statistics.fromDerived == 1)
    }

    @Test func whatMayNotGrowIsNotMadeFromWhatHasGrown() async throws {
        let service = ImagePipeline.stored(in: directory)
        let source = ClosureSource.picture("a", calls: calls)
        _ = try await service.image(for: ImageRequest(source, resizing: .fit(4_000)))
        let small = ImageTask(ImageRequest(source, resizing: ImageResizer(size: PixelSize(2_000), mode: .fit, allowsUpscaling: false)))
        #expect(try await run(small, in: service).size == PixelSize(width: 1_000, height: 500))
        #expect(calls.value == 2)
    }

    @Test func aLargerOneThatComesWhileOneWaitsServesIt() async throws {
        let service = ImagePipeline.withoutDisk(concurrency: 1)
        let source = FiringSource()
        let large = ImageTask.counted(source, 400)
        service.start(large)
        await source.begun.reach(1)
        let small = ImageTask.counted(source, 100)
        service.start(small)
        source.fire()
        #expect(try await small.value.width == 100)
        #expect(source.begun.count == 1)
        #expect(service.statistics.fromDerived == 1)
    }

    // MARK: Placeholders

    @Test(arguments: [true, false])
    func placeholdersAreKeptIfAskedFor(isKept: Bool) async throws {
        let made = Counter()
        let source = ClosureSource(key: "a") { _ in
            made.add(1)
            return PixelImage(size: PixelSize(2), color: .white)
        } make: { _ in
            PixelImage(size: PixelSize(3), color: .black)
        }
        for run in 0..<2 {
            let service = ImagePipeline.stored(in: directory) { $0.cachesPreviews = isKept }
            for size in [10, 10] {
                let request = ImageTask.counted(source, size, levels: [])
                service.start(request)
                #expect(try await request.sourcePreview?.width == 2)
                _ = try await request.value
            }
            try await service.sourcePreviews.flush()
            #expect(made.value == (isKept ? 1 : 2 * (run + 1)))
        }
    }
}
