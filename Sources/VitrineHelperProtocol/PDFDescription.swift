import VitrineImaging

/// What `vitrine-pdf` tells about a document.
package struct PDFDescription: Sendable, Equatable {
    package var pageCount = 0
    /// Whether it opens with a password only.
    package var needsPassword = false
    /// In UTF-8 at most 1,000 bytes; empty for none.
    package var title = ""
    /// Widths and heights in points of the pages asked for, as far as there are such; 0 by 0 for one that cannot be
    /// read.
    package var pageSizes: [ContentMode.Size] = []
    /// Documents that this helper has opened since it started.
    package var opened = 0

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(pageCount)
        wire.write(needsPassword)
        wire.write(title)
        wire.write(opened)
        wire.write(UInt16(truncatingIfNeeded: pageSizes.count))
        for size in pageSizes {
            wire.write(size.width)
            wire.write(size.height)
        }
        return wire.bytes
    }

    /// Reads what ``encoded()`` wrote; nil when it is anything else, or tells what no document has.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        pageCount = wire.int()
        needsPassword = wire.bool()
        title = wire.text()
        opened = wire.int()
        let count = Int(wire.integer(UInt16.self))
        guard count <= PDFParameters.maximumPageSizes else { return nil }
        for _ in 0..<count { pageSizes.append(.init(width: wire.double(), height: wire.double())) }
        guard wire.isComplete, pageCount > 0,
            pageSizes.allSatisfy({ $0.width.isFinite && $0.height.isFinite && $0.width >= 0 && $0.height >= 0 })
        else { return nil }
    }
}
