import VitrineCore
import VitrineImageCore

/// Decodes any frame of a GIF, composed with those before it. Pure Swift, in process.
///
/// Memory is four bytes a pixel of the canvas, twice if a frame restores the canvas below it, and one byte a pixel of
/// the largest frame; ``ImageLimits/maximumWholeImagePixels`` bounds both canvas and frames.
package struct GIFDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.gif]

    package init() {}

    /// See ``ImageDecoding/decode(_:_:)``. Frames that a later one covers altogether are not decoded. A frame whose
    /// data ends early by its own end code is delivered as partial; one that lacks pixels because the input ends, only
    /// with `allowsPartial`.
    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.limits.check(request.info, source: source, frames: request.options.page &+ 1)
        let reader = ByteReader(source)
        var walker = try GIFWalker(reader)
        let frames = try GIFDecoder.needed(&walker, request)
        guard walker.canvas.pixelCount <= request.limits.maximumWholeImagePixels, !walker.canvas.isEmpty else {
            throw reader.corrupt("the canvas is not the one of the header")
        }
        let canvas = GIFCanvas(walker.canvas)
        var saved: PixelStorage?
        var (isPartial, filled) = (false, canvas.height)
        for (i, frame) in frames.enumerated() {
            if request.cancellation.isCancelled { throw .cancelled(input: source.name) }
            let isLast = i == frames.count - 1
            if frame.disposal == .restore, !isLast {
                saved = PixelStorage(copying: UnsafeRawBufferPointer(canvas.storage.bytes))
            }
            if let rows = try GIFDecoder.paint(frame, on: canvas, from: reader, for: request, isFirst: i == 0) {
                isPartial = true
                // Below the rows of a later frame, the earlier ones show.
                if i == 0, isLast { filled = frame.y + rows }
            }
            guard !isLast else { break }
            switch frame.disposal {
            case .keep: break
            case .clear: canvas.clear(frame)
            case .restore: if let saved { canvas.restore(frame, from: saved) }
            }
        }
        return GIFDecoder.image(canvas, request, isPartial: isPartial, filledRows: filled)
    }

    package func frames(of source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> any FrameDecoding {
        try GIFFrames(source, request)
    }

    /// The frames that show in the one asked for, which is the last.
    private static func needed(_ walker: inout GIFWalker, _ request: DecodeRequest) throws(ImageError) -> [GIFFrame] {
        guard request.options.page >= 0 else {
            throw .invalidRequest(reason: "there is no frame \(request.options.page)")
        }
        var frames: [GIFFrame] = []
        for i in 0...request.options.page {
            guard let frame = try walker.next() else {
                if walker.isTruncated { throw .truncated(input: walker.reader.name) }
                throw .invalidRequest(reason: "there is no frame \(request.options.page), the last is \(i - 1)")
            }
            let covers =
                frame.x == 0 && frame.y == 0 && frame.width >= walker.canvas.width
                && frame.height >= walker.canvas.height
            let isLast = i == request.options.page
            if covers, frame.transparentIndex == nil, isLast || frame.disposal != .restore { frames = [] }
            if covers, frame.disposal == .clear, !isLast {
                frames = []  // leaves an empty canvas
            } else {
                frames.append(frame)
            }
        }
        return frames
    }

    /// - Parameter isFirst: Whether the canvas is empty, so that a frame without a single row leaves nothing to show.
    /// - Returns: How many rows of the frame are there, from its top; nil if it is whole.
    fileprivate static func paint(
        _ frame: GIFFrame, on canvas: GIFCanvas, from reader: ByteReader, for request: DecodeRequest, isFirst: Bool
    ) throws(ImageError) -> Int? {
        let pixels = frame.width * frame.height
        guard pixels > 0 else { return nil }
        guard pixels <= request.limits.maximumWholeImagePixels else {
            throw .limitExceeded(
                input: reader.name, limit: .pixels, actual: pixels, allowed: request.limits.maximumWholeImagePixels)
        }
        let palette = try palette(reader, frame.palette)
        let minimumCodeSize = try reader.u8(at: frame.data)
        let (data, isCut) = try GIFDecoder.data(reader, at: frame.data + 1)
        let memory = ScratchMemory(byteCount: pixels)
        let indices = memory.bytes.bindMemory(to: UInt8.self)
        let result = data.withUnsafeBufferPointer {
            LZWDecoder.decode($0, minimumCodeSize: minimumCodeSize, into: indices)
        }
        // A file that lacks its last bytes only, behind all pixels, is whole.
        let isWhole = result.written == pixels
        if isCut, !isWhole, !request.options.allowsPartial || isFirst && result.written < frame.width {
            throw .truncated(input: reader.name)
        }
        if case .invalid = result.end, !request.options.allowsPartial {
            throw reader.corrupt("an LZW code that cannot be")
        }
        // A frame that ends by its own end code may lack a few pixels of its last row; of others, whole rows are shown.
        let ended = !isCut && result.end != .invalid
        let rows = result.written / frame.width
        canvas.paint(
            UnsafeBufferPointer(
                rebasing: UnsafeBufferPointer(indices)[..<(ended ? result.written : rows * frame.width)]),
            frame, palette: palette)
        return isWhole ? nil : ended ? frame.height : frame.rows(of: rows)
    }

    /// The sub-blocks of a frame in one piece, and whether the input ended within.
    private static func data(_ reader: ByteReader, at start: Int) throws(ImageError) -> (bytes: [UInt8], isCut: Bool) {
        var bytes: [UInt8] = []
        var at = start
        while at < reader.count {
            let size = try reader.u8(at: at)
            if size == 0 { return (bytes, false) }
            let end = min(reader.count, at + 1 + size)
            try reader.append((at + 1)..<end, to: &bytes)
            at += 1 + size
        }
        return (bytes, true)
    }

    /// 256 colours as they stand in memory. A GIF without a table gets greys, an index behind its table black.
    private static func palette(_ reader: ByteReader, _ range: Range<Int>) throws(ImageError) -> [UInt32] {
        var colors = [UInt32](repeating: UInt32(littleEndian: 0xFF00_0000), count: 256)
        if range.isEmpty {
            for i in 0..<256 { colors[i] = UInt32(littleEndian: 0xFF00_0000 | UInt32(i) * 0x01_0101) }
            return colors
        }
        let table = try reader.bytes(range)
        for i in 0..<(table.count / 3) {
            let color = UInt32(table[3 * i]) | UInt32(table[3 * i + 1]) << 8 | UInt32(table[3 * i + 2]) << 16
            colors[i] = UInt32(littleEndian: color | 0xFF00_0000)
        }
        return colors
    }

    /// The canvas as samples: reduced by whole numbers to at least twice the target, without alpha if the file has
    /// none.
    ///
    /// - Parameter filledRows: The rows from the top that are there.
    fileprivate static func image(
        _ canvas: GIFCanvas, _ request: DecodeRequest, isPartial: Bool, filledRows: Int
    ) -> DecodedImage {
        var image = samples(canvas, request, isPartial: isPartial)
        image.filledHeight = min(1, Double(filledRows) / Double(canvas.height))
        return image
    }

    private static func samples(_ canvas: GIFCanvas, _ request: DecodeRequest, isPartial: Bool) -> DecodedImage {
        let factor = max(1, Int(min(request.reduction / 2, 4_096)))
        let hasAlpha = request.info.hasAlpha || isPartial
        if hasAlpha, factor == 1 {
            let plane = PixelPlane(width: canvas.width, height: canvas.height, channels: 4, storage: canvas.storage)
            return DecodedImage(planes: [plane], model: .rgb, alpha: .straight, isPartial: isPartial)
        }
        let plane = GIFReduction.plane(canvas, factor: factor, keepingAlpha: hasAlpha)
        return DecodedImage(
            planes: [plane], model: .rgb, alpha: hasAlpha ? .premultiplied : .none, isPartial: isPartial,
            samplesAreMeans: factor > 1)
    }
}

/// Decodes the frames of a GIF in order.
private final class GIFFrames: FrameDecoding {
    private let reader: ByteReader
    private var request: DecodeRequest
    private var walker: GIFWalker
    private var canvas: GIFCanvas
    /// The canvas before the last frame, if that frame restores it.
    private var saved: PixelStorage?
    private var last: GIFFrame?
    /// Whether pixels of a frame so far were missing, which may be transparent.
    private var isPartial = false
    /// The rows from the top that are there.
    private var filledRows: Int

    init(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) {
        try request.limits.check(request.info, source: source)
        reader = ByteReader(source)
        self.request = request
        walker = try GIFWalker(reader)
        // A canvas of the size zero has the size of the first frame.
        var start = walker
        _ = try start.next()
        guard start.canvas.pixelCount <= request.limits.maximumWholeImagePixels, !start.canvas.isEmpty else {
            throw reader.corrupt("the canvas is not the one of the header")
        }
        canvas = GIFCanvas(start.canvas)
        filledRows = start.canvas.height
    }

    func advance(_ cancellation: CancellationToken) throws(ImageError) -> Bool {
        if cancellation.isCancelled { throw .cancelled(input: reader.name) }
        guard let frame = try walker.next() else { return false }
        if let last {
            switch last.disposal {
            case .keep: break
            case .clear: canvas.clear(last)
            case .restore: if let saved { canvas.restore(last, from: saved) }
            }
        }
        saved = frame.disposal == .restore
            ? PixelStorage(copying: UnsafeRawBufferPointer(canvas.storage.bytes)) : nil
        request.cancellation = cancellation
        let isFirst = last == nil
        let rows = try GIFDecoder.paint(frame, on: canvas, from: reader, for: request, isFirst: isFirst)
        isPartial = isPartial || rows != nil
        filledRows = isFirst ? rows.map { frame.y + $0 } ?? canvas.height : canvas.height
        last = frame
        return true
    }

    func samples(_ cancellation: CancellationToken) throws(ImageError) -> DecodedImage {
        var image = GIFDecoder.image(canvas, request, isPartial: isPartial, filledRows: filledRows)
        if image.planes[0].storage === canvas.storage { image.planes[0] = image.planes[0].copied() }
        return image
    }
}

/// Means of square blocks of a GIF's canvas.
private enum GIFReduction {
    /// Every `factor` times `factor` pixels become one, at the edges those that are there.
    ///
    /// Pixels of a GIF are opaque or empty and empty ones are black here, so plain sums are sums of premultiplied
    /// colours: the result is premultiplied.
    static func plane(_ canvas: GIFCanvas, factor: Int, keepingAlpha: Bool) -> PixelPlane {
        var plane = PixelPlane(width: canvas.width, height: canvas.height, channels: 4, storage: canvas.storage)
        if factor > 1 {
            var reducer = BoxReducer(width: canvas.width, height: canvas.height, channels: 4, factor: factor)
            let rows = canvas.storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
            reducer.add(rows: UnsafePointer(rows), count: canvas.height, bytesPerRow: canvas.width * 4)
            plane = reducer.finish()
        }
        return keepingAlpha ? plane : withoutAlpha(plane)
    }

    private static func withoutAlpha(_ plane: PixelPlane) -> PixelPlane {
        let count = plane.width * plane.height
        let storage = PixelStorage(zeroedByteCount: count * 3)
        let source = plane.storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        for i in 0..<count {
            target[3 &* i] = source[4 &* i]
            target[3 &* i &+ 1] = source[4 &* i &+ 1]
            target[3 &* i &+ 2] = source[4 &* i &+ 2]
        }
        return PixelPlane(
            width: plane.width, height: plane.height, channels: 3, extent: (plane.extentWidth, plane.extentHeight),
            storage: storage)
    }
}

/// The image a GIF's frames are composed on: red, green, blue and alpha, transparent at first.
///
/// Source: GIF89a specification §20, §23; appendix E for the order of interlaced rows. Like every browser, disposal to
/// the background clears to transparent and ignores the background colour.
private struct GIFCanvas {
    let width: Int
    let height: Int
    let storage: PixelStorage

    init(_ size: PixelSize) {
        width = size.width
        height = size.height
        storage = PixelStorage(zeroedByteCount: size.pixelCount * 4)
    }

    /// The part of a frame that lies on the canvas: its first column and row, one behind its last.
    private func visible(_ frame: GIFFrame) -> (columns: Range<Int>, rows: Range<Int>) {
        let (x, y) = (min(frame.x, width), min(frame.y, height))
        return (x..<min(width, x + frame.width), y..<min(height, y + frame.height))
    }

    /// Paints the decoded indices of a frame. In an interlaced frame that is not whole, each row is shown in place of
    /// the missing ones below as well.
    func paint(_ indices: UnsafeBufferPointer<UInt8>, _ frame: GIFFrame, palette: [UInt32]) {
        let (columns, rows) = visible(frame)
        guard !columns.isEmpty, !rows.isEmpty, let source = indices.baseAddress else { return }
        let pixels = storage.bytes.assumingMemoryBound(to: UInt32.self)
        let transparent = frame.transparentIndex ?? -1
        let decodedRows = frame.width > 0 ? (indices.count + frame.width - 1) / frame.width : 0
        let repeats = frame.isInterlaced && indices.count < frame.width * frame.height
        palette.withUnsafeBufferPointer { colors in
            for stored in 0..<min(decodedRows, frame.height) {
                let shown = frame.isInterlaced
                    ? frame.interlacedRows(stored) : stored..<(stored + 1)
                let line = source + stored * frame.width
                let count = min(columns.count, indices.count - stored * frame.width)
                for y in shown.prefix(repeats ? 8 : 1) where rows.contains(frame.y + y) {
                    let target = pixels.baseAddress! + (frame.y + y) * width + columns.lowerBound
                    for x in 0..<count {
                        let index = Int(line[x])
                        if index != transparent { target[x] = colors[index] }
                    }
                }
            }
        }
    }

    /// Makes a frame's area transparent.
    func clear(_ frame: GIFFrame) {
        let (columns, rows) = visible(frame)
        for y in rows where !columns.isEmpty {
            (storage.bytes.baseAddress! + (y * width + columns.lowerBound) * 4)
                .initializeMemory(as: UInt8.self, repeating: 0, count: columns.count * 4)
        }
    }

    /// Copies a frame's area from another canvas of the same size.
    func restore(_ frame: GIFFrame, from saved: PixelStorage) {
        let (columns, rows) = visible(frame)
        for y in rows where !columns.isEmpty {
            let at = (y * width + columns.lowerBound) * 4
            (storage.bytes.baseAddress! + at).copyMemory(
                from: saved.bytes.baseAddress! + at, byteCount: columns.count * 4)
        }
    }
}

extension GIFFrame {
    /// The row of the image that the `stored`-th row of an interlaced frame is, and those below that come later.
    fileprivate func interlacedRows(_ stored: Int) -> Range<Int> {
        var rest = stored
        for (first, step, gap) in [(0, 8, 8), (4, 8, 4), (2, 4, 2), (1, 2, 1)] {
            let rows = height > first ? (height - first + step - 1) / step : 0
            if rest < rows { return (first + rest * step)..<min(height, first + rest * step + gap) }
            rest -= rows
        }
        return height..<height
    }

    /// The rows of the image, from its top, that `stored` rows fill.
    fileprivate func rows(of stored: Int) -> Int {
        isInterlaced ? min(height, 8 * stored) : stored
    }
}

/// A rectangle of a GIF's canvas.
struct GIFArea {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    /// The whole canvas.
    init(_ size: PixelSize) {
        self.init(x: 0, y: 0, width: size.width, height: size.height)
    }
}
