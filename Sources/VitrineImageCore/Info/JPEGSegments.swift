/// The content of a start of frame (SOF).
package struct JPEGFrameHeader {
    package let marker: Int
    package let precision: Int
    package let size: PixelSize
    package let components: [Int]

    package init(_ reader: ByteReader, _ segment: JPEGSegmentWalker.Segment) throws(ImageError) {
        let at = segment.payload.lowerBound
        guard segment.payload.count >= 6 else { throw reader.corrupt("a JPEG frame header that is too short") }
        marker = segment.marker
        precision = try reader.u8(at: at)
        size = PixelSize(width: try reader.u16(at: at + 3), height: try reader.u16(at: at + 1))
        let count = try reader.u8(at: at + 5)
        guard (1...4).contains(count), segment.payload.count >= 6 + 3 * count else {
            throw reader.corrupt("\(count) JPEG components")
        }
        var components: [Int] = []
        for i in 0..<count { components.append(try reader.u8(at: at + 6 + 3 * i)) }
        self.components = components
        guard !size.isEmpty else { throw reader.corrupt("a JPEG frame with a side of zero pixels") }
    }

    package static func matches(_ marker: Int) -> Bool {
        (0xC0...0xCF).contains(marker) && marker != 0xC4 && marker != 0xC8 && marker != 0xCC
    }
}

/// JPEG files inside others, such as the thumbnails of Exif.
package enum JPEGPicture {
    /// The size of a JPEG file inside the input that shows an image: baseline, extended or progressive, of 8 bits, and
    /// with one or three components. nil for any other: cameras store sensor data as lossless JPEG.
    package static func size(_ reader: ByteReader, _ range: Range<Int>) -> PixelSize? {
        guard range.count > 4, (try? reader.u16(at: range.lowerBound)) == 0xFFD8 else { return nil }
        var walker = JPEGSegmentWalker(reader, range)
        while let segment = try? walker.next(), segment.marker != 0xDA {
            guard JPEGFrameHeader.matches(segment.marker) else { continue }
            guard (0xC0...0xC2).contains(segment.marker), let frame = try? JPEGFrameHeader(reader, segment),
                frame.precision == 8, frame.components.count == 1 || frame.components.count == 3
            else { return nil }
            return frame.size
        }
        return nil
    }

    /// Whether the input has a frame header behind garbage, up to the first scan.
    package static func beginsPicture(_ reader: ByteReader) -> Bool { size(reader, 0..<reader.count) != nil }

    /// A JPEG file inside the input as a preview; nil when it does not begin like one.
    package static func preview(_ reader: ByteReader, _ range: Range<Int>) -> ImageInfo.EmbeddedPreview? {
        guard range.count > 4, (try? reader.u16(at: range.lowerBound)) == 0xFFD8 else { return nil }
        var walker = JPEGSegmentWalker(reader, range)
        var size: PixelSize?
        while let segment = try? walker.next(), segment.marker != 0xDA {
            guard JPEGFrameHeader.matches(segment.marker) else { continue }
            size = (try? JPEGFrameHeader(reader, segment))?.size
            break
        }
        return ImageInfo.EmbeddedPreview(offset: range.lowerBound, count: range.count, size: size)
    }
}

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
            let payload = Range(from: offset &+ 2, to: offset &+ length)
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
