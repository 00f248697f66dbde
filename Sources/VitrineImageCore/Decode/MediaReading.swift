/// An image attached to a recording or a video: the cover of a record, the box of a video.
package struct RecordingCover: Sendable {
    /// The subject of an image, by the numbers of ID3v2 (`APIC`), which the other containers share.
    package enum Kind: Int, Sendable, Hashable, CaseIterable {
        case other = 0
        case icon = 1, otherIcon = 2
        case front = 3, back = 4
        case leaflet = 5, medium = 6, lead = 7, artist = 8, conductor = 9, band = 10, composer = 11, lyricist = 12
        case place = 13, session = 14, performance = 15, screen = 16, fish = 17, illustration = 18
        case bandLogo = 19, publisherLogo = 20
    }

    /// Its subject.
    package var kind: Kind
    /// The file of the image.
    package var bytes: [UInt8]

    package init(kind: Kind, bytes: [UInt8]) {
        (self.kind, self.bytes) = (kind, bytes)
    }
}

/// Recognises recordings and videos, and finds the images attached to them.
///
/// Pure Swift, bounds-checked, with a bound on the work: input is foreign.
package protocol MediaReading: Sendable {
    /// The container of an input by its content; nil for other content. Called for every input that is no image, so
    /// the first bytes should suffice to say no.
    static func format(of reader: ByteReader) throws(ImageError) -> MediaFormat?

    /// The attached images; none if the input is no recording. Damage ends the search.
    ///
    /// - Parameter kind: The subject of the first ones. Front covers follow, then those of no particular kind, then
    ///   any, icons last.
    /// - Throws: ``ImageError/unreadable(input:reason:)``.
    static func pictures(
        _ reader: ByteReader, preferring kind: RecordingCover.Kind
    ) throws(ImageError) -> [(kind: RecordingCover.Kind, picture: EmbeddedPicture)]
}
