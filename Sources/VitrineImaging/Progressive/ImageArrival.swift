package import VitrineCore

/// Makes images of one file while its bytes arrive.
///
/// It holds the bytes, the header once that is complete, and a record of the images that were made. Parsing and decoding
/// run on `BlockingExecutor`.
package struct ImageArrival: Sendable {
    /// Known once the header has arrived.
    private struct Header: Sendable {
        var info: ImageInfo
        var plan: DecodePlan
        var preview: ImageInfo.EmbeddedPreview?
        var scanner: ScannerBox?
        /// Bytes the scanner has been given.
        var scanned = 0
    }

    /// Holds a scanner by reference: a copy would duplicate its bytes with every chunk.
    private final class ScannerBox: Sendable {
        private let scanner: Locked<any ArrivalDecoding>

        init(_ scanner: any ArrivalDecoding) { self.scanner = Locked(scanner) }

        var isFinished: Bool { scanner.withLock { $0.isFinished } }

        func next(after bytes: [UInt8], until token: CancellationToken) throws(ImageError) -> DecodedImage? {
            try scanner.withLock { scanner in
                Result { () throws(ImageError) in
                    try scanner.append(bytes)
                    return try scanner.nextImage(until: token)
                }
            }.get()
        }
    }

    private let decoder: ImageDecoder
    private let name: String
    private let resizer: ImageResizer
    private let options: DecodeOptions
    private let cancellation: CancellationToken
    private var bytes: [UInt8] = []
    private var header: Header?
    /// Bytes at which reading the header is tried next: a thirty-second more each time, so that trying stays cheap.
    private var nextTry = 512

    package init(
        decoder: ImageDecoder, name: String, resizer: ImageResizer, options: DecodeOptions = DecodeOptions(),
        cancellation: CancellationToken
    ) {
        self.decoder = decoder
        self.name = name
        self.resizer = resizer
        self.options = options
        self.cancellation = cancellation
    }

    /// Whether ``next()`` will return no further image, however many bytes follow.
    package var isFinished: Bool {
        guard let header else { return false }
        return header.preview == nil && header.scanner?.isFinished != false
    }

    /// Appends the next bytes of the file.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for more bytes or a larger image than the
    ///   decoder's limits allow; ``ImageError/cancelled(input:)`` and ``ImageError/timedOut(input:)``.
    package mutating func append(_ chunk: [UInt8]) async throws(ImageError) {
        let allowed = decoder.limits.maximumInputBytes
        guard chunk.count <= allowed - bytes.count else {
            throw .limitExceeded(
                input: name, limit: .inputBytes, actual: bytes.count + chunk.count, allowed: allowed)
        }
        bytes += chunk
        guard header == nil, bytes.count >= nextTry else { return }
        // A worker gets all bytes each time.
        let isIsolated = ImageFormat.detect(Array(bytes.prefix(4_096))).map(decoder.isIsolated) ?? false
        nextTry = bytes.count + max(512, isIsolated ? bytes.count : bytes.count / 32)
        let (source, decoder, name, resizer) = (ByteSource(bytes: bytes, name: name), decoder, name, resizer)
        let (options, cancellation) = (options, cancellation)
        header = try await BlockingExecutor.shared.run { () throws(ImageError) in
            let info: ImageInfo
            do throws(ImageError) {
                info = try decoder.header(of: source, cancellation: cancellation).info
            } catch {
                switch error {
                case .cancelled, .timedOut: throw error
                // A header that is not whole yet is tried again; the final decode reports one that is wrong.
                default: return nil
                }
            }
            try decoder.limits.check(info, source: source)
            let plan = try DecodePlan(resizer, for: info, limits: decoder.limits, input: name)
            let preview = info.embeddedPreviews.last { $0.hasShape(of: info.storedSize) }
            var header = Header(info: info, plan: plan, preview: preview)
            // The scanner decodes in this process.
            if options.page == 0, decoder.isolation != .always,
                let scanner = Codecs.standard[info.format]?.arrivalDecoder
            {
                header.scanner = ScannerBox(
                    scanner.init(
                        name: name, target: plan.target, limits: decoder.limits, cancellation: cancellation))
            }
            return header
        }
    }

    /// Returns the next image that the bytes so far give; nil if there is none.
    ///
    /// - Throws: ``ImageError/cancelled(input:)``, or ``ImageError/timedOut(input:)`` beyond the decoder's limit.
    package mutating func next() async throws(ImageError) -> ProgressiveImage? {
        if let image = try await preview() {
            return ProgressiveImage(image: image, stage: .embeddedPreview, byteCount: bytes.count)
        }
        guard let header, let scanner = header.scanner else { return nil }
        let new = Array(bytes[header.scanned...])
        self.header?.scanned = bytes.count
        let (limits, name, cancellation) = (decoder.limits, name, cancellation)
        let decoded = try await BlockingExecutor.shared.run { () throws(ImageError) in
            try Deadline.run(
                seconds: limits.deadline, input: name, cancellation: cancellation
            ) { token throws(ImageError) in try scanner.next(after: new, until: token) }
        }
        guard var decoded else { return nil }
        // A preview that comes after an image is of no use.
        self.header?.preview = nil
        decoded.colorProfile = header.info.samplesProfile
        let image = try await render(decoded, header)
        return ProgressiveImage(image: image, stage: .partial, byteCount: bytes.count)
    }

    /// Returns the image of the whole file.
    func complete() async throws -> ProgressiveImage {
        let image = try await decoder.image(from: .bytes(bytes, name: name), at: resizer, options: options)
        return ProgressiveImage(image: image, stage: .complete, byteCount: bytes.count)
    }

    /// Returns the camera's preview, as soon as its bytes are there, and once.
    private mutating func preview() async throws(ImageError) -> PixelImage? {
        guard let header, let preview = header.preview, preview.offset + preview.count <= bytes.count else { return nil }
        self.header?.preview = nil
        let source = ByteSource(bytes: bytes, name: name)
        let request = DecodeRequest(
            info: header.info, target: header.plan.target,
            options: DecodeOptions(page: options.page), limits: decoder.limits,
            cancellation: cancellation)
        let decoder = decoder
        let decoded = try await BlockingExecutor.shared.run { () throws(ImageError) in
            try Deadline.run(
                seconds: request.limits.deadline, input: source.name, cancellation: request.cancellation
            ) { token throws(ImageError) in
                var request = request
                request.cancellation = token
                return try decoder.decodePreview(preview, in: source, request)
            }
        }
        guard let decoded else { return nil }
        return try await render(decoded, header)
    }

    private func render(_ decoded: DecodedImage, _ header: Header) async throws(ImageError) -> PixelImage {
        let plane = decoded.planes[0]
        let plan = header.plan
        // Without a size there is no reason to scale: the pixels that are there are returned.
        let isUnscaled = resizer.mode == .none
        let size = isUnscaled ? PixelSize(width: plane.width, height: plane.height) : plan.rendered
        let (resizer, name, cancellation, orientation) = (resizer, name, cancellation, header.info.orientation)
        return try await BlockingExecutor.shared.run { () throws(ImageError) in
            let image = try DecodedImageRenderer.image(
                from: decoded, size: size, region: plan.region, orientation: orientation, cancellation: cancellation,
                inputName: name)
            return plan.needsPixels ? try resizer.resize(image) : image
        }
    }
}
