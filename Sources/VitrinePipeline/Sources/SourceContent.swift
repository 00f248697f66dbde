public import VitrineImaging

/// The content of a file or of bytes, as ``BuiltInSource`` reads it.
///
/// ```swift
/// let known = Set(SourceContent.Kind.allCases.flatMap(\.fileExtensions))
/// let shown = urls.filter { known.contains($0.pathExtension.lowercased()) }
/// if let content = try SourceContent(of: .file("holiday.mov")) {
///     print(content.kind, content.mediaType)                  // video video/quicktime
/// }
/// ```
///
/// The content decides, never the name. Text is no such content: ``ImageSource/text(_:)`` draws it.
public struct SourceContent: Sendable, Hashable {
    /// The kind of a file, named after the subject of its images.
    public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
        /// The image itself, raw files of cameras included.
        case image
        /// A page of a PDF document.
        case document
        /// An image inside the file, such as the cover of a book, the first page of a comic, or the preview of a
        /// spreadsheet.
        case container
        /// A frame of a video.
        case video
        /// The cover of a recording of sound.
        case recording
        /// Letters of a font.
        case font

        /// The file name extensions of this kind in lower case and without a dot. Those of registered formats and
        /// `fb2.zip`, which has a dot, are included.
        ///
        /// Names may lie: ``SourceContent/init(of:)`` reads the content.
        public var fileExtensions: [String] {
            switch self {
            case .image, .container:
                (Codecs.standard.formats + ImageDecoder.registeredFormats).filter { SourceContent.kind(of: $0) == self }
                    .flatMap(\.fileExtensions)
            case .document: ["pdf"]
            case .video, .recording:
                Codecs.standard.media.isEmpty
                    ? [] : MediaFormat.allCases.filter { $0.isAudio == (self == .recording) }.flatMap(\.fileExtensions)
            case .font: ["ttf", "otf", "ttc", "otc", "woff", "woff2", "pfb", "pcf", "bdf"]
            }
        }
    }

    /// The kind.
    public let kind: Kind
    /// The registered media type, for example `image/jpeg`.
    public let mediaType: String

    /// Reads the first bytes of a file, and its last ones where these do not tell. Blocks.
    ///
    /// - Returns: nil for other content, such as text or an empty file.
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)``.
    public init?(of input: ImageInput) throws(ImagePipelineError) {
        guard let file = try FileKind(of: input) else { return nil }
        switch file {
        case .image(let format): kind = Self.kind(of: format)
        case .pdf: kind = .document
        case .media(let media): kind = media.isAudio ? .recording : .video
        case .font: kind = .font
        case .text: return nil
        }
        mediaType = file.mediaType
    }

    /// Raw files hold an image, too, and are one to everybody.
    private static func kind(of format: ImageFormat) -> Kind {
        format.holdsPictures && !format.mediaType.hasPrefix("image/") ? .container : .image
    }
}
