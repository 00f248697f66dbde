#if SystemCodecs
import CVitrineWebP
import VitrineCore
import VitrineImageCore

/// Decodes WebP through libwebp.
///
/// The file is fed to the library in pieces of about a million pixels, and rows are averaged as they appear. Memory is
/// returned during the decode of a lossy image, and cancellation takes effect between pieces. A lossless image costs
/// the library four bytes a pixel of its own. The decoder can be stopped, so it does not need isolation. Its lossless
/// decoder has had a heap overflow (CVE-2023-4863): keep the library patched.
///
/// - An opaque lossy image comes as its Y′CbCr planes (BT.601, limited range: RFC 9649 §2.5), reduced before any
///   conversion.
/// - A lossless one, or one with alpha, comes as one RGB or RGBA plane, premultiplied whenever pixels are averaged.
/// - A frame of an animation comes composed onto the canvas, starting from the nearest frame before it that does not
///   depend on others. Transparent parts of the canvas stay transparent: the background colour of the file is a hint
///   that no viewer follows.
package struct WebPDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.webp]
    package var library: String? { "libwebp" }

    package init() {}

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.limits.checkFile(source, page: request.options.page)
        let bytes = try source.allBytes()
        let context = Context(name: source.name, request: request)
        let result: Result<DecodedImage, ImageError> = bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return .failure(.empty(input: source.name)) }
            let file = WebPChunk(data: base, count: buffer.count)
            do throws(ImageError) {
                let features = try context.features(of: file)
                let image = try features.has_animation != 0
                    ? context.animationFrame(of: file) : context.still(file, features)
                return .success(image)
            } catch {
                return .failure(error)
            }
        }
        var image = try result.get()
        image.colorProfile = request.info.colorProfile
        return image
    }

    package func frames(of source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> any FrameDecoding {
        try WebPFrames(source, request)
    }
}

/// Decodes the frames of an animated WebP in order. Keeps a copy of the file.
private final class WebPFrames: FrameDecoding {
    private let name: String
    private var request: DecodeRequest
    /// The file, which the table refers to.
    private let file: PixelStorage
    private let table: WebPFrameTable
    private let canvas: PixelStorage
    /// The frame decoded last.
    private var index = -1
    private var isPartial = false

    init(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) {
        try request.limits.checkFile(source, page: 0)
        name = source.name
        self.request = request
        file = try source.allBytes().withUnsafeBytes { PixelStorage(copying: $0) }
        guard let base = file.bytes.baseAddress, file.count > 0 else { throw .empty(input: name) }
        let chunk = WebPChunk(data: base.assumingMemoryBound(to: UInt8.self), count: file.count)
        let features = try WebPDecoder.Context(name: name, request: request).features(of: chunk)
        guard features.has_animation != 0 else { throw .unsupported(input: name, reason: "it has no frames") }
        guard let table = WebPFrameTable(chunk) else {
            throw .corrupt(input: name, reason: "the animation's frames are broken or missing")
        }
        self.table = table
        try request.limits.checkWholeImage(self.table.canvas, input: name)
        canvas = PixelStorage(zeroedByteCount: self.table.canvas.pixelCount * 4)
    }

    func advance(_ cancellation: CancellationToken) throws(ImageError) -> Bool {
        guard index + 1 < table.count else { return false }
        request.cancellation = cancellation
        let context = WebPDecoder.Context(name: name, request: request)
            if index >= 0, let last = table.frame(index), last.clears != 0 {
                context.clear(last, canvas: canvas, size: table.canvas)
            }
        index += 1
        isPartial = try context.draw(index, of: table, on: canvas)
        return true
    }

    func samples(_ cancellation: CancellationToken) throws(ImageError) -> DecodedImage {
        request.cancellation = cancellation
        let context = WebPDecoder.Context(name: name, request: request)
        var image = try context.reduced(canvas, table.canvas, isPartial: isPartial)
        if image.planes[0].storage === canvas { image.planes[0] = image.planes[0].copied() }
        image.colorProfile = request.info.colorProfile
        return image
    }
}

/// A still WebP file in memory that somebody else keeps alive.
private struct WebPChunk {
    let data: UnsafePointer<UInt8>
    let count: Int
}

extension WebPDecoder {
    /// One decode: the request, and the name of the input in errors.
    fileprivate struct Context {
        let name: String
        let request: DecodeRequest

        /// The header of a file or frame, found within the limits.
        func features(of chunk: WebPChunk) throws(ImageError) -> cwebp_features {
            var features = cwebp_features()
            switch Int(cwebp_read_features(chunk.data, chunk.count, &features)) {
            case CWEBP_OK: break
            case CWEBP_MORE: throw .truncated(input: name)
            default: throw .corrupt(input: name, reason: "the WebP header is broken")
            }
            // The rows of an opaque lossy image are averaged and returned to the system while it is decoded.
            var limits = request.limits
            if features.has_alpha == 0, features.is_lossless == 0, features.has_animation == 0 {
                limits.maximumWholeImagePixels = max(limits.maximumWholeImagePixels, limits.maximumPixels)
            }
            try limits.checkWholeImage(
                PixelSize(width: Int(features.width), height: Int(features.height)), input: name)
            return features
        }

        func checkCancellation() throws(ImageError) {
            if request.cancellation.isCancelled { throw .cancelled(input: name) }
        }

        /// Whether the deblocking filter can be left out. Averages of at least 2 × 2 pixels, scaled by another two,
        /// hide its effect. On a 12-megapixel photo the result stays above 50 dB against Lanczos3 of the full decode
        /// (200, 400 and 900 pixels), for 0.8 of the time.
        func isDraft(_ size: PixelSize) -> Bool { request.reduction(of: size) >= Self.draftReduction }

        static let draftReduction = 4.0
    }
}

extension WebPDecoder.Context {
    /// A still image, or a frame that needs no other.
    func still(_ chunk: WebPChunk, _ features: cwebp_features) throws(ImageError) -> DecodedImage {
        guard request.options.page == 0 || features.has_animation != 0 else {
            throw .invalidRequest(reason: "page \(request.options.page) of a still image")
        }
        return try picture(chunk, features)
    }

    /// The image in `chunk`, reduced as the request allows.
    func picture(_ chunk: WebPChunk, _ features: cwebp_features) throws(ImageError) -> DecodedImage {
        let size = PixelSize(width: Int(features.width), height: Int(features.height))
        return features.has_alpha == 0 && features.is_lossless == 0
            ? try planes(chunk, size) : try interleaved(chunk, size, hasAlpha: features.has_alpha != 0)
    }

    /// An opaque lossy image: luma and chroma, averaged separately.
    private func planes(_ chunk: WebPChunk, _ size: PixelSize) throws(ImageError) -> DecodedImage {
        let chroma = PixelSize(width: (size.width + 1) / 2, height: (size.height + 1) / 2)
        let factor = request.blockSide(for: size)
        // Chroma has half the resolution already; halving the factor keeps both planes alike in size.
        var luma = BoxReducer(width: size.width, height: size.height, factor: factor)
        var u = BoxReducer(width: chroma.width, height: chroma.height, factor: max(1, factor / 2))
        var v = BoxReducer(width: chroma.width, height: chroma.height, factor: max(1, factor / 2))
        var yMemory = try ScratchMemory(byteCount: size.pixelCount, input: name)
        var uMemory = try ScratchMemory(byteCount: chroma.pixelCount, input: name)
        var vMemory = try ScratchMemory(byteCount: chroma.pixelCount, input: name)
        guard let y0 = yMemory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let u0 = uMemory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let v0 = vMemory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            var feeder = WebPFeeder(
                cwebp_decoder_create_yuv(
                    Int32(size.width), Int32(size.height), y0, Int32(size.width), u0, v0, Int32(chroma.width),
                    isDraft(size) ? 1 : 0), chunk: chunk, size: size)
        else { throw .limitExceeded(input: name, limit: .memory, actual: size.pixelCount, allowed: 0) }

        while let rows = try feedPiece(&feeder) {
            // An odd last row of luma has its chroma only once the image is complete.
            let chromaRows = rows == size.height ? chroma.height : rows / 2
            luma.add(rows: y0 + luma.row * size.width, count: rows - luma.row, bytesPerRow: size.width)
            u.add(rows: u0 + u.row * chroma.width, count: chromaRows - u.row, bytesPerRow: chroma.width)
            v.add(rows: v0 + v.row * chroma.width, count: chromaRows - v.row, bytesPerRow: chroma.width)
            yMemory.release(upTo: luma.row * size.width)
            uMemory.release(upTo: u.row * chroma.width)
            vMemory.release(upTo: v.row * chroma.width)
        }
        let isPartial = try finish(feeder.isComplete, rows: luma.row)
        // Two rows of luma have one of chroma.
        let filled = luma.row < size.height ? Double(max(1, luma.row & ~1)) / Double(size.height) : 1
        // 128 is mid grey in all three planes.
        var planes = [luma.finish(fill: 128), u.finish(fill: 128), v.finish(fill: 128)]
        for i in 1...2 {
            // The last sample of an odd side covers one pixel, not two.
            planes[i].extentWidth = Double(size.width) / Double(2 * max(1, factor / 2))
            planes[i].extentHeight = Double(size.height) / Double(2 * max(1, factor / 2))
        }
        var image = DecodedImage(
            planes: planes, model: .yCbCr(.bt601, fullRange: false), isPartial: isPartial,
            samplesAreMeans: factor > 1)
        image.filledHeight = filled
        return image
    }

    /// A lossless image, or one with alpha: one plane of pixels.
    private func interleaved(
        _ chunk: WebPChunk, _ size: PixelSize, hasAlpha: Bool
    ) throws(ImageError) -> DecodedImage {
        let factor = request.blockSide(for: size)
        let channels = hasAlpha ? 4 : 3
        let stride = size.width * channels
        let layout = !hasAlpha ? CWEBP_RGB : factor == 1 ? CWEBP_RGBA : CWEBP_RGBA_PREMULTIPLIED
        var reducer = BoxReducer(width: size.width, height: size.height, channels: channels, factor: factor)
        var memory = try ScratchMemory(byteCount: stride * size.height, input: name)
        guard let pixels = memory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            var feeder = WebPFeeder(
                cwebp_decoder_create_rgb(
                    Int32(size.width), Int32(size.height), pixels, Int32(stride), Int32(layout),
                    isDraft(size) ? 1 : 0), chunk: chunk, size: size)
        else { throw .limitExceeded(input: name, limit: .memory, actual: size.pixelCount, allowed: 0) }

        while let rows = try feedPiece(&feeder) {
            reducer.add(rows: pixels + reducer.row * stride, count: rows - reducer.row, bytesPerRow: stride)
            memory.release(upTo: reducer.row * stride)
        }
        let isPartial = try finish(feeder.isComplete, rows: reducer.row)
        let filled = Double(reducer.row) / Double(size.height)
        var image = DecodedImage(
            planes: [reducer.finish(fill: hasAlpha ? 0 : 128)], model: .rgb,
            alpha: !hasAlpha ? .none : factor == 1 ? .straight : .premultiplied, isPartial: isPartial,
            samplesAreMeans: factor > 1)
        image.filledHeight = filled
        return image
    }

    /// The next piece of an image, or nil at its end; a broken one ends early when partial images are allowed.
    func feedPiece(_ feeder: inout WebPFeeder) throws(ImageError) -> Int? {
        try checkCancellation()
        return try feeder.next(input: name)
    }

    /// Whether the image is partial, after all bytes were read.
    ///
    /// - Throws: ``ImageError/truncated(input:)`` when it is and must not be, or nothing of it is there.
    func finish(_ isComplete: Bool, rows: Int) throws(ImageError) -> Bool {
        guard !isComplete else { return false }
        guard request.options.allowsPartial, rows > 0 else { throw .truncated(input: name) }
        return true
    }
}

/// The table of frames of an animated WebP.
private struct WebPFrameTable: ~Copyable {
    private let demuxer: OpaquePointer
    let count: Int
    let canvas: PixelSize

    /// Whether the file ends before its container says so. The last frame may be cut then, and others missing.
    let isCut: Bool

    /// nil when the container is broken.
    init?(_ file: WebPChunk) {
        let whole = cwebp_demuxer_create(file.data, file.count, 0)
        guard let demuxer = whole ?? cwebp_demuxer_create(file.data, file.count, 1) else { return nil }
        self.demuxer = demuxer
        isCut = whole == nil
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
    /// Frame `request.options.page` as a viewer shows it.
    func animationFrame(of file: WebPChunk) throws(ImageError) -> DecodedImage {
        let page = request.options.page
        try request.limits.checkFrame(page, input: name)
        guard let table = WebPFrameTable(file) else {
            throw .corrupt(input: name, reason: "the animation's frames are broken or missing")
        }
        try request.limits.checkWholeImage(table.canvas, input: name)
        guard page < table.count else {
            if table.isCut { throw .truncated(input: name) }
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
        var isPartial = false
        for index in first...last {
            isPartial = try draw(index, of: table, on: canvas) || isPartial
                if index < last, let frame = table.frame(index), frame.clears != 0 {
                    clear(frame, canvas: canvas, size: table.canvas)
                }
        }
        return try reduced(canvas, table.canvas, isPartial: isPartial)
    }

    /// Draws one frame onto a canvas of premultiplied pixels.
    ///
    /// - Returns: Whether only a part of it was there.
    func draw(_ index: Int, of table: borrowing WebPFrameTable, on canvas: PixelStorage) throws(ImageError) -> Bool {
        guard let frame = table.frame(index), let base = canvas.bytes.baseAddress else {
            throw .corrupt(input: name, reason: "frame \(index) of the animation is broken")
        }
        let stride = table.canvas.width * 4
        return try draw(frame, at: base + Int(frame.y) * stride + Int(frame.x) * 4, stride: stride)
    }

    /// Makes the rectangle of a frame transparent.
    func clear(_ frame: cwebp_frame, canvas: PixelStorage, size: PixelSize) {
        guard let base = canvas.bytes.baseAddress else { return }
        for y in Int(frame.y)..<(Int(frame.y) + Int(frame.height)) {
            (base + (y * size.width + Int(frame.x)) * 4)
                .initializeMemory(as: UInt8.self, repeating: 0, count: Int(frame.width) * 4)
        }
    }

    /// The canvas, or the means of its blocks.
    func reduced(_ canvas: PixelStorage, _ size: PixelSize, isPartial: Bool) throws(ImageError) -> DecodedImage {
        let factor = request.blockSide(for: size)
        var plane = PixelPlane(width: size.width, height: size.height, channels: 4, storage: canvas)
        if factor > 1 {
            try checkCancellation()
            var reducer = BoxReducer(width: size.width, height: size.height, channels: 4, factor: factor)
            let pixels = UnsafePointer(canvas.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
            reducer.add(rows: pixels, count: size.height, bytesPerRow: size.width * 4)
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

/// Owns one incremental decoder of libwebp and feeds it a file piece by piece.
private struct WebPFeeder: ~Copyable {
    private let decoder: OpaquePointer
    private let chunk: WebPChunk
    private let pieceBytes: Int
    private var fed = 0
    /// Whether the whole image has been decoded.
    private(set) var isComplete = false

    /// Pixels a piece: some milliseconds of work, and few enough pieces that resuming costs nothing measurable.
    private static let pixelsAPiece = 1 << 20

    /// Takes over `decoder`, which writes into memory that outlives the feeder.
    init?(_ decoder: OpaquePointer?, chunk: WebPChunk, size: PixelSize) {
        guard let decoder else { return nil }
        self.decoder = decoder
        self.chunk = chunk
        pieceBytes = chunk.count / (size.pixelCount / WebPFeeder.pixelsAPiece + 1) + 1
    }

    deinit { cwebp_decoder_destroy(decoder) }

    /// Decodes the next piece.
    ///
    /// - Returns: How many rows from the top are final now, or nil when the file has no more bytes.
    mutating func next(input: String) throws(ImageError) -> Int? {
        guard fed < chunk.count, !isComplete else { return nil }
        fed = min(chunk.count, fed + pieceBytes)
        switch Int(cwebp_decoder_update(decoder, chunk.data, fed)) {
        case CWEBP_OK: isComplete = true
        case CWEBP_MORE: break
        case CWEBP_MEMORY: throw .limitExceeded(input: input, limit: .memory, actual: chunk.count, allowed: 0)
        case CWEBP_REFUSED: throw .unsupported(input: input, reason: "libwebp does not read this variety of WebP")
        default: throw .corrupt(input: input, reason: "the WebP data is broken")
        }
        return Int(cwebp_decoder_rows(decoder))
    }
}
#endif
