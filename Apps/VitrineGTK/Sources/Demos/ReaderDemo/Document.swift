import DemoSupport
import Foundation
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// A document whose pages a pipeline draws, once for each size.
@MainActor
final class Document {
    let path: String
    let service: ImagePipeline
    private var input: PDFDocument
    private let temporary: String?
    private var identity: CacheKey?
    private(set) var pageCount = 0
    /// Pages of a document with a password are kept in memory alone.
    private var cacheLevels = CacheLevels.all
    private(set) var precaching: PrefetchTask?
    /// The requests for pages that are drawn in advance.
    private var ahead: [ImageTask] = []

    init(_ path: String, _ arguments: DemoArguments) {
        self.path = path
        input = PDFDocument(.file(path), password: arguments["--password"])
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

    /// Opens a document.
    ///
    /// - Throws: `ImagePipelineError` if the file is not a document, or if it needs a password.
    func open() async throws {
        let input = input
        let info = try await BlockingExecutor.shared.run { try input.info() }
        pageCount = info.pageCount
        cacheLevels = info.needsPassword ? .memory : .all
        identity = try await input.page(1).identity()
    }

    /// Uses another password for the next ``open()``.
    func setPassword(_ password: String) { input = PDFDocument(.file(path), password: password) }

    /// Returns a page, from 1. Its identity is known without a read of the file.
    func page(_ number: Int) -> BuiltInSource {
        let page = input.page(number)
        return identity.map { page.identified(by: $0.appending("page \(number)")) } ?? page
    }

    /// Returns a request for a page, for a view that sets its size, or at the size of a box.
    func request(_ number: Int, _ box: TargetGeometry? = nil) -> ImageRequest {
        var request = ImageRequest(page(number))
        if let box { request.resizing = box.resizer }
        request.cacheLevels = cacheLevels
        return request
    }

    /// Draws all pages at a size and caches them on disk, unless the document has a password.
    func precache(_ box: TargetGeometry) {
        guard cacheLevels == .all else { return }
        precaching = service.prefetch((1...max(1, pageCount)).map { request($0, box) })
    }

    /// Draws the neighbours of the current page in advance.
    func prepare(_ numbers: [Int], _ box: TargetGeometry) {
        for request in ahead { request.cancel() }
        ahead = numbers.filter { (1...max(1, pageCount)).contains($0) }.map { number in
            var request = request(number, box)
            request.priority = .low
            return service.start(request)
        }
    }

    /// Cancels all drawing.
    func stop() {
        precaching?.cancel()
        for request in ahead { request.cancel() }
        ahead = []
    }

    /// Removes the temporary files of this run.
    func cleanUp() {
        ImagePipeline.endIdleHelpers()
        if let temporary { try? FileManager.default.removeItem(atPath: temporary) }
    }
}
