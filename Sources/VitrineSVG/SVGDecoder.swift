import VitrineImageCore

/// Draws documents without their references to other files, by the decoder of a library.
package struct SVGDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.svg]
    private let renderer: any ImageDecoding

    package init(renderer: any ImageDecoding) { self.renderer = renderer }

    package var library: String? { renderer.library }

    /// - Throws: ``ImageError/unsupported(input:reason:)`` when references cannot be found.
    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        // In memory: a file might become another one between the check and the drawing.
        let copy = ByteSource(bytes: try source.allBytes(), name: source.name)
        let info = try SVGHeaderReader.read(ByteReader(copy), request.limits).info
        try request.limits.check(info, source: copy)
        guard info.storedSize == request.info.storedSize else {
            throw .corrupt(input: source.name, reason: "the drawing has changed its size")
        }
        let drawing = try SVGDrawing(copy, request.limits)
        return try renderer.decode(ByteSource(bytes: drawing.bytes, name: source.name), request)
    }
}
