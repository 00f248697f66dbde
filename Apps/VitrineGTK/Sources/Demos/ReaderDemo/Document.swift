import DemoSupport
import Foundation
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// A document whose pages are drawn by a service, once for each size.
@MainActor
final class Document {
    let path: String
    let service: ImagePipeline
    private let input: PDFDocument
    private let temporary: String?
    private var identity: CacheKey?
    private(set) var pageCount = 0
    private(set) var precaching: PrefetchTask?
    /// Pages that are drawn before they are turned to.
    private var ahead: [ImageTask] = []

    init(_ path: String, _ arguments: DemoArguments) {
        self.path = path
        input = PDFDocument(path: path, password: arguments["--password"])
        let state: String
        if let named = arguments["--state"] {
            (state, temporary) = (named, nil)
        } else if arguments.has("--auto") {
            state = DemoSupport.path(NSTemporaryDirectory(), "vitrine-reader-\(UUID().uuidString)")
            temporary = state
        } else {
            (state, temporary) = (CacheConfiguration.defaultRoot, nil)
        }
        service = ImagePipeline(ImagePipeline.Configuration(name: "reader", root: state))
    }

    /// Opens it.
    ///
    /// - Throws: `ImagePipelineError`, when it is no document, or wants a password.
    func open() async throws {
        let input = input
        let (count, identity) = try await BlockingExecutor.shared.run {
            (try input.info().pageCount, try input.page(1).identity())
        }
        (pageCount, self.identity) = (count, identity)
    }

    /// A page, from 1, known by a name that needs no look at the file.
    func page(_ number: Int) -> PDFPageSource {
        var page = input.page(number)
        page.identifier = identity?.appending("page \(number)")
        return page
    }

    func request(_ number: Int) -> ImageRequest { ImageRequest(page(number)) }

    /// Puts all pages on disk at a size.
    func precache(_ box: TargetGeometry) {
        precaching = service.prefetch((1...max(1, pageCount)).map { ImageRequest(page($0), size: box.resizer) })
    }

    /// Draws pages beside the one that is read, so that they are there when it is turned.
    func prepare(_ numbers: [Int], _ box: TargetGeometry) {
        for request in ahead { request.cancel() }
        ahead = numbers.filter { (1...max(1, pageCount)).contains($0) }.map { number in
            service.start(ImageRequest(page(number), size: box.resizer, priority: .low))
        }
    }

    /// Draws no more.
    func stop() {
        precaching?.cancel()
        for request in ahead { request.cancel() }
        ahead = []
    }

    /// Removes what was kept for this run only.
    func cleanUp() {
        PDFDocument.endIdleHelpers()
        if let temporary { try? FileManager.default.removeItem(atPath: temporary) }
    }
}
