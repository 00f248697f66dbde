import VitrineImaging

extension RenderRequest {
    /// The thumbnail of a page or frame that a helper has drawn at the size of ``mode``, upright: in sRGB, and cut if the
    /// request asks for a crop.
    func image(from drawn: DecodedImage, source: String) throws(ImagePipelineError) -> Image {
        do throws(ImageError) {
            let plane = drawn.planes[0]
            let image = try DecodedImageRenderer.image(
                from: drawn, size: PixelSize(width: plane.width, height: plane.height), orientation: .up,
                cancellation: cancellation, inputName: source)
            guard case .crop = mode else { return image }
            return try resizer.resize(image)
        } catch {
            throw ImagePipelineError(error, source: source)
        }
    }
}
