/// Several processors as one.
struct SequenceProcessor: ImageProcessing {
    let processors: [ImageProcessor]

    var identifier: String {
        "sequence(" + processors.map { ProcessorCheck.delimited($0.identifier) }.joined() + ")"
    }

    func process(_ image: Image) throws(ImageError) -> Image { try image.processed(by: processors) }
}
