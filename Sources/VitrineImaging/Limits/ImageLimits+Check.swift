extension ImageLimits {
    /// Refuses a picture whose header asks for more than these limits allow. Call it before any pixel is decoded.
    ///
    /// Pixels are bounded by what the format's decoder needs: see ``maximumPixels``, ``maximumInterlacedPixels`` and
    /// ``maximumWholeImagePixels``. Coefficients of progressive JPEG are the decoder's to bound, since block means need
    /// none; a profile that is too large was already passed over by the reader.
    ///
    /// - Parameters:
    ///   - info: The header.
    ///   - source: Where it was read from; its length is checked and errors name it.
    ///   - frames: How many frames will be decoded; those only counted cost nothing.
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for the first limit broken.
    public func check(_ info: ImageInfo, source: ByteSource, frames: Int = 1) throws(ImageError) {
        let input = source.name
        if info.format == .svg { try require(source.count, .documentBytes, maximumDocumentBytes, input) }
        try require(source.count, .inputBytes, maximumInputBytes, input)
        try require(info.storedSize.longestSide, .side, maximumSide, input)
        if let pixels = maximumPixels(for: info) { try require(info.storedSize.pixelCount, .pixels, pixels, input) }
        try require(frames, .frames, maximumFrames, input)
        if let profile = info.colorProfile { try require(profile.count, .profileBytes, maximumProfileBytes, input) }
    }

    /// Refuses a result larger than ``maximumOutputSide``.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)``, or
    ///   ``ImageError/invalidRequest(reason:)`` for a size without pixels.
    public func checkOutput(_ size: PixelSize, input: String) throws(ImageError) {
        guard !size.isEmpty else { throw .invalidRequest(reason: "a result of \(size) has no pixels") }
        try require(size.longestSide, .outputSide, maximumOutputSide, input)
    }

    /// The pixels a picture may have; nil for SVG, which has none until it is drawn at the size asked for.
    private func maximumPixels(for info: ImageInfo) -> Int? {
        switch info.format {
        case .svg: nil
        case .png where info.isProgressive: min(maximumInterlacedPixels, maximumPixels)
        case .jpeg, .png, .tiff, .bmp, .ico: maximumPixels
        // Registered decoders deliver the whole image, too.
        default: maximumWholeImagePixels
        }
    }

    /// Throws ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for more than is allowed.
    func require(_ actual: Int, _ kind: Kind, _ allowed: Int, _ input: String) throws(ImageError) {
        if actual > allowed { throw .limitExceeded(input: input, limit: kind, actual: actual, allowed: allowed) }
    }
}
