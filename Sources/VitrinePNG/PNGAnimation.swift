import VitrineCore
import VitrineImageCore

/// Finds and composes the frames of an animated PNG (PNG specification, third edition, §11.3.5 and §12).
struct PNGAnimation {
    private let source: ByteSource
    private let file: PNGFile
    private let request: DecodeRequest
    private let name: String

    init(_ source: ByteSource, file: PNGFile, request: DecodeRequest) {
        self.source = source
        self.file = file
        self.request = request
        name = source.name
    }

    /// The frame the request asks for; nil if the file has no frame with data at all.
    func decode() throws(ImageError) -> DecodedImage? {
        let frames = try checkedFrames()
        guard !frames.isEmpty else { return nil }
        guard request.options.page < frames.count else {
            throw .invalidRequest(reason: "page \(request.options.page) does not exist")
        }
        return try compose(frames)
    }

    /// Checks the canvas and returns the frames up to the page of the request.
    fileprivate func checkedFrames() throws(ImageError) -> [PNGFrame] {
        let pixels = PixelSize(width: file.header.width, height: file.header.height).pixelCount
        guard pixels <= request.limits.maximumWholeImagePixels else {
            throw .limitExceeded(
                input: name, limit: .pixels, actual: pixels, allowed: request.limits.maximumWholeImagePixels)
        }
        guard request.options.page < request.limits.maximumFrames else {
            throw .limitExceeded(
                input: name, limit: .frames, actual: request.options.page + 1, allowed: request.limits.maximumFrames)
        }
        return try findFrames()
    }

    /// Frames up to the one asked for. A frame without data or outside the canvas ends the search.
    private func findFrames() throws(ImageError) -> [PNGFrame] {
        var frames: [PNGFrame] = []
        var current = file.firstFrame
        var reader = PNGChunkReader(source, at: file.data.offset - 8, cancellation: request.cancellation)
        while frames.count <= request.options.page, let chunk = try reader.next() {
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
        let last = request.options.page
        let start = frames[...last].indices.last {
            frames[$0].replaces(header) && ($0 == last || frames[$0].disposal != .restore)
        }
        let canvas = PNGCanvas(width: header.width, height: header.height)
        let decoder = PNGImageDecoder(
            source: source, file: file, allowsPartial: request.options.allowsPartial, cancellation: request.cancellation
        )
        var (isPartial, filledHeight) = (false, 1.0)
        for index in (start ?? 0)...last {
            let frame = frames[index]
            guard let data = frame.data else { continue }
            let saved = index < last && frame.disposal == .restore && index > 0 ? canvas.copy(frame) : nil
            let result = try decoder.decode(data, width: frame.width, height: frame.height, factor: 1)
            canvas.draw(result, frame)
            isPartial = isPartial || result.isPartial
            // Below the rows of a later frame, the earlier ones show.
            if index == start ?? 0, index == last { filledHeight = frame.share(of: header, filled: result) }
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
        var image = PNGDecoder.image(
            plane, file: file, request: request, isPremultiplied: factor > 1, isPartial: isPartial)
        image.filledHeight = filledHeight
        return image
    }
}

/// Decodes the frames of an animated PNG in order.
final class PNGFrames: FrameDecoding {
    private let source: ByteSource
    private let file: PNGFile
    private let request: DecodeRequest
    private let frames: [PNGFrame]
    private let canvas: PNGCanvas
    /// The frame decoded last.
    private var index = -1
    /// The part of the canvas below the last frame, if that frame restores it.
    private var saved: [UInt8]?
    /// Whether pixels of a frame so far were missing.
    private var isPartial = false
    /// How much of the height of the canvas is there.
    private var filledHeight = 1.0

    /// - Throws: ``ImageError/unsupported(input:reason:)`` for a file without an animation.
    init(_ source: ByteSource, file: PNGFile, request: DecodeRequest) throws(ImageError) {
        self.source = source
        self.file = file
        self.request = request
        var all = request
        all.options.page = max(0, min(request.info.frameCount, request.limits.maximumFrames) - 1)
        frames = file.frameCount == nil ? [] : try PNGAnimation(source, file: file, request: all).checkedFrames()
        guard !frames.isEmpty else { throw .unsupported(input: source.name, reason: "it has no frames") }
        canvas = PNGCanvas(width: file.header.width, height: file.header.height)
    }

    func advance(_ cancellation: CancellationToken) throws(ImageError) -> Bool {
        guard index + 1 < frames.count else { return false }
        if index >= 0 {
            let last = frames[index]
            switch last.disposal {
            case .keep: break
            case .clear: canvas.clear(last)
            case .restore: if let saved { canvas.restore(saved, last) } else { canvas.clear(last) }
            }
        }
        index += 1
        let frame = frames[index]
        // The first frame has nothing before it to restore.
        saved = frame.disposal == .restore && index > 0 ? canvas.copy(frame) : nil
        guard let data = frame.data else { return true }
        let decoder = PNGImageDecoder(
            source: source, file: file, allowsPartial: request.options.allowsPartial, cancellation: cancellation)
        let result = try decoder.decode(data, width: frame.width, height: frame.height, factor: 1)
        canvas.draw(result, frame)
        isPartial = isPartial || result.isPartial
        filledHeight = index == 0 ? frame.share(of: file.header, filled: result) : 1
        return true
    }

    func samples(_ cancellation: CancellationToken) throws(ImageError) -> DecodedImage {
        let factor = PNGDecoder.factor(PNGDecoder.reduction(file.header, request))
        var plane = try canvas.plane(factor: factor, cancellation, source.name)
        if factor == 1 { plane = plane.copied() }
        var image = PNGDecoder.image(
            plane, file: file, request: request, isPremultiplied: factor > 1, isPartial: isPartial)
        image.filledHeight = filledHeight
        return image
    }
}

/// One frame control chunk (fcTL) of an animated PNG (PNG specification, third edition, §11.3.5.2).
struct PNGFrame: Sendable {
    /// The change to the frame's rectangle before the next frame.
    enum Disposal: UInt8, Sendable {
        case keep = 0
        case clear = 1
        case restore = 2
    }

    /// The length of the chunk's payload.
    static let byteCount = 26

    let width: Int
    let height: Int
    let x: Int
    let y: Int
    let disposal: Disposal
    /// Whether the frame is composed over the canvas; otherwise it replaces its part.
    let blends: Bool
    /// The first chunk with its pixels: IDAT or fdAT; nil until one has been found.
    var data: PNGChunk?

    /// Reads the payload; nil if it breaks a rule.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount, let disposal = Disposal(rawValue: bytes[24]), bytes[25] <= 1 else {
            return nil
        }
        width = Int(bytes.bigEndian32(at: 4))
        height = Int(bytes.bigEndian32(at: 8))
        x = Int(bytes.bigEndian32(at: 12))
        y = Int(bytes.bigEndian32(at: 16))
        self.disposal = disposal
        blends = bytes[25] == 1
    }

    /// Whether the frame lies within a canvas of the header's size and has pixels.
    func fits(_ header: PNGHeader) -> Bool {
        width > 0 && height > 0 && x <= header.width - width && y <= header.height - height
    }

    /// How much of the height of the canvas is there when this is the only frame, of which `result` is there.
    func share(of header: PNGHeader, filled result: PNGImageDecoder.Result) -> Double {
        guard result.filledHeight < 1 else { return 1 }
        return (Double(y) + result.filledHeight * Double(height)) / Double(header.height)
    }

    /// Whether the frame hides its part of the canvas completely.
    func replaces(_ header: PNGHeader) -> Bool {
        !blends && x == 0 && y == 0 && width == header.width && height == header.height
    }
}

/// The image an animation draws its frames on: RGBA with straight alpha, transparent at first.
private struct PNGCanvas {
    private let width: Int
    private let height: Int
    private let storage: PixelStorage

    init(width: Int, height: Int) {
        self.width = width
        self.height = height
        // 64 bytes more, for reads behind the last row.
        storage = PixelStorage(zeroedByteCount: width * height * 4 + 64)
    }

    private func row(_ frame: PNGFrame, _ y: Int) -> UnsafeMutableRawBufferPointer {
        let start = ((frame.y + y) * width + frame.x) * 4
        return UnsafeMutableRawBufferPointer(rebasing: storage.bytes[start..<(start + frame.width * 4)])
    }

    /// Draws a frame's pixels, of the rows that are there, over the canvas or in its place.
    func draw(_ result: PNGImageDecoder.Result, _ frame: PNGFrame) {
        let plane = result.plane
        let rows = Int((result.filledHeight * Double(plane.height)).rounded())
        for y in 0..<min(frame.height, rows) {
            let start = y * plane.bytesPerRow
            let from = UnsafeRawBufferPointer(
                rebasing: plane.storage.bytes[start..<(start + plane.width * plane.channels)])
            let to = row(frame, y)
            for x in 0..<min(frame.width, plane.width) {
                let pixel = Self.pixel(from, at: x &* plane.channels, channels: plane.channels)
                Self.draw(pixel, row: to, at: x &* 4, blends: frame.blends)
            }
        }
    }

    @inline(__always)
    private static func pixel(_ row: UnsafeRawBufferPointer, at: Int, channels: Int) -> SIMD4<UInt8> {
        switch channels {
        case 1: SIMD4(row[at], row[at], row[at], 255)
        case 2: SIMD4(row[at], row[at], row[at], row[at &+ 1])
        case 3: SIMD4(row[at], row[at &+ 1], row[at &+ 2], 255)
        default: SIMD4(row[at], row[at &+ 1], row[at &+ 2], row[at &+ 3])
        }
    }

    /// Composition with straight alpha: a = s + d · (1 − s), each colour weighted by its share of a.
    @inline(__always)
    private static func draw(_ pixel: SIMD4<UInt8>, row: UnsafeMutableRawBufferPointer, at: Int, blends: Bool) {
        if !blends || pixel[3] == 255 {
            for c in 0..<4 { row[at &+ c] = pixel[c] }
            return
        }
        guard pixel[3] > 0 else { return }
        let over = UInt32(pixel[3]) &* 255
        let under = (255 &- UInt32(pixel[3])) &* UInt32(row[at &+ 3])
        let sum = over &+ under
        for c in 0..<3 {
            let v = UInt32(pixel[c]) &* over &+ UInt32(row[at &+ c]) &* under
            row[at &+ c] = UInt8(truncatingIfNeeded: (v &+ sum / 2) / sum)
        }
        row[at &+ 3] = UInt8(truncatingIfNeeded: (sum &+ 127) / 255)
    }

    /// A frame's rectangle as it is.
    func copy(_ frame: PNGFrame) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(frame.width * frame.height * 4)
        for y in 0..<frame.height { bytes.append(contentsOf: row(frame, y)) }
        return bytes
    }

    /// Restores the bytes of ``copy(_:)``.
    func restore(_ bytes: [UInt8], _ frame: PNGFrame) {
        for y in 0..<frame.height {
            let start = y * frame.width * 4
            row(frame, y).copyBytes(from: bytes[start..<(start + frame.width * 4)])
        }
    }

    /// Makes a frame's rectangle transparent.
    func clear(_ frame: PNGFrame) {
        for y in 0..<frame.height { row(frame, y).initializeMemory(as: UInt8.self, repeating: 0) }
    }

    /// The canvas, or the premultiplied means of its blocks.
    func plane(factor: Int, _ cancellation: CancellationToken, _ name: String) throws(ImageError) -> PixelPlane {
        guard factor > 1 else { return PixelPlane(width: width, height: height, channels: 4, storage: storage) }
        var box = PNGBlockMeans(width: width, height: height, channels: 4, factor: factor, isScattered: false)
        let buffer = PixelStorage(zeroedByteCount: width * 4 + 64)
        let base = UnsafeRawPointer(storage.bytes.baseAddress!)
        for y in 0..<height {
            if y & 63 == 0 && cancellation.isCancelled { throw .cancelled(input: name) }
            let row = base + y * width * 4
            let target = buffer.bytes.baseAddress!
            box.add(Premultiplication.apply(row, target, width: width, channels: 4) ? UnsafeRawPointer(target) : row)
        }
        return box.finish()
    }
}
