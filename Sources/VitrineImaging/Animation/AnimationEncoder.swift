import VitrineCore

/// Writes an animation frame by frame, as animated WebP or as an AVIF sequence.
///
/// ```swift
/// let encoder = try AnimationEncoder(as: .webp(quality: 0.6))
/// try encoder.add(image, seconds: 0.1)
/// try encoder.add(image.processed(by: [.grayscale]), seconds: 0.5)
/// let file = try encoder.finish()
/// ```
///
/// A frame that shows the same pixels as the one before prolongs it. In WebP, a frame stores the rectangle that has
/// changed. Encoders of video do better at that, so that an AVIF sequence of a video has about a quarter of the bytes;
/// fewer programs show it. Not for several threads at a time.
public final class AnimationEncoder {
    /// The number of frames in the file so far.
    package private(set) var frameCount = 0

    private let format: ImageFormat
    private let quality: Double
    private let loopCount: Int
    private let isOpaque: Bool
    private var writer: (any AnimationWriting)?
    /// The last frame, which a later one may prolong.
    private var pending: (image: PixelImage, changed: PixelRect, milliseconds: Int)?
    private var isFinished = false

    /// Milliseconds of a frame that all formats can store.
    private static let maximumMilliseconds = (1 << 24) - 1

    /// Creates an encoder.
    ///
    /// - Parameters:
    ///   - format: `webp` or `avif`, with the quality.
    ///   - loopCount: How often the animation is shown; 0 for endless loops. libavif before version 1.0 does not write
    ///     it.
    ///   - isOpaque: Whether all frames are opaque, which spares AVIF a second plane. Other frames are put over white
    ///     then.
    /// - Throws: ``ImageError/encodingFailed(format:reason:)`` for other formats and without the library.
    public init(as format: OutputFormat, loopCount: Int = 0, isOpaque: Bool = false) throws(ImageError) {
        switch format {
        case .webp(let quality):
            self.format = .webp
            self.quality = quality
        case .avif(let quality):
            self.format = .avif
            self.quality = quality
        default:
            throw .encodingFailed(
                format: format.animationFormat, reason: "animations are written as WebP or AVIF only")
        }
        guard !quality.isNaN else { throw .invalidRequest(reason: "a quality must be a number") }
        self.loopCount = max(0, min(loopCount, 65_535))
        self.isOpaque = isOpaque
    }

    /// Adds a frame. All frames have the size of the first.
    ///
    /// - Parameters:
    ///   - image: The frame.
    ///   - seconds: How long it is shown, at least a millisecond.
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``.
    public func add(_ image: PixelImage, seconds: Double) throws(ImageError) {
        guard !isFinished else { throw .encodingFailed(format: format, reason: "the animation is finished") }
        let image = isOpaque && image.hasAlpha
            ? image.composed(over: .white).converted(to: .opaque) : image.alpha == .premultiplied
                ? image.converted(to: .straight) : image
        let milliseconds = Int(max(1, min((seconds.isFinite ? seconds : 0) * 1_000, 1e7).rounded()))
        let whole = PixelRect(x: 0, y: 0, width: image.width, height: image.height)
        guard let last = pending else {
            writer = try makeWriter(image.size)
            pending = (image, whole, milliseconds)
            return
        }
        guard last.image.size == image.size else {
            throw .encodingFailed(format: format, reason: "a frame of \(image.size) behind one of \(last.image.size)")
        }
        let changed = image.alpha == last.image.alpha ? image.change(from: last.image) : whole
        if let changed {
            try write(last)
            pending = (image, changed, milliseconds)
        } else {
            pending?.milliseconds = min(last.milliseconds + milliseconds, Self.maximumMilliseconds)
        }
    }

    /// Returns the file. No frames can be added afterwards.
    ///
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``, for one without a frame.
    public func finish() throws(ImageError) -> [UInt8] {
        guard let last = pending, let writer, !isFinished else {
            throw .encodingFailed(format: format, reason: "the animation has no frame, or is finished")
        }
        isFinished = true
        try write(last)
        pending = nil
        self.writer = nil
        return try writer.finish()
    }

    private func write(_ frame: (image: PixelImage, changed: PixelRect, milliseconds: Int)) throws(ImageError) {
        try writer?.add(frame.image, frame.changed, milliseconds: frame.milliseconds)
        frameCount += 1
    }

    private func makeWriter(_ size: PixelSize) throws(ImageError) -> any AnimationWriting {
        guard let writer = Codecs.standard[format]?.animationWriter else {
            throw .encodingFailed(format: format, reason: "built without the trait SystemCodecs")
        }
        return try writer(
            AnimationParameters(
                size: size, quality: max(0, min(1, quality)), isOpaque: isOpaque, loopCount: loopCount))
    }
}

extension OutputFormat {
    /// The format in errors of animations.
    fileprivate var animationFormat: ImageFormat {
        switch self {
        case .jpeg, .automatic: .jpeg
        case .png: .png
        case .webp: .webp
        case .avif: .avif
        case .jxl: .jxl
        case .gif: .gif
        }
    }
}

extension PixelImage {
    /// The smallest rectangle outside of which two images of one size and one kind of alpha have the same pixels, from
    /// an even column and row; nil for equal images.
    func change(from other: PixelImage) -> PixelRect? {
        withUnsafeBytes { one in
            other.withUnsafeBytes { two -> PixelRect? in
                func row(_ bytes: UnsafeRawBufferPointer, image: PixelImage, y: Int) -> UnsafeRawBufferPointer {
                    UnsafeRawBufferPointer(rebasing: bytes[(y * image.bytesPerRow)...].prefix(4 * width))
                }
                func isSame(_ y: Int) -> Bool {
                    row(one, image: self, y: y).elementsEqual(row(two, image: other, y: y))
                }
                guard let top = (0..<height).first(where: { !isSame($0) }) else { return nil }
                let bottom = (top..<height).last { !isSame($0) } ?? top
                var (left, right) = (width, -1)
                for y in top...bottom {
                    let (a, b) = (row(one, image: self, y: y), row(two, image: other, y: y))
                    func differs(_ x: Int) -> Bool {
                        a.loadUnaligned(fromByteOffset: 4 &* x, as: UInt32.self)
                            != b.loadUnaligned(fromByteOffset: 4 &* x, as: UInt32.self)
                    }
                    if let first = (0..<left).first(where: differs) { left = first }
                    if right + 1 < width, let last = ((right + 1)..<width).last(where: differs) { right = last }
                }
                let (x, y) = (left & ~1, top & ~1)
                return PixelRect(x: x, y: y, width: right + 1 - x, height: bottom + 1 - y)
            }
        }
    }
}
