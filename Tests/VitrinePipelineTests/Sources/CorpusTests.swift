import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

/// Every file of the corpora through every kind of source that reads files.
@Suite(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
struct CorpusTests {
    private static let files = Corpus.files(in: "corpus") + Corpus.files(in: "hostile")

    private static var request: RenderRequest {
        var request = RenderRequest(size: PixelSize(64))
        request.limits.deadline = 5
        return request
    }

    /// What libraries write about their functions and codes, which tells a user nothing about a file.
    private static let jargon = [
        "vips", "heif:", "avifI", "libav", "libjxl", "libheif", "TIFFR", "TIFFF", "tiff2", "JPEGLib", "Bogus", "svgload",
        "Error domain", "glib", "poppler", "::", "limit is 0",
    ]

    /// A picture of the size asked for, or one of the errors that name the source, in words about it.
    private static func answer(of source: some BlockingImageSource, file: String) -> String {
        do {
            let images = try source.images([request, RenderRequest(size: PixelSize(16), limits: request.limits)])
            guard images.map(\.size.longestSide) == [64, 16] else { return "sizes \(images.map(\.size))" }
            return "image"
        } catch let error as ImagePipelineError {
            if jargon.contains(where: error.reason.contains) { return error.reason }
            return error.source == file ? "error" : "an error of \(error.source)"
        } catch {
            return "\(type(of: error))"
        }
    }

    @Test func picturesEndInAnImageOrATypedError() throws {
        #expect(!Self.files.isEmpty)
        var images = 0
        for file in Self.files {
            var source = ImageFileSource(path: file)
            source.options.allowsEmbeddedPreview = true
            let answer = Self.answer(of: source, file: file)
            #expect(["image", "error"].contains(answer), "\(file): \(answer)")
            if answer == "image" { images += 1 }
            #expect(["nothing", "unreadable", "unsupported", "damaged", "limitExceeded", "timedOut", "underlying"]
                .contains(thrown { _ = try source.preview(Self.request) }), "\(file)")
        }
        #expect(images > 150)
    }

    @Test func pagesEndInAnImageOrATypedError() throws {
        let workers = PDFFixture.workers()
        for file in Self.files {
            let page = try PDFDocument(PDFDocument(.file(file)), workers: workers).page(1).blocking
            let answer = Self.answer(of: page, file: file)
            #expect(["image", "error"].contains(answer), "\(file): \(answer)")
        }
    }

    @Test func framesEndInAnImageOrATypedError() throws {
        let workers = VideoFixture.workers()
        for file in Self.files {
            let answer = Self.answer(of: VideoFrameSource(.file(file), at: .poster, workers: workers), file: file)
            #expect(["image", "error"].contains(answer), "\(file): \(answer)")
        }
    }
}
