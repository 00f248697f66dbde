import VitrineHelperProtocol
import VitrineImaging

/// Draws short texts, an image for each line, by the helper `vitrine-text`: in the system's fonts, which have every
/// script.
///
/// The middle of a text that is too wide becomes an ellipsis, so that a file's name keeps its extension. Texts that are
/// written from the right are aligned to the right.
package struct TextLabels: Sendable {
    /// Width and height of each image in pixels.
    package var size: PixelSize
    /// The size of the font in pixels.
    package var fontSize: Double
    package var isBold: Bool
    private let workers: WorkerPool

    /// Labels drawn in one request.
    private static let batch = 64

    /// - Parameter workers: The helpers that draw.
    package init(
        size: PixelSize, fontSize: Double, isBold: Bool = false, workers: WorkerPool = TextWorkers.shared
    ) {
        self.size = size
        self.fontSize = fontSize
        self.isBold = isBold
        self.workers = workers
    }

    /// Returns an image of each text, black on white. Blocks.
    ///
    /// - Throws: ``ImagePipelineError/helperMissing(_:source:)`` without the helper.
    package func images(of texts: [String]) throws(ImagePipelineError) -> [PixelImage] {
        var images: [PixelImage] = []
        for start in stride(from: 0, to: texts.count, by: Self.batch) {
            let part = texts[start..<min(texts.count, start + Self.batch)]
            let rows = try draw(
                part.map { text in String(text.map { $0.isNewline ? " " : $0 }) }.joined(separator: "\n"))
            for index in part.indices { images.append(row(index - start, of: rows)) }
        }
        return images
    }

    private func draw(_ lines: String) throws(ImagePipelineError) -> PixelImage {
        guard workers.isAvailable else { throw TextWorkers.missing(for: "labels") }
        var parameters = TextParameters()
        parameters.kind = .labels
        parameters.row.size = size
        (parameters.row.fontSize, parameters.row.isBold) = (fontSize, isBold)
        let drawn: DecodedImage
        do throws(ImageError) {
            drawn = try workers.render(
                ByteSource(.bytes(Array(lines.utf8), name: "labels")), target: nil, parameters: parameters.encoded())
        } catch where error.reason == WorkerServer.readsNoDocuments {
            throw TextWorkers.missing(for: "labels")
        } catch {
            throw ImagePipelineError(error, source: "labels")
        }
        return try RenderRequest(size: size).image(from: drawn, source: "labels")
    }

    private func row(_ index: Int, of rows: PixelImage) -> PixelImage {
        PixelImage(width: size.width, height: size.height, alpha: .opaque) { target in
            rows.withUnsafeBytes { source in
                let count = size.width * PixelImage.bytesPerPixel
                for y in 0..<size.height {
                    let start = (index * size.height + y) * rows.bytesPerRow
                    target[(y * count)..<((y + 1) * count)].copyBytes(from: source[start..<(start + count)])
                }
            }
        }
    }
}
