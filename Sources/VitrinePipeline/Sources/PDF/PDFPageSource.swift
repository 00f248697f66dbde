import VitrineCore
import VitrineHelperProtocol
import VitrineImaging

/// One page of a PDF document as a source of images.
///
/// A page is drawn at the size that is wanted, upright as it says itself: its crop box as far as it lies within the
/// media box, with annotations and filled-in forms. Pages have no pixels; where the rule asks for an image's own size,
/// it is 1 pixel a point.
package struct PDFPageSource: FileBackedSource, BlockingImageSource {
    /// Draws a page in a way of its own: `page` draws it as it is, at any size, and may be called or not.
    package typealias Drawing =
        @Sendable (_ request: RenderRequest, _ page: (RenderRequest) throws -> PixelImage) throws -> PixelImage

    /// The document.
    package let document: PDFDocument
    /// The page's number, from 1.
    package let page: Int
    /// The color under the page; nil for transparent. Default: white.
    package var backgroundColor: PixelColor? = .white
    /// Identifies the page instead of its document and number.
    package var identifier: CacheKey?
    /// Replaces the drawing; give such pages an ``identifier`` that says so. Default nil.
    package var drawing: Drawing?

    /// A page of a document.
    package init(_ document: PDFDocument, page: Int) {
        self.document = document
        self.page = page
    }

    /// The document, the page's number, and the background unless it is white.
    package func identity(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey {
        if let identifier { return identifier }
        var key = try document.identity(lookup).appending("page \(page)")
        if backgroundColor != .white {
            let color = backgroundColor ?? .clear
            key = key.appending("on \(color.red) \(color.green) \(color.blue) \(color.alpha)")
        }
        return key
    }

    /// An empty page of this page's shape, at most 140 pixels wide and high.
    package func preview(_ request: RenderRequest) throws -> PixelImage? {
        let info = try document.info(
            pages: page...page, limits: request.limits, cancellation: request.cancellation)
        guard let size = info.size(ofPage: page), size.width > 0, size.height > 0 else { return nil }
        let longest = max(size.width, size.height)
        let side = Double(min(140, max(1, request.size.longestSide)))
        return PixelImage(
            size: PixelSize(
                width: max(1, Int((size.width / longest * side).rounded())),
                height: max(1, Int((size.height / longest * side).rounded()))),
            color: backgroundColor ?? .clear)
    }

    /// The page.
    ///
    /// - Throws: ``ImagePipelineError``: ``ImagePipelineError/noSuchPage(source:page:count:)``,
    ///   ``ImagePipelineError/encrypted(source:)``, ``ImagePipelineError/wrongPassword(source:)`` and others; errors of
    ///   ``drawing``.
    package func image(_ request: RenderRequest) throws -> PixelImage {
        guard let drawing else { return try draw(request) }
        return try drawing(request) { try draw($0) }
    }

    private func draw(_ request: RenderRequest) throws(ImagePipelineError) -> PixelImage {
        var parameters = PDFParameters()
        parameters.page = page
        parameters.target = DocumentTarget(request.size, request.mode, allowsUpscaling: request.allowsUpscaling)
        parameters.background = backgroundColor ?? .clear
        let drawn = try document.draw(parameters, limits: request.limits, cancellation: request.cancellation)
        return try request.image(from: drawn, source: document.name)
    }
}
