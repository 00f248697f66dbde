import VitrineImaging

/// The loudness of sound at intervals of equal length.
struct Loudness {
    /// The largest sample of any channel, where 1 is full scale.
    let peaks: [Float]
    /// The means of the squares of all samples.
    let squares: [Float]
}

/// The image of a recording without a cover: its loudness from the beginning, at the left, to its end.
///
/// Peaks are pale and effective values dark. The loudest peak reaches both edges but for a margin; of very quiet sound,
/// it stays as low as it is heard. Silence is a line.
struct Waveform {
    /// The most seconds that are heard. Ten minutes of MP3 take half a second of processor time.
    static let seconds = 600.0

    private static let naturalSize = PixelSize(width: 1_024, height: 512)
    /// The share of the height that the loudest peak fills.
    private static let fill: Float = 0.92
    /// The peak, as a part of full scale, up to which sound is drawn larger: -30 dB.
    private static let quiet: Float = 0.0316
    private static let background = SIMD3<Float>(255, 255, 255)
    private static let pale = SIMD3<Float>(157, 184, 220)
    private static let dark = SIMD3<Float>(52, 104, 168)

    private let loudness: Loudness
    private let scale: Float

    init(_ loudness: Loudness) {
        self.loudness = loudness
        scale = 1 / max(loudness.peaks.max() ?? 0, Self.quiet)
    }

    /// The image at the size of a rule, for the client.
    func drawn(by rule: ImageResizer) throws(ImageError) -> DecodedImage {
        let size = try rule.targetSize(for: Self.naturalSize)
        let plane = PixelPlane(
            width: size.width, height: size.height, channels: 3,
            storage: PixelStorage(zeroedByteCount: size.pixelCount * 3))
        for x in 0..<size.width { draw(column: x, of: plane, in: size) }
        return DecodedImage(planes: [plane], model: .rgb, alpha: .none)
    }

    private func draw(column x: Int, of plane: PixelPlane, in size: PixelSize) {
        let (peak, effective) = values(column: x, of: size.width)
        let middle = Float(size.height) / 2
        // A line of one pixel shows that there is sound, or silence.
        let reach = max(0.5, min(1, peak * scale) * Self.fill * middle)
        let inner = min(reach, effective * scale * Self.fill * middle)
        let pixels = plane.storage.bytes
        for y in 0..<size.height {
            func share(_ reach: Float) -> Float {
                max(0, min(Float(y + 1), middle + reach) - max(Float(y), middle - reach))
            }
            var color = Self.background
            color += (Self.pale - color) * share(reach)
            color += (Self.dark - color) * share(inner)
            let at = (y * size.width + x) * 3
            for channel in 0..<3 { pixels[at + channel] = UInt8(max(0, min(255, color[channel].rounded()))) }
        }
    }

    /// The largest peak of the intervals below a column, and their effective value.
    private func values(column x: Int, of width: Int) -> (peak: Float, effective: Float) {
        let count = loudness.peaks.count
        let first = min(count - 1, x * count / width)
        let end = max(first + 1, min(count, (x + 1) * count / width))
        let peak = loudness.peaks[first..<end].max() ?? 0
        let square = loudness.squares[first..<end].reduce(0, +) / Float(end - first)
        return (peak, square.squareRoot())
    }
}
