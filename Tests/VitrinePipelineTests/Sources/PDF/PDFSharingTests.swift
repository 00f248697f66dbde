import Foundation
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Who opens a document, how often, and what its pages are known by.
@Suite struct PDFSharingTests {
    private static let small = RenderRequest(size: PixelSize(32))

    @Test func opensADocumentOnceForFiveHundredPages() throws {
        let scratch = try ScratchFile(TinyPDF.book(pages: 500).bytes)
        let workers = PDFFixture.workers()
        for page in 1...500 {
            // Every page by an input of its own: it is the file that counts.
            let source = PDFDocument(PDFDocument(.file(scratch.path)), workers: workers).page(page)
            #expect(try source.blocking.image(Self.small).width == 32)
        }
        #expect(try PDFDocument(PDFDocument(.file(scratch.path)), workers: workers).info().opened == 1)
        #expect(workers.idleIdentifiers.count == 1)
    }

    @Test func keepsTwoInterleavedDocumentsOpen() throws {
        let workers = PDFFixture.workers()
        var one = TinyPDF.book(pages: 3), other = TinyPDF.book(pages: 2)
        (one.title, other.title) = ("(One)", "<FEFF00C4006E0064006500720065>")
        let inputs = [PDFFixture.input(one, workers: workers), PDFFixture.input(other, workers: workers)]
        for round in 0..<20 {
            let info = try inputs[round % 2].info()
            #expect(info.pageCount == (round % 2 == 0 ? 3 : 2))
            #expect(info.title == (round % 2 == 0 ? "One" : "Ändere"))
            #expect(info.opened == min(round + 1, 2))
            _ = try inputs[round % 2].page(1).blocking.image(Self.small)
        }
    }

    @Test func keepsFourDocumentsOpenAtMost() throws {
        let workers = PDFFixture.workers()
        let inputs = (1...5).map { PDFFixture.input(TinyPDF.book(pages: $0), workers: workers) }
        for input in inputs { _ = try input.info() }
        #expect(try inputs[4].info().opened == 5)
        #expect(try inputs[1].info().opened == 5)
        #expect(try inputs[0].info().opened == 6, "the first was closed for the fifth")
    }

    @Test func opensAFileAgainThatChanged() throws {
        let scratch = try ScratchFile(TinyPDF.book(pages: 1).bytes)
        let input = PDFDocument(PDFDocument(.file(scratch.path)), workers: PDFFixture.workers())
        let before = try input.page(1).blocking.identity()
        #expect(try input.info().pageCount == 1)
        try Data(TinyPDF.book(pages: 2).bytes).write(to: URL(filePath: scratch.path), options: .atomic)
        #expect(try input.info().pageCount == 2)
        #expect(try input.page(1).blocking.identity() != before)
    }

    @Test func opensALazyDocumentOnceAndClosesItWhenOthersAreWanted() throws {
        let workers = PDFFixture.workers()
        let log = Locked<[String]>([])
        func lazy(_ name: String) -> PDFDocument {
            let input = PDFDocument(name: name) {
                log.withLock { $0.append("open \(name)") }
                return .bytes(TinyPDF.book(pages: 3).bytes, name: name)
            } close: {
                log.withLock { $0.append("close \(name)") }
            }
            return PDFDocument(input, workers: workers, keeping: 1)
        }
        let document = lazy("A")
        #expect(log.withLock { $0 }.isEmpty)
        for page in 1...3 { _ = try document.page(page).blocking.image(Self.small) }
        #expect(log.withLock { $0 } == ["open A"])
        #expect(try document.info().opened == 1)
        #expect(try document.page(2).blocking.identity() == CacheKey("PDF", "A", "page 2"))
        do { _ = try lazy("B").info() }
        #expect(log.withLock { $0 } == ["open A", "open B", "close B"], "closed with the last who knew of it")
    }

    @Test func closesTheDocumentUnusedForTheLongestTime() throws {
        let inputs = OpenDocumentCache(capacity: 2)
        let log = Locked<[Int]>([])
        let objects = (0..<3).map { _ in NSObject() }
        for (index, object) in objects.enumerated() {
            inputs.keep(ByteSource(bytes: [], name: ""), of: ObjectIdentifier(object)) {
                log.withLock { $0.append(index) }
            }
            _ = inputs.source(ObjectIdentifier(objects[0]))
        }
        #expect(log.withLock { $0 } == [1])
        #expect(inputs.source(ObjectIdentifier(objects[1])) == nil)
        inputs.close(ObjectIdentifier(objects[0]))
        #expect(log.withLock { $0 } == [1, 0])
    }

    @Test func reportsWhatAClosureThrows() throws {
        struct Failure: Error {}
        let input = PDFDocument(PDFDocument(name: "A") { throw Failure() }, workers: PDFFixture.workers())
        #expect(thrown { _ = try input.page(1).blocking.image(Self.small) } == "unreadable")
        let gone = PDFDocument(PDFDocument(name: "A") { .file("/nowhere.pdf") }, workers: PDFFixture.workers())
        #expect(thrown { _ = try gone.page(1).blocking.image(Self.small) } == "unreadable")
    }

    @Test func letsTheDrawingBeReplaced() throws {
        let page = PDFFixture.input(TinyPDF.book(pages: 1)).page(1) { request, draw in
            var image = try draw(request)
            image.withUnsafeMutableBytes { $0[1] = 0 }
            return image
        }
        #expect(try page.blocking.image(Self.small)[0, 0] == PixelColor(red: 255, green: 0, blue: 255))
    }

    @Test func knowsPagesByDocumentNumberAndBackground() throws {
        let scratch = try ScratchFile(TinyPDF.book(pages: 2).bytes)
        let page = BuiltInSource.pdf(scratch.path)
        let identity = try page.blocking.identity()
        #expect(try identity == BuiltInSource.pdf(scratch.path, page: 1).blocking.identity())
        #expect(try identity != BuiltInSource.pdf(scratch.path, page: 2).blocking.identity())
        let clear = BuiltInSource.pdf(scratch.path, background: nil)
        #expect(try clear.blocking.identity() != identity)
        #expect(page.knownIdentity == nil)
        let mine = clear.identified(by: "mine")
        #expect(try mine.blocking.identity() == "mine" && mine.knownIdentity == "mine")
        let bytes = TinyPDF.book(pages: 2).bytes
        #expect(
            try PDFDocument(.bytes(bytes, name: "a")).page(1).blocking.identity()
                == PDFDocument(.bytes(bytes, name: "b")).page(1).blocking.identity())
    }

    @Test func tellsTheSizesOfManyPages() throws {
        var document = TinyPDF.book(pages: 600)
        for index in document.pages.indices { document.pages[index].mediaBox = "0 0 \(index + 1) 50" }
        let info = try PDFFixture.input(document).info(pages: 51...600)
        #expect(info.pageSizes.count == 500)
        #expect(info.size(ofPage: 51) == .init(width: 51, height: 50))
        #expect(info.size(ofPage: 550) == .init(width: 550, height: 50))
        #expect(info.size(ofPage: 551) == nil)
        #expect(info.size(ofPage: 50) == nil)
        #expect(info.size(ofPage: .min) == nil)
    }
}
