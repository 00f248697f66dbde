import VitrineCore

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
/// The header is checked against its ``ImageLimits`` before any pixel is decoded. All but the most common formats are
/// read in a worker process; see ``Isolation``. ``register(_:)`` adds codecs for further formats.
public struct ImageDecoder: Sendable {
    /// Bounds on the input and on the work; see ``ImageLimits``.
    package var limits: ImageLimits
    /// Chooses the formats that are read in worker processes. Default ``Isolation/standard``.
    package var isolation: Isolation
    /// Those of the build. Registered codecs are asked before them.
    package var codecs: Codecs
    package var pool: WorkerPool
    /// The running program as a worker, for the formats of `codecs`; nil to leave all of them to `pool`.
    package var ownPool: WorkerPool?

    /// Creates a decoder.
    ///
    /// - Parameters:
    ///   - limits: Bounds on the input and on the work.
    ///   - isolation: Chooses the formats that are read in worker processes.
    public init(limits: ImageLimits = .standard, isolation: Isolation = .standard) {
        self.init(limits: limits, isolation: isolation, codecs: .standard, pool: .shared)
        ownPool = .own
    }

    package init(limits: ImageLimits, isolation: Isolation, codecs: Codecs, pool: WorkerPool) {
        self.limits = limits
        self.isolation = isolation
        self.codecs = codecs
        self.pool = pool
    }

    /// Reads the header: format, size, orientation, frames and more, without decoding pixels.
    ///
    /// - Throws: ``ImageError`` if the input cannot be read or is not an image, or `CancellationError` if the task is
    ///   cancelled.
    public func info(of input: ImageInput) async throws -> ImageInfo {
        let token = CancellationToken()
        do {
            return try await withTaskCancellationHandler {
                try await BlockingExecutor.shared.run { () throws(ImageError) in
                    try header(of: ByteSource(input), cancellation: token).info
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
    ) async throws -> PixelImage {
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
    ) throws(ImageError) -> PixelImage {
        let images = try decode(input, at: [resizer], options: options, cancellation: cancellation)
        return images[0]
    }

    /// Whether there is a decoder for a format: in this build, or in a worker that is installed.
    package func canDecode(_ format: ImageFormat) -> Bool {
        guard let codec = codecs.withRegistered[format] else { return false }
        if codec.isRegistered { return isolation != .always }
        if !codecs.decoders(for: format).isEmpty, isolation != .always || ownPool != nil { return true }
        return isolation != .inProcess && pool.isAvailable
    }

    /// The decoders for one format. Each of them leaves to the next one the inputs that it does not read.
    package func decoders(for format: ImageFormat) -> [any ImageDecoding] {
        let codecs = codecs.withRegistered
        guard let codec = codecs[format] else { return [] }
        let local = isIsolated(format) ? [] : codecs.decoders(for: format)
        if isolation == .inProcess || codec.isRegistered { return local }
        let pools = isolation == .automatic && !local.isEmpty ? [pool] : workers(for: format)
        return local
            + pools.map { pool in
                // libheif reads some files that libavif calls damaged.
                let leavesDamaged = format == .avif && pool === ownPool && pools.count > 1
                return IsolatedDecoder(formats: [format], pool: pool, leavesDamaged: leavesDamaged)
            }
    }

    /// Whether headers and pixels of a format are read by workers alone.
    package func isIsolated(_ format: ImageFormat) -> Bool {
        guard let codec = codecs[format] else { return false }
        return (isolation == .always || codec.needsIsolation) && usesWorkers
    }

    /// Whether workers read the formats that this process does not read itself.
    private var usesWorkers: Bool {
        switch isolation {
        case .inProcess: false
        case .always: true
        // Without a worker, reading in this process is better than not at all. Formats of the worker alone then say
        // what is missing.
        case .automatic: ownPool != nil || pool.isAvailable
        }
    }

    /// The workers for a format: the running program, which starts sooner than one with libvips, and that of ``pool``.
    private func workers(for format: ImageFormat) -> [WorkerPool] {
        let isInstalled = pool.isAvailable
        // This library's decoder of JPEG XL reads small sizes only.
        guard let ownPool, !codecs.decoders(for: format).isEmpty, format != .jxl || !isInstalled else {
            return [pool]
        }
        return isInstalled ? [ownPool, pool] : [ownPool]
    }
}

extension ImageDecoder {
    /// The header of an opened input, within the deadline of the limits.
    package func header(
        of source: ByteSource, cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> ImageHeader {
        try Deadline.run(seconds: limits.deadline, input: source.name, cancellation: cancellation) {
            token throws(ImageError) in
            try header(of: ByteSource(source, polling: token), until: token)
        }
    }

    /// Finds the format by content and reads the header.
    ///
    /// - Parameters:
    ///   - picture: Which image of a book or a comic, from 0; a damaged one is passed over.
    ///   - token: Ends the work of a worker.
    func header(
        of source: ByteSource, picture: Int = 0, until token: CancellationToken
    ) throws(ImageError) -> ImageHeader {
        let reader = ByteReader(source)
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        let codecs = codecs.withRegistered
        guard let format = try codecs.format(of: reader) else { throw codecs.unrecognized(reader.name) }
        guard isIsolated(format) else {
            return try InputReader(codecs: codecs).header(of: source, format: format, picture: picture, limits: limits)
        }
        var refusal = codecs.unrecognized(reader.name)
        for pool in workers(for: format) {
            do throws(ImageError) {
                return try pool.header(
                    of: source, format: format, picture: picture, limits: limits, cancellation: token)
            } catch {
                // Another worker finds no image either.
                guard case .unsupported = error, !error.concernsMissingPicture else { throw error }
                refusal = error
            }
        }
        throw refusal
    }

    /// Finds the image of a recording; nil for one without an image that can be read, and for other files.
    ///
    /// - Throws: ``ImageError/unreadable(input:reason:)``, ``ImageError/timedOut(input:)``,
    ///   ``ImageError/cancelled(input:)`` and ``ImageError/workerFailed(input:reason:)`` only.
    package func cover(
        of source: ByteSource, preferring kind: RecordingCover.Kind, cancellation: CancellationToken
    ) throws(ImageError) -> RecordingCover? {
        guard usesWorkers else {
            return try RecordingCover(of: source, preferring: kind, limits: limits, cancellation: cancellation)
        }
        let parameters = CoverParameters(kind: kind.rawValue).encoded()
        let answer = try (ownPool ?? pool).describe(
            source, parameters: parameters, limits: limits, cancellation: cancellation)
        guard let number = answer.first else { return nil }
        guard let kind = RecordingCover.Kind(rawValue: Int(number)) else {
            throw .workerFailed(input: source.name, reason: "the helper described no cover")
        }
        return RecordingCover(kind: kind, bytes: Array(answer.dropFirst()))
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
    ) throws(ImageError) -> [PixelImage] {
        try decode(input, at: resizers, options: options, cancellation, rows: nil)
    }

    /// - Parameter rows: Takes the index of the file's rows; nil for none.
    func decode(
        _ input: ImageInput, at resizers: [ImageResizer], options: DecodeOptions, _ cancellation: CancellationToken,
        rows: RowNotes?
    ) throws(ImageError) -> [PixelImage] {
        guard !resizers.isEmpty else { return [] }
        let opened = try ByteSource(input)
        let result: Result<[PixelImage], ImageError> = try Deadline.run(
            seconds: limits.deadline, input: opened.name, cancellation: cancellation
        ) { token throws(ImageError) in
            let source = ByteSource(opened, polling: token)
            let header: ImageHeader
            do throws(ImageError) {
                header = try self.header(of: source, until: token)
            } catch {
                return .failure(error)
            }
            try limits.check(header.info, source: source, frames: options.page &+ 1)
            return .success(
                try IdleCores.shared.counting { () throws(ImageError) in
                    var info = header.info
                    while true {
                        do throws(ImageError) {
                            return try decode(
                                source, info, at: resizers, options: options, cancellation: token, rows: rows)
                        } catch {
                            // The next image of a book or a comic, if this one is damaged.
                            guard error.concernsBytes, info.format.holdsPictures,
                                let next = try? self.header(of: source, picture: info.pictureIndex + 1, until: token)
                            else { throw error }
                            info = next.info
                            try limits.check(info, source: source, frames: options.page &+ 1)
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
        _ source: ByteSource, _ info: ImageInfo, at resizers: [ImageResizer], options: DecodeOptions,
        cancellation: CancellationToken, rows: RowNotes?
    ) throws(ImageError) -> [PixelImage] {
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
            info: info, target: Self.target(of: plans).map { Self.whole($0, region: region, info: info) },
            options: options,
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
        } else {
            if isolation == .always, codecs.withRegistered[info.format]?.isRegistered == true {
                throw .unsupported(
                    input: source.name,
                    reason: "Isolation.always decodes in workers; \(info.format) is registered in this process")
            }
            decoded = try decoders(for: info.format).decode(source, request)
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
            throw .invalidRequest(reason: "the region lies outside the image of \(info.size)")
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
    private static func whole(_ target: PixelSize, region: PixelRect?, info: ImageInfo) -> PixelSize {
        guard let region else { return target }
        func side(_ whole: Int, part: Int, target: Int) -> Int {
            Int(min((Double(whole) * Double(target) / Double(part)).rounded(.up), 1e9))
        }
        return PixelSize(
            width: side(info.storedSize.width, part: region.size.width, target: target.width),
            height: side(info.storedSize.height, part: region.size.height, target: target.height))
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
