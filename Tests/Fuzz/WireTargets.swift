import VitrineCore
import VitrineHelperProtocol
import VitrineImaging
import VitrinePipeline

extension FuzzTargets {
    static var wire: [FuzzTarget] { [reply, request, header, document, wireValues, failures] }

    private static let reply = FuzzTarget("worker-reply", seeds: { replies }) { bytes in
        guard let reply = WorkerReply(bytes) else { throw FuzzRefusal() }
        switch reply.outcome {
        case .decoded(let shape):
            _ = shape.end
            guard let memory = sharedMemory else { return }
            guard
                let image = DecodedImage(shape, memory: memory, requestedProfile: [1, 2, 3], limits: limits)
            else { throw FuzzRefusal() }
            _ = try DecodedImageRenderer.image(
                from: image, size: PixelSize(width: 5, height: 4), region: nil, orientation: .left,
                cancellation: CancellationToken(), inputName: "reply")
        case .encoded(let offset, let count): _ = sharedMemory?.bytes(at: offset, count: min(count, 1 << 20))
        case .described(let bytes): _ = (PDFDescription(bytes), VideoDescription(bytes))
        case .failed(let failure): _ = failure.error(input: "a", format: .heic)
        case .pong: break
        }
    }

    private static let limits: ImageLimits = {
        var limits = ImageLimits()
        limits.maximumPixels = 1 << 14
        limits.maximumWholeImagePixels = 1 << 14
        limits.maximumOutputSide = 128
        return limits
    }()

    private static let sharedMemory = try? SharedMemory()

    private static let replies: [[UInt8]] = {
        func plane(_ channels: Int, offset: Int = 0) -> WorkerReply.Plane {
            let size = 8 * 4 * channels
            let plane = PixelPlane(
                width: 8, height: 4, channels: channels, bytesPerRow: 8 * channels, extent: (7.5, 4),
                storage: PixelStorage(zeroedByteCount: size))
            return WorkerReply.Plane(plane, bytesPerRow: 8 * channels, offset: offset)
        }
        let outcomes: [WorkerReply.Outcome] = [
            .pong(.complete), .encoded(offset: 64, count: 100), .described([1, 2, 3]),
            .failed(WorkerFailure(kind: .corrupt, reason: "reason")),
            .decoded(.init(planes: [plane(4)], model: .rgb, alpha: .straight, profile: .none, isPartial: false)),
            .decoded(
                .init(
                    planes: [plane(1), plane(1, offset: 64), plane(1, offset: 128)],
                    model: .yCbCr(.bt709, fullRange: true), alpha: .none, profile: .payload(offset: 192, count: 8),
                    isPartial: true)),
            .decoded(
                .init(
                    planes: [plane(4)], model: .cmyk(inverted: true), alpha: .none, profile: .requested,
                    isPartial: false)),
        ]
        return outcomes.map { WorkerReply(id: 7, outcome: $0, memory: 1 << 20).encoded() }
    }()

    private static let request = FuzzTarget(
        "worker-request",
        seeds: {
            let info = ImageInfo(format: .heic, storedSize: PixelSize(width: 640, height: 480))
            return [nil, PixelSize(64)].map { WorkerRequest(id: 3, DecodeRequest(info: info, target: $0)).encoded() }
        }
    ) { bytes in
        guard let request = WorkerRequest(bytes) else { throw FuzzRefusal() }
        _ = request.inputOffset
    }

    private static let header = FuzzTarget(
        "worker-header",
        seeds: {
            [ImageFormat.heic, .gif].map { format in
                var header = ImageHeader(info: ImageInfo(format: format, storedSize: PixelSize(width: 640, height: 480)))
                header.info.embeddedPreviews = [.init(offset: 1, count: 2, size: PixelSize(3))]
                (header.exif, header.convertedExif, header.frameSeconds) = (1..<5, [1, 2], [0.5, 1])
                return header.encoded()
            }
        }
    ) { bytes in
        let source = ByteSource(bytes: bytes, name: "file")
        for format in [ImageFormat.heic, .gif] {
            guard let header = ImageHeader(bytes, of: source, format: format, limits: limits) else { continue }
            precondition(header.exif.map { $0.upperBound <= bytes.count } ?? true)
            return
        }
        throw FuzzRefusal()
    }

    private static let document = FuzzTarget(
        "document-request",
        seeds: {
            [PDFParameters().encoded(), VideoParameters().encoded(), TextParameters().encoded()].map { parameters in
                DocumentRequest(
                    id: 5, operation: .render, target: PixelSize(64), parameters: parameters, limits: .standard
                ).encoded()
            }
        }
    ) { bytes in
        guard let request = DocumentRequest(bytes) else { throw FuzzRefusal() }
        _ = PDFParameters(request.parameters)
        _ = VideoParameters(request.parameters)?.target.resizer(limits: .standard)
        _ = TextParameters(request.parameters)
    }

    /// What documents' helpers say and are told, without what is around it.
    private static let wireValues = FuzzTarget(
        "document-values",
        seeds: {
            var pages = PDFDescription()
            pages.pageCount = 2
            pages.title = "title"
            pages.pageSizes = [.init(width: 595, height: 842), .init(width: 10, height: 20)]
            var film = VideoDescription()
            film.duration = 5.5
            film.hasVideo = true
            film.storedSize = PixelSize(width: 320, height: 240)
            film.created = "2024-07-19T18:30:05Z"
            var clip = VideoClip()
            clip.size = PixelSize(width: 3, height: 2)
            for index in 0..<3 { clip.append(PixelImage(size: clip.size, color: .white), seconds: 0.1 + Double(index)) }
            return [
                pages.encoded(), film.encoded(), PDFParameters().encoded(), VideoParameters().encoded(),
                clip.encoded(), ClipParameters().encoded(), FrameParameters(frame: 3).encoded(),
            ]
        }
    ) { bytes in
        _ = (PDFParameters(bytes), VideoParameters(bytes)?.target.resizer(limits: .standard))
        let film = VideoDescription(bytes).map { VideoInfo($0) }
        _ = (ClipParameters(bytes)?.target.resizer(limits: .standard), FrameParameters(bytes))
        if let clip = VideoClip(bytes, limits: .standard) { _ = clip.image(at: clip.frameCount - 1) }
        if film == nil, PDFDescription(bytes) == nil { throw FuzzRefusal() }
    }

    /// Errors of documents' helpers, which cross as a reason.
    private static let failures = FuzzTarget(
        text: "document-failures", ["no such page among 12", "no frame after second 5.25", "wrong password"]
    ) { text in
        _ = VideoInfo.date(text)
        let error = ImageError.unsupported(input: "input", reason: text)
        if PDFFailure(error)?.error == nil, VideoFailure(error)?.error == nil { throw FuzzRefusal() }
    }
}
