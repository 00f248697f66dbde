public import VitrineCore

/// The frames of an animation, decoded on demand at one size: GIF, APNG, WebP, AVIF or JPEG XL.
///
/// ```swift
/// if let animation = try AnimatedImage(.file("moon.gif"), at: .fit(200)) {
///     for frame in 0..<animation.timing.frameCount {
///         let image = try await animation.image(at: frame)
///     }
/// }
/// ```
///
/// Frames are composed at the size of the file, then reduced, and are upright and in sRGB. They are decoded in order:
/// each costs its own data, and an earlier one begins anew. All frames are kept while those of all animations of the
/// process fit into ``frameCapacity``, and are removed under memory pressure. Otherwise the last two are kept.
///
/// AVIF and JPEG XL are decoded in a worker process, and all formats with ``Isolation/always``.
public final class AnimatedImage: Sendable {
    /// The header of the file.
    public let info: ImageInfo
    /// The size of the frames in pixels, before processors.
    public let size: PixelSize
    /// How long each frame is shown, and how often the animation.
    public let timing: AnimationTiming

    /// The most bytes of frames that all animations of the process keep. Default: 128 MB.
    ///
    /// A change applies to animations that are opened afterwards.
    public static var frameCapacity: ByteCount {
        get { ByteCount(FrameBudget.shared.capacity) }
        set { FrameBudget.shared.capacity = newValue.bytes }
    }

    private struct Session {
        var decoder: (any FrameDecoding)?
        /// The frame after the one that the decoder composed last.
        var next = 0
    }

    private let source: ByteSource
    private let resizer: ImageResizer
    private let processors: [ImageProcessor]
    private let decoder: ImageDecoder
    private let cache: FrameCache
    private let session = Locked(Session())
    private let decodes = Locked(0)

    /// Opens an animation. Blocks for the reading of all of its headers; decodes no frame.
    ///
    /// - Parameters:
    ///   - input: A file or bytes. A file stays open.
    ///   - resizer: The size and mode of the frames, upright. Default: their own size.
    ///   - processors: Processors of each frame, in order.
    ///   - limits: Bounds on the input and on the work. ``ImageLimits/deadline`` applies to each frame.
    ///   - isolation: Which decoders run in worker processes.
    /// - Returns: nil if the input is an image without frames, or with pages.
    /// - Throws: ``ImageError``; ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for more than
    ///   ``ImageLimits/maximumFrames`` frames.
    public convenience init?(
        _ input: ImageInput, at resizer: ImageResizer = .none, processors: [ImageProcessor] = [],
        limits: ImageLimits = .standard, isolation: Isolation = .standard
    ) throws(ImageError) {
        try self.init(
            input, at: resizer, processors: processors, decoder: ImageDecoder(limits: limits, isolation: isolation))
    }

    package init?(
        _ input: ImageInput, at resizer: ImageResizer, processors: [ImageProcessor] = [], decoder: ImageDecoder,
        budget: FrameBudget = .shared
    ) throws(ImageError) {
        let opened = try ByteSource(input)
        let header = try decoder.header(of: opened)
        let info = header.info
        guard info.isAnimated else { return nil }
        try decoder.limits.check(info, source: opened, frames: info.frameCount)
        // A file that ends early has fewer frames than it says. Codecs of users tell no times.
        let frames = min(info.frameCount, header.frameSeconds.count)
        guard frames > 1 else { return nil }
        try decoder.limits.checkWholeImage(info.storedSize, input: opened.name)
        var resizer = resizer
        resizer.maximumSide = decoder.limits.maximumOutputSide
        // Checks the size, too.
        _ = try DecodePlan(resizer, for: info, limits: decoder.limits, input: opened.name)
        size = try resizer.outputSize(for: info.size)
        self.info = info
        timing = AnimationTiming(durations: Array(header.frameSeconds[..<frames]), loopCount: info.loopCount ?? 0)
        // A worker that knows the file again has its decoder still open.
        source = decoder.isIsolated(info.format) ? try opened.withDescriptor() : opened
        self.resizer = resizer
        self.processors = processors
        self.decoder = decoder
        let (bytes, overflow) = size.pixelCount.multipliedReportingOverflow(by: PixelImage.bytesPerPixel)
        cache = FrameCache(frameCount: frames, frameBytes: overflow ? .max : bytes, budget: budget)
        cache.followMemoryPressure()
    }

    /// Returns a frame if it is decoded already. Never blocks for long.
    ///
    /// - Parameter frame: The frame, from 0.
    public func cachedImage(at frame: Int) -> PixelImage? { cache[frame] }

    /// Decodes a frame on a thread for blocking work.
    ///
    /// - Parameter frame: The frame, from 0.
    /// - Throws: ``ImageError``, or `CancellationError` if the task is cancelled.
    public func image(at frame: Int) async throws -> PixelImage {
        if let image = cache[frame] { return image }
        let token = CancellationToken()
        do {
            return try await withTaskCancellationHandler {
                try await BlockingExecutor.shared.run { () throws(ImageError) in
                    try self.decodeImage(at: frame, cancellation: token)
                }
            } onCancel: {
                token.cancel()
            }
        } catch ImageError.cancelled {
            throw CancellationError()
        }
    }

    /// Decodes a frame on the calling thread, which it blocks.
    ///
    /// - Parameters:
    ///   - frame: The frame, from 0.
    ///   - cancellation: Stops the decode.
    /// - Throws: ``ImageError``; ``ImageError/invalidRequest(reason:)`` if there is no such frame, and
    ///   ``ImageError/timedOut(input:)`` after ``ImageLimits/deadline`` seconds.
    package func decodeImage(
        at frame: Int, cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> PixelImage {
        if let image = cache[frame] { return image }
        guard frame >= 0, frame < timing.frameCount else {
            throw .invalidRequest(reason: "\(source.name) has no frame \(frame): it has \(timing.frameCount)")
        }
        return try Deadline.run(seconds: decoder.limits.deadline, input: source.name, cancellation: cancellation) {
            token throws(ImageError) in
            let result: Result<PixelImage, ImageError> = session.withLock { session in
                // Decoded by another thread meanwhile.
                if let image = cache[frame] { return .success(image) }
                do throws(ImageError) {
                    return .success(try decode(frame, session: &session, cancellation: token))
                } catch {
                    session = Session()
                    return .failure(error)
                }
            }
            return try result.get()
        }
    }

    private func decode(
        _ frame: Int, session: inout Session, cancellation: CancellationToken
    ) throws(ImageError) -> PixelImage {
        if frame < session.next - 1 { session = Session() }
        let frames = if let opened = session.decoder { opened } else { try open(cancellation) }
        session.decoder = frames
        while session.next <= frame {
            guard try frames.advance(cancellation) else { throw .truncated(input: source.name) }
            session.next += 1
        }
        let samples = try frames.samples(cancellation)
        let image = try ResizedImages(
            decoded: samples, info: info, limits: decoder.limits, cancellation: cancellation, inputName: source.name
        ).images([resizer])[0].processed(by: processors)
        decodes.withLock { $0 += 1 }
        cache.store(image, as: frame)
        // Nothing is left to decode.
        if cache.keepsAll, cache.count == timing.frameCount { session = Session() }
        return image
    }

    private func open(_ cancellation: CancellationToken) throws(ImageError) -> any FrameDecoding {
        let plan = try DecodePlan(resizer, for: info, limits: decoder.limits, input: source.name)
        let request = DecodeRequest(
            info: info, target: plan.target, limits: decoder.limits, cancellation: cancellation)
        return try decoder.decoders(for: info.format).frames(of: source, request)
    }

    // MARK: For tests

    /// The number of frames that were decoded, again ones included.
    package var decodeCount: Int { decodes.withLock { $0 } }
    /// The number of frames in memory.
    package var cachedCount: Int { cache.count }
    /// Whether a decoder is open.
    package var isDecoderOpen: Bool { session.withLock { $0.decoder != nil } }
}
