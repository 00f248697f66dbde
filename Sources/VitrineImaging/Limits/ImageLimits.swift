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
