import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

/// Documents that are broken, or made to break their reader.
@Suite struct PDFHostileTests {
    private static var request: RenderRequest {
        var request = RenderRequest(size: PixelSize(64))
        request.limits.deadline = 3
        return request
    }

    /// For documents that are whole: with the time that pictures usually have.
    private static let harmless = RenderRequest(size: PixelSize(64))

    /// A picture, or an error of the kinds a broken document may give.
    private static func isAnswered(_ input: PDFDocument, page: Int = 1) -> Bool {
        ["nothing", "damaged", "encrypted", "unsupported", "noSuchPage", "limitExceeded", "timedOut", "underlying"]
            .contains(thrown { _ = try input.page(page).blocking.image(request) })
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func survivesTheHostileCorpus() throws {
        let workers = PDFFixture.workers()
        let files = Corpus.files(in: "hostile/pdf")
        #expect(!files.isEmpty)
        for file in files {
            #expect(Self.isAnswered(PDFDocument(PDFDocument(.file(file)), workers: workers)), "\(file)")
        }
        _ = try PDFFixture.input(TinyPDF.book(pages: 1), workers: workers).page(1).blocking.image(Self.harmless)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func drawsTheCorpus() throws {
        let workers = PDFFixture.workers()
        for file in Corpus.files(in: "corpus/pdf") where !file.contains("password") {
            let input = PDFDocument(PDFDocument(.file(file)), workers: workers)
            let image = try input.page(1).blocking.image(RenderRequest(size: PixelSize(200)))
            #expect(max(image.width, image.height) == 200, "\(file)")
            let info = try input.info(pages: 1...1)
            #expect(info.pageCount > 0 && info.pageSizes[0].width > 0, "\(file)")
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func survivesTruncationAtEveryKilobyte() throws {
        let path = try #require(Corpus.file("pdf/pypdf-pdflatex-image.pdf"))
        let whole = try [UInt8](Data(contentsOf: URL(filePath: path)))
        let workers = PDFFixture.workers()
        for count in stride(from: 0, to: whole.count, by: 1_024) {
            let input = PDFDocument(PDFDocument(.bytes(Array(whole.prefix(count)), name: "PDF")), workers: workers)
            #expect(Self.isAnswered(input), "\(count) bytes")
        }
        #expect(thrown {
            let document = PDFDocument(PDFDocument(.bytes(whole, name: "PDF")), workers: workers)
            _ = try document.page(1).blocking.image(Self.harmless)
        } == "nothing")
    }

    @Test func survivesFlippedBytes() throws {
        let workers = PDFFixture.workers()
        var document = TinyPDF.book(pages: 2)
        document.title = "(Flipped)"
        let whole = document.bytes
        for index in stride(from: 9, to: whole.count, by: 7) {
            var bytes = whole
            bytes[index] ^= UInt8(truncatingIfNeeded: 1 + index % 127)
            #expect(Self.isAnswered(PDFDocument(PDFDocument(.bytes(bytes, name: "PDF")), workers: workers)), "byte \(index)")
        }
    }

    @Test func survivesAPictureOfNineHundredMegapixels() throws {
        var document = TinyPDF()
        let entries = "/Type/XObject/Subtype/Image/Width 30000/Height 30000/BitsPerComponent 8/ColorSpace/DeviceRGB"
        document.objects = [TinyPDF.stream("00>", entries + "/Filter/ASCIIHexDecode")]
        document.resources = "/XObject<</X 1 0 R>>"
        document.pages = [.init(content: "200 0 0 100 0 0 cm /X Do")]
        let workers = PDFFixture.workers()
        #expect(Self.isAnswered(PDFFixture.input(document, workers: workers)))
        _ = try PDFFixture.input(TinyPDF.book(pages: 1), workers: workers).page(1).blocking.image(Self.harmless)
    }

    @Test func survivesPagesThatContainThemselves() throws {
        var document = TinyPDF.book(pages: 1)
        document.objects = [
            "<</Type/Pages/Count 9999999/Kids[1 0 R 1 0 R]>>",
            TinyPDF.stream("/X Do", "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 2 0 R>> >>"),
        ]
        document.resources = "/XObject<</X 2 0 R>>"
        document.pages[0].content = "/X Do"
        var bytes = String(decoding: document.bytes, as: UTF8.self)
        #expect(Self.isAnswered(PDFFixture.input(document)))
        bytes = bytes.replacing("/Pages 3 0 R", with: "/Pages 1 0 R")
        #expect(Self.isAnswered(PDFDocument(PDFDocument(.bytes(Array(bytes.utf8), name: "PDF")), workers: PDFFixture.workers())))
    }
}
