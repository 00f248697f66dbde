/// A caller's closure under a caller's name.
struct CustomProcessor: ImageProcessing {
    let name: String
    let body: @Sendable (Image) throws(ImageError) -> Image

    var identifier: String { "custom(\(ProcessorCheck.delimited(name)))" }

    func process(_ image: Image) throws(ImageError) -> Image { try body(image) }
}
