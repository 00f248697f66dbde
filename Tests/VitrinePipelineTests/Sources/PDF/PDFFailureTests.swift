import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// What documents that cannot be drawn come to, and what becomes of the helper.
@Suite struct PDFFailureTests {
    private static let small = RenderRequest(size: PixelSize(64))

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func opensAnEncryptedDocumentWithItsPasswordOnly() throws {
        let path = try #require(Corpus.file("pdf/pypdf-libreoffice-writer-password.pdf"))
        let workers = PDFFixture.workers()
        func input(_ password: String?) -> PDFDocument {
            PDFDocument(PDFDocument(.file(path), password: password), workers: workers)
        }
        #expect(thrown { _ = try input(nil).page(1).blocking.image(Self.small) } == "encrypted")
        #expect(thrown { _ = try input(nil).info() } == "encrypted")
        for wrong in ["", "wrong", "pässword", String(repeating: "x", count: 5_000), "openpassword\0"] {
            #expect(thrown { _ = try input(wrong).page(1).blocking.image(Self.small) } == "wrongPassword")
        }
        let right = input("openpassword")
        #expect(try right.info().needsPassword)
        #expect(try right.page(1).blocking.image(Self.small).height == 64)
        // One that was opened does not open for those who come without.
        #expect(thrown { _ = try input(nil).page(1).blocking.image(Self.small) } == "encrypted")
    }

    @Test func thumbnailsOfOnePasswordAreNotForAnother() throws {
        let bytes = TinyPDF.book(pages: 1).bytes
        func identity(_ password: String?) throws -> CacheKey {
            try PDFDocument(.bytes(bytes, name: "PDF"), password: password).page(1).blocking.identity()
        }
        #expect(try identity("one") == identity("one"))
        #expect(try Set([identity("one"), identity("other"), identity(""), identity(nil)]).count == 4)
        #expect(try !identity("one").identity.contains("one"))
    }

    @Test func needsNoPasswordWhereThereIsNone() throws {
        let input = PDFDocument(.bytes(TinyPDF.book(pages: 1).bytes, name: "PDF"), password: "unasked")
        #expect(try PDFDocument(input, workers: PDFFixture.workers()).info().needsPassword == false)
    }

    @Test(arguments: [0, -1, 4, 10_000, Int.max, Int.min])
    func tellsOfAPageThatIsNotThere(page: Int) throws {
        let input = PDFFixture.input(TinyPDF.book(pages: 3))
        for body in [
            { _ = try input.page(page).blocking.image(Self.small) },
            { _ = try input.info(pages: page...page) },
        ] as [() throws -> Void] {
            let error = #expect(throws: ImagePipelineError.self) { try body() }
            guard case .noSuchPage("tiny", page, 3) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
        // Pages count from 1 to the last.
        for page in [1, 3] { _ = try input.page(page).blocking.image(Self.small) }
    }

    @Test func tellsWhatIsNotAPDF() throws {
        let workers = PDFFixture.workers()
        func failure(_ bytes: [UInt8]) -> String {
            thrown {
                let document = PDFDocument(PDFDocument(.bytes(bytes, name: "PDF")), workers: workers)
                _ = try document.page(1).blocking.image(Self.small)
            }
        }
        #expect(failure([]) == "damaged")
        #expect(failure(Array("GIF89a".utf8)) == "unsupported")
        #expect(failure([UInt8](repeating: 0, count: 100_000)) == "unsupported")
        #expect(failure(Array("%PDF-1.7\n".utf8)) == "damaged")
        #expect(failure(TinyPDF(pages: []).bytes) == "damaged")
        #expect(thrown { _ = try BuiltInSource.pdf("/nowhere.pdf").blocking.image(Self.small) } == "unreadable")
        #expect(thrown { _ = try BuiltInSource.pdf("/nowhere.pdf").blocking.identity() } == "unreadable")
    }

    @Test func respectsLimits() throws {
        var request = Self.small
        request.limits.maximumInputBytes = 100
        let input = PDFFixture.input(.init(mediaBox: "0 0 100000 100"))
        #expect(thrown { _ = try input.page(1).blocking.image(request) } == "limitExceeded")
        #expect(thrown { _ = try input.page(1).blocking.image(Self.small) } == "limitExceeded")
        let large = PDFFixture.input(.init(mediaBox: "0 0 14400 14400"))
        let page = try large.page(1).blocking
        #expect(thrown { _ = try page.image(RenderRequest(size: .zero, mode: .none)) } == "limitExceeded")
        #expect(thrown { _ = try page.image(RenderRequest(size: PixelSize(20_000))) } == "limitExceeded")
        #expect(try large.page(1).blocking.image(Self.small).size == PixelSize(64))
        #expect(thrown { _ = try large.page(1).blocking.image(RenderRequest(size: .zero)) } == "underlying")
    }

    @Test func tellsThatTheHelperIsMissing() throws {
        let absent = WorkerPool(program: PDFWorkers.program, location: .executable("/nowhere/vitrine-pdf"))
        let input = PDFDocument(PDFDocument(.bytes(TinyPDF.book(pages: 1).bytes, name: "PDF")), workers: absent)
        #expect(thrown { _ = try input.info() } == "toolMissing")
    }

    @Test func endsAtTheDeadline() throws {
        let workers = PDFFixture.workers()
        var request = Self.small
        request.limits.deadline = 0.5
        #expect(
            thrown { _ = try PDFFixture.input(.endless, workers: workers).page(1).blocking.image(request) } == "timedOut")
        _ = try PDFFixture.input(TinyPDF.book(pages: 1), workers: workers).page(1).blocking.image(Self.small)
    }

    @Test func cancelsADrawing() throws {
        let workers = PDFFixture.workers()
        _ = try PDFFixture.input(TinyPDF.book(pages: 1), workers: workers).page(1).blocking.image(Self.small)
        let token = CancellationToken()
        Thread {
            while workers.busyCount == 0 { usleep(1_000) }
            // Some milliseconds of work lie behind it then.
            usleep(20_000)
            token.cancel()
        }.start()
        var request = Self.small
        request.cancellation = token
        let endless = PDFFixture.input(.endless, workers: workers)
        #expect(thrown { _ = try endless.page(1).blocking.image(request) } == "cancelled")
        // And the pool goes on.
        _ = try PDFFixture.input(TinyPDF.book(pages: 1), workers: workers).page(1).blocking.image(Self.small)
    }
}
