import Foundation
package import VitrineCore
package import VitrineImaging
import VitrinePipeline

/// The facts of a source before it is decoded.
package struct SourceHeader: Sendable, Hashable {
    /// The kind of the content.
    package enum Kind: String, Sendable, Codable { case image, document, video }

    /// The kind.
    package var kind: Kind
    /// The format of an image; nil for documents and videos.
    package var format: ImageFormat?
    /// The media type by the content.
    package var mediaType: String
    /// Upright pixels; points of a document's page, at one pixel each.
    package var size: PixelSize
    /// How stored pixels are turned to be upright.
    package var orientation = Orientation.up
    /// Whether pixels may be other than opaque.
    package var hasAlpha = false
    /// Pages of a document or frames of an animation.
    package var pageCount = 1
    /// Seconds of a video or of one loop of an animation.
    package var duration: Double?
    /// Whether rows are stored in several passes.
    package var isProgressive = false

    /// Whether it is drawn at any size, so that it may always grow.
    package var isVector: Bool { kind == .document || format == .svg }

    /// Whether ``size`` is a multiple of the page's.
    var isMagnified = false

    /// The header in the pixels of IIIF, which has none for documents: three for each point, 216 for an inch.
    var ofIIIF: SourceHeader {
        guard kind == .document, !isMagnified else { return self }
        var header = self
        header.size = PixelSize(width: min(size.width, 20_000) * 3, height: min(size.height, 20_000) * 3)
        header.isMagnified = true
        return header
    }

    /// Reads the header of a source. May block: documents and videos are opened by a helper program.
    ///
    /// - Parameters:
    ///   - bytes: The source.
    ///   - page: The page of a document whose size is wanted.
    ///   - limits: The limits of the work, with its deadline.
    ///   - cancellation: Stops the work.
    /// - Throws: ``RequestError`` 422 for other content, 504 at the deadline.
    package init(
        of bytes: [UInt8], page: Int = 1, limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) throws(RequestError) {
        let input = ImageInput.bytes(bytes, name: "the source")
        if let media = Self.mediaType(ofDocumentOrVideo: bytes) {
            if media == "application/pdf" {
                self = try Self.document(input, page: page, limits: limits, cancellation: cancellation)
            } else {
                self = try Self.video(input, mediaType: media, limits: limits, cancellation: cancellation)
            }
            return
        }
        self = try Self.image(input, limits: limits, cancellation: cancellation)
    }

    private init(kind: Kind, format: ImageFormat? = nil, mediaType: String, size: PixelSize) {
        (self.kind, self.format, self.mediaType, self.size) = (kind, format, mediaType, size)
    }

    private static func image(
        _ input: ImageInput, limits: ImageLimits, cancellation: CancellationToken
    ) throws(RequestError) -> SourceHeader {
        do {
            return SourceHeader(try ImageInfo(of: input, limits: limits, cancellation: cancellation))
        } catch {
            throw RequestError(rendering: error)
        }
    }

    init(_ info: ImageInfo) {
        self.init(kind: .image, format: info.format, mediaType: info.format.mediaType, size: info.size)
        orientation = info.orientation
        hasAlpha = info.hasAlpha
        pageCount = max(1, info.frameCount)
        duration = info.duration
        isProgressive = info.isProgressive
    }

    private static func document(
        _ input: ImageInput, page: Int, limits: ImageLimits, cancellation: CancellationToken
    ) throws(RequestError) -> SourceHeader {
        do {
            let info = try PDFDocument(input).info(pages: page...page, limits: limits, cancellation: cancellation)
            let size = info.size(ofPage: page) ?? PointSize(width: 0, height: 0)
            var header = SourceHeader(kind: .document, mediaType: "application/pdf", size: Self.pixels(size))
            header.pageCount = info.pageCount
            return header
        } catch {
            throw RequestError(rendering: error)
        }
    }

    private static func pixels(_ size: PointSize) -> PixelSize {
        func side(_ points: Double) -> Int { points.isFinite ? Int(max(1, min(points.rounded(), 1e6))) : 1 }
        return PixelSize(width: side(size.width), height: side(size.height))
    }

    private static func video(
        _ input: ImageInput, mediaType: String, limits: ImageLimits, cancellation: CancellationToken
    ) throws(RequestError) -> SourceHeader {
        do {
            let info = try VideoInfo(of: input, limits: limits, cancellation: cancellation)
            var header = SourceHeader(kind: .video, mediaType: mediaType, size: info.size)
            header.duration = info.duration
            return header
        } catch {
            throw RequestError(rendering: error)
        }
    }

    // MARK: Content

    /// The media type of a document or a video; nil for anything else, such as images.
    static func mediaType(ofDocumentOrVideo bytes: [UInt8]) -> String? {
        let start = bytes.prefix(1_024)
        func has(_ mark: StaticString, at offset: Int = 0) -> Bool {
            let length = mark.utf8CodeUnitCount
            guard start.count >= offset + length else { return false }
            return mark.withUTF8Buffer { start[offset..<(offset + length)].elementsEqual($0) }
        }
        if has("ftyp", at: 4) {
            // HEIF and AVIF are images in the same container.
            if ImageFormat.detect(Array(start)) != nil { return nil }
            return has("qt  ", at: 8) ? "video/quicktime" : has("M4A ", at: 8) ? "audio/mp4" : "video/mp4"
        }
        if ImageFormat.detect(Array(bytes.prefix(4_096))) != nil { return nil }
        if start.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) { return "video/x-matroska" }
        if has("RIFF"), has("AVI ", at: 8) { return "video/x-msvideo" }
        if has("FLV\u{1}") { return "video/x-flv" }
        if has("OggS") { return "video/ogg" }
        if has("ID3") { return "audio/mpeg" }
        if has("fLaC") { return "audio/flac" }
        if start.first == 0, ["moov", "mdat", "wide", "free", "skip"].contains(where: { has($0, at: 4) }) {
            return "video/quicktime"
        }
        if start.starts(with: [0, 0, 1, 0xBA]) || start.starts(with: [0, 0, 1, 0xB3]) { return "video/mpeg" }
        if start.count > 753, (0...4).allSatisfy({ start[$0 * 188] == 0x47 }) { return "video/mp2t" }
        // Readers look for the mark within the first 1,024 bytes (ISO 32000-1, annex H.3, note 13).
        let mark = Array("%PDF-".utf8)
        let isDocument = start.indices.contains { start[$0...].starts(with: mark) }
        return isDocument ? "application/pdf" : nil
    }

    /// The media type of bytes that are answered as they are. Content that is no image, document or video is of no
    /// type that a browser opens.
    static func mediaType(of bytes: [UInt8]) -> String {
        if let media = mediaType(ofDocumentOrVideo: bytes) { return media }
        return ImageFormat.detect(Array(bytes.prefix(4_096)))?.mediaType ?? "application/octet-stream"
    }

    /// The value of `Content-Encoding` for bytes that are answered as they are: a compressed drawing has the media type of
    /// a drawing, and is one only after a browser has expanded it (SVG 1.1 §1.2).
    static func contentEncoding(of bytes: some Collection<UInt8>, mediaType: String) -> String? {
        mediaType == ImageFormat.svg.mediaType && bytes.starts(with: [0x1F, 0x8B]) ? "gzip" : nil
    }

    // MARK: Memory

    /// An estimate of the bytes that decoding needs, for results of at most some size.
    ///
    /// - Parameters:
    ///   - target: The largest size to decode for; nil for every pixel.
    ///   - sourceBytes: The bytes of the source, which are held meanwhile.
    package func estimatedBytes(decodingTo target: PixelSize?, sourceBytes: Int) -> Int {
        // In floating point: the sides of a damaged header may be of any size.
        let all = Double(max(1, size.pixelCount))
        let (width, height) = (Double(size.width), Double(size.height))
        // Decoders that reduce deliver up to twice the size in both directions.
        let reduced = target.map { target in
            min(all, 4 * max(1, min(width, Double(target.width))) * max(1, min(height, Double(target.height))))
        }
        let result = target.map { Double(max(1, min($0.pixelCount, 1 << 26))) } ?? all
        let decoded: Double
        switch format {
        case .jpeg? where isProgressive:
            // Coefficients of two bytes for the luma and as much again for both chromas, unless a scan suffices.
            let isSmall = target.map { 8 * Double(max($0.width, 1)) <= width && 8 * Double(max($0.height, 1)) <= height }
            decoded = isSmall == true ? (reduced ?? all) * 4 : all * 4 + (reduced ?? all) * 4
        case .jpeg?, .tiff?, .bmp?, .ico?: decoded = (reduced ?? all) * 4
        case .png? where !isProgressive: decoded = (reduced ?? all) * 4
        case .svg?, nil: decoded = result * 4
        default: decoded = all * 4
        }
        let total = decoded + result * 8 + Double(sourceBytes) + 2_000_000
        return Int(min(total, 1e12))
    }
}
