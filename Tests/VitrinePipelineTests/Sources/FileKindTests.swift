import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

@Suite struct FileKindTests {
    private func kind(_ bytes: [UInt8]) throws -> FileKind? { try FileKind(of: .bytes(bytes)) }

    @Test func samplesAreWhatTheyAreWhateverTheirNames() throws {
        for name in Samples.names {
            guard case .image? = try FileKind(of: .file(Samples.path(name))) else {
                Issue.record("\(name) is no picture")
                continue
            }
        }
        let file = try ScratchFile(try Samples.bytes("lake.pdf"), suffix: "jpg")
        #expect(try FileKind(of: .file(file.path)) == .pdf)
        #expect(try FileKind(of: .file(Samples.path("lake.mp4"))) == .media(.mp4))
    }

    @Test(arguments: [
        ("seconds.mp4", MediaFormat.mp4), ("moov-last.mp4", .mp4), ("seconds.mkv", .matroska),
        ("seconds.webm", .webM), ("seconds.avi", .avi), ("seconds.ts", .transportStream), ("sound.m4a", .mp4Audio),
        ("cover.mp3", .mp3),
    ])
    func filmsAreToldByTheirContainers(_ name: String, _ media: MediaFormat) throws {
        #expect(try kind(try VideoFixture.bytes(name)) == .media(media))
    }

    @Test func marksAreLookedForWhereTheyMayStand() throws {
        #expect(try kind(Array(repeating: 32, count: 1_000) + Array("%PDF-1.4".utf8)) == .pdf)
        #expect(try kind(Array(repeating: 32, count: 1_100) + Array("%PDF-1.4".utf8)) == nil)
        #expect(try kind([0, 0, 0, 8] + Array("wide".utf8) + [0, 0, 0, 0] + Array("mdat".utf8)) == .media(.quickTime))
        #expect(try kind([0, 0, 1, 0xBA, 0x44]) == .media(.programStream))
        #expect(try kind(Array("RIFF1234WAVEfmt ".utf8)) == .media(.wave))
        #expect(try kind(Array("RIFF1234ACONanih".utf8)) == nil)
        for bytes in [[], [0x47], Array("free text".utf8), Array("moovies".utf8), [UInt8](repeating: 0, count: 2_000)] {
            #expect(try kind(bytes) == nil, "\(bytes.prefix(8))")
        }
        #expect(throws: ImagePipelineError.self) { try FileKind(of: .file("/nowhere")) }
    }

    @Test func documentsWithoutAHeaderAreToldByTheirEnds() throws {
        let document = TinyPDF(pages: [.init(content: "1 0 0 rg 0 0 200 100 re f")]).bytes
        let bare = Array(document.dropFirst("%PDF-1.7\n".utf8.count))
        let covered = [UInt8](repeating: 0x2D, count: 3_000) + document
        for bytes in [bare, covered, document + [UInt8](repeating: 10, count: 900)] {
            #expect(try kind(bytes) == .pdf)
            let page = PDFDocument(PDFDocument(.bytes(bytes, name: "bare")), workers: PDFFixture.workers()).page(1)
            let image = try page.blocking.image(RenderRequest(size: PixelSize(40)))
            #expect(image.size == PixelSize(width: 40, height: 20))
            #expect(Set(image.corners) == [PixelColor(red: 255, green: 0, blue: 0)])
        }
        for end in ["startxref", "startxref\n", "startxref\nnone", "startxref12"] {
            #expect(try kind(Array("some text that ends in \(end)".utf8)) == nil)
        }
    }

    @Test func sourcesAreChosenByContent() throws {
        var options = SourceDetector.Options(page: 3, moment: .second(2))
        options.precision = .exact
        let page = try #require(
            try SourceDetector.source(forFile: Samples.path("lake.pdf"), options) as? PDFPageSource)
        #expect(page.page == 3)
        let film = try #require(
            try SourceDetector.source(forFile: Samples.path("lake.mp4"), options) as? VideoFrameSource)
        #expect(film.moment == .second(2))
        #expect(film.precision == .exact)
        #expect(!film.prefersCoverArt)
        let cover = try SourceDetector.source(forFile: try VideoFixture.path("cover.mp3")) as? VideoFrameSource
        #expect(cover?.prefersCoverArt == true)
        #expect((try SourceDetector.source(forFile: Samples.path("moon.gif"), options) as? ImageFileSource)?.page == 3)
        #expect(throws: ImagePipelineError.self) { try SourceDetector.source(for: .bytes([1, 2, 3])) }
        #expect(try SourceDetector.pageCount(of: .file(Samples.path("moon.gif"))) == 16)
    }
}
