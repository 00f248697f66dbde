import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineImaging
import VitrinePipeline

@Suite struct ImageTaskTests {
    private let service = ImagePipeline.withoutDisk(concurrency: 1)

    @Test func countsPixelsByScale() {
        let source = ClosureSource.picture("a")
        #expect(
            ImageTask(ImageRequest(source, resizing: ImageResizer(size: PixelSize(width: 101, height: 50), mode: .fit), scale: 1.5)).request.pixelSize
                == PixelSize(width: 152, height: 75))
        for scale in [0, -1, .infinity, .nan] as [Double] {
            #expect(ImageTask(ImageRequest(source, resizing: .fit(10), scale: scale)).request.pixelSize.isEmpty)
        }
    }

    @Test func stylesHoldSizeAndProcessors() async throws {
        let source = ClosureSource.picture("a")
        let round = ImageStyle("round", resizing: .crop(width: 20, height: 20), processors: [.circle()])
        let request = ImageRequest(source, style: round, scale: 2, priority: .high)
        let same = ImageRequest(source, resizing: .crop(width: 40, height: 40), processors: [.circle()])
        #expect(service.key(of: request, identity: "a") == service.key(of: same, identity: "a"))
        #expect(request.priority == .high)
        let image = try await service.image(for: request)
        #expect(image.size == PixelSize(40) && image[0, 0].alpha == 0)
        // A closure is known by the name of its style.
        let red = ImageStyle("red") { image in PixelImage(size: image.size, color: PixelColor(red: 255, green: 0, blue: 0)) }
        let blue = ImageStyle("blue") { image in PixelImage(size: image.size, color: PixelColor(red: 0, green: 0, blue: 255)) }
        #expect(try await service.image(for: ImageRequest(source, style: red))[0, 0].red == 255)
        #expect(try await service.image(for: ImageRequest(source, style: blue))[0, 0].blue == 255)
        #expect(red != blue && red.name == "red")
        let url = URL(filePath: Samples.path("lake.jpg"))
        #expect(try await service.image(for: ImageRequest(url, style: red))[0, 0].red == 255)
        #expect(try await service.start(url, resizing: .fit(8)).value.size.longestSide == 8)
    }

    @Test func aStyleIsAFormatOfACache() async throws {
        let directory = try TemporaryDirectory()
        let cache = ValueCache<PixelImage>(name: "styles", configuration: CacheConfiguration(root: directory.path))
        let style = ImageStyle(
            "badge", resizing: .crop(width: 20, height: 10), processors: [.flip(.horizontal)], format: .png)
        cache.register(CacheFormat(style, diskCapacity: .megabytes(1)))
        let picture = PixelImage(size: PixelSize(width: 80, height: 80), color: .white)
        let badge = try await cache.set(picture, forKey: "a", format: "badge")
        #expect(badge.size == PixelSize(width: 20, height: 10))
        try await cache.flush()
        let bytes = try #require(try await cache.bytes(forKey: "a", format: "badge"))
        #expect(ImageFormat.detect(Array(bytes.prefix(64))) == .png)
        #expect(cache.format("badge")?.diskCapacity == .megabytes(1))
    }

    @Test func tellsIdentitiesApart() {
        let source = ClosureSource.picture("a")
        let requests = [
            ImageTask(ImageRequest(source, resizing: .fit(100))), ImageTask(ImageRequest(source, resizing: .fit(100), scale: 2)),
            ImageTask(ImageRequest(source, resizing: ImageResizer(size: PixelSize(100), mode: .fill))),
            ImageTask(ImageRequest(source, resizing: ImageResizer(size: PixelSize(100), mode: .crop(.center)))),
            ImageTask(ImageRequest(source, resizing: ImageResizer(size: PixelSize(100), mode: .fit, allowsUpscaling: false))),
        ]
        #expect(Set(requests.map { service.key(of: $0.request, identity: "a") }).count == requests.count)
        #expect(
            service.key(of: ImageRequest(source, resizing: .fit(50), scale: 2), identity: "a")
                == service.key(of: requests[0].request, identity: "a"))
    }

    @Test func refusesWhatHasNoSize() async throws {
        for size in [PixelSize.zero, PixelSize(width: 10, height: -1)] {
            let bad = ImageTask(ImageRequest(ClosureSource.picture("a"), resizing: ImageResizer(size: size, mode: .fit)))
            service.start(bad)
            #expect(await bad.ending == .failed)
        }
        let own = ImageTask(ImageRequest(ClosureSource.picture("a"), resizing: ImageResizer(size: .zero, mode: .none)))
        service.start(own)
        #expect(try await own.value.size == PixelSize(width: 1_000, height: 500))
    }

    @Test func letsAnyNumberWaitInAnyWay() async throws {
        let source = FiringSource()
        let request = ImageTask.counted(source)
        let waiting = (0..<4).map { _ in Task { try await request.value.size } }
        let blocked = (0..<2).map { _ in
            Task { try await onThread { try request.blocking.value().size } }
        }
        service.start(request)
        source.fire()
        for task in waiting + blocked { #expect(try await task.value == PixelSize(width: 100, height: 50)) }
        #expect(try request.blocking.value().width == 100)
        #expect(request.blocking.preview() != nil)
        #expect(try await request.sourcePreview != nil)
    }

    @Test func endingAWaitLeavesTheRequest() async throws {
        let source = FiringSource()
        let request = ImageTask.counted(source)
        service.start(request)
        let waiting = Task { try await request.value }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        source.fire()
        #expect(await request.ending == .finished)
    }

    @Test func tellsClosuresThatComeLate() async throws {
        let source = FiringSource()
        let request = ImageTask(ImageRequest(source, resizing: .fit(100)))
        service.start(request)
        await source.begun.reach(1)
        let seen = Recorder<String>()
        request.onPreview(on: .immediate) { _ in seen.add("placeholder") }
        _ = try await request.sourcePreview
        source.fire()
        _ = try await request.value
        request.onImage(on: .immediate) { _ in seen.add("thumbnail") }
        request.onPreview(on: .immediate) { _ in seen.add("placeholder again") }
        #expect(seen.all == ["placeholder", "thumbnail", "placeholder again"])
    }

    @Test func placeholdersComeBeforeThumbnails() async throws {
        for index in 0..<50 {
            let seen = Recorder<String>()
            let source = ClosureSource(key: CacheKey("\(index)")) { _ in
                PixelImage(size: PixelSize(2), color: .white)
            } make: { _ in
                PixelImage(size: PixelSize(3), color: .black)
            }
            let request = ImageTask(ImageRequest(source, resizing: .fit(3)))
                request.onPreview(on: .immediate) { _ in seen.add("placeholder") }.onImage(on: .immediate) { _ in seen.add("thumbnail") }
            service.start(request)
            _ = try await request.value
            #expect(seen.all == ["placeholder", "thumbnail"])
        }
    }

    @Test func aThumbnailWaitsForItsPlaceholder() async throws {
        let slow = FiringSource("slow placeholder")
        let source = ClosureSource(key: "a") { try slow.image($0) } make: { _ in
            PixelImage(size: PixelSize(3), color: .black)
        }
        let seen = Recorder<String>()
        let request = ImageTask(ImageRequest(source, resizing: .fit(3)))
        request.onPreview(on: .immediate) { _ in seen.add("placeholder") }.onImage(on: .immediate) { _ in seen.add("thumbnail") }
        let other = ImageTask.counted(source, 3)
        service.start(request)
        // Without a closure for placeholders nobody waits for one, and slow ones hold nobody else up.
        let plain = ImageTask(ImageRequest(source, resizing: .fit(3)))
        service.start(plain)
        _ = try await plain.value
        await slow.begun.reach(1)
        #expect(seen.all.isEmpty)
        slow.fire()
        _ = try await request.value
        #expect(seen.all == ["placeholder", "thumbnail"])
        // What is in memory needs no placeholder.
        service.start(other)
        #expect(other.state == .finished)
        #expect(slow.begun.count == 1)
    }

    @Test func aPlaceholderThatFailsIsNone() async throws {
        let source = ClosureSource(key: "a") { _ in throw TestFailure() } make: { _ in
            PixelImage(size: PixelSize(3), color: .black)
        }
        let request = ImageTask.counted(source)
        service.start(request)
        #expect(try await request.sourcePreview == nil)
        #expect(try await request.value.width == 3)
    }

    @Test @MainActor func nothingIsCalledAfterCancelling() async throws {
        let source = ClosureSource.picture("a")
        let calls = Counter()
        let request = ImageTask(ImageRequest(source, resizing: .fit(100))).onImage { _ in calls.add(1) }
        service.start(request)
        // On this actor nothing of the delivery can come in between: it is made, and not told yet.
        let made = AsyncPromise<Void>()
        Task.detached { _ = try? await request.value; made.fulfill(()) }
        made.wait()
        request.cancel()
        for _ in 0..<10 { await Task.yield() }
        #expect(calls.value == 0)
        #expect(request.state == .finished)
    }

    @Test func isUsedOnce() async throws {
        let request = ImageTask.counted(ClosureSource.picture("a"))
        service.start(request)
        _ = try await request.value
        service.start(request)
        request.cancel()
        #expect(request.state == .finished)
        #expect(service.statistics.calls == 1)
    }

    @Test func knowsItsState() async throws {
        let source = FiringSource()
        let request = ImageTask.counted(source)
        #expect(request.state == .new)
        service.setSuspended(true)
        service.start(request)
        #expect(request.state == .queued)
        service.setSuspended(false)
        await source.begun.reach(1)
        #expect(request.state == .running)
        source.fire()
        #expect(await request.ending == .finished)
        let cancelled = ImageTask.counted(source)
        cancelled.cancel()
        #expect(cancelled.state == .cancelled)
        service.start(cancelled)
        await #expect(throws: CancellationError.self) { try await cancelled.value }
    }

    // MARK: Requests

    @Test func processorsArePartOfTheResult() async throws {
        let calls = Counter()
        let source = ClosureSource.picture("a", color: PixelColor(red: 200, green: 40, blue: 0), calls: calls)
        let plain = ImageRequest(source, resizing: .fit(100))
        var grey = plain
        grey.processors = [.grayscale]
        let colored = try await service.image(for: plain)
        let processed = try await service.image(for: grey)
        #expect(try colored.processed(by: [.grayscale]) == processed)
        #expect(service.cachedImage(for: plain) == colored)
        #expect(service.cachedImage(for: grey) == processed)
        // Half the size is made from the larger image without processors, never from the processed one.
        var small = grey
        small.resizing = .fit(40)
        #expect(try await service.image(for: small).size.longestSide == 40)
        #expect(service.statistics.fromDerived == 1)
    }

    @Test func aProcessorThatThrowsFailsItsRequestAlone() async throws {
        let source = ClosureSource.picture("a")
        service.setSuspended(true)
        let good = service.start(ImageRequest(source, resizing: .fit(100)))
        let failing = ImageProcessor.custom(identifier: "failing") { _ throws(ImageError) in
            throw .invalidRequest(reason: "no")
        }
        let bad = service.start(ImageRequest(source, resizing: .fit(100), processors: [failing]))
        service.setSuspended(false)
        #expect(try await good.value.size.longestSide == 100)
        await #expect(throws: ImagePipelineError.self) { try await bad.value }
        #expect(bad.state == .failed)
    }

    @Test func previewsComeBeforeTheImageAndEndWithTheTask() async throws {
        let source = FiringSource()
        let task = service.start(ImageRequest(source, resizing: .fit(100)))
        var seen: [Int] = []
        for await preview in task.previews {
            seen.append(preview.width)
            source.fire()
        }
        #expect(seen == [2])
        #expect(try await task.value.width == 100)
        for await _ in task.previews.dropFirst() { Issue.record("A preview after the end") }
    }

    @Test @MainActor func closuresUseTheMainActorWithoutWords() async throws {
        final class Cell { var image: PixelImage? }
        let cell = Cell()
        let task = service.start(ImageRequest(ClosureSource.picture("a"), resizing: .fit(100)))
        task.onImage { cell.image = try? $0.get() }
        _ = try await task.value
        while cell.image == nil { await Task.yield() }
        #expect(cell.image?.width == 100)
    }

    @Test func theSharedPipelineCanBeReplaced() async throws {
        let before = ImagePipeline.shared
        defer { ImagePipeline.shared = before }
        ImagePipeline.shared = service
        #expect(ImagePipeline.shared === service)
    }

    @Test func aFileIsReadByItsContent() async throws {
        #expect(try await service.image(for: ImageRequest(.file(Samples.path("lake.pdf")), resizing: .fit(50))).size.longestSide == 50)
        #expect(try await service.image(for: ImageRequest(.file(Samples.path("lake.mp4")), resizing: .fit(50))).size.longestSide == 50)
        #expect(try await service.image(for: ImageRequest(.bytes(Samples.bytes("leaf.png")), resizing: .fit(20))).width == 20)
        #expect(try await service.image(for: URL(filePath: Samples.path("leaf.png"))).width == ImageInfo(of: .file(Samples.path("leaf.png"))).size.width)
        let document = try await service.image(for: ImageRequest(.pdf(Samples.path("lake.pdf"), page: 2), resizing: .fit(50)))
        #expect(try await service.image(for: ImageRequest(.file(Samples.path("lake.pdf"), page: 2), resizing: .fit(50))) == document)
        #expect(try await service.image(for: ImageRequest(.video(Samples.path("lake.mp4")), resizing: .fit(50))).width == 50)
    }
}
