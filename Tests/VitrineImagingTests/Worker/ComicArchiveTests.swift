import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineContainers

/// The first pages of comics in RAR and 7z archives, by libarchive in the real worker.
@Suite struct ComicArchiveTests {
    private static let files = Corpus.files(in: "anything/corpus")
    private static let hostile = Corpus.files(in: "anything/hostile")

    private func header(
        _ source: ByteSource, _ pool: WorkerPool, picture: Int = 0, _ limits: ImageLimits = .standard
    ) throws(ImageError) -> ImageHeader {
        guard let format = try ImageFormat.detect(ByteReader(source)) else { throw .notAnImage(input: source.name) }
        return try pool.header(
            of: source, format: format, picture: picture, limits: limits, cancellation: CancellationToken())
    }

    @Test(.enabled(if: !files.isEmpty, "the shared corpus is absent"))
    func theFirstPageOfEachComicIsShown() throws {
        let pool = WorkerFixture.pool(1)
        for name in ["comic/sample.cbr", "comic/sample.cb7", "archive/rar5.rar", "archive/7zip.7z"] {
            let path = try #require(Self.files.first { $0.hasSuffix("/" + name) })
            let file = try ByteSource(.file(path))
            guard let format = try ImageFormat.detect(ByteReader(file)) else { continue }
            let info = try header(file, pool).info
            #expect(info.format == format && info.storedSize.width > 0, "\(name)")
            let decoded = try pool.decode(file, DecodeRequest(info: info, target: nil))
            #expect(decoded.planes[0].width == info.storedSize.width, "\(name)")
            // Bytes in memory are read alike.
            let copy = ByteSource(bytes: [UInt8](try Data(contentsOf: URL(filePath: path))), name: name)
            #expect(try header(copy, pool).info == info)
        }
        let path = try #require(Self.files.first { $0.hasSuffix("/comic/sample.cb7") })
        var limits = ImageLimits.standard
        limits.maximumInputBytes = 1_000
        #expect(throws: ImageError.self) { try header(ByteSource(.file(path)), pool, limits) }
    }

    @Test(.enabled(if: !files.isEmpty, "the shared corpus is absent"))
    func otherArchivesAndDamagedOnesAreErrors() throws {
        let pool = WorkerFixture.pool(1)
        let archives = (Self.files + Self.hostile).filter { path in
            ["rar", "7z", "cbr", "cb7"].contains { path.hasSuffix("." + $0) }
        }
        #expect(archives.count > 6)
        for path in archives {
            do throws(ImageError) {
                #expect(!(try header(ByteSource(.file(path)), pool)).info.storedSize.isEmpty, "\(path)")
            } catch {
                if case .workerFailed = error { Issue.record("\(path): \(error)") }
                if path.hasSuffix("encrypted.7z") { #expect(["unsupported", "notAnImage"].contains(error.caseName)) }
            }
        }
    }

    /// The fields of a file's header reach behind its end.
    @Test func headersThatAreTooShortEndTheList() throws {
        for size in UInt8(0)...12 {
            let header = [1, 2, 3, 4, size, 2, 1, 200, 0, 0, 0, 0, 0, 1, UInt8(ascii: "a")]
            let file = Array("Rar!\u{1A}\u{7}\u{1}\u{0}".utf8) + header + [UInt8](repeating: 0, count: 400)
            let reader = ByteReader(ByteSource(bytes: file, name: "made"))
            #expect(try ComicArchivePictures.format(of: reader) == nil, "\(size)")
        }
    }

    @Test func pagesAreChosenLikeThoseOfOtherComics() {
        var choice = ArchivePages()
        #expect(choice.indices.isEmpty)
        for (index, name) in ["b/2.jpg", "__MACOSX/a.txt", "b/10.jpg", "b/1.PNG", "info.nfo"].enumerated() {
            let isComic = choice.consider(Array(name.utf8), index: index)
            #expect(isComic)
        }
        #expect(choice.indices == [3, 0, 2])
        for index in 10..<30 { _ = choice.consider(Array("b/\(40 - index).jpg".utf8), index: index) }
        #expect(choice.indices.count == ArchivePages.most && choice.indices.prefix(2) == [3, 0])
        let isComic = choice.consider(Array("setup.exe".utf8), index: 9)
        #expect(!isComic && choice.indices.isEmpty)
    }

    /// `Fixtures/worker/damaged-first.py` makes the archive.
    @Test func nextPageTakesThePlaceOfADamagedOne() throws {
        let path = try Fixture.path("worker/damaged-first.cb7")
        let pool = WorkerFixture.pool(1)
        let source = try ByteSource(.file(path))
        let first = try header(source, pool).info
        #expect(first.storedSize.width == 64 && first.pictureIndex == 0)
        #expect(throws: ImageError.self) { try pool.decode(source, DecodeRequest(info: first, target: nil)) }
        let second = try header(source, pool, picture: 1).info
        #expect(second.storedSize.width == 24 && second.pictureIndex == 1)
        #expect(throws: ImageError.noPicture(input: source.name, format: .comic7z)) {
            try header(source, pool, picture: 2)
        }
        #expect(try ImageDecoder().decode(.file(path)).width == 24)
    }
}
