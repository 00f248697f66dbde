import VitrineCore
import VitrineHelperProtocol
import VitrineImaging

/// A PDF document: where its bytes come from, and its password.
///
/// ```swift
/// let manual = PDFDocument(.file("manual.pdf"))
/// let count = try manual.info().pageCount
/// let cover = try await manual.page(1).image(RenderRequest(size: PixelSize(200)))
/// ```
///
/// Documents are read by poppler in the helper `vitrine-pdf`, which keeps those used last open: 500 pages of a file
/// open it once. Bytes and results of a closure are kept here for the four documents used last. Use one `PDFDocument`
/// for all pages.
///
/// Calls block: make them from a thread that may block.
public final class PDFDocument: Sendable {
    private enum Origin: Sendable {
        case file(String)
        case bytes([UInt8])
        case closure(open: @Sendable () throws -> ImageInput, close: @Sendable () -> Void)
    }

    /// The name of the document in errors: a path, or the name it was given.
    package let name: String
    private let origin: Origin
    private let password: String?
    private let workers: WorkerPool
    private let inputs: OpenDocumentCache
    private let opening = Locked(())
    private let digest: ContentDigest?

    /// A file, whose identity is its path, size, time of change and inode; or bytes, whose identity is their SHA-256
    /// digest.
    ///
    /// - Parameters:
    ///   - input: The file or the bytes.
    ///   - password: The user's or the owner's. Images of a document with a password are found again by this
    ///     process only.
    public convenience init(_ input: ImageInput, password: String? = nil) {
        switch input {
        case .file(let path): self.init(.file(path), name: path, password: password)
        case .bytes(let bytes, let name): self.init(.bytes(bytes), name: name, password: password)
        }
    }

    /// A document that is opened when its first page is wanted. Its identity is `name`.
    ///
    /// - Parameters:
    ///   - name: Identifies the document.
    ///   - password: The user's or the owner's.
    ///   - open: Gives the document. Called on a thread that may block, by one caller at a time; again when the
    ///     document is wanted after it was closed.
    ///   - close: Called when the document is no longer kept open, once for each `open`.
    public convenience init(
        name: String, password: String? = nil, open: @escaping @Sendable () throws -> ImageInput,
        close: @escaping @Sendable () -> Void = {}
    ) {
        self.init(.closure(open: open, close: close), name: name, password: password)
    }

    /// `input` with workers and open documents of its own, for tests.
    package convenience init(_ input: PDFDocument, workers: WorkerPool, keeping count: Int = OpenDocumentCache.capacity) {
        self.init(
            input.origin, name: input.name, password: input.password, workers: workers,
            inputs: OpenDocumentCache(capacity: count))
    }

    private init(
        _ origin: Origin, name: String, password: String?, workers: WorkerPool = PDFWorkers.shared,
        inputs: OpenDocumentCache = .shared
    ) {
        self.origin = origin
        if case .bytes(let bytes) = origin { digest = ContentDigest(bytes) } else { digest = nil }
        self.name = name
        self.password = password
        self.workers = workers
        self.inputs = inputs
    }

    deinit { inputs.close(ObjectIdentifier(self)) }

    /// The file, if it needs no password to be seen; nil for anything else.
    var openFile: String? {
        if case .file(let path) = origin, password == nil { path } else { nil }
    }

    /// Returns a page as a source of images. Whether there is one shows when it is drawn.
    ///
    /// A page is drawn at the size that is wanted, upright: its crop box as far as it lies within the media box, with
    /// annotations and filled-in forms. Where a request asks for its own size, it is 1 pixel a point.
    ///
    /// - Parameters:
    ///   - number: The page, from 1.
    ///   - background: The color under the page; nil for transparent.
    ///   - drawing: Replaces the drawing. Its second argument draws the page as it is, at any size, and may be called
    ///     or not. Give such pages an identity that says so, by ``BuiltInSource/identified(by:)``.
    public func page(
        _ number: Int, background: PixelColor? = .white,
        drawing: (@Sendable (RenderRequest, (RenderRequest) throws -> PixelImage) throws -> PixelImage)? = nil
    ) -> BuiltInSource {
        var page = PDFPageSource(self, page: number)
        page.backgroundColor = background
        page.drawing = drawing
        return BuiltInSource(page)
    }

    /// Returns facts about the document.
    ///
    /// - Parameters:
    ///   - pages: The pages whose sizes are wanted; of more than 500, the first 500. Default none.
    ///   - limits: Limits on the input and the work.
    ///   - cancellation: Ends it early.
    /// - Throws: ``ImagePipelineError``; ``ImagePipelineError/encrypted(source:)`` or
    ///   ``ImagePipelineError/wrongPassword(source:)`` when it does not open,
    ///   ``ImagePipelineError/noSuchPage(source:page:count:)`` when the first of `pages` does not exist.
    public func info(
        pages: ClosedRange<Int>? = nil, limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImagePipelineError) -> PDFDocumentInfo {
        var parameters = PDFParameters()
        parameters.page = pages?.lowerBound ?? 1
        if let pages { parameters.pageSizes = min(pages.count, PDFParameters.maximumPageSizes) }
        let answer = try ask(&parameters) { source, message throws(ImageError) in
            try self.workers.describe(source, parameters: message, limits: limits, cancellation: cancellation)
        }
        guard let description = PDFDescription(answer) else {
            throw .malformedDescription(source: name)
        }
        return PDFDocumentInfo(description, firstPage: parameters.page)
    }

    /// A page as the helper draws it.
    func draw(
        _ parameters: PDFParameters, limits: ImageLimits, cancellation: CancellationToken
    ) throws(ImagePipelineError) -> DecodedImage {
        var parameters = parameters
        return try ask(&parameters) { source, message throws(ImageError) in
            try self.workers.render(
                source, target: nil, parameters: message, limits: limits, cancellation: cancellation)
        }
    }

    /// The document's part of its pages' identities.
    ///
    /// With a password it differs between passwords and between processes. Other users do not get the pages, and the
    /// disk does not reveal the password.
    func identity(_ lookup: FileIdentity.Lookup = .verified) throws(ImagePipelineError) -> CacheKey {
        let key =
            switch origin {
            case .file(let path): try FileIdentity.key(of: path, lookup)
            case .closure: CacheKey("PDF", name)
            case .bytes(let bytes): try (digest ?? ContentDigest(bytes)).key(lookup)
            }
        guard let password else { return key }
        return key.appending("opened " + Hexadecimal.text(SHA256Digest.digest(of: Self.salt + password.utf8)))
    }

    private static let salt = (0..<32).map { _ in UInt8.random(in: 0...255) }

    private func ask<Answer>(
        _ parameters: inout PDFParameters, _ body: (ByteSource, [UInt8]) throws(ImageError) -> Answer
    ) throws(ImagePipelineError) -> Answer {
        if let password {
            // Neither fits a PDF (at most 127 bytes, ISO 32000-2, 7.6.4.3.3) nor a C string.
            guard password.utf8.count <= 1_000, !password.utf8.contains(0) else { throw .wrongPassword(source: name) }
            parameters.password = password
        }
        let source = try source()
        guard workers.isAvailable else { throw PDFWorkers.missing(for: name) }
        do throws(ImageError) {
            return try body(source, parameters.encoded())
        } catch {
            throw self.error(error, page: parameters.page)
        }
    }

    private func error(_ error: ImageError, page: Int) -> ImagePipelineError {
        switch PDFFailure(error) {
        case .notAPDF: .unsupported(source: name, reason: "it is not a PDF")
        case .encrypted: .encrypted(source: name)
        case .wrongPassword: .wrongPassword(source: name)
        case .noSuchPage(let count): .noSuchPage(source: name, page: page, count: count)
        case nil where error.reason == WorkerServer.readsNoDocuments: PDFWorkers.missing(for: name)
        case nil: ImagePipelineError(error, source: name)
        }
    }

    // MARK: Bytes

    private func source() throws(ImagePipelineError) -> ByteSource {
        if case .file(let path) = origin { return try opened(.file(path)) }
        let id = ObjectIdentifier(self)
        if let source = inputs.source(id) { return source }
        return try opening.withLock { _ throws(ImagePipelineError) in
            if let source = inputs.source(id) { return source }
            switch origin {
            case .file(let path): return try opened(.file(path))
            case .bytes(let bytes):
                let source = try opened(.bytes(bytes, name: name))
                inputs.keep(source, of: id) {}
                return source
            case .closure(let open, let close):
                let input: ImageInput
                do {
                    input = try open()
                } catch let error as ImagePipelineError {
                    throw error
                } catch {
                    throw .unreadable(source: name, reason: ErrorText.nested(error, about: name))
                }
                do throws(ImagePipelineError) {
                    let source = try opened(input)
                    inputs.keep(source, of: id, close)
                    return source
                } catch {
                    close()
                    throw error
                }
            }
        }
    }

    private func opened(_ input: ImageInput) throws(ImagePipelineError) -> ByteSource {
        do throws(ImageError) {
            return try ByteSource(input).withDescriptor()
        } catch {
            throw ImagePipelineError(error, source: name)
        }
    }
}

/// Facts about a PDF document.
public struct PDFDocumentInfo: Sendable, Equatable {
    /// Pages, numbered from 1.
    public var pageCount: Int
    /// Whether it opens with a password only. One whose owner merely restricted its use opens without.
    public var needsPassword: Bool
    /// Its title; nil for none.
    public var title: String?
    /// The number of the page that ``pageSizes`` begins with.
    package var firstPage: Int
    /// Widths and heights of pages in points, upright: the crop box as far as it lies within the media box. Both are 0
    /// for a page that cannot be read. A user unit (ISO 32000-1, table 30) is counted in.
    package var pageSizes: [PointSize]
    /// Documents that the helper has opened since it started, for tests.
    package var opened: Int

    init(_ description: PDFDescription, firstPage: Int) {
        pageCount = description.pageCount
        needsPassword = description.needsPassword
        title = description.title.isEmpty ? nil : description.title
        self.firstPage = firstPage
        pageSizes = description.pageSizes
        opened = description.opened
    }

    /// Returns the width and height of a page in points, upright: the crop box as far as it lies within the media box.
    /// Both are 0 for a page that cannot be read. A user unit (ISO 32000-1, table 30) is counted in.
    ///
    /// - Returns: nil for a page whose size was not asked for.
    public func size(ofPage number: Int) -> PointSize? {
        let (index, overflow) = number.subtractingReportingOverflow(firstPage)
        return !overflow && pageSizes.indices.contains(index) ? pageSizes[index] : nil
    }
}

/// The documents given by closures, or in memory, that were used last: open, so that the next page need not ask again.
///
/// One that is closed while a page of it is being drawn stays readable until that is done.
package final class OpenDocumentCache: Sendable {
    private struct Entry {
        var id: ObjectIdentifier
        var source: ByteSource
        var close: @Sendable () -> Void
    }

    /// Documents kept open.
    package static let capacity = 4
    package static let shared = OpenDocumentCache(capacity: capacity)

    private let capacity: Int
    /// The one used last at the end.
    private let entries = Locked<[Entry]>([])

    package init(capacity: Int) { self.capacity = max(1, capacity) }

    /// The open document of `id`.
    package func source(_ id: ObjectIdentifier) -> ByteSource? {
        entries.withLock { entries in
            guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
            let entry = entries.remove(at: index)
            entries.append(entry)
            return entry.source
        }
    }

    /// Keeps a document, and closes the one that has not been used for the longest time.
    package func keep(_ source: ByteSource, of id: ObjectIdentifier, _ close: @escaping @Sendable () -> Void) {
        let closing = entries.withLock { entries in
            entries.append(Entry(id: id, source: source, close: close))
            return entries.count > capacity ? entries.removeFirst().close : nil
        }
        closing?()
    }

    /// Closes the document of `id`, if it is open.
    package func close(_ id: ObjectIdentifier) {
        let closing = entries.withLock { entries in
            entries.firstIndex { $0.id == id }.map { entries.remove(at: $0).close }
        }
        closing?()
    }
}

/// The helper that reads PDF documents.
package enum PDFWorkers {
    package static let program = "vitrine-pdf"

    /// Processes for everybody, one for each processor at most.
    package static let shared = WorkerPool(program: program, recycling: recycling)

    /// A fresh helper has to open its documents again: it is replaced more rarely than one that decodes images.
    package static var recycling: WorkerRecycling {
        var recycling = WorkerRecycling()
        recycling.maximumServed = 10_000
        return recycling
    }

    /// The error of a system without it.
    static func missing(for source: String) -> ImagePipelineError { .helperMissing(program, source: source) }
}
