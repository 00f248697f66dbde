import VitrineImaging

/// Chooses the source for an input by its content, never by its name.
///
/// ```swift
/// let source = try SourceDetector.source(forFile: path)
/// let image = try await ImagePipeline.shared.image(for: ImageRequest(source, size: .fit(256)))
/// ```
package enum SourceDetector {
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
        /// See ``ImageFileSource/allowsEmbeddedPreview``.
        package var allowsEmbeddedPreview = false
        /// See ``ImageFileSource/allowsPartial``.
        package var allowsPartial = false

        /// Creates options for a page or a moment.
        package init(page: Int = 1, moment: VideoMoment = .poster) {
            self.page = page
            self.moment = moment
        }
    }

    /// The source for a file: a picture, a page, a frame, or the cover of a recording. Reads its first bytes.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)``, ``ImagePipelineError/unsupported(source:reason:)``
    ///   for other content.
    package static func source(
        forFile path: String, _ options: Options = Options()
    ) throws(ImagePipelineError) -> any ImageSource {
        try source(for: .file(path), options)
    }

    /// The source for a file or bytes.
    ///
    /// - Throws: As ``source(forFile:_:)``.
    package static func source(
        for input: ImageInput, _ options: Options = Options()
    ) throws(ImagePipelineError) -> any ImageSource {
        guard let kind = try FileKind(of: input) else { throw unknown(input) }
        return source(for: input, of: kind, options)
    }

    /// The source for a file or bytes of a kind that is known.
    package static func source(
        for input: ImageInput, of kind: FileKind, _ options: Options = Options()
    ) -> any ImageSource {
        switch kind {
        case .image:
            var source = ImageFileSource(input)
            source.page = options.page
            source.allowsEmbeddedPreview = options.allowsEmbeddedPreview
            source.allowsPartial = options.allowsPartial
            return source
        case .pdf:
            return PDFPageSource(PDFDocument(input, password: options.password), page: options.page)
        case .media(let media):
            var source = VideoFrameSource(input, at: options.moment)
            source.precision = options.precision
            source.prefersCoverArt = media.isAudio
            return source
        }
    }

    /// How many pages, or frames, a file has. Films have 1.
    ///
    /// - Throws: ``ImagePipelineError``.
    package static func pageCount(
        of input: ImageInput, _ options: Options = Options()
    ) throws(ImagePipelineError) -> Int {
        switch try FileKind(of: input) {
        case .pdf?:
            guard let source = source(for: input, of: .pdf, options) as? PDFPageSource else { return 1 }
            return try source.document.info().pageCount
        case .image?:
            do throws(ImageError) {
                return max(1, try ImageInfo(of: input).frameCount)
            } catch {
                throw ImagePipelineError(error, source: input.name)
            }
        case .media?: return 1
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
    /// A picture.
    case image(ImageFormat)
    /// A PDF document.
    case pdf
    /// A video or a recording, in a container that FFmpeg reads.
    case media(Media)

    /// Containers of videos and recordings, by the media type they are known as.
    package enum Media: String, Sendable, Hashable, CaseIterable {
        case mp4 = "video/mp4"
        case quickTime = "video/quicktime"
        case matroska = "video/x-matroska"
        case webM = "video/webm"
        case avi = "video/x-msvideo"
        case flash = "video/x-flv"
        case asf = "video/x-ms-asf"
        case ogg = "video/ogg"
        case transportStream = "video/mp2t"
        case programStream = "video/mpeg"
        case mp4Audio = "audio/mp4"
        case mp3 = "audio/mpeg"
        case flac = "audio/flac"

        /// Whether it holds sound, so that a picture of it is the cover attached to it.
        package var isAudio: Bool { rawValue.hasPrefix("audio/") }

        /// Usual file name extensions, without a dot.
        package var fileExtensions: [String] {
            switch self {
            case .mp4: ["mp4", "m4v", "3gp"]
            case .quickTime: ["mov"]
            case .matroska: ["mkv"]
            case .webM: ["webm"]
            case .avi: ["avi"]
            case .flash: ["flv"]
            case .asf: ["wmv", "asf"]
            case .ogg: ["ogv", "ogg"]
            case .transportStream: ["ts", "mts", "m2ts"]
            case .programStream: ["mpg", "mpeg"]
            case .mp4Audio: ["m4a", "m4b"]
            case .mp3: ["mp3"]
            case .flac: ["flac"]
            }
        }
    }

    /// The registered media type.
    package var mediaType: String {
        switch self {
        case .image(let format): format.mediaType
        case .pdf: "application/pdf"
        case .media(let media): media.rawValue
        }
    }

    /// Bytes that are looked at, but for formats whose headers say where to look on: readers of PDF look for its mark
    /// within the first 1024 (ISO 32000-1, annex H.3, note 13).
    private static let lookedAt = 1_024

    /// Returns the kind of an input; nil for other content.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)``.
    package init?(of input: ImageInput) throws(ImagePipelineError) {
        do throws(ImageError) {
            let source = try ByteSource(input)
            // Pictures first: the rules for videos are broader.
            if let format = try ImageFormat.detect(ByteReader(source)) {
                self = .image(format)
                return
            }
            let start = try source.bytes(at: 0, count: Self.lookedAt)
            if let media = Self.media(start) {
                self = .media(media)
            } else if Self.contains("%PDF-", start) {
                self = .pdf
            } else {
                return nil
            }
        } catch {
            throw ImagePipelineError(error, source: input.name)
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

    private static func media(_ bytes: [UInt8]) -> Media? {
        if matches("ftyp", bytes, at: 4) { return isoMedia(bytes) }
        // QuickTime files of before ftyp begin with any of its atoms (QuickTime File Format, "Movie Atoms").
        let atoms: [StaticString] = ["moov", "mdat", "wide", "free", "skip", "pnot"]
        if atoms.contains(where: { matches($0, bytes, at: 4) }), bytes.first == 0 { return .quickTime }
        // EBML; the document type follows within the header.
        if bytes.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
            return contains("webm", Array(bytes.prefix(64))) ? .webM : .matroska
        }
        if matches("RIFF", bytes, at: 0) { return matches("AVI ", bytes, at: 8) ? .avi : nil }
        if matches("FLV\u{1}", bytes, at: 0) { return .flash }
        if bytes.starts(with: [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11]) { return .asf }
        if matches("OggS\0", bytes, at: 0) { return .ogg }
        if matches("ID3", bytes, at: 0) { return .mp3 }
        if matches("fLaC", bytes, at: 0) { return .flac }
        if bytes.starts(with: [0, 0, 1, 0xBA]) || bytes.starts(with: [0, 0, 1, 0xB3]) { return .programStream }
        return isTransportStream(bytes) ? .transportStream : nil
    }

    /// ISO base media by its major brand (ISO/IEC 14496-12, 4.3).
    private static func isoMedia(_ bytes: [UInt8]) -> Media {
        if matches("qt  ", bytes, at: 8) { return .quickTime }
        let audio: [StaticString] = ["M4A ", "M4B ", "M4P "]
        return audio.contains { matches($0, bytes, at: 8) } ? .mp4Audio : .mp4
    }

    /// Packets of 188 bytes, or of 192 with a time in front, each with a mark (ISO/IEC 13818-1, 2.4.3.2).
    private static func isTransportStream(_ bytes: [UInt8]) -> Bool {
        [(0, 188), (4, 192)].contains { start, length in
            bytes.count > start + 4 * length && (0...4).allSatisfy { bytes[start + $0 * length] == 0x47 }
        }
    }
}
