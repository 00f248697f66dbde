import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

@Suite struct DesktopThumbnailsTests {
    private func copy(_ name: String, in scratch: DesktopScratch) throws -> String {
        let path = try scratch.file(name)
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.copyItem(atPath: Samples.path(name), toPath: path)
        return path
    }

    private func request(_ side: Int, _ mode: ImageResizer.Mode = .fit) -> RenderRequest {
        RenderRequest(size: PixelSize(side), mode: mode)
    }

    @Test func whatIsMadeIsGivenToTheDesktopAndTakenFromIt() throws {
        let scratch = try DesktopScratch()
        let path = try copy("lake.webp", in: scratch)
        let thumbnails = DesktopThumbnails(scratch.cache)
        let source = ImageFileSource(path: path)
        #expect(thumbnails.thumbnail(of: source, for: request(300)) == nil)
        thumbnails.store(try source.image(request(300)), of: source, for: request(300))
        #expect(scratch.cache.hasThumbnail(of: path, size: .large))
        #expect(!scratch.cache.hasThumbnail(of: path, size: .extraLarge))
        // Of the stored 256 × 171.
        #expect(thumbnails.thumbnail(of: source, for: request(200))?.size == PixelSize(width: 200, height: 134))
        #expect(
            try scratch.texts(scratch.cache.location(of: path, size: .large))["Thumb::Image::Width"] == "600")
        #expect(thumbnails.thumbnail(of: source, for: request(200, .fill)) == nil)
    }

    @Test func smallPicturesAreNeverGivenLargerThanTheyAre() throws {
        let scratch = try DesktopScratch()
        let path = try copy("lake.bmp", in: scratch)  // 150 × 100
        let thumbnails = DesktopThumbnails(scratch.cache)
        let source = ImageFileSource(path: path)
        _ = thumbnails.thumbnail(of: source, for: request(256))
        thumbnails.store(try source.image(request(256)), of: source, for: request(256))
        #expect(!scratch.cache.hasThumbnail(of: path, size: .large))
        var small = request(256)
        small.allowsUpscaling = false
        _ = thumbnails.thumbnail(of: source, for: small)
        thumbnails.store(try source.image(small), of: source, for: small)
        #expect(scratch.cache.thumbnail(of: path, size: PixelSize(256))?.size == PixelSize(width: 150, height: 100))
        // A request that lets it grow gets it grown.
        #expect(thumbnails.thumbnail(of: source, for: request(256))?.width == 256)
    }

    @Test func whatChangedWhileItWasMadeIsKeptBack() throws {
        let scratch = try DesktopScratch()
        let path = try copy("lake.webp", in: scratch)
        let thumbnails = DesktopThumbnails(scratch.cache)
        let source = ImageFileSource(path: path)
        let image = try source.image(request(256))
        // Never asked for, so nobody knows which version it shows.
        thumbnails.store(image, of: source, for: request(256))
        #expect(!scratch.cache.hasThumbnail(of: path, size: .large))
        _ = thumbnails.thumbnail(of: source, for: request(256))
        try scratch.touch(path, 1_800_000_000)
        thumbnails.store(image, of: source, for: request(256))
        #expect(!scratch.cache.hasThumbnail(of: path, size: .large))
        // Asked for before and after the change: the image may be of either.
        try scratch.touch(path, 1_800_000_001)
        _ = thumbnails.thumbnail(of: source, for: request(256))
        try scratch.touch(path, 1_800_000_002)
        _ = thumbnails.thumbnail(of: source, for: request(256))
        thumbnails.store(image, of: source, for: request(256))
        #expect(!scratch.cache.hasThumbnail(of: path, size: .large))
    }

    @Test func onlyWholeFilesAreGiven() throws {
        let scratch = try DesktopScratch()
        let path = try copy("lake.webp", in: scratch)
        let thumbnails = DesktopThumbnails(scratch.cache)
        let image = PixelImage(size: PixelSize(256), color: .white)
        var second = ImageFileSource(path: path)
        second.page = 2
        var partial = ImageFileSource(path: path)
        partial.options.allowsPartial = true
        let document = PDFDocument(.file(path))
        var named = PDFPageSource(document, page: 1)
        named.identifier = "own"
        var clear = PDFPageSource(document, page: 1)
        clear.backgroundColor = nil
        let sources: [any ImageSource] = [
            second, partial, named, clear, PDFPageSource(document, page: 2),
            PDFPageSource(PDFDocument(.file(path), password: "secret"), page: 1),
            VideoFrameSource(path: path, second: 1),
            ImageFileSource(.bytes([1])), ImageFileSource(image, identifier: "a"),
        ]
        for source in sources {
            _ = thumbnails.thumbnail(of: source, for: request(256))
            thumbnails.store(image, of: source, for: request(256))
        }
        #expect(!FileManager.default.fileExists(atPath: scratch.cache.directory))
        let reading = DesktopThumbnails(scratch.cache, writes: false)
        _ = reading.thumbnail(of: ImageFileSource(path: path), for: request(256))
        reading.store(image, of: ImageFileSource(path: path), for: request(256))
        #expect(!FileManager.default.fileExists(atPath: scratch.cache.directory))
    }
}
