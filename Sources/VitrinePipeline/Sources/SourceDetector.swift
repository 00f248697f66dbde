import VitrineImaging

/// Chooses the source for an input by its content, never by its name.
///
/// ```swift
/// let source = try SourceDetector.source(forFile: path)
/// let image = try await ImagePipeline.shared.image(for: ImageRequest(source, size: .fit(256)))
/// ```
public enum SourceDetector {
    /// Which part of a file is wanted, where it has parts.
    public struct Options: Sendable {
        /// The page of a document, or the frame of an animation, from 1. Default 1.
        public var page = 1
        /// The moment of a film. Default its poster.
        public var moment = VideoFrameSource.Moment.poster
        /// How near the frame has to come to the moment. Default the nearest key frame.
        public var precision = VideoFrameSource.Precision.nearestKeyFrame
        /// The password of a document.
        public var password: String?
        /// See ``ImageFileSource/allowsEmbeddedPreview``.
        public var allowsEmbeddedPreview = false
        /// See ``ImageFileSource/allowsPartial``.
        public var allowsPartial = false

        public init(page: Int = 1, moment: VideoFrameSource.Moment = .poster) {
            self.page = page
            self.moment = moment
        }
    }

    /// The source for a file: a picture, a page, a frame, or the cover of a recording. Reads its first bytes.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)``, ``ImagePipelineError/unsupported(source:reason:)`` for
    ///   other content.
    public static func source(
        forFile path: String, _ options: Options = Options()
    ) throws(ImagePipelineError) -> any ImageSource {
        try source(for: .file(path), options)
    }

    /// The source for a file or bytes.
    ///
    /// - Throws: As ``source(forFile:_:)``.
    public static func source(
        for input: ImageInput, _ options: Options = Options()
    ) throws(ImagePipelineError) -> any ImageSource {
        guard let kind = try FileKind(of: input) else { throw unknown(input) }
        return source(for: input, of: kind, options)
    }

    /// The source for a file or bytes of a kind that is known.
    public static func source(
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
            return PDFDocument(input, password: options.password).page(options.page)
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
    public static func pageCount(
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
