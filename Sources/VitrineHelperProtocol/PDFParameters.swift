import VitrineImaging

/// What `vitrine-pdf` is asked about a document, beside its bytes.
package struct PDFParameters: Sendable, Equatable {
    /// Page sizes that one description holds at most: they must fit ``WorkerProtocol/maximumPacket``.
    package static let maximumPageSizes = 500

    /// The page to draw, or the first whose size is told. From 1.
    package var page = 1
    /// Pages whose sizes are told.
    package var pageSizes = 0
    package var size = PixelSize.zero
    package var fit = DocumentFit.none
    /// Whether the page may become larger than 1 pixel a point.
    package var allowsUpscaling = true
    /// What is painted under the page.
    package var background = Color.white
    /// The user's or the owner's password; nil for none.
    package var password: String?

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(page)
        wire.write(pageSizes)
        wire.write(size.width)
        wire.write(size.height)
        wire.write(fit.rawValue)
        wire.write(allowsUpscaling)
        for channel in [background.red, background.green, background.blue, background.alpha] { wire.write(channel) }
        wire.write(password != nil)
        wire.write(Array((password ?? "").utf8))
        return wire.bytes
    }

    /// Reads what ``encoded()`` wrote; nil when it is anything else.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        page = wire.int()
        pageSizes = wire.int()
        size = PixelSize(width: wire.int(), height: wire.int())
        fit = wire.enumeration(DocumentFit.self, or: .none)
        allowsUpscaling = wire.bool()
        background = Color(
            red: wire.integer(), green: wire.integer(), blue: wire.integer(), alpha: wire.integer())
        let hasPassword = wire.bool()
        let text = String(decoding: wire.byteArray(), as: UTF8.self)
        password = hasPassword ? text : nil
        guard wire.isComplete else { return nil }
    }
}
