import VitrineCore
import VitrineHelperProtocol
import VitrineImaging

/// A font or a text as a source of images, drawn by the helper `vitrine-text`.
///
/// A font is shown by some of its letters, in a square. A text is shown by its first lines on a page of A4: source code
/// with colours, Markdown with headings and lists. The extension of the file's name tells the language.
///
/// Calls block: make them from a thread that may block.
package struct DrawnFileSource: FileBackedSource, BlockingImageSource {
    /// The file, or bytes in memory.
    package let input: ImageInput
    /// How it is drawn.
    package let kind: TextParameters.Kind
    /// Identifies the image instead of its file.
    package var identifier: CacheKey?
    private let workers: WorkerPool
    private let content: InputIdentity

    /// An image of a file or of bytes.
    package init(_ input: ImageInput, as kind: TextParameters.Kind, workers: WorkerPool = TextWorkers.shared) {
        self.input = input
        self.kind = kind
        self.workers = workers
        content = InputIdentity(input)
    }

    /// Returns the identity of the file, and the language of a text.
    package func identity(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey {
        if let identifier { return identifier }
        let key = try content.key(lookup)
        return kind == .text ? key.appending("text \(input.fileExtension)") : key
    }

    /// The image.
    ///
    /// - Throws: ``ImagePipelineError``: ``ImagePipelineError/damaged(source:reason:)`` for a font without glyphs that
    ///   can be drawn, ``ImagePipelineError/helperMissing(_:source:)`` without the helper.
    package func image(_ request: RenderRequest) throws -> PixelImage {
        var parameters = TextParameters()
        parameters.kind = kind
        parameters.fileExtension = input.fileExtension
        parameters.target = DocumentTarget(request.size, request.mode, allowsUpscaling: request.allowsUpscaling)
        let drawn = try draw(parameters, request)
        return try request.image(from: drawn, source: input.name)
    }

    private func draw(
        _ parameters: TextParameters, _ request: RenderRequest
    ) throws(ImagePipelineError) -> DecodedImage {
        guard workers.isAvailable else { throw TextWorkers.missing(for: input.name) }
        do throws(ImageError) {
            return try workers.render(
                ByteSource(input), target: nil, parameters: parameters.encoded(), limits: request.limits,
                cancellation: request.cancellation)
        } catch where error.reason == WorkerServer.readsNoDocuments {
            throw TextWorkers.missing(for: input.name)
        } catch {
            throw ImagePipelineError(error, source: input.name)
        }
    }
}

extension ImageInput {
    /// The extension of the name in lower case, if it is one of ASCII letters and digits, at most 16; empty for others.
    var fileExtension: String {
        guard let dot = name.lastIndex(of: "."), !name[dot...].contains("/") else { return "" }
        let text = name[dot...].dropFirst().lowercased()
        return text.utf8.count <= 16 && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) } ? text : ""
    }
}

/// The helper that draws fonts and texts.
package enum TextWorkers {
    package static let program = "vitrine-text"

    /// Processes for everybody, one for each processor at most.
    package static let shared = WorkerPool(program: program)

    /// The error of a system without it.
    static func missing(for source: String) -> ImagePipelineError { .helperMissing(program, source: source) }
}
