/// One step that makes a new picture from a picture: rounding corners, blurring, a caller's own drawing.
///
/// Synchronous: the library calls it off the cooperative pool. A processor accepts every ``Image/Alpha`` and labels
/// what it returns correctly.
public protocol ImageProcessing: Sendable {
    /// What the processor does, parameters included, as part of a cache key.
    ///
    /// Two processors with one identifier must give equal pixels for equal pixels, in every run of the program. Text
    /// that came from elsewhere is preceded by its length, so that no text can imitate another processor.
    var identifier: String { get }

    /// The processed picture; `image` itself when there is nothing to do.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` when a parameter is out of its range;
    ///   ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when the result would be larger than
    ///   ``ImageLimits/maximumOutputSide``.
    func process(_ image: Image) throws(ImageError) -> Image
}

extension Image {
    /// The picture after each of `processors` in order.
    ///
    /// ```swift
    /// let avatar = try photo.processed(by: [.circle(border: .hairline(.white)), .background(.black)])
    /// ```
    ///
    /// - Throws: What the first processor that fails throws; see ``ImageProcessing/process(_:)``.
    public func processed(by processors: [ImageProcessor]) throws(ImageError) -> Image {
        var image = self
        for processor in processors { image = try processor.process(image) }
        return image
    }
}
