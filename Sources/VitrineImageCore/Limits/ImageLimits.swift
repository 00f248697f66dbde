/// Bounds on the resources of a decode, checked on the header before any pixel is decoded.
///
/// The defaults accept the images of all cameras and reject decompression bombs. Raise a limit only for input that
/// you made yourself.
///
/// ```swift
/// var limits = ImageLimits.standard
/// limits.maximumPixels = 20_000_000
/// let image = try await ImageDecoder(limits: limits).image(from: .file("upload.jpg"), at: .fit(400))
/// ```
public struct ImageLimits: Sendable, Hashable {
    /// The bound that an input exceeds.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// ``ImageLimits/maximumInputBytes``.
        case inputBytes
        /// ``ImageLimits/maximumPixels`` or its variants for results and for interlaced and whole images.
        case pixels
        /// ``ImageLimits/maximumSide``.
        case side
        /// ``ImageLimits/maximumFrames``.
        case frames
        /// An embedded ICC profile above 4 MB.
        case profileBytes
        /// An SVG document above 5 MB.
        case documentBytes
        /// ``ImageLimits/maximumOutputSide``.
        case outputSide
        /// 256 MB of coefficients of a progressive JPEG, ``ImageLimits/maximumWorkerMemory``, or the memory of the
        /// system.
        case memory
    }

    /// Bytes of the input. Default 100 MB.
    public var maximumInputBytes = 100 << 20
    /// Pixels of an image whose decoder streams or scales: JPEG, non-interlaced PNG, TIFF, tiled HEIC, opaque lossy
    /// WebP, and JPEG XL at small sizes. Default 210 million, above the largest sensors of cameras (151 million) and
    /// phones (201 million).
    ///
    /// Images above ``maximumResultPixels`` are decoded at smaller sizes only.
    public var maximumPixels = 210_000_000
    /// Pixels that are in memory at once: those of a result, and those that a decoder keeps for it. Default 110
    /// million, which take 440 MB. Results of a given size are bounded by ``maximumOutputSide`` as well.
    public var maximumResultPixels = 110_000_000
    /// Pixels of an interlaced PNG, which needs all of them at once. Default 40 million.
    package var maximumInterlacedPixels = 40_000_000
    /// Pixels of a format whose decoder needs the whole image (HEIC, AVIF, JPEG XL, WebP, JPEG 2000, GIF). Default 64
    /// million.
    public var maximumWholeImagePixels = 64_000_000
    /// Bytes of coefficients of a progressive JPEG that is decoded beyond its first scan. Default 256 MB.
    package var maximumCoefficientBytes = 256 << 20
    /// Either side of the stored image, in pixels. Default 65,535.
    public var maximumSide = 65_535
    /// Frames decoded from one animation. Counting frames is not bounded. Default 1,000.
    public var maximumFrames = 1_000
    /// Bytes of an embedded ICC profile. A larger one is ignored and the image taken as sRGB. Default 4 MB.
    package var maximumProfileBytes = 4 << 20
    /// Bytes of an SVG document. Default 5 MB.
    package var maximumDocumentBytes = 5 << 20
    /// Either side of the result, in pixels. Default 8,192; full-size decoding is bounded by the limits above.
    public var maximumOutputSide = 8_192
    /// Seconds of processor time that one decode may take, from the first byte of the header on. Default 15.
    ///
    /// Processor time, so that a good image does not fail because the machine is busy. A decode is never ended before
    /// as much time has passed. One that waits, for example for a slow disk, is ended after ten times as much.
    public var deadline = 15.0
    /// Private memory of a worker process, in bytes. At least 64 MB. Default 1.5 GB.
    public var maximumWorkerMemory = 1_500 << 20

    /// Creates the default limits.
    package init() {}

    /// The defaults.
    public static let standard = ImageLimits()
}

extension ImageLimits {
    /// Throws unless a size that a decoder has read is within the limits of whole images.
    package func check(storedSize size: PixelSize, input: String) throws(ImageError) {
        try require(size.longestSide, .side, atMost: maximumSide, input: input)
        try require(size.pixelCount, .pixels, atMost: maximumPixels, input: input)
    }

    /// Bounds the pixels of every kind of image and of results by one number, and allows a worker the memory for it.
    package mutating func allow(pixels: Int) {
        (maximumPixels, maximumResultPixels) = (pixels, pixels)
        (maximumInterlacedPixels, maximumWholeImagePixels) = (pixels, pixels)
        // Samples of 16 bits, and the image made of them.
        let (bytes, overflow) = pixels.multipliedReportingOverflow(by: 12)
        maximumWorkerMemory = max(maximumWorkerMemory, overflow ? .max : bytes)
    }

    /// Rejects an image whose header exceeds these limits. Call it before any pixel is decoded.
    ///
    /// The bound on pixels depends on the format's decoder: see ``maximumPixels``, ``maximumInterlacedPixels`` and
    /// ``maximumWholeImagePixels``. The decoder bounds the coefficients of progressive JPEG, since block means need
    /// none. The reader has already dropped a profile that is too large.
    ///
    /// - Parameters:
    ///   - info: The header.
    ///   - source: The input of the header. Its length is checked, and errors name it.
    ///   - frames: The number of frames that will be decoded; counting them costs nothing.
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for the first limit exceeded.
    package func check(_ info: ImageInfo, source: ByteSource, frames: Int = 1) throws(ImageError) {
        let input = source.name
        if info.format == .svg { try require(source.count, .documentBytes, atMost: maximumDocumentBytes, input: input) }
        // Of a file that holds images only the image is read, which is checked in turn.
        if !info.format.holdsPictures {
            try require(source.count, .inputBytes, atMost: maximumInputBytes, input: input)
        }
        // A drawing has the sides that it is drawn with.
        if info.format != .svg { try require(info.storedSize.longestSide, .side, atMost: maximumSide, input: input) }
        if let pixels = maximumPixels(for: info) {
            try require(info.storedSize.pixelCount, .pixels, atMost: pixels, input: input)
        }
        try require(frames, .frames, atMost: maximumFrames, input: input)
        if let profile = info.colorProfile {
            try require(profile.count, .profileBytes, atMost: maximumProfileBytes, input: input)
        }
    }

    /// The most pixels of an image; nil for SVG, which has none before it is drawn.
    private func maximumPixels(for info: ImageInfo) -> Int? {
        switch info.format {
        case .svg: nil
        case .png where info.isProgressive: min(maximumInterlacedPixels, maximumPixels)
        case .jpeg, .png, .tiff: maximumPixels
        // What their decoders keep is bounded where it is known: by the variety and by the size of the result.
        case .heic, .jxl, .webp: max(maximumPixels, maximumWholeImagePixels)
        case .avif, .gif, .jp2: maximumWholeImagePixels
        case let format where format.holdsPictures: maximumPixels
        // Codecs of users deliver the whole image, too.
        case let format where format.module == nil: maximumWholeImagePixels
        // The other decoders average whole blocks, and keep every pixel of an image that is reduced by less than two.
        default: min(maximumPixels, maximumResultPixels)
        }
    }

    /// Throws ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for more than is allowed.
    package func require(_ actual: Int, _ kind: Kind, atMost allowed: Int, input: String) throws(ImageError) {
        if actual > allowed { throw .limitExceeded(input: input, limit: kind, actual: actual, allowed: allowed) }
    }
}

extension DecodeRequest {
    /// Rejects an image of which a decoder would keep more pixels than the limits allow.
    ///
    /// A JPEG that is scaled row by row is never kept, and others are reduced by their library; other decoders average
    /// whole blocks.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)``.
    func checkKeptPixels(input: String) throws(ImageError) {
        let isJPEG = info.format == .jpeg
        guard info.format != .svg, !(isJPEG && allowsScaling) else { return }
        let side = isJPEG ? max(1, Int(reduction)) : blockSide(for: info.storedSize)
        let kept = (region?.size ?? info.storedSize).pixelCount / side / side
        try limits.require(kept, .pixels, atMost: limits.maximumResultPixels, input: input)
    }
}

extension ImageLimits {
    /// Rejects a file before a library reads all of it.
    ///
    /// For decoders whose library parses the header again and may read it differently than ``ImageInfo``.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)``, or ``ImageError/invalidRequest(reason:)``
    ///   for a negative page.
    package func checkFile(_ source: ByteSource, page: Int) throws(ImageError) {
        try require(source.count, .inputBytes, atMost: maximumInputBytes, input: source.name)
        guard page >= 0 else { throw .invalidRequest(reason: "page \(page) is negative") }
    }

    /// Rejects a frame, counted from 0, beyond ``maximumFrames``.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)``.
    package func checkFrame(_ page: Int, input: String) throws(ImageError) {
        try require(page == .max ? page : page + 1, .frames, atMost: maximumFrames, input: input)
    }

    /// Rejects an image whose decoder needs all of it at once, by the size that its library has read.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)``, or ``ImageError/corrupt(input:reason:)``
    ///   for one without pixels.
    package func checkWholeImage(_ size: PixelSize, input: String) throws(ImageError) {
        guard !size.isEmpty else { throw .corrupt(input: input, reason: "the image has no pixels") }
        try require(size.longestSide, .side, atMost: maximumSide, input: input)
        try require(size.pixelCount, .pixels, atMost: maximumWholeImagePixels, input: input)
    }
}
