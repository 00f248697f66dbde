import DemoSupport
import Foundation
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineThumbnails
import VitrineViews

/// A document whose pages are drawn by a service, once for each size.
@MainActor
final class Document {
    let path: String
    let service: ThumbnailService
    private let input: PDFInput
    private let temporary: String?
    private var identity: CacheKey?
    private(set) var pageCount = 0
    private(set) var precaching: Precaching?
    /// Pages that are drawn before they are turned to.
    private var ahead: [ThumbnailRequest] = []

    init(_ path: String, _ arguments: DemoArguments) {
        self.path = path
        input = PDFInput(path: path, password: arguments["--password"])
        let state: String
        if let named = arguments["--state"] {
            (state, temporary) = (named, nil)
        } else if arguments.has("--auto") {
            state = DemoSupport.path(NSTemporaryDirectory(), "vitrine-reader-\(UUID().uuidString)")
            temporary = state
        } else {
            (state, temporary) = (CacheConfiguration.defaultRoot, nil)
        }
        service = ThumbnailService(ThumbnailService.Configuration(name: "reader", root: state))
    }

    /// Opens it.
    ///
    /// - Throws: `ThumbnailError`, when it is no document, or wants a password.
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

    func content(_ number: Int) -> ImageContent<Image> { .thumbnail(of: page(number), by: service) }

    /// Puts all pages on disk at a size.
    func precache(_ box: ImageBox) {
        precaching = service.precache(
            (1...max(1, pageCount)).map { page($0) as any ThumbnailSource }, size: box.size, mode: box.mode,
            allowsUpscaling: box.allowsUpscaling)
    }

    /// Draws pages beside the one that is read, so that they are there when it is turned.
    func prepare(_ numbers: [Int], _ box: ImageBox) {
        for request in ahead { request.cancel() }
        ahead = numbers.filter { (1...max(1, pageCount)).contains($0) }.map { number in
            let request = ThumbnailRequest(
                page(number), size: box.size, mode: box.mode, allowsUpscaling: box.allowsUpscaling)
            request.queuePriority = .low
            service.enqueue(request)
            return request
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
        PDFInput.endIdleHelpers()
        if let temporary { try? FileManager.default.removeItem(atPath: temporary) }
    }
}
