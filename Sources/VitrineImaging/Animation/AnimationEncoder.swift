#if SystemCodecs
import CVitrineAVIF
import CVitrineWebP
#endif
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
/// changed. Encoders of video do better at that, so that an AVIF sequence of a film has about a quarter of the bytes;
/// fewer programs show it. Not for several threads at a time.
public final class AnimationEncoder {
    /// A file that is being written.
    fileprivate protocol Writer: AnyObject {
        /// Adds the part of an image that differs from the previous one.
        func add(_ image: Image, _ changed: PixelRect, milliseconds: Int) throws(ImageError)
        func finish() throws(ImageError) -> [UInt8]
    }

    /// The number of frames in the file so far.
    public private(set) var frameCount = 0

    private let format: ImageFormat
    private let quality: Double
    private let loopCount: Int
    private let isOpaque: Bool
    private var writer: (any Writer)?
    /// The last frame, which a later one may prolong.
    private var pending: (image: Image, changed: PixelRect, milliseconds: Int)?
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
    public func add(_ image: Image, seconds: Double) throws(ImageError) {
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

    private func write(_ frame: (image: Image, changed: PixelRect, milliseconds: Int)) throws(ImageError) {
        try writer?.add(frame.image, frame.changed, milliseconds: frame.milliseconds)
        frameCount += 1
    }

    private func makeWriter(_ size: PixelSize) throws(ImageError) -> any Writer {
        #if SystemCodecs
        let quality = max(0, min(1, quality))
        if format == .avif {
            return try AVIFWriter(size, quality: quality, hasAlpha: !isOpaque, loopCount: loopCount)
        }
        return try WebPWriter(size, quality: quality, loopCount: loopCount)
        #else
        throw .encodingFailed(format: format, reason: "built without the trait SystemCodecs")
        #endif
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

extension Image {
    /// The smallest rectangle outside of which two images of one size and one kind of alpha have the same pixels, from
    /// an even column and row; nil for equal images.
    func change(from other: Image) -> PixelRect? {
        withUnsafeBytes { one in
            other.withUnsafeBytes { two -> PixelRect? in
                func row(_ bytes: UnsafeRawBufferPointer, _ image: Image, _ y: Int) -> UnsafeRawBufferPointer {
                    UnsafeRawBufferPointer(rebasing: bytes[(y * image.bytesPerRow)...].prefix(4 * width))
                }
                func isSame(_ y: Int) -> Bool { row(one, self, y).elementsEqual(row(two, other, y)) }
                guard let top = (0..<height).first(where: { !isSame($0) }) else { return nil }
                let bottom = (top..<height).last { !isSame($0) } ?? top
                var (left, right) = (width, -1)
                for y in top...bottom {
                    let (a, b) = (row(one, self, y), row(two, other, y))
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

#if SystemCodecs
/// Writes animated WebP: each frame as a still file of its changed part.
private final class WebPWriter: AnimationEncoder.Writer {
    private let animation: OpaquePointer
    private let quality: Double

    /// libwebp's fastest method: the file is a sixth larger than with its default, and takes half the time.
    private static let method: Int32 = 0
    private static let maximumSide = 16_383

    init(_ size: PixelSize, quality: Double, loopCount: Int) throws(ImageError) {
        guard size.longestSide <= Self.maximumSide else {
            throw .encodingFailed(format: .webp, reason: "a side is longer than \(Self.maximumSide) pixels")
        }
        guard let animation = cwebp_animation_create(Int32(size.width), Int32(size.height), Int32(loopCount)) else {
            throw .encodingFailed(format: .webp, reason: "no memory for the animation")
        }
        self.animation = animation
        self.quality = quality
    }

    deinit { cwebp_animation_destroy(animation) }

    func add(_ image: Image, _ changed: PixelRect, milliseconds: Int) throws(ImageError) {
        var encoding = cwebp_encoding()
        encoding.width = Int32(changed.size.width)
        encoding.height = Int32(changed.size.height)
        encoding.stride = Int32(image.bytesPerRow)
        encoding.has_alpha = image.isFullyOpaque ? 0 : 1
        encoding.quality = Float(quality * 100)
        encoding.method = Self.method
        var count = 0
        var reason: UnsafePointer<CChar>?
        let file = image.withUnsafeBytes { pixels in
            encoding.rgba = pixels.baseAddress?.advanced(by: changed.y * image.bytesPerRow + changed.x * 4)
                .assumingMemoryBound(to: UInt8.self)
            return cwebp_encode(&encoding, &count, &reason)
        }
        guard let file else {
            throw .encodingFailed(format: .webp, reason: reason.map { String(cString: $0) } ?? "libwebp gave no reason")
        }
        defer { cwebp_free(file) }
        let isAdded = cwebp_animation_add(
            animation, file, count, Int32(changed.x), Int32(changed.y), Int32(clamping: milliseconds))
        guard isAdded != 0 else { throw .encodingFailed(format: .webp, reason: "libwebp refused a frame") }
    }

    func finish() throws(ImageError) -> [UInt8] {
        var count = 0
        guard let file = cwebp_animation_finish(animation, &count) else {
            throw .encodingFailed(format: .webp, reason: "libwebp refused the animation")
        }
        defer { cwebp_free(file) }
        return [UInt8](UnsafeBufferPointer(start: file, count: count))
    }
}

/// Writes AVIF sequences.
private final class AVIFWriter: AnimationEncoder.Writer {
    private let animation: OpaquePointer
    private let size: PixelSize

    /// The speed of libavif's encoder, of 10. It takes a tenth to a quarter less time than 8 for the same size and
    /// quality; 10 is the same in libaom 3.6.
    private static let speed: Int32 = 9
    private static let maximumSide = 65_535

    init(_ size: PixelSize, quality: Double, hasAlpha: Bool, loopCount: Int) throws(ImageError) {
        guard size.longestSide <= Self.maximumSide else {
            throw .encodingFailed(format: .avif, reason: "a side is longer than \(Self.maximumSide) pixels")
        }
        var encoding = cavif_encoding()
        encoding.width = UInt32(size.width)
        encoding.height = UInt32(size.height)
        encoding.stride = UInt32(size.width * Image.bytesPerPixel)
        encoding.has_alpha = hasAlpha ? 1 : 0
        encoding.quantizer = Int32(LibAVIFEncoder.quantizer(for: quality))
        encoding.speed = Self.speed
        var reason: UnsafePointer<CChar>?
        guard let animation = cavif_animation_create(&encoding, Int32(loopCount), &reason) else {
            throw Self.failure(reason)
        }
        self.animation = animation
        self.size = size
    }

    deinit { cavif_animation_destroy(animation) }

    func add(_ image: Image, _ changed: PixelRect, milliseconds: Int) throws(ImageError) {
        let image = image.bytesPerRow == size.width * Image.bytesPerPixel ? image : image.packed
        var reason: UnsafePointer<CChar>?
        let isAdded = image.withUnsafeBytes { pixels in
            cavif_animation_add(
                animation, pixels.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32(clamping: milliseconds),
                &reason)
        }
        guard isAdded != 0 else { throw Self.failure(reason) }
    }

    func finish() throws(ImageError) -> [UInt8] {
        var count = 0
        var reason: UnsafePointer<CChar>?
        guard let file = cavif_animation_finish(animation, &count, &reason) else { throw Self.failure(reason) }
        defer { cavif_free(file) }
        return [UInt8](UnsafeBufferPointer(start: file, count: count))
    }

    private static func failure(_ reason: UnsafePointer<CChar>?) -> ImageError {
        .encodingFailed(format: .avif, reason: reason.map { String(cString: $0) } ?? "libavif gave no reason")
    }
}

extension Image {
    /// The same pixels in rows without gaps.
    fileprivate var packed: Image {
        Image(width: width, height: height, alpha: alpha) { target in
            withUnsafeBytes { source in
                for y in 0..<height {
                    let row = UnsafeRawBufferPointer(rebasing: source[(y * bytesPerRow)...].prefix(4 * width))
                    UnsafeMutableRawBufferPointer(rebasing: target[(y * 4 * width)...].prefix(4 * width))
                        .copyMemory(from: row)
                }
            }
        }
    }
}
#endif
