/// Bounds on what a picture may ask of this process, checked on the header before any pixel is decoded.
///
/// Every image is foreign. The defaults admit any camera's picture and refuse every decompression bomb of the study
/// behind them; raise one only for input you made yourself.
public struct ImageLimits: Sendable, Hashable {
    /// Which bound an input broke.
    public enum Kind: String, Sendable, Hashable, Codable {
        case inputBytes, pixels, side, frames, profileBytes, documentBytes, outputSide, memory
    }

    /// Bytes of the input. Default 100 MB.
    public var maximumInputBytes = 100 << 20
    /// Pixels of a picture whose decoder streams or scales (JPEG, non-interlaced PNG, TIFF, BMP). Default 110 million,
    /// which admits the largest sensors of cameras (102 million) and of most phones (108 million).
    public var maximumPixels = 110_000_000
    /// Pixels of an interlaced PNG, which needs all of them at once. Default 40 million.
    public var maximumInterlacedPixels = 40_000_000
    /// Pixels of a format whose decoder needs the whole picture (HEIC, AVIF, JPEG XL, WebP, JPEG 2000, GIF). Default 64
    /// million.
    public var maximumWholeImagePixels = 64_000_000
    /// Bytes of coefficients a progressive JPEG decoded beyond its first scan may need. Default 256 MB.
    public var maximumCoefficientBytes = 256 << 20
    /// Either side of the stored picture, in pixels. Default 65,535.
    public var maximumSide = 65_535
    /// Frames decoded from one animation. Counting them is not bounded. Default 1,000.
    public var maximumFrames = 1_000
    /// Bytes of an embedded ICC profile. A larger one is ignored and the picture taken as sRGB. Default 4 MB.
    public var maximumProfileBytes = 4 << 20
    /// Bytes of an SVG document. Default 5 MB.
    public var maximumDocumentBytes = 5 << 20
    /// Either side of the result, in pixels. Default 8,192; full-size decoding is bounded by the limits above.
    public var maximumOutputSide = 8_192
    /// Wall-clock seconds one decode may take, queueing excluded. Default 15.
    public var deadline = 15.0
    /// Memory of a worker process, in bytes, beside what it shares with this process. At least 64 MB. Default 1.5 GB.
    public var maximumWorkerMemory = 1_500 << 20

    public init() {}

    /// The defaults.
    public static let standard = ImageLimits()
}

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
        case .webp, .gif, .heic, .avif, .jxl, .jp2: maximumWholeImagePixels
        }
    }

    /// Throws ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for more than is allowed.
    func require(_ actual: Int, _ kind: Kind, _ allowed: Int, _ input: String) throws(ImageError) {
        if actual > allowed { throw .limitExceeded(input: input, limit: kind, actual: actual, allowed: allowed) }
    }
}

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
