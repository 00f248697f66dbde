import VitrineCore

/// Finds and composes the frames of an animated PNG (PNG specification, third edition, §11.3.5 and §12).
struct PNGAnimation {
    private let source: ByteSource
    private let file: PNGFile
    private let request: DecodeRequest
    private let name: String

    init(_ source: ByteSource, _ file: PNGFile, _ request: DecodeRequest) {
        self.source = source
        self.file = file
        self.request = request
        name = source.name
    }

    /// The frame the request asks for; nil if the file has no frame with data at all.
    func decode() throws(ImageError) -> DecodedImage? {
        let pixels = PixelSize(width: file.header.width, height: file.header.height).pixelCount
        guard pixels <= request.limits.maximumWholeImagePixels else {
            throw .limitExceeded(
                input: name, limit: .pixels, actual: pixels, allowed: request.limits.maximumWholeImagePixels)
        }
        guard request.page < request.limits.maximumFrames else {
            throw .limitExceeded(
                input: name, limit: .frames, actual: request.page + 1, allowed: request.limits.maximumFrames)
        }
        let frames = try findFrames()
        guard !frames.isEmpty else { return nil }
        guard request.page < frames.count else {
            throw .invalidRequest(reason: "page \(request.page) does not exist")
        }
        return try compose(frames)
    }

    /// Frames up to the one asked for. A frame without data or outside the canvas ends the search.
    private func findFrames() throws(ImageError) -> [PNGFrame] {
        var frames: [PNGFrame] = []
        var current = file.firstFrame
        var reader = PNGChunkReader(source, at: file.data.offset - 8, cancellation: request.cancellation)
        while frames.count <= request.page, let chunk = try reader.next() {
            switch chunk.type {
            case PNGChunk.Kind.frame:
                guard chunk.count == PNGFrame.byteCount else {
                    throw .corrupt(input: name, reason: "bad frame control")
                }
                guard let frame = PNGFrame(try reader.payload(chunk)), frame.fits(file.header) else {
                    throw .corrupt(input: name, reason: "bad frame control")
                }
                current = frame
            case PNGChunk.Kind.data, PNGChunk.Kind.frameData:
                if var frame = current, frame.fits(file.header) {
                    frame.data = chunk
                    frames.append(frame)
                }
                current = nil
            case PNGChunk.Kind.end:
                return frames
            default: break
            }
        }
        return frames
    }

    private func compose(_ frames: [PNGFrame]) throws(ImageError) -> DecodedImage {
        let header = file.header
        let last = request.page
        let start = frames[...last].indices.last {
            frames[$0].replaces(header) && ($0 == last || frames[$0].disposal != .restore)
        }
        let canvas = PNGCanvas(width: header.width, height: header.height)
        let decoder = PNGImageDecoder(
            source: source, file: file, allowPartial: request.allowPartial, cancellation: request.cancellation)
        var isPartial = false
        for index in (start ?? 0)...last {
            let frame = frames[index]
            guard let data = frame.data else { continue }
            let saved = index < last && frame.disposal == .restore && index > 0 ? canvas.copy(frame) : nil
            let result = try decoder.decode(data, width: frame.width, height: frame.height, factor: 1)
            canvas.draw(result.plane, frame)
            isPartial = isPartial || result.isPartial
            guard index < last else { break }
            switch frame.disposal {
            case .keep: break
            case .clear: canvas.clear(frame)
            case .restore:
                // The first frame has nothing before it to restore.
                if let saved { canvas.restore(saved, frame) } else { canvas.clear(frame) }
            }
        }
        let factor = PNGDecoder.factor(PNGDecoder.reduction(header, request))
        let plane = try canvas.plane(factor: factor, request.cancellation, name)
        return PNGDecoder.image(plane, file, request, isPremultiplied: factor > 1, isPartial: isPartial)
    }
}
