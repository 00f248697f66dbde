import VitrineImageCore

extension Codec {
    /// Drawings, whose references are checked here. `vitrine-worker` draws them.
    package static let svg: Codec = {
        var codec = Codec(.svg, header: SVGHeaderReader.self) { reader throws(ImageError) in
            try SVGPrologue.isSVG(reader) ? .svg : nil
        }
        codec.drawing = SVGDrawing.self
        return codec
    }()
}
