import VitrineCore
import VitrineSVG

/// Decodes images of any supported format at a requested size.
///
/// ```swift
/// let decoder = ImageDecoder()
/// let thumbnail = try await decoder.image(from: .file("photo.jpg"), at: .fit(200))
/// ```
///
/// The result is upright and in sRGB. It is made from the cheapest representation in the file that is at least as good.
/// Examples are the block means of a large JPEG, the first scan of a progressive one, or a scaled decode. Decoding at a
/// size is therefore far cheaper than decoding and resizing afterwards.
///
/// The header is checked against its ``ImageLimits`` before any pixel is decoded. Formats whose libraries cannot be
/// stopped or trusted are decoded in a worker process; see ``Isolation``. ``register(_:)`` adds decoders for further
/// formats.
public struct ImageDecoder: Sendable {
    /// Bounds on the input and on the work; see ``ImageLimits``.
    package var limits: ImageLimits
    /// Which decoders run in worker processes. Default ``Isolation/standard``.
    package var isolation: Isolation
    package var registry: DecoderRegistry
    package var pool: WorkerPool
    /// The running program as a worker, for the formats of `registry`; nil to leave all of them to `pool`.
    package var ownPool: WorkerPool?

    /// Creates a decoder.
    ///
    /// - Parameters:
    ///   - limits: Bounds on the input and on the work.
    ///   - isolation: Which decoders run in worker processes.
    public init(limits: ImageLimits = .standard, isolation: Isolation = .standard) {
        self.init(limits: limits, isolation: isolation, registry: .standard, pool: .shared)
        ownPool = .own
    }

    package init(limits: ImageLimits, isolation: Isolation, registry: DecoderRegistry, pool: WorkerPool) {
        self.limits = limits
        self.isolation = isolation
        self.registry = registry
        self.pool = pool
    }

    /// Reads the header: format, size, orientation, frames and more, without decoding pixels.
    ///
    /// - Throws: ``ImageError`` if the input cannot be read or is not an image, or `CancellationError` if the task is
    ///   cancelled.
    public func info(of input: ImageInput) async throws -> ImageInfo {
        let (limits, token) = (limits, CancellationToken())
        do {
            return try await withTaskCancellationHandler {
                try await BlockingExecutor.shared.run { () throws(ImageError) in
                    try ImageInfo(of: input, limits: limits, cancellation: token)
                }
            } onCancel: {
                token.cancel()
            }
        } catch ImageError.cancelled {
            throw CancellationError()
        }
    }

    /// Decodes one image on a thread for blocking work.
    ///
    /// - Parameters:
    ///   - input: A file or bytes.
    ///   - resizer: The size and mode of the result, upright. Default ``ImageResizer/none``: every pixel.
    ///   - options: Page, region, previews and partial files.
    /// - Throws: ``ImageError``, or `CancellationError` if the task is cancelled; the decode stops within
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

    /// Decodes one image on the calling thread, which it blocks. Prefer ``image(from:at:options:)`` in asynchronous
    /// code.
    ///
    /// - Throws: ``ImageError``; ``ImageError/cancelled(input:)`` soon after `cancellation` is cancelled and
    ///   ``ImageError/timedOut(input:)`` after the time of ``ImageLimits/deadline``, which begins with the header.
    public func decode(
        _ input: ImageInput, at resizer: ImageResizer = .none, options: DecodeOptions = DecodeOptions(),
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> Image {
        let images = try decode(input, at: [resizer], options: options, cancellation: cancellation)
        return images[0]
    }

    /// A document that keeps to itself, in memory: a file might become another one between the check and the drawing.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` when its references cannot be found.
    func checkedDrawing(
        _ source: ByteSource, frames: Int
    ) throws(ImageError) -> (ByteSource, ImageInfo) {
        let copy = ByteSource(bytes: try source.allBytes(), name: source.name)
        // Read anew, as the file may have changed already.
        let info = try ImageInfo(reading: copy, limits: limits)
        try limits.check(info, source: copy, frames: frames)
        guard info.format == .svg else { return (copy, info) }
        let drawing = try SVGDrawing(copy, limits)
        return (ByteSource(bytes: drawing.bytes, name: copy.name), info)
    }

    /// Whether there is a decoder for a format: in this build, or in a worker that is installed.
    package func canDecode(_ format: ImageFormat) -> Bool {
        // What a camera or a program stores as a picture is JPEG or PNG.
        if format.holdsPictures { return canDecode(.jpeg) }
        guard format.isBuiltIn else {
            return isolation != .always && RegisteredDecoders.shared.decoder(for: format.rawValue) != nil
        }
        if !registry.decoders(for: format).isEmpty, isolation != .always || ownPool != nil { return true }
        return isolation != .inProcess && pool.isAvailable
    }

    /// The decoders for one format, with those that need it moved into the worker.
    package func decoders(for format: ImageFormat) -> [any ImageDecoding] {
        guard format.isBuiltIn else {
            guard var decoder = RegisteredDecoders.shared.decoder(for: format.rawValue) else { return [] }
            decoder.isAllowed = isolation != .always
            return [decoder]
        }
        // Each of them leaves to the next one what it does not read.
        switch isolation {
        case .inProcess:
            return registry.decoders(for: format)
        case .always:
            return isolated(format)
        case .automatic:
            let local = registry.decoders(for: format)
            let trusted = local.filter { !$0.needsIsolation }
            let remaining = local.filter(\.needsIsolation)
            if remaining.isEmpty { return trusted + [IsolatedDecoder(pool: pool)] }
            // Without a worker, decoding in process is still better than not at all; foreign-only formats then say
            // what is missing.
            return trusted + (ownPool != nil || pool.isAvailable ? isolated(format) : remaining)
        }
    }

    /// The decoders of a format in workers: that of the running program, which starts sooner than one with libvips, and
    /// that of ``pool``.
    private func isolated(_ format: ImageFormat) -> [any ImageDecoding] {
        let isInstalled = pool.isAvailable
        // This library's decoder of JPEG XL reads small sizes only.
        guard let ownPool, !registry.decoders(for: format).isEmpty, format != .jxl || !isInstalled else {
            return [IsolatedDecoder(pool: pool)]
        }
        // libheif reads some files that libavif calls damaged.
        let own = IsolatedDecoder(formats: [format], pool: ownPool, leavesDamaged: format == .avif && isInstalled)
        return isInstalled ? [own, IsolatedDecoder(pool: pool)] : [own]
    }
}

extension ImageDecoder {
    /// Decodes one image at several sizes, on the calling thread, which it blocks. The file is decoded once.
    ///
    /// A small result may be made from a larger one of the same call, which looks the same and costs less. The larger
    /// one is at least twice as wide and as high.
    ///
    /// - Returns: The images in the order of `resizers`; each has the size of a single request.
    /// - Throws: ``ImageError`` as ``decode(_:at:options:cancellation:)``: one error for all.
    package func decode(
        _ input: ImageInput, at resizers: [ImageResizer], options: DecodeOptions = DecodeOptions(),
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> [Image] {
        try decode(input, at: resizers, options: options, cancellation, rows: nil)
    }

    /// - Parameter rows: Takes the index of the file's rows; nil for none.
    func decode(
        _ input: ImageInput, at resizers: [ImageResizer], options: DecodeOptions, _ cancellation: CancellationToken,
        rows: RowNotes?
    ) throws(ImageError) -> [Image] {
        guard !resizers.isEmpty else { return [] }
        let opened = try ByteSource(input)
        let result: Result<[Image], ImageError> = try Deadline.run(
            seconds: limits.deadline, input: opened.name, cancellation: cancellation
        ) { token throws(ImageError) in
            var source = ByteSource(opened, polling: token)
            var header: ImageHeader
            do throws(ImageError) {
                header = try ImageHeader(ByteReader(source), limits)
            } catch {
                return .failure(error)
            }
            try limits.check(header.info, source: source, frames: options.page &+ 1)
            if header.info.format == .svg {
                (source, header.info) = try checkedDrawing(source, frames: options.page &+ 1)
            }
            return .success(
                try IdleCores.shared.counting { () throws(ImageError) in
                    var header = header
                    while true {
                        do throws(ImageError) {
                            return try decode(
                                source, header, at: resizers, options: options, cancellation: token, rows: rows)
                        } catch {
                            // The next picture of a book or a comic, if this one is damaged.
                            guard error.concernsBytes, let next = header.next(source, limits) else { throw error }
                            try limits.check(next.info, source: source, frames: options.page &+ 1)
                            header = next
                        }
                    }
                })
        }
        switch result {
        case .success(let images): return images
        case .failure(let error):
            // A raw file without a preview, whose development has a deadline of its own.
            guard case .unsupported = error, options.page == 0, options.region == nil,
                let images = try RawDevelopment.images(
                    of: opened, at: resizers, decoder: self, cancellation: cancellation)
            else { throw error }
            return images
        }
    }

    private func decode(
        _ source: ByteSource, _ header: ImageHeader, at resizers: [ImageResizer], options: DecodeOptions,
        cancellation: CancellationToken, rows: RowNotes?
    ) throws(ImageError) -> [Image] {
        let info = header.info
        guard options.page >= 0 && options.page < max(1, info.frameCount) else {
            throw .invalidRequest(
                reason: "\(source.name) has no page \(options.page): it has \(info.frameCount), counted from 0")
        }
        let region = try Self.region(options, info)
        // The resizers see the region as if it were the image.
        var part = info
        if let region { part.storedSize = region.size }
        var plans: [DecodePlan] = []
        for resizer in resizers {
            plans.append(try DecodePlan(resizer, for: part, limits: limits, input: source.name))
        }
        var request = DecodeRequest(
            info: info, target: Self.target(of: plans).map { Self.whole($0, region, info) }, options: options,
            limits: limits, cancellation: cancellation)
        request.region = region
        if region != nil { request.options.allowsEmbeddedPreview = false }
        // A later page may have another shape, which its samples will tell. Scaled rows mix what is there with rows that
        // are missing below.
        request.allowsScaling =
            region == nil && options.page == 0 && !options.allowsPartial
            && ResizedImages.largestServesAll(plans, at: request.target)
        let decoded: DecodedImage
        if let preview = try embeddedPreview(in: source, request) {
            decoded = preview
        } else if !header.pictures.isEmpty {
            decoded = try decodeHeld(header, source, request)
        } else {
            decoded = try DecoderRegistry.decode(source, request, with: decoders(for: info.format))
        }
        rows?.index = decoded.rowIndex
        if let region {
            let size = info.storedSize
            let shown = decoded.region ?? PixelRect(x: 0, y: 0, width: size.width, height: size.height)
            return try ResizedImages(
                decoded: decoded, info: part, limits: limits, cancellation: cancellation, inputName: source.name,
                area: region.fractions(of: shown)
            ).images(resizers)
        }
        var page = info
        if options.page > 0, let other = info.ofPage(decoded) { page = other }
        return try ResizedImages(
            decoded: decoded, info: page, limits: limits, cancellation: cancellation, inputName: source.name
        ).images(resizers)
    }

    /// The region of `options` in stored pixels, cut at the edges; nil for the whole image.
    private static func region(_ options: DecodeOptions, _ info: ImageInfo) throws(ImageError) -> PixelRect? {
        guard let wanted = options.region else { return nil }
        guard options.page == 0 else {
            throw .invalidRequest(reason: "a region can be decoded of the first frame or page only")
        }
        guard let clipped = wanted.clipped(to: info.size) else {
            throw .invalidRequest(reason: "the region lies outside the picture of \(info.size)")
        }
        let upright = PixelRect(x: 0, y: 0, width: info.size.width, height: info.size.height)
        if clipped == upright { return nil }
        let part = info.orientation.stored(clipped.fractions(of: upright))
        let (width, height) = (Double(info.storedSize.width), Double(info.storedSize.height))
        let size = info.orientation.upright(clipped.size)
        return PixelRect(
            x: Int((part.x * width).rounded()), y: Int((part.y * height).rounded()), width: size.width,
            height: size.height)
    }

    /// The size of the whole image if a region of it gets a size.
    private static func whole(_ target: PixelSize, _ region: PixelRect?, _ info: ImageInfo) -> PixelSize {
        guard let region else { return target }
        func side(_ whole: Int, _ part: Int, _ target: Int) -> Int {
            Int(min((Double(whole) * Double(target) / Double(part)).rounded(.up), 1e9))
        }
        return PixelSize(
            width: side(info.storedSize.width, region.size.width, target.width),
            height: side(info.storedSize.height, region.size.height, target.height))
    }

    /// The size to ask a decoder for that serves each of `plans`; nil for every pixel.
    private static func target(of plans: [DecodePlan]) -> PixelSize? {
        var largest = PixelSize.zero
        for plan in plans {
            guard let target = plan.target else { return nil }
            largest.width = max(largest.width, target.width)
            largest.height = max(largest.height, target.height)
        }
        return largest
    }
}
