/// Options of a decode, beside its size.
public struct DecodeOptions: Sendable, Hashable {
    /// Frame of an animation or page of a document, from 0.
    public var page = 0
    /// Whether the small image that a camera stored in the file may be used in place of the image. Default false:
    /// previews can be soft, cropped differently, or older than an edit.
    ///
    /// A preview is used if it is at least as large as the result in both directions and has the same shape (within
    /// 2 %).
    public var allowsEmbeddedPreview = false
    /// Whether a truncated input gives a partial image. Default false: it throws ``ImageError/truncated(input:)``.
    ///
    /// Rows that a JPEG, PNG, WebP or GIF lacks are transparent. Without any row, the error is thrown as well.
    public var allowsPartial = false
    /// The part of the upright image to decode; nil for all of it. The resizer sees it as if it were the image.
    ///
    /// It is cut at the edges of the image. JPEG, PNG, TIFF, the tiles of HEIC, and JPEG 2000 with tiles are decoded as
    /// far as the region needs, so that damage elsewhere may be no error; other formats are decoded whole. A region of a
    /// later frame or page is an error.
    public var region: PixelRect?
    /// Whether the pixels of a JPEG that is reduced by 2, 4 or 8 may be the means of 4, 16 or 64 pixels of the file, as
    /// in the levels of a pyramid. Default false: they are made from more samples.
    @_spi(JPEGRows) public var acceptsMeans = false
    /// Whether a decoder of JPEG notes where the rows of the file begin. Default false.
    package var notesRows = false

    /// Creates options.
    ///
    /// - Parameters:
    ///   - page: Frame of an animation or page of a document, from 0.
    ///   - allowsEmbeddedPreview: Whether the camera's preview may be used in place of the image.
    ///   - allowsPartial: Whether a truncated input gives a partial image.
    ///   - region: The part of the upright image to decode.
    public init(
        page: Int = 0, allowsEmbeddedPreview: Bool = false, allowsPartial: Bool = false, region: PixelRect? = nil
    ) {
        self.region = region
        self.page = page
        self.allowsEmbeddedPreview = allowsEmbeddedPreview
        self.allowsPartial = allowsPartial
    }
}

extension DecodeOptions {
    /// A text for each option that is not the default, for identities of results.
    package var changes: [String] {
        var texts: [String] = []
        if page != 0 { texts.append("page \(page &+ 1)") }
        if allowsEmbeddedPreview { texts.append("preview") }
        if allowsPartial { texts.append("partial") }
        if let region { texts.append("region \(region.x),\(region.y),\(region.size)") }
        if acceptsMeans { texts.append("means") }
        if notesRows { texts.append("rows") }
        return texts
    }

    package init(from wire: inout WireReader) {
        page = wire.int()
        allowsEmbeddedPreview = wire.bool()
        allowsPartial = wire.bool()
        region = wire.rect()
        acceptsMeans = wire.bool()
        notesRows = wire.bool()
    }

    package func write(to wire: inout WireWriter) {
        wire.write(page)
        wire.write(allowsEmbeddedPreview)
        wire.write(allowsPartial)
        wire.write(region)
        wire.write(acceptsMeans)
        wire.write(notesRows)
    }
}
