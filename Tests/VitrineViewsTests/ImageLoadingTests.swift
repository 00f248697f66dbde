import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineViews

/// The sources of images that targets show, and their sizes.
@MainActor
struct ImageLoadingTests {
    private let target = HeadlessTarget()
    private let binding: ImageBinding<HeadlessTarget>
    private let directory: TemporaryDirectory
    private let pipeline: ImagePipeline

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = ImagePipeline.Configuration(root: directory.path)
        configuration.memoryPressure = nil
        pipeline = ImagePipeline(configuration)
        binding = ImageBinding(target)
    }

    private var isOver: Bool {
        switch binding.state {
        case .shown, .failed: true
        case .empty, .loading: false
        }
    }

    private static let lake = ImageRequest(.file(Samples.path("lake.jpg")))

    @Test func filesAreLoadedAtTheSizeOfTheTarget() async throws {
        target.targetGeometry = TargetGeometry(width: 50, height: 40, scale: 2, mode: .crop(.center))
        binding.set(Self.lake, in: pipeline)
        await wait { isOver }
        #expect(target.value?.size == PixelSize(width: 100, height: 80))
        let sized = ImageRequest(
            .file(Samples.path("lake.jpg")), resizing: ImageResizer(size: PixelSize(width: 100, height: 80), mode: .crop(.center)))
        #expect(await pipeline.contains(sized))
    }

    @Test func sizeModeAndEnlargingSelectTheStoredResult() async throws {
        let path = try file("a.png", .white)
        func geometry(_ side: Double, _ mode: ImageResizer.Mode = .fit, enlarges: Bool = true) -> TargetGeometry? {
            TargetGeometry(width: side, height: side, mode: mode, allowsUpscaling: enlarges)
        }
        let geometries = [geometry(4), geometry(20), geometry(20, .stretch), geometry(20, .crop(.top)), geometry(20, enlarges: false)]
        for (index, geometry) in geometries.enumerated() {
            target.targetGeometry = geometry
            let resizer = try #require(geometry?.resizer)
            #expect(await !pipeline.contains(ImageRequest(.file(path), resizing: resizer)))
            binding.prepareForReuse()
            binding.set(ImageRequest(.file(path)), in: pipeline)
            await wait { isOver }
            #expect(target.value?.size == PixelSize([4, 20, 20, 20, 8][index]))
            #expect(await pipeline.contains(ImageRequest(.file(path), resizing: resizer)))
        }
        #expect(CacheConfiguration.thumbnails.diskCapacity == .mebibytes(50))
        #expect(CacheConfiguration.thumbnails.memoryCapacity == .mebibytes(3))
    }

    @Test func targetsWithoutASizeShowImagesAtTheirOwn() async throws {
        binding.set(Self.lake, in: pipeline)
        await wait { isOver }
        let size = try ImageInfo(of: .file(Samples.path("lake.jpg"))).size
        #expect(target.value?.size == size)
        #expect(TargetGeometry(width: 0, height: 40) == nil)
        #expect(TargetGeometry(width: .nan, height: 40) == nil)
        #expect(TargetGeometry(width: 40, height: 40, scale: .infinity) == nil)
        #expect(TargetGeometry(width: 33.4, height: 10, scale: 1.5)?.size == PixelSize(width: 51, height: 15))
        #expect(TargetGeometry(width: 100, height: 25, scale: 1.1)?.size == PixelSize(width: 110, height: 28))
        #expect(TargetGeometry(width: 100, height: 50, scale: 2.2)?.size == PixelSize(width: 220, height: 110))
    }

    @Test func theRequestsOwnSizeIsKept() async {
        target.targetGeometry = TargetGeometry(width: 50, height: 40)
        binding.set(ImageRequest(.file(Samples.path("lake.jpg")), resizing: .fit(30)), in: pipeline)
        await wait { isOver }
        #expect(target.value?.size.longestSide == 30)
        target.targetGeometry = TargetGeometry(width: 80, height: 80)
        binding.targetSizeDidChange()
        #expect(isOver)
    }

    @Test func anotherSizeIsLoadedAndTheImageStaysUntilThen() async {
        target.targetGeometry = TargetGeometry(width: 40, height: 40)
        binding.options.placeholder = PixelImage(size: PixelSize(1))
        binding.set(Self.lake, in: pipeline)
        await wait { isOver }
        let before = target.shown.count
        binding.targetSizeDidChange()
        // The same file at the same size is shown already.
        binding.set(Self.lake, in: pipeline)
        #expect(target.shown.count == before && isOver)
        target.targetGeometry = TargetGeometry(width: 80, height: 80)
        binding.targetSizeDidChange()
        #expect(target.shown.count == before && !isOver)
        await wait { isOver }
        #expect(target.value?.size.longestSide == 80)
        #expect(target.shown.count == before + 1)
    }

    // MARK: Files in memory

    /// A file of one color.
    private func file(_ name: String, _ color: PixelColor) throws -> String {
        let path = directory.path + "/" + name
        try AtomicFile.write(PixelImage(size: PixelSize(8), color: color).encoded(as: .png), to: path)
        return path
    }

    /// The colors that the target has shown; nil for no image.
    private var colors: [PixelColor?] { target.shown.map { $0.value?[0, 0] } }

    @Test func filesInMemoryAreShownAtOnce() async throws {
        binding.options.placeholder = .named("placeholder")
        let path = try file("a.png", .white)
        for source in [
            BuiltInSource.file(path), .file(path, page: 1, fitsLongestSide: true), .url(URL(filePath: path)),
            .file(path).identified(by: "mine"), .bytes([UInt8](try Data(contentsOf: URL(filePath: path)))),
        ] {
            let request = ImageRequest(source, resizing: .fit(4))
            _ = try await pipeline.image(for: request)
            binding.prepareForReuse()
            let before = target.shown.count
            var told = 0
            binding.set(request, in: pipeline) { _ in told += 1 }
            #expect(colors[before...] == [.white])
            #expect(target.transition == ImageTransition.none)
            await wait { isOver }
            // The look at the file confirms it, and nothing is shown twice.
            #expect(colors[before...] == [.white])
            #expect(told == 1)
        }
    }

    @Test func changedFilesAreReplacedAfterALook() async throws {
        let path = try file("a.png", .white)
        let request = ImageRequest(.file(path), resizing: .fit(4))
        _ = try await pipeline.image(for: request)
        // Another length: the same moment and the same file number do not hide the change.
        try AtomicFile.write(PixelImage(size: PixelSize(9), color: .black).encoded(as: .png), to: path)
        var told: [PixelColor] = []
        binding.set(request, in: pipeline) { told.append($0[0, 0]) }
        #expect(colors == [.white])
        await wait { isOver }
        #expect(colors == [.white, .black])
        #expect(target.transition == .standard)
        #expect(told == [.black])
    }

    @Test func deletedFilesDoNotStay() async throws {
        let path = try file("a.png", .white)
        let request = ImageRequest(.file(path), resizing: .fit(4))
        for placeholder in [nil, PixelImage.named("placeholder")] {
            _ = try file("a.png", .white)
            _ = try await pipeline.image(for: request)
            try FileManager.default.removeItem(atPath: path)
            binding.prepareForReuse()
            binding.options.placeholder = placeholder
            let before = target.shown.count
            var failures = 0
            binding.set(request, in: pipeline, onFailure: { _ in failures += 1 })
            #expect(colors[before...] == [.white])
            await wait { isOver }
            #expect(colors[before...] == [.white, placeholder?[0, 0]])
            #expect(failures == 1)
        }
        // It is not remembered any more.
        binding.prepareForReuse()
        let before = target.shown.count
        binding.set(request, in: pipeline)
        #expect(target.shown.count == before + 1 && target.text == "placeholder")
        await wait { isOver }
    }

    @Test func processorsAreAppliedAtTheSizeOfTheTarget() async throws {
        target.targetGeometry = TargetGeometry(width: 64, height: 64, mode: .crop(.center))
        var request = Self.lake
        request.processors = [.roundCorners(20)]
        binding.set(request, in: pipeline)
        await wait { isOver }
        let rounded = try #require(target.value)
        #expect(rounded.size == PixelSize(64) && rounded.alpha != .opaque)
        // Another radius is another image.
        request.processors = [.roundCorners(1)]
        binding.set(request, in: pipeline)
        #expect(!isOver)
        await wait { isOver }
        #expect(target.value != rounded)
    }

    @Test func imagesThatAreAvailableAreShown() {
        binding.show(PixelImage(size: PixelSize(3)))
        #expect(target.value?.size == PixelSize(3) && target.transition == ImageTransition.none)
        #expect(isOver)
    }

    private struct Plate: BlockingImageSource {
        var key: CacheKey = "plate"
        func identity() -> CacheKey { key }
        var knownIdentity: CacheKey? { key }
        func preview(_ request: RenderRequest) -> PixelImage? { PixelImage(size: PixelSize(1)) }
        func image(_ request: RenderRequest) throws -> PixelImage {
            if key == "none" { throw SourceFailure() }
            return PixelImage(size: request.size, color: .white)
        }
    }

    @Test func customSourcesGetTheSizeOfTheTarget() async {
        target.targetGeometry = TargetGeometry(width: 5, height: 6, mode: .stretch)
        binding.set(ImageRequest(Plate()), in: pipeline)
        await wait { isOver }
        #expect(target.value?.size == PixelSize(width: 5, height: 6))
        #expect(target.transition == .standard)
        var failure: (any Error)?
        binding.set(ImageRequest(Plate(key: "none")), in: pipeline, onFailure: { failure = $0 })
        await wait { isOver }
        guard case ImagePipelineError.underlying(_, let cause)? = failure, cause is SourceFailure else {
            Issue.record("another failure: \(String(describing: failure))")
            return
        }
    }

    #if os(Linux)
    @Test func urlsAreLoadedAndRefused() async throws {
        let bytes = try Samples.bytes("lake.jpg")
        let server = try LoopbackServer { request in
            request.target == "/lake.jpg"
                ? [.reply(200, ["Content-Type: image/jpeg", "Cache-Control: max-age=600"], body: bytes)] : [.reply(404)]
        }
        target.targetGeometry = TargetGeometry(width: 30, height: 30)
        binding.set(ImageRequest(server.url("/lake.jpg")), in: pipeline)
        await wait { isOver }
        #expect(target.value?.size.longestSide == 30)
        var failure: (any Error)?
        binding.options.failureImage = PixelImage(size: PixelSize(2))
        binding.set(ImageRequest(server.url("/none.jpg")), in: pipeline, onFailure: { failure = $0 })
        await wait { isOver }
        guard case ImagePipelineError.underlying(_, NetworkError.status)? = failure else {
            Issue.record("another failure: \(String(describing: failure))")
            return
        }
        #expect(target.value?.size == PixelSize(2))
    }

    @Test func previewsOfATransferAreShown() async throws {
        let server = try PiecewiseServer(Samples.bytes("lake-progressive.jpg"), endingAt: [0.5])
        target.targetGeometry = TargetGeometry(width: 60, height: 60)
        binding.set(ImageRequest(server.url(), isProgressive: true), in: pipeline)
        await wait { target.value != nil }
        #expect(!isOver)
        #expect(target.value?.size.longestSide == 60)
        server.sendAll()
        await wait { isOver }
        #expect(target.value?.size.longestSide == 60)
        #expect(target.shown.count >= 2)
    }
    #endif

    // MARK: Previews and memory

    @Test func imagesFollowTheirPreview() async {
        target.targetGeometry = TargetGeometry(width: 20, height: 20, mode: .stretch)
        pipeline.setSuspended(true)
        binding.set(ImageRequest(Plate()), in: pipeline)
        await wait { target.value?.size == PixelSize(1) }
        pipeline.setSuspended(false)
        await wait { isOver }
        #expect(target.value?.size == PixelSize(20))
        #expect(target.transition == .standard)
        // An image in memory appears at once in another target.
        let other = HeadlessTarget()
        other.targetGeometry = target.targetGeometry
        let second = ImageBinding(other)
        second.set(ImageRequest(Plate()), in: pipeline)
        #expect(other.shown.count == 1 && other.value?.size == PixelSize(20))
        #expect(other.transition == ImageTransition.none)
    }

    @Test func priorityReachesThePipelineAndCancellationStopsTheWork() async {
        pipeline.setSuspended(true)
        binding.options.priority = .high
        binding.set(ImageRequest(.file(Samples.path("lake.jpg")), resizing: .fit(20)), in: pipeline)
        await wait { pipeline.slots.queued == 1 }
        binding.isVisible = false
        binding.cancel()
        await wait { pipeline.slots.queued == 0 }
        pipeline.setSuspended(false)
        await pipeline.waitUntilIdle()
        #expect(target.shown.isEmpty)
    }
}
