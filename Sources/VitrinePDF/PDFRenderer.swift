import CVitrinePoppler
import VitrineHelperProtocol
import VitrineImaging

/// Describes PDF documents and draws their pages by poppler and cairo, at the requested size.
final class PDFRenderer: DocumentRendering {
    private var documents = OpenDocuments()

    func describe(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> [UInt8] {
        let parameters = try Self.parameters(request)
        let document = try documents.document(source, password: parameters.password, limits: request.limits)
        guard document.pageCount > 0 else { throw .corrupt(input: source.name, reason: "it has no pages") }
        var description = PDFDescription()
        description.pageCount = document.pageCount
        description.title = document.title
        description.opened = documents.opened
        description.needsPassword = document.needsPassword
        if parameters.pageSizes > 0 {
            let count = min(parameters.pageSizes, PDFParameters.maximumPageSizes)
            let first = try Self.checked(parameters.page, of: document)
            for number in first...min(first + count - 1, document.pageCount) {
                description.pageSizes.append(document.pageSize(number) ?? .init(width: 0, height: 0))
            }
        }
        return description.encoded()
    }

    func render(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> DecodedImage {
        let parameters = try Self.parameters(request)
        let document = try documents.document(source, password: parameters.password, limits: request.limits)
        guard document.pageCount > 0 else { throw .corrupt(input: source.name, reason: "it has no pages") }
        let page = try Self.checked(parameters.page, of: document)
        guard var size = document.pageSize(page) else {
            throw .corrupt(input: source.name, reason: "page \(page) cannot be read")
        }
        // A plan of some hundred metres is drawn like any page where a size is wanted.
        if parameters.target.fit != .none { size = document.unscaled(size, ofPage: page) }
        let target = try PageGeometry(size, limits: request.limits).pixels(for: parameters.target)
        return try Self.draw(document, page: page, target, over: parameters.background, limits: request.limits)
    }

    private static func parameters(_ request: DocumentRequest) throws(ImageError) -> PDFParameters {
        guard let parameters = PDFParameters(request.parameters) else {
            throw .invalidRequest(reason: "the request is malformed")
        }
        return parameters
    }

    /// Returns `page` if the document has it.
    private static func checked(_ page: Int, of document: OpenDocument) throws(ImageError) -> Int {
        guard page >= 1, page <= document.pageCount else {
            throw PDFFailure.noSuchPage(count: document.pageCount).error
        }
        return page
    }

    private static func draw(
        _ document: OpenDocument, page: Int, _ size: PixelSize, over background: PixelColor, limits: ImageLimits
    ) throws(ImageError) -> DecodedImage {
        let drawing = cpoppler_drawing(
            page: Int32(page - 1), width: Int32(size.width), height: Int32(size.height), red: background.red,
            green: background.green, blue: background.blue, alpha: background.alpha)
        let isOpaque = background.alpha == 255
        let channels = isOpaque ? 3 : 4
        let storage = PixelStorage(zeroedByteCount: size.pixelCount * channels)
        let status = withUnsafePointer(to: drawing) {
            cpoppler_draw(
                document.handle, $0, storage.bytes.bindMemory(to: UInt8.self).baseAddress)
        }
        switch status {
        case CPOPPLER_OK: break
        case CPOPPLER_MEMORY:
            throw .limitExceeded(
                input: "input", limit: .memory, actual: limits.maximumWorkerMemory,
                allowed: limits.maximumWorkerMemory)
        case CPOPPLER_UNDRAWN:
            throw .unsupported(
                input: "input", reason: "page \(page) has an object that cairo cannot draw, and would be blank")
        default: throw .corrupt(input: "input", reason: "page \(page) cannot be read")
        }
        let plane = PixelPlane(width: size.width, height: size.height, channels: channels, storage: storage)
        return DecodedImage(planes: [plane], model: .rgb, alpha: isOpaque ? .none : .premultiplied)
    }
}
