#if SystemCodecs
import CVitrineWebP

/// The table of frames of an animated WebP.
struct WebPFrameTable: ~Copyable {
    private let demuxer: OpaquePointer
    let count: Int
    let canvas: PixelSize

    /// nil when the container is broken.
    init?(_ file: WebPChunk, allowPartial: Bool) {
        guard let demuxer = cwebp_demuxer_create(file.data, file.count, allowPartial ? 1 : 0) else { return nil }
        self.demuxer = demuxer
        count = Int(cwebp_demuxer_frame_count(demuxer))
        var (width, height): (Int32, Int32) = (0, 0)
        cwebp_demuxer_canvas(demuxer, &width, &height)
        canvas = PixelSize(width: Int(width), height: Int(height))
    }

    deinit { cwebp_demuxer_destroy(demuxer) }

    /// One frame; nil when it does not exist or reaches beyond the canvas.
    func frame(_ index: Int) -> cwebp_frame? {
        var frame = cwebp_frame()
        guard index >= 0, index < count, cwebp_demuxer_frame(demuxer, Int32(index), &frame) != 0, frame.data != nil,
            frame.x >= 0, frame.y >= 0, frame.width > 0, frame.height > 0,
            Int(frame.x) + Int(frame.width) <= canvas.width, Int(frame.y) + Int(frame.height) <= canvas.height
        else { return nil }
        return frame
    }

    func coversCanvas(_ frame: cwebp_frame) -> Bool {
        Int(frame.width) == canvas.width && Int(frame.height) == canvas.height
    }

    /// Whether `frame` replaces everything before it.
    func isIndependent(_ frame: cwebp_frame) -> Bool {
        coversCanvas(frame) && (frame.blends == 0 || frame.has_alpha == 0)
    }

    /// The last frame up to `index` from which composing can start with an empty canvas.
    func start(for index: Int) -> Int {
        var i = index
        while i > 0 {
            if let frame = frame(i), isIndependent(frame) { return i }
            if let previous = frame(i - 1), previous.clears != 0, coversCanvas(previous) { return i }
            i -= 1
        }
        return 0
    }
}

extension WebPDecoder.Context {
    /// Frame `request.page` as a viewer shows it.
    func animationFrame(of file: WebPChunk) throws(ImageError) -> DecodedImage {
        let page = request.page
        try request.limits.checkFrame(page, input: name)
        guard let table = WebPFrameTable(file, allowPartial: request.allowPartial) else {
            throw .corrupt(input: name, reason: "the animation's frames are broken or missing")
        }
        try request.limits.checkWholeImage(table.canvas, input: name)
        guard page < table.count else {
            if request.allowPartial, table.count == 0 { throw .truncated(input: name) }
            throw .invalidRequest(reason: "frame \(page) of an animation of \(table.count)")
        }
        let first = table.start(for: page)
        if first == page, let frame = table.frame(page), table.coversCanvas(frame) {
            let chunk = WebPChunk(data: frame.data, count: frame.count)
            return try picture(chunk, features(of: frame))
        }
        return try compose(table, from: first, through: page)
    }

    /// Draws frames onto an empty canvas and reduces the result.
    private func compose(
        _ table: borrowing WebPFrameTable, from first: Int, through last: Int
    ) throws(ImageError) -> DecodedImage {
        let canvas = PixelStorage(zeroedByteCount: table.canvas.pixelCount * 4)
        let stride = table.canvas.width * 4
        var isPartial = false
        for index in first...last {
            guard let frame = table.frame(index) else {
                throw .corrupt(input: name, reason: "frame \(index) of the animation is broken")
            }
            let origin = canvas.bytes.baseAddress! + Int(frame.y) * stride + Int(frame.x) * 4
            isPartial = try draw(frame, at: origin, stride: stride) || isPartial
            if frame.clears != 0, index < last {
                for y in 0..<Int(frame.height) {
                    (origin + y * stride).initializeMemory(as: UInt8.self, repeating: 0, count: Int(frame.width) * 4)
                }
            }
        }
        let factor = request.blockSide(for: table.canvas)
        var plane = PixelPlane(
            width: table.canvas.width, height: table.canvas.height, channels: 4, storage: canvas)
        if factor > 1 {
            try checkCancellation()
            var reducer = BoxReducer(
                width: table.canvas.width, height: table.canvas.height, channels: 4, factor: factor)
            let pixels = UnsafePointer(canvas.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
            reducer.add(rows: pixels, count: table.canvas.height, bytesPerRow: stride)
            plane = reducer.finish()
        }
        return DecodedImage(
            planes: [plane], model: .rgb, alpha: .premultiplied, isPartial: isPartial, samplesAreMeans: factor > 1)
    }

    /// Decodes one frame and puts it onto the canvas.
    ///
    /// - Returns: Whether only a part of it was there.
    private func draw(
        _ frame: cwebp_frame, at origin: UnsafeMutableRawPointer, stride: Int
    ) throws(ImageError) -> Bool {
        let size = PixelSize(width: Int(frame.width), height: Int(frame.height))
        _ = try features(of: frame)
        let memory = try ScratchMemory(byteCount: size.pixelCount * 4, input: name)
        guard let pixels = memory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            var feeder = WebPFeeder(
                cwebp_decoder_create_rgb(
                    frame.width, frame.height, pixels, frame.width * 4, Int32(CWEBP_RGBA_PREMULTIPLIED), 0),
                chunk: WebPChunk(data: frame.data, count: frame.count), size: size)
        else { throw .limitExceeded(input: name, limit: .memory, actual: size.pixelCount * 4, allowed: 0) }
        var done = 0
        while let rows = try feedPiece(&feeder) {
            for y in done..<max(done, rows) {
                let row = pixels + y * size.width * 4
                let target = (origin + y * stride).assumingMemoryBound(to: UInt8.self)
                if frame.blends != 0, frame.has_alpha != 0 {
                    WebPDecoder.blend(row, over: target, count: size.width)
                } else {
                    target.update(from: row, count: size.width * 4)
                }
            }
            done = max(done, rows)
        }
        return try finish(feeder.isComplete, rows: done)
    }

    /// The header of a frame, which must agree with the container's.
    private func features(of frame: cwebp_frame) throws(ImageError) -> cwebp_features {
        let features = try features(of: WebPChunk(data: frame.data, count: frame.count))
        guard features.width == frame.width, features.height == frame.height, features.has_animation == 0 else {
            throw .corrupt(input: name, reason: "a frame has another size than the container says")
        }
        return features
    }
}

extension WebPDecoder {
    /// Source over destination, both premultiplied.
    static func blend(_ source: UnsafePointer<UInt8>, over target: UnsafeMutablePointer<UInt8>, count: Int) {
        for i in 0..<count {
            let p = i &* 4
            let keep = 255 &- UInt32(source[p &+ 3])
            for c in 0..<4 {
                let sum = UInt32(source[p &+ c]) &+ AlphaMath.multiply(UInt32(target[p &+ c]), keep)
                target[p &+ c] = UInt8(truncatingIfNeeded: min(sum, 255))
            }
        }
    }
}
#endif
