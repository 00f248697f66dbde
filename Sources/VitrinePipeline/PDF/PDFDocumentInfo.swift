import VitrineHelperProtocol
import VitrineImaging

/// Facts about a PDF document.
public struct PDFDocumentInfo: Sendable, Equatable {
    /// Pages, numbered from 1.
    public var pageCount: Int
    /// Whether it opens with a password only. One whose owner merely restricted its use opens without.
    public var needsPassword: Bool
    /// Its title; nil for none.
    public var title: String?
    /// The number of the page that ``pageSizes`` begins with.
    public var firstPage: Int
    /// Widths and heights of pages in points, upright: the crop box as far as it lies within the media box. Both are 0
    /// for a page that cannot be read. A user unit (ISO 32000-1, 14.11.3) is not counted in.
    public var pageSizes: [ContentMode.Size]
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

    /// The size of page `number`, as ``pageSizes`` has it; nil when it is not among them.
    public func size(ofPage number: Int) -> ContentMode.Size? {
        let (index, overflow) = number.subtractingReportingOverflow(firstPage)
        return !overflow && pageSizes.indices.contains(index) ? pageSizes[index] : nil
    }
}
