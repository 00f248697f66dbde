import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineViews

/// Where contents come from, and at which size (R139, R35, R145).
@MainActor
struct ImageContentTests {
    private let target = HeadlessTarget<Image>()
    private let binding: ImageBinding<HeadlessTarget<Image>>
    private let fixture: ViewFixture<Image>

    init() throws {
        fixture = try ViewFixture()
        binding = ImageBinding(target)
    }

    private var isOver: Bool {
        switch binding.state {
        case .shown, .failed: true
        case .empty, .loading: false
        }
    }

    @Test func filesComeAtTheTargetsSize() async throws {
        target.targetGeometry = TargetGeometry(width: 50, height: 40, scale: 2, mode: .crop(.center))
        binding.set(.file(Samples.path("lake.jpg"), in: fixture.cache))
        await wait { isOver }
        #expect(target.value?.size == PixelSize(width: 100, height: 80))
        let name: FormatName = "auto-100x80-crop-center"
        #expect(fixture.cache.formatNames.contains(name))
        #expect(fixture.cache.format(name)?.diskCapacity == .mebibytes(50))
    }

    @Test func targetsWithoutASizeTakeImagesAsTheyAre() async throws {
        binding.set(.file(Samples.path("lake.jpg"), in: fixture.cache))
        await wait { isOver }
        let size = try ImageInfo(of: .file(Samples.path("lake.jpg"))).size
        #expect(target.value?.size == size)
        #expect(TargetGeometry(width: 0, height: 40) == nil)
        #expect(TargetGeometry(width: .nan, height: 40) == nil)
        #expect(TargetGeometry(width: 40, height: 40, scale: .infinity) == nil)
        #expect(TargetGeometry(width: 33.4, height: 10, scale: 1.5)?.size == PixelSize(width: 51, height: 15))
    }

    @Test func anotherSizeIsLoadedAndTheOldShownUntilItIsThere() async {
        target.targetGeometry = TargetGeometry(width: 40, height: 40)
        binding.options.placeholder = Image(size: PixelSize(1))
        let path = Samples.path("lake.jpg")
        binding.set(.file(path, in: fixture.cache))
        await wait { isOver }
        let before = target.shown.count
        binding.targetSizeDidChange()
        #expect(target.shown.count == before)
        target.targetGeometry = TargetGeometry(width: 80, height: 80)
        binding.targetSizeDidChange()
        #expect(target.shown.count == before && !isOver)
        await wait { isOver }
        #expect(target.value?.size.longestSide == 80)
        #expect(target.shown.count == before + 1)
    }

    @Test func processorsHaveFormatsOfTheirOwn() async throws {
        target.targetGeometry = TargetGeometry(width: 64, height: 64, mode: .crop(.center))
        let path = Samples.path("lake.jpg")
        binding.set(.file(path, in: fixture.cache, processors: [.roundCorners(20)]))
        await wait { isOver }
        let rounded = try #require(target.value)
        #expect(rounded.size == PixelSize(64) && rounded.alpha != .opaque)
        let plain = fixture.cache.format(for: target.targetGeometry)
        let other = fixture.cache.format(for: target.targetGeometry, processors: [.roundCorners(21)])
        #expect(Set(fixture.cache.formatNames).isSuperset(of: [plain, other]))
        #expect(plain != other && fixture.cache.formatNames.count == 4)
        #expect(fixture.cache.format(for: nil) == .original)
    }

    @Test func valuesAreMadeWhereNothingIsBlocked() async {
        target.targetGeometry = TargetGeometry(width: 8, height: 8)
        binding.set(.value(Image(size: PixelSize(16), color: .white), forKey: "white", in: fixture.cache))
        #expect(target.shown.isEmpty)
        await wait { isOver }
        #expect(target.value?.size == PixelSize(8))
    }

    @Test func imagesThatAreThereAreShown() {
        binding.set(.image(Image(size: PixelSize(3))))
        #expect(target.value?.size == PixelSize(3) && target.transition == ImageTransition.none)
    }

    @Test func ownContentIsLoadedInATaskOfItsOwn() async {
        target.targetGeometry = TargetGeometry(width: 5, height: 6)
        let content = ImageContent<Image>(id: "own") { box in Image(size: box?.size ?? PixelSize(1)) }
        binding.set(content)
        await wait { isOver }
        #expect(target.value?.size == PixelSize(width: 5, height: 6))
        #expect(target.transition == .standard)
        let failing = ImageContent<Image>(id: nil) { _ in throw SourceFailure() }
        var failure: (any Error)?
        binding.set(failing, onFailure: { failure = $0 })
        await wait { isOver }
        #expect(failure is SourceFailure)
    }

    #if os(Linux)
    @Test func urlsAreLoadedKeptAndRefusedInWords() async throws {
        let bytes = try Samples.bytes("lake.jpg")
        let server = try LoopbackServer { request in
            request.target == "/lake.jpg"
                ? [.reply(200, ["Content-Type: image/jpeg", "Cache-Control: max-age=600"], body: bytes)] : [.reply(404)]
        }
        target.targetGeometry = TargetGeometry(width: 30, height: 30)
        binding.set(.url(server.url("/lake.jpg"), in: fixture.cache))
        await wait { isOver }
        #expect(target.value?.size.longestSide == 30)
        var failure: (any Error)?
        binding.options.failureImage = Image(size: PixelSize(2))
        binding.set(.url(server.url("/none.jpg"), in: fixture.cache), onFailure: { failure = $0 })
        await wait { isOver }
        guard case CacheError.source(_, NetworkError.status)? = failure else {
            Issue.record("another failure: \(String(describing: failure))")
            return
        }
        #expect(target.value?.size == PixelSize(2))
    }
    #endif

    // MARK: Thumbnails

    private struct Plate: ImageSource {
        func identity() -> CacheKey { "plate" }
        var knownIdentity: CacheKey? { "plate" }
        func placeholder(_ request: RenderRequest) -> Image? { Image(size: PixelSize(1)) }
        func image(_ request: RenderRequest) throws -> Image { Image(size: request.size, color: .white) }
    }

    @Test func thumbnailsFollowTheirPlaceholder() async {
        let service = ImagePipeline(ImagePipeline.Configuration(root: fixture.directory.path))
        target.targetGeometry = TargetGeometry(width: 20, height: 20, mode: .fill)
        service.setSuspended(true)
        binding.set(.request(ImageRequest(Plate()), in: service))
        await wait { target.value?.size == PixelSize(1) }
        service.setSuspended(false)
        await wait { isOver }
        #expect(target.value?.size == PixelSize(20))
        #expect(target.transition == .standard)
        // From memory it comes at once, for a target of its own.
        let other = HeadlessTarget<Image>()
        other.targetGeometry = target.targetGeometry
        let second = ImageBinding(other)
        second.set(.request(ImageRequest(Plate()), in: service))
        #expect(other.shown.count == 1 && other.value?.size == PixelSize(20))
        #expect(other.transition == ImageTransition.none)
    }

    @Test func whatIsInMemoryIsFoundWithoutLoading() async {
        let service = ImagePipeline(ImagePipeline.Configuration(root: fixture.directory.path))
        var source = ImageFileSource(path: Samples.path("lake.jpg"))
        // A file's own identity would have to be asked of the file, which may block.
        source.identifier = "lake"
        let content = ImageContent<Image>.request(ImageRequest(source), in: service)
        let box = TargetGeometry(width: 20, height: 20, mode: .fill)
        #expect(content.inMemory(for: box) == nil)
        target.targetGeometry = box
        binding.set(content)
        await wait { isOver }
        #expect(content.inMemory(for: box)?.sharedPixels === target.value?.sharedPixels)
        #expect(content.inMemory(for: box)?.size == PixelSize(20))
        #expect(content.inMemory(for: TargetGeometry(width: 21, height: 20, mode: .fill)) == nil)
    }

    @Test func priorityReachesThumbnailsAndCancellingStopsThem() async {
        let service = ImagePipeline(ImagePipeline.Configuration(root: fixture.directory.path))
        service.setSuspended(true)
        binding.options.priority = .high
        binding.set(.request(ImageRequest(.file(Samples.path("lake.jpg")), size: .fit(20)), in: service))
        await wait { service.slots.queued == 1 }
        binding.isVisible = false
        binding.cancel()
        await wait { service.slots.queued == 0 }
        service.setSuspended(false)
        await service.waitUntilIdle()
        #expect(target.shown.isEmpty)
    }
}
