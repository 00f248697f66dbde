import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrineContainers

/// The first pages of comics in RAR and 7z archives, by libarchive in the real worker.
@Suite struct ComicArchiveTests {
    private static let files = Corpus.files(in: "anything/corpus")
    private static let hostile = Corpus.files(in: "anything/hostile")
    private let parameters = ArchivePages.parameters(page: 0)

    private func page(_ path: String, _ pool: WorkerPool, _ limits: ImageLimits = .standard) throws -> [UInt8] {
        try pool.describe(try ByteSource(.file(path)), parameters: parameters, limits: limits)
    }

    @Test(.enabled(if: !files.isEmpty, "the shared corpus is absent"))
    func pageOfEachArchiveIsAPicture() throws {
        let pool = WorkerFixture.pool(1)
        for name in ["comic/sample.cbr", "comic/sample.cb7", "archive/rar5.rar", "archive/7zip.7z"] {
            let path = try #require(Self.files.first { $0.hasSuffix("/" + name) })
            let bytes = try page(path, pool)
            #expect(try ImageInfo(of: .bytes(bytes)).storedSize.width > 0, "\(name)")
            // Bytes in memory are read alike.
            let copy = ByteSource(bytes: [UInt8](try Data(contentsOf: URL(filePath: path))), name: name)
            #expect(try pool.describe(copy, parameters: parameters) == bytes)
        }
        let path = try #require(Self.files.first { $0.hasSuffix("/comic/sample.cb7") })
        var limits = ImageLimits.standard
        limits.maximumInputBytes = 1_000
        #expect(throws: ImageError.self) { try page(path, pool, limits) }
    }

    @Test(.enabled(if: !files.isEmpty, "the shared corpus is absent"))
    func otherArchivesAndDamagedOnesAreErrorsOrHaveNoPage() throws {
        let pool = WorkerFixture.pool(1)
        let archives = (Self.files + Self.hostile).filter { path in
            ["rar", "7z", "cbr", "cb7", "zip", "cbz", "tar"].contains { path.hasSuffix("." + $0) }
        }
        #expect(archives.count > 12)
        for path in archives {
            do throws(ImageError) {
                let bytes = try pool.describe(ByteSource(.file(path)), parameters: parameters)
                // libarchive is offered no other format, and nothing but pictures is handed out.
                #expect(!path.hasSuffix(".zip") && !path.hasSuffix(".cbz") && !path.hasSuffix(".tar"))
                #expect(bytes.isEmpty || (try? ImageInfo(of: .bytes(bytes))) != nil, "\(path)")
            } catch {
                if case .workerFailed = error { Issue.record("\(path): \(error)") }
                if path.hasSuffix("encrypted.7z") { #expect(error.caseName == "unsupported") }
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

    @Test func otherQuestionsAreErrors() throws {
        let pool = WorkerFixture.pool(1)
        let source = ByteSource(bytes: Array("7z\u{BC}".utf8), name: "made")
        for parameters in [[], Array("second page".utf8), Array("page 8".utf8), parameters] {
            #expect(throws: ImageError.self) { try pool.describe(source, parameters: parameters) }
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
        for (number, width) in [(0, 64), (1, 24)] {
            let page = try pool.describe(
                ByteSource(.file(path)), parameters: ArchivePages.parameters(page: number), limits: .standard)
            #expect(try ImageInfo(of: .bytes(page)).storedSize.width == width)
        }
        let none = try pool.describe(
            ByteSource(.file(path)), parameters: ArchivePages.parameters(page: 2), limits: .standard)
        #expect(none.isEmpty)
        #expect(try ImageDecoder().decode(.file(path)).width == 24)
    }
}
