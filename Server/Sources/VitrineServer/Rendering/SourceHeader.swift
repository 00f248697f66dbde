import Foundation
package import VitrineCore
package import VitrineImaging
import VitrinePipeline

/// The facts of a source before it is decoded.
package struct SourceHeader: Sendable, Hashable {
    /// The kind of the content.
    package enum Kind: String, Sendable, Codable { case image, document, video, recording, font }

    /// The kind.
    package var kind: Kind
    /// The format of an image; nil for all else.
    package var format: ImageFormat?
    /// The media type by the content.
    package var mediaType: String
    /// Upright pixels; points of a document's page, at one pixel each; zero for a recording, whose cover is not read.
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
    package var isVector: Bool { kind == .document || kind == .font || format == .svg }

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
        let content = Self.content(of: bytes)
        switch content?.kind {
        case .document?: self = try Self.document(input, page: page, limits: limits, cancellation: cancellation)
        case .video?, .recording?:
            self = try Self.video(input, content, limits: limits, cancellation: cancellation)
        case .font?: self = SourceHeader(kind: .font, mediaType: "font/sfnt", size: PixelSize(Self.fontSide))
        case .image?, .container?, nil: self = try Self.image(input, limits: limits, cancellation: cancellation)
        }
    }

    /// The side of a sample of a font, where no size is asked for.
    private static let fontSide = 512

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
        _ input: ImageInput, _ content: SourceContent?, limits: ImageLimits, cancellation: CancellationToken
    ) throws(RequestError) -> SourceHeader {
        do {
            let info = try VideoInfo(of: input, limits: limits, cancellation: cancellation)
            var header = SourceHeader(
                kind: content?.kind == .recording ? .recording : .video,
                mediaType: content?.mediaType ?? "video/mp4", size: info.size)
            header.duration = info.duration
            return header
        } catch {
            throw RequestError(rendering: error)
        }
    }

    // MARK: Content

    /// The content of a source; nil for a kind that is not read.
    static func content(of bytes: [UInt8]) -> SourceContent? {
        (try? SourceContent(of: .bytes(bytes, name: "the source"))) ?? nil
    }

    /// The media type of bytes that are answered as they are. Content of no kind that is read has no type that a
    /// browser opens.
    static func mediaType(of bytes: [UInt8]) -> String {
        content(of: bytes)?.mediaType ?? "application/octet-stream"
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
