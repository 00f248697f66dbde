extension ImageLimits {
    /// Refuses a file that a library, which needs all of it, must not be given.
    ///
    /// For decoders that parse the header anew, with a library that may read it otherwise than ``ImageInfo`` does.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)``, or ``ImageError/invalidRequest(reason:)``
    ///   for a negative page.
    func checkFile(_ source: ByteSource, page: Int) throws(ImageError) {
        try require(source.count, .inputBytes, maximumInputBytes, source.name)
        guard page >= 0 else { throw .invalidRequest(reason: "page \(page) is negative") }
    }

    /// Refuses a frame, counted from 0, beyond ``maximumFrames``.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)``.
    func checkFrame(_ page: Int, input: String) throws(ImageError) {
        try require(page == .max ? page : page + 1, .frames, maximumFrames, input)
    }

    /// Refuses a picture whose decoder needs all of it at once, by the size its library has read.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)``, or ``ImageError/corrupt(input:reason:)``
    ///   for one without pixels.
    func checkWholeImage(_ size: PixelSize, input: String) throws(ImageError) {
        guard !size.isEmpty else { throw .corrupt(input: input, reason: "the picture has no pixels") }
        try require(size.longestSide, .side, maximumSide, input)
        try require(size.pixelCount, .pixels, maximumWholeImagePixels, input)
    }
}
