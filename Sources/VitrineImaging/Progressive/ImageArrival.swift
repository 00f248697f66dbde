import VitrineCore

/// The state of one file that is arriving: its bytes, its header, and the progress of its previews.
struct ImageArrival: Sendable {
    /// The state after the header has arrived.
    private struct Header: Sendable {
        var info: ImageInfo
        var plan: DecodePlan
        var isPreviewPending = true
        var scanner: ProgressiveJPEGScanner?
        /// Bytes the scanner has been given.
        var scanned = 0
    }

    private let decoder: ImageDecoder
    private let name: String
    private let resizer: ImageResizer
    private let options: DecodeOptions
    private let cancellation: CancellationToken
    private var bytes: [UInt8] = []
    private var header: Header?
    /// Bytes at which reading the header is tried next; doubled each time, so that trying stays cheap.
    private var nextTry = 512

    init(
        decoder: ImageDecoder, name: String, resizer: ImageResizer, options: DecodeOptions,
        cancellation: CancellationToken
    ) {
        self.decoder = decoder
        self.name = name
        self.resizer = resizer
        self.options = options
        self.cancellation = cancellation
    }

    mutating func append(_ chunk: [UInt8]) throws(ImageError) {
        let allowed = decoder.limits.maximumInputBytes
        guard chunk.count <= allowed - bytes.count else {
            throw .limitExceeded(
                input: name, limit: .inputBytes, actual: bytes.count + chunk.count, allowed: allowed)
        }
        bytes += chunk
        guard header == nil, bytes.count >= nextTry else { return }
        nextTry = bytes.count * 2
        let source = ByteSource(bytes: bytes, name: name)
        // A header that is not whole yet is tried again; one that is wrong is reported by the final decode.
        guard let info = try? ImageInfo(reading: source, limits: decoder.limits) else { return }
        try decoder.limits.check(info, source: source)
        let plan = try DecodePlan(resizer, for: info, limits: decoder.limits, input: name)
        header = Header(info: info, plan: plan)
        // The scanner decodes in this process.
        if info.format == .jpeg && options.page == 0 && decoder.isolation != .always {
            header?.scanner = ProgressiveJPEGScanner(
                name: name, target: plan.target, limits: decoder.limits, cancellation: cancellation)
        }
    }

    /// The next image that the bytes so far give; nil when there is none.
    mutating func next() async throws -> ProgressiveImage? {
        guard var header else { return nil }
        defer { self.header = header }
        if let image = try await preview(&header) {
            return ProgressiveImage(image: image, stage: .embeddedPreview, byteCount: bytes.count)
        }
        guard var scanner = header.scanner else { return nil }
        let new = Array(bytes[header.scanned...])
        header.scanned = bytes.count
        let (decoded, advanced) = try await BlockingExecutor.shared.run { [scanner] () throws(ImageError) in
            var scanner = scanner
            try scanner.append(new)
            return (try scanner.nextImage(), scanner)
        }
        scanner = advanced
        header.scanner = scanner
        // A preview that comes after an image is of no use.
        guard var decoded else { return nil }
        header.isPreviewPending = false
        decoded.colorProfile = header.info.colorProfile
        let image = try await render(decoded, header)
        return ProgressiveImage(image: image, stage: .partial, byteCount: bytes.count)
    }

    /// The image of the whole file.
    func complete() async throws -> ProgressiveImage {
        let image = try await decoder.image(from: .bytes(bytes, name: name), at: resizer, options: options)
        return ProgressiveImage(image: image, stage: .complete, byteCount: bytes.count)
    }

    /// The camera's preview, as soon as its bytes are there, and once.
    private func preview(_ header: inout Header) async throws -> Image? {
        let storedSize = header.info.storedSize
        guard header.isPreviewPending,
            let preview = header.info.embeddedPreviews.last(where: { $0.hasShape(of: storedSize) }),
            preview.offset + preview.count <= bytes.count
        else { return nil }
        header.isPreviewPending = false
        let source = ByteSource(bytes: bytes, name: name)
        let request = DecodeRequest(
            info: header.info, target: header.plan.target, page: options.page, limits: decoder.limits,
            cancellation: cancellation)
        let decoded = try await BlockingExecutor.shared.run { [decoder] () throws(ImageError) in
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

    private func render(_ decoded: DecodedImage, _ header: Header) async throws -> Image {
        let plane = decoded.planes[0]
        let plan = header.plan
        // Whoever wants every pixel is given those that are there.
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
