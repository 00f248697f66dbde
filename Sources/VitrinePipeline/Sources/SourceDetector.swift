import VitrineHelperProtocol
import VitrineImaging

/// Chooses the source for an input by its content, never by its name.
///
/// ```swift
/// let source = try SourceDetector.source(forFile: path)
/// let image = try await ImagePipeline.shared.image(for: ImageRequest(source, resizing: .fit(256)))
/// ```
package enum SourceDetector {
    /// The helper programs that read or draw files.
    package static let helpers = [WorkerPool.shared, PDFWorkers.shared, VideoWorkers.shared, TextWorkers.shared]

    /// Which part of a file is wanted, where it has parts.
    package struct Options: Sendable {
        /// The page of a document, or the frame of an animation, from 1. Default 1.
        package var page = 1
        /// The moment of a video. Default its poster.
        package var moment = VideoMoment.poster
        /// How near the frame has to come to the moment. Default the nearest key frame.
        package var precision = VideoFrameSource.Precision.nearestKeyFrame
        /// The password of a document.
        package var password: String?
        /// Whether text is drawn. Default false: a page of HTML in the place of an image is an error.
        package var readsText = false
        /// See ``VideoFrameSource/cover``.
        package var cover = RecordingCover.Kind.front
        /// See ``VideoFrameSource/allowsSiblingCover``.
        package var allowsSiblingCover = false
        /// See ``VideoFrameSource/drawsWaveform``.
        package var drawsWaveform = false
        /// How an image is decoded, but for its page.
        package var decode = DecodeOptions()

        /// Creates options for a page or a moment.
        package init(page: Int = 1, moment: VideoMoment = .poster) {
            self.page = page
            self.moment = moment
        }
    }

    /// The source for a file: an image, a page, a frame, or the cover of a recording. Reads its first bytes.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)``, ``ImagePipelineError/unsupported(source:reason:)``
    ///   for other content.
    package static func source(
        forFile path: String, _ options: Options = Options()
    ) throws(ImagePipelineError) -> any BlockingImageSource {
        try source(for: .file(path), options)
    }

    /// The source for a file or bytes.
    ///
    /// - Throws: As ``source(forFile:_:)``.
    package static func source(
        for input: ImageInput, _ options: Options = Options()
    ) throws(ImagePipelineError) -> any BlockingImageSource {
        guard let kind = try FileKind(of: input, readsText: options.readsText) else { throw unknown(input) }
        return source(for: input, of: kind, options)
    }

    /// The source for a file or bytes of a kind that is known.
    package static func source(
        for input: ImageInput, of kind: FileKind, _ options: Options = Options()
    ) -> any BlockingImageSource {
        switch kind {
        case .image:
            var source = ImageFileSource(input)
            source.options = options.decode
            source.page = options.page
            return source
        case .pdf:
            return PDFPageSource(PDFDocument(input, password: options.password), page: options.page)
        case .media(let media):
            var source = VideoFrameSource(input, at: options.moment)
            source.precision = options.precision
            source.prefersCoverArt = media.isAudio
            source.coverReplacesNoVideo = true
            source.cover = options.cover
            source.allowsSiblingCover = options.allowsSiblingCover
            source.drawsWaveform = options.drawsWaveform
            return source
        case .font: return DrawnFileSource(input, as: .font)
        case .text: return DrawnFileSource(input, as: .text)
        }
    }

    /// How many pages, or frames, a file has. Videos have 1.
    ///
    /// - Throws: ``ImagePipelineError``.
    package static func pageCount(
        of input: ImageInput, _ options: Options = Options()
    ) throws(ImagePipelineError) -> Int {
        switch try FileKind(of: input, readsText: options.readsText) {
        case .pdf?:
            guard let source = source(for: input, of: .pdf, options) as? PDFPageSource else { return 1 }
            return try source.document.info().pageCount
        case .image?:
            do throws(ImageError) {
                return max(1, try ImageInfo(of: input).frameCount)
            } catch {
                throw ImagePipelineError(error, source: input.name)
            }
        case .media?, .font?, .text?: return 1
        case nil: throw unknown(input)
        }
    }

    /// The error for content of no known kind, for example an empty file.
    private static func unknown(_ input: ImageInput) -> ImagePipelineError {
        do throws(ImageError) {
            _ = try ImageInfo(of: input)
            return ImagePipelineError(.notAnImage(input: input.name), source: input.name)
        } catch {
            return ImagePipelineError(error, source: input.name)
        }
    }
}

/// The kind of a file by its first bytes, of those that sources can read. Names are ignored.
package enum FileKind: Sendable, Hashable {
    /// An image.
    case image(ImageFormat)
    /// A PDF document.
    case pdf
    /// A video or a recording, in a container that FFmpeg reads.
    case media(MediaFormat)
    /// A font: TrueType, OpenType, WOFF, or one of the older kinds.
    case font
    /// Text of any language, where it is asked for.
    case text

    /// Whether it has no pixels of its own, so that any size is as good.
    package var isDrawn: Bool {
        switch self {
        case .pdf, .font, .text: true
        case .image, .media: false
        }
    }

    /// The registered media type.
    package var mediaType: String {
        switch self {
        case .image(let format): format.mediaType
        case .pdf: "application/pdf"
        case .media(let media): media.rawValue
        case .font: "font/sfnt"
        case .text: "text/plain"
        }
    }

    /// Bytes that are looked at, but for formats whose headers say where to look on: readers of PDF look for its mark
    /// within the first 1024 (ISO 32000-1, annex H.3, note 13).
    private static let lookedAt = 1_024

    /// Returns the kind of an input; nil for other content.
    ///
    /// - Parameter readsText: Whether text is a kind.
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)``.
    package init?(of input: ImageInput, readsText: Bool = false) throws(ImagePipelineError) {
        do throws(ImageError) {
            let source = try ByteSource(input)
            // Images first: the rules for videos are broader.
            let reader = ByteReader(source)
            if let format = try ImageFormat.detect(reader) {
                self = .image(format)
                return
            }
            if let media = try Codecs.standard.mediaFormat(of: reader) {
                self = .media(media)
                return
            }
            let start = try source.bytes(at: 0, count: Self.lookedAt)
            if Self.contains("%PDF-", start) {
                self = .pdf
            } else if try Self.endsLikePDF(source) {
                self = .pdf
            } else if Self.isFont(start) {
                self = .font
            } else if readsText, Self.mayBeText(input),
                PlainText.begins(try source.bytes(at: 0, count: PlainText.lookedAt))
            {
                self = .text
            } else {
                return nil
            }
        } catch {
            throw ImagePipelineError(error, source: input.name)
        }
    }

    /// Whether an input without a PDF header says at its end where its table of objects is (ISO 32000-1, 7.5.5):
    /// poppler reads these, too.
    private static func endsLikePDF(_ source: ByteSource) throws(ImageError) -> Bool {
        let mark: StaticString = "startxref"
        let end = try source.bytes(at: max(0, source.count - lookedAt), count: min(source.count, lookedAt))
        return end.indices.contains { start in
            guard matches(mark, end, at: start) else { return false }
            let rest = end[(start + mark.utf8CodeUnitCount)...].drop { [9, 10, 12, 13, 32].contains($0) }
            return rest.startIndex > start + mark.utf8CodeUnitCount && rest.first.map { 48...57 ~= $0 } == true
        }
    }

    private static func contains(_ mark: StaticString, _ bytes: [UInt8]) -> Bool {
        let length = mark.utf8CodeUnitCount
        guard bytes.count >= length else { return false }
        return (0...(bytes.count - length)).contains { matches(mark, bytes, at: $0) }
    }

    private static func matches(_ mark: StaticString, _ bytes: [UInt8], at offset: Int) -> Bool {
        let length = mark.utf8CodeUnitCount
        guard offset + length <= bytes.count else { return false }
        return mark.withUTF8Buffer { bytes[offset..<(offset + length)].elementsEqual($0) }
    }

    /// Whether the name allows a text: the page that a server sent in the place of an image stays an error.
    private static func mayBeText(_ input: ImageInput) -> Bool {
        guard case .file = input else { return false }
        return !otherExtensions.contains(input.fileExtension)
    }

    /// Without those that texts have, too, such as `ts`.
    private static let otherExtensions = Set(
        ["pdf", "mp4", "mov", "mkv", "webm", "avi", "mp3", "flac", "m4a", "ogg"]
            + ImageFormat.pictures.flatMap(\.fileExtensions))

    /// OpenType and its collections (OpenType 1.9, "Font File"), WOFF and WOFF2, PCF, BDF, and PostScript Type 1.
    private static func isFont(_ bytes: [UInt8]) -> Bool {
        let marks: [StaticString] = [
            "OTTO", "true", "typ1", "ttcf", "wOFF", "wOF2", "\u{1}fcp", "STARTFONT 2", "%!PS-AdobeFont", "%!FontType1",
        ]
        if marks.contains(where: { matches($0, bytes, at: 0) }) { return true }
        if bytes.starts(with: [0x80, 1]) { return matches("%!", bytes, at: 6) }
        // The version 1.0 is a common number: there must be a plausible count of tables, and the first one's name.
        guard bytes.starts(with: [0, 1, 0, 0]), bytes.count >= 16, bytes[4] == 0, (1...64).contains(bytes[5]) else {
            return false
        }
        return bytes[12..<16].allSatisfy { (0x20...0x7E).contains($0) }
    }
}
