#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineImaging
import VitrineStores
import VitrinePipeline

/// Pictures of a store at any size, by the thumbnail service.
@Suite struct ImageStoreSourceTests {
    private let temporary: TemporaryDirectory
    private let store: ImageStore
    private let service: ImagePipeline

    init() throws {
        temporary = try TemporaryDirectory()
        var configuration = ImageStore.Configuration()
        configuration.durability = .relaxed
        store = ImageStore(.root(temporary.path), path: ["s"], configuration: configuration)
        service = ImagePipeline(.init(root: temporary.file("cache")))
    }

    private static func plain(_ color: PixelColor, _ side: Int) -> PixelImage { PixelImage(size: PixelSize(side), color: color) }

    private func color(_ image: PixelImage) -> [UInt8] { image.withUnsafeBytes { Array($0.prefix(3)) } }

    private func request(_ name: String, _ side: Int, _ options: CacheLevels) throws -> ImageTask {
        var request = ImageRequest(try store.source(name), resizing: .fit(side))
        request.cacheLevels = options
        return ImageTask(request)
    }

    @Test func picturesComeAtAnySize() async throws {
        try await store.save(fileAt: Samples.path("lake.jpg"), as: "lake.jpg")
        let full = try await store.image("lake.jpg").size
        for side in [64, 300, 700] {
            let image = try await store.image("lake.jpg", resizing: .fit(side), by: service)
            #expect(image.size == (try ImageResizer.fit(side).outputSize(for: full)))
        }
        let cropped = try await store.image(
            "lake.jpg", resizing: .crop(width: 40, height: 30), scale: 2, by: service)
        #expect(cropped.size == PixelSize(width: 80, height: 60))
    }

    @Test func resultsAreKeptWhereAskedForOnly() async throws {
        try await store.save(Self.plain(.white, 900), as: "a.png")
        _ = try await store.image("a.png", resizing: .fit(500), cacheLevels: .memory, by: service)
        #expect(try await service.contains(request("a.png", 500, .all).request, at: .memory))
        #expect(try await !service.contains(request("a.png", 500, .all).request, at: .disk))
        _ = try await store.image("a.png", resizing: .fit(400), cacheLevels: [], by: service)
        #expect(try await !service.contains(request("a.png", 400, .all).request, at: .memory))
        _ = try await store.image("a.png", resizing: .fit(300), by: service)
        await service.waitUntilIdle()
        try await service.cache.flush()
        #expect(try await service.contains(request("a.png", 300, .all).request, at: .disk))
    }

    @Test func aPictureThatIsReplacedIsNeverShownFromACache() async throws {
        for (color, bytes) in [(PixelColor.white, [UInt8]([255, 255, 255])), (.black, [0, 0, 0])] {
            for side in [100, 600] {
                try await store.save(Self.plain(color, 900), as: "a.png")
                let image = try await store.image("a.png", resizing: .fit(side), by: service)
                #expect(self.color(image) == bytes, "\(side)")
            }
        }
    }

    @Test func theStoredThumbnailIsThePlaceholderAndTheSourceOfSmallSizes() async throws {
        try await store.save(Self.plain(.white, 900), as: "a.png")
        // A thumbnail that can be told from its picture, and has its time of change.
        let (path, small) = (try store.path(of: "a.png"), try store.path(of: "a.png", as: .thumbnail))
        try Data(Self.plain(.black, 256).encoded(as: .png)).write(to: URL(filePath: small))
        var status = stat()
        stat(path, &status)
        utimensat(AT_FDCWD, small, [status.st_mtim, status.st_mtim], 0)

        let source = try store.source("a.png")
        let placeholder = try #require(try await source.preview(RenderRequest(size: PixelSize(800))))
        #expect(placeholder.size == PixelSize(256) && color(placeholder) == [0, 0, 0])
        #expect(try await color(source.image(RenderRequest(size: PixelSize(128)))) == [0, 0, 0])
        #expect(try await color(source.image(RenderRequest(size: PixelSize(129)))) == [255, 255, 255])
        let several = try await source.images([100, 500].map { RenderRequest(size: PixelSize($0)) })
        #expect(several.map(color) == [[255, 255, 255], [255, 255, 255]])

        // One of another version is neither.
        utimensat(AT_FDCWD, small, [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)], 0)
        #expect(try await source.preview(RenderRequest(size: PixelSize(800))) == nil)
        #expect(try await color(source.image(RenderRequest(size: PixelSize(128)))) == [255, 255, 255])
    }

    @Test func whatIsNotThereIsSaid() async throws {
        await #expect {
            try await store.image("a.png", resizing: .fit(10), by: service)
        } throws: { if case .notFound("a.png")? = $0 as? StoreError { true } else { false } }
        #expect(throws: StoreError.self) { try store.source("../a.png") }
        #expect(throws: ImagePipelineError.self) { try store.source("a.png").identity() }
    }
}
#endif
