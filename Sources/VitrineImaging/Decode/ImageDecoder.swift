import VitrineCore

/// Reads pictures of any supported format at the size they are wanted.
///
/// ```swift
/// let decoder = ImageDecoder()
/// let thumbnail = try await decoder.image(from: .file("photo.jpg"), at: .fit(200))
/// ```
///
/// The result is upright, in sRGB, and made from the cheapest representation in the file that is at least as good: the
/// block means of a large JPEG, the first scan of a progressive one, a scaled decode, or every pixel. Asking for the
/// size here is therefore far cheaper than decoding and resizing afterwards.
///
/// The header is checked against ``limits`` before any pixel is decoded. Formats whose libraries cannot be stopped or
/// trusted are decoded in a worker process; see ``Isolation``.
public struct ImageDecoder: Sendable {
    /// Bounds on the input and on the work; see ``ImageLimits``.
    public var limits: ImageLimits
    /// Which decoders run in worker processes. Default ``Isolation/standard``.
    public var isolation: Isolation
    package var registry: DecoderRegistry
    package var pool: WorkerPool

    /// - Parameters:
    ///   - limits: Bounds on the input and on the work.
    ///   - isolation: Which decoders run in worker processes.
    public init(limits: ImageLimits = .standard, isolation: Isolation = .standard) {
        self.init(limits: limits, isolation: isolation, registry: .standard, pool: .shared)
    }

    package init(limits: ImageLimits, isolation: Isolation, registry: DecoderRegistry, pool: WorkerPool) {
        self.limits = limits
        self.isolation = isolation
        self.registry = registry
        self.pool = pool
    }

    /// Reads the header: format, size, orientation, frames and more, without decoding pixels.
    ///
    /// - Throws: ``ImageError`` when the input cannot be read or is no picture.
    public func info(of input: ImageInput) async throws -> ImageInfo {
        let limits = limits
        return try await BlockingExecutor.shared.run { () throws(ImageError) in
            try ImageInfo(of: input, limits: limits)
        }
    }

    /// Decodes one picture on a thread for blocking work.
    ///
    /// - Parameters:
    ///   - input: A file or bytes.
    ///   - resizer: The size and mode of the result, upright. Default ``ImageResizer/none``: every pixel.
    ///   - options: Page, previews and partial files.
    /// - Throws: ``ImageError``, or `CancellationError` when the task is cancelled; the decode stops within
    ///   milliseconds.
    public func image(
        from input: ImageInput, at resizer: ImageResizer = .none, options: DecodeOptions = DecodeOptions()
    ) async throws -> Image {
        let token = CancellationToken()
        do {
            return try await withTaskCancellationHandler {
                try await BlockingExecutor.shared.run { () throws(ImageError) in
                    try decode(input, at: resizer, options: options, cancellation: token)
                }
            } onCancel: {
                token.cancel()
            }
        } catch ImageError.cancelled {
            throw CancellationError()
        }
    }

    /// Decodes one picture on the calling thread, which it blocks. Prefer ``image(from:at:options:)`` in asynchronous
    /// code.
    ///
    /// - Throws: ``ImageError``; ``ImageError/cancelled(input:)`` soon after `cancellation` is cancelled and
    ///   ``ImageError/timedOut(input:)`` after ``ImageLimits/deadline`` seconds.
    public func decode(
        _ input: ImageInput, at resizer: ImageResizer = .none, options: DecodeOptions = DecodeOptions(),
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> Image {
        let images = try decode(input, at: [resizer], options: options, cancellation: cancellation)
        return images[0]
    }

    /// A document that keeps to itself, in memory: a file might become another one between the check and the drawing.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` when it refers to anything else.
    func checkedDrawing(
        _ source: ByteSource, frames: Int
    ) throws(ImageError) -> (ByteSource, ImageInfo) {
        let copy = ByteSource(bytes: try source.allBytes(), name: source.name)
        // Read anew, as the file may have changed already.
        let info = try ImageInfo(reading: copy, limits: limits)
        try limits.check(info, source: copy, frames: frames)
        if info.format == .svg, let reason = SVGPolicy.containsExternalReference(try copy.allBytes()) {
            throw .unsupported(input: copy.name, reason: reason)
        }
        return (copy, info)
    }

    /// Whether there is a decoder for a format: in this build, or in a worker that is installed.
    package func canDecode(_ format: ImageFormat) -> Bool {
        guard format.isBuiltIn else {
            return isolation != .always && RegisteredDecoders.shared.decoder(for: format.rawValue) != nil
        }
        return (isolation != .always && !registry.decoders(for: format).isEmpty)
            || (isolation != .inProcess && pool.isAvailable)
    }

    /// The decoders for one format, with those that need it moved into the worker.
    package func decoders(for format: ImageFormat) -> [any ImageDecoding] {
        guard format.isBuiltIn else {
            guard var decoder = RegisteredDecoders.shared.decoder(for: format.rawValue) else { return [] }
            decoder.isAllowed = isolation != .always
            return [decoder]
        }
        switch isolation {
        case .inProcess:
            return registry.decoders(for: format)
        case .always:
            return [IsolatedDecoder(pool: pool)]
        case .automatic:
            let local = registry.decoders(for: format)
            let trusted = local.filter { !$0.needsIsolation }
            let remaining = local.filter(\.needsIsolation)
            // Without a worker, decoding in process is still better than not at all; foreign-only formats then say
            // what is missing.
            return trusted + (pool.isAvailable || remaining.isEmpty ? [IsolatedDecoder(pool: pool)] : remaining)
        }
    }
}
