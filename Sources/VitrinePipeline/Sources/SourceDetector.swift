import VitrineHelperProtocol
import VitrineImaging
import VitrineContainers

/// Chooses the source for an input by its content, never by its name.
///
/// ```swift
/// let source = try SourceDetector.source(forFile: path)
/// let image = try await ImagePipeline.shared.image(for: ImageRequest(source, size: .fit(256)))
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
        /// Whether text is drawn. Default false: a page of HTML in the place of a picture is an error.
        package var readsText = false
        /// See ``VideoFrameSource/cover``.
        package var cover = RecordingCover.Kind.front
        /// See ``VideoFrameSource/allowsSiblingCover``.
        package var allowsSiblingCover = false
        /// See ``VideoFrameSource/drawsWaveform``.
        package var drawsWaveform = false
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
        guard let kind = try FileKind(of: input, readsText: options.readsText) else { throw unknown(input) }
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
            source.coverReplacesNoVideo = true
            source.cover = options.cover
            source.allowsSiblingCover = options.allowsSiblingCover
            source.drawsWaveform = options.drawsWaveform
            return source
        case .font: return DrawnFileSource(input, as: .font)
        case .text: return DrawnFileSource(input, as: .text)
        }
    }

    /// How many pages, or frames, a file has. Films have 1.
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
    /// A picture.
    case image(ImageFormat)
    /// A PDF document.
    case pdf
    /// A video or a recording, in a container that FFmpeg reads.
    case media(Media)
    /// A font: TrueType, OpenType, WOFF, or one of the older kinds.
    case font
    /// Text of any language, where it is asked for.
    case text

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
        case oggAudio = "audio/ogg"
        case windowsMedia = "audio/x-ms-wma"
        case wave = "audio/x-wav"
        case aiff = "audio/x-aiff"
        case dsf = "audio/x-dsf"
        case ape = "audio/x-ape"
        case wavPack = "audio/x-wavpack"
        case musepack = "audio/x-musepack"
        case tak = "audio/x-tak"

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
            case .ogg: ["ogv", "ogx"]
            case .transportStream: ["ts", "mts", "m2ts"]
            case .programStream: ["mpg", "mpeg"]
            case .mp4Audio: ["m4a", "m4b"]
            case .mp3: ["mp3"]
            case .flac: ["flac"]
            case .oggAudio: ["ogg", "oga", "opus", "spx"]
            case .windowsMedia: ["wma"]
            case .wave: ["wav"]
            case .aiff: ["aiff", "aif", "aifc"]
            case .dsf: ["dsf"]
            case .ape: ["ape"]
            case .wavPack: ["wv"]
            case .musepack: ["mpc"]
            case .tak: ["tak"]
            }
        }
    }

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
            // Pictures first: the rules for videos are broader.
            if let format = try ImageFormat.detect(ByteReader(source)) {
                self = .image(format)
                return
            }
            let start = try source.bytes(at: 0, count: Self.lookedAt)
            if let media = Self.media(start) {
                self = .media(try Self.refined(media, source))
            } else if try Self.isMPEGAudio(source) {
                self = .media(.mp3)
            } else if Self.contains("%PDF-", start) {
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

    /// Whether the name allows a text: the page that a server sent in the place of a picture stays an error.
    private static func mayBeText(_ input: ImageInput) -> Bool {
        guard case .file = input else { return false }
        return !otherExtensions.contains(input.fileExtension)
    }

    /// Without those that texts have, too, such as `ts`.
    private static let otherExtensions = Set(
        ["pdf", "mp4", "mov", "mkv", "webm", "avi", "mp3", "flac", "m4a", "ogg"]
            + ImageFormat.builtIn.flatMap(\.fileExtensions))

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

    private static func media(_ bytes: [UInt8]) -> Media? {
        if matches("ftyp", bytes, at: 4) { return isoMedia(bytes) }
        // QuickTime files of before ftyp begin with any of its atoms (QuickTime File Format, "Movie Atoms").
        let atoms: [StaticString] = ["moov", "mdat", "wide", "free", "skip", "pnot"]
        if atoms.contains(where: { matches($0, bytes, at: 4) }), bytes.first == 0 { return .quickTime }
        // EBML; the document type follows within the header.
        if bytes.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
            return contains("webm", Array(bytes.prefix(64))) ? .webM : .matroska
        }
        if matches("RIFF", bytes, at: 0) {
            return matches("AVI ", bytes, at: 8) ? .avi : matches("WAVE", bytes, at: 8) ? .wave : nil
        }
        if matches("FORM", bytes, at: 0) {
            return matches("AIFF", bytes, at: 8) || matches("AIFC", bytes, at: 8) ? .aiff : nil
        }
        if matches("DSD ", bytes, at: 0), matches("fmt ", bytes, at: 28) { return .dsf }
        if matches("MAC ", bytes, at: 0) { return .ape }
        if matches("wvpk", bytes, at: 0) { return .wavPack }
        if matches("MPCK", bytes, at: 0) || matches("MP+", bytes, at: 0) { return .musepack }
        if matches("tBaK", bytes, at: 0) { return .tak }
        if matches("FLV\u{1}", bytes, at: 0) { return .flash }
        if bytes.starts(with: [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11]) { return .asf }
        if matches("OggS\0", bytes, at: 0) { return .ogg }
        if matches("ID3", bytes, at: 0) { return .mp3 }
        if matches("fLaC", bytes, at: 0) { return .flac }
        if bytes.starts(with: [0, 0, 1, 0xBA]) || bytes.starts(with: [0, 0, 1, 0xB3]) { return .programStream }
        return isTransportStream(bytes) ? .transportStream : nil
    }

    /// Tells recordings from films in containers that hold both.
    private static func refined(_ media: Media, _ source: ByteSource) throws(ImageError) -> Media {
        switch media {
        case .ogg:
            // The streams of a file begin one behind the other.
            let start = try source.bytes(at: 0, count: 4_096)
            let films: [StaticString] = ["theora", "BBCD\0", "OVP80", "video\0"]
            let sounds: [StaticString] = ["\u{1}vorbis", "OpusHead", "Speex   ", "\u{7F}FLAC"]
            return !films.contains { contains($0, start) } && sounds.contains { contains($0, start) }
                ? .oggAudio : .ogg
        case .asf:
            // The header names the kind of each stream; a cover may stand before that.
            let length = try source.bytes(at: 16, count: 4).reversed().reduce(0) { $0 << 8 | Int($1) }
            let header = try source.bytes(at: 0, count: min(length, 4 << 20))
            let (film, sound) = (asfStream(0xC0, 0xEF, 0x19, 0xBC), asfStream(0x40, 0x9E, 0x69, 0xF8))
            return !contains(film, header) && contains(sound, header) ? .windowsMedia : .asf
        default: return media
        }
    }

    /// The number of a kind of stream (Advanced Systems Format specification, 10.4).
    private static func asfStream(_ first: UInt8...) -> [UInt8] {
        first + [0x4D, 0x5B, 0xCF, 0x11, 0xA8, 0xFD, 0x00, 0x80, 0x5F, 0x5C, 0x44, 0x2B]
    }

    private static func contains(_ mark: [UInt8], _ bytes: [UInt8]) -> Bool {
        guard let first = mark.first, bytes.count >= mark.count else { return false }
        return (0...(bytes.count - mark.count)).contains {
            bytes[$0] == first && bytes[$0..<($0 + mark.count)].elementsEqual(mark)
        }
    }

    /// Whether two frames of MPEG audio, layer II or III, begin the input (ISO/IEC 11172-3, 2.4.1.3).
    private static func isMPEGAudio(_ source: ByteSource) throws(ImageError) -> Bool {
        let first = try source.bytes(at: 0, count: 4)
        guard let length = mpegFrame(first) else { return false }
        let second = try source.bytes(at: length, count: 4)
        return mpegFrame(second) != nil && second[1] == first[1] && second[2] & 0x0C == first[2] & 0x0C
    }

    /// The length of a frame by its header; nil for other bytes.
    private static func mpegFrame(_ header: [UInt8]) -> Int? {
        guard header.count == 4, header[0] == 0xFF, header[1] & 0xE0 == 0xE0 else { return nil }
        let (version, layer) = (header[1] >> 3 & 3, header[1] >> 1 & 3)
        let (rate, frequency) = (Int(header[2] >> 4), Int(header[2] >> 2 & 3))
        guard version != 1, layer == 1 || layer == 2, (1...14).contains(rate), frequency < 3 else { return nil }
        let isFirst = version == 3
        let rates: [Int] =
            !isFirst
            ? [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
            : layer == 1
                ? [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
                : [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
        let samples = [44_100, 48_000, 32_000][frequency] / (isFirst ? 1 : version == 2 ? 2 : 4)
        let slots = !isFirst && layer == 1 ? 72_000 : 144_000
        return slots * rates[rate - 1] / samples + Int(header[2] >> 1 & 1)
    }

    /// ISO base media by its major brand (ISO/IEC 14496-12, 4.3).
    private static func isoMedia(_ bytes: [UInt8]) -> Media {
        if matches("qt  ", bytes, at: 8) { return .quickTime }
        let audio: [StaticString] = ["M4A ", "M4B ", "M4P ", "F4A ", "F4B "]
        return audio.contains { matches($0, bytes, at: 8) } ? .mp4Audio : .mp4
    }

    /// Packets of 188 bytes, or of 192 with a time in front, each with a mark (ISO/IEC 13818-1, 2.4.3.2).
    private static func isTransportStream(_ bytes: [UInt8]) -> Bool {
        [(0, 188), (4, 192)].contains { start, length in
            bytes.count > start + 4 * length && (0...4).allSatisfy { bytes[start + $0 * length] == 0x47 }
        }
    }
}
