/// Steps over the marker segments of a JPEG stream, without looking into entropy-coded data.
///
/// Source: ITU-T T.81 annex B. Fill bytes and a little garbage between segments are passed over as libjpeg does, but
/// only ``maximumSkippedBytes`` of them in all, and at most ``maximumSegments``: work stays bounded on any input.
package struct JPEGSegmentWalker {
    /// A marker and the bytes that belong to it.
    package struct Segment {
        /// The second byte of the marker.
        package var marker: Int
        /// The payload, behind the length.
        package var payload: Range<Int>
    }

    static let maximumSegments = 20_000
    static let maximumSkippedBytes = 256 << 10

    private let reader: ByteReader
    private var offset: Int
    private let end: Int
    private var segments = 0
    private var skipped = 0

    /// Walks a stream that begins at `range.lowerBound` with an SOI marker.
    package init(_ reader: ByteReader, _ range: Range<Int>) {
        self.reader = reader
        offset = range.lowerBound &+ 2
        end = range.upperBound
    }

    /// The next segment; nil at the end of the image (EOI).
    ///
    /// - Throws: ``ImageError/truncated(input:)`` at the end of the range, ``ImageError/corrupt(input:reason:)``.
    package mutating func next() throws(ImageError) -> Segment? {
        while true {
            let marker = try nextMarker()
            if marker == 0xD9 { return nil }
            if marker == 0x01 || (0xD0...0xD8).contains(marker) { continue }  // without a payload
            segments &+= 1
            guard segments <= JPEGSegmentWalker.maximumSegments else { throw reader.corrupt("too many JPEG segments") }
            guard offset <= end &- 2 else { throw .truncated(input: reader.name) }
            let length = try reader.u16(at: offset)
            guard length >= 2 else { throw reader.corrupt("a JPEG segment shorter than its length") }
            let payload = (offset &+ 2)..<(offset &+ length)
            // The last segments of a cut file are still worth knowing about.
            guard payload.upperBound <= end else { throw .truncated(input: reader.name) }
            offset = payload.upperBound
            return Segment(marker: marker, payload: payload)
        }
    }

    private mutating func nextMarker() throws(ImageError) -> Int {
        while true {
            guard offset <= end &- 2 else { throw .truncated(input: reader.name) }
            guard skipped <= JPEGSegmentWalker.maximumSkippedBytes else {
                throw reader.corrupt("no JPEG marker where one belongs")
            }
            if try reader.u8(at: offset) == 0xFF {
                let marker = try reader.u8(at: offset &+ 1)
                if marker != 0xFF && marker != 0 {
                    offset &+= 2
                    return marker
                }
            }
            offset &+= 1
            skipped &+= 1
        }
    }
}
