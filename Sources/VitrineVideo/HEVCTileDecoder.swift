import CVitrineFFmpeg
import VitrineCore
import VitrineImaging

/// Decodes the tiles of HEIC pictures by libavcodec, and averages their blocks.
///
/// One row of tiles is in memory at a time. With several threads, each decodes some columns of it. Tiles outside of the
/// request's region are not decoded. A damaged tile ends the decode: the client then asks libheif.
struct HEVCTileDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.heic]
    let needsIsolation = true

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        let container = try HEIFContainer(ByteReader(source))
        if request.allowsEmbeddedPreview, request.region == nil, let target = request.target,
            let tiles = HEICTiles(thumbnailOf: container, covering: target, limits: request.limits),
            let image = try? decode(tiles, source, request, tiles.shown)
        {
            return image
        }
        let tiles = try HEICTiles(container, limits: request.limits)
        let area = tiles.area(
            for: request.region, margin: Self.margin * request.blockSide(for: tiles.shown.size))
        var image = try decode(tiles, source, request, area)
        if area != tiles.shown {
            image.region = PixelRect(
                x: area.x - tiles.shown.x, y: area.y - tiles.shown.y, width: area.size.width, height: area.size.height)
        }
        return image
    }

    private func decode(
        _ tiles: HEICTiles, _ source: ByteSource, _ request: DecodeRequest, _ area: PixelRect
    ) throws(ImageError) -> DecodedImage {
        var strip = TileStrip(tiles, area: area, factor: request.blockSide(for: tiles.shown.size))
        let skipsFilters = strip.factor >= HEVCTileDecoder.filterless
        var sessions: [TileSession] = []
        for _ in 0..<max(1, min(request.threads, strip.columns.count)) {
            sessions.append(try TileSession(tiles, source, skipsFilters: skipsFilters, request))
        }
        let threads = sessions.count > 1 ? TileThreads(sessions) : nil
        for row in strip.rows {
            if let threads {
                try threads.decode(row, strip.columns, of: tiles, into: strip.room(row))
            } else {
                for column in strip.columns {
                    strip.put(try sessions[0].decode(row * tiles.columns + column), column: column, row: row)
                }
            }
            strip.reduceRow(row)
        }
        var image = try strip.finish(tiles.colors, of: sessions[(strip.columns.count - 1) % sessions.count])
        image.colorProfile = request.info.colorProfile
        return image
    }

    /// Blocks that the final filter reads beside a region: three samples of chroma, and one more for rounding.
    private static let margin = 8
    /// The side of blocks from which on their means hide the edges that the loop filters smooth.
    private static let filterless = 4
}

/// A decoder of libavcodec for the tiles of one picture.
///
/// Unchecked: a C-handle type. One thread at a time uses it.
private final class TileSession: @unchecked Sendable {
    private let tiles: HEICTiles
    private let source: ByteSource
    private let handle: OpaquePointer
    private let memory: Int
    /// The last tile's.
    private(set) var matrix = 2
    private(set) var isFullRange = false

    init(_ tiles: HEICTiles, _ source: ByteSource, skipsFilters: Bool, _ request: DecodeRequest) throws(ImageError) {
        let configuration = try Self.bytes(tiles.configuration, of: source)
        var opened: OpaquePointer?
        let pixels = Int64(max(1, request.limits.maximumWholeImagePixels))
        let status = cffmpeg_tiles_open(configuration, configuration.count, skipsFilters, pixels, &opened)
        memory = request.limits.maximumWorkerMemory
        guard status == CFFMPEG_OK, let opened else { throw Self.error(status, memory) }
        (self.tiles, self.source, handle) = (tiles, source, opened)
    }

    deinit { cffmpeg_tiles_close(handle) }

    /// Returns the frame of a tile, which is valid until the next call.
    func decode(_ index: Int) throws(ImageError) -> cffmpeg_frame {
        let stream = try Self.bytes(tiles.streams[index], of: source)
        var frame = cffmpeg_frame()
        let status = cffmpeg_tiles_decode(handle, stream, stream.count, &frame)
        guard status == CFFMPEG_OK else { throw Self.error(status, memory) }
        guard Int(frame.width) == tiles.tileSize.width, Int(frame.height) == tiles.tileSize.height,
            frame.plane_count == 3, frame.depth == 8, frame.shift == 0, frame.chroma_shift_x == 1,
            frame.chroma_shift_y == 1, !frame.is_interlaced
        else { throw .unsupported(input: "input", reason: "a tile differs from its description") }
        (matrix, isFullRange) = (Int(frame.matrix), frame.full_range)
        return frame
    }

    private static func bytes(_ range: Range<Int>, of source: ByteSource) throws(ImageError) -> [UInt8] {
        let bytes = try source.bytes(at: range.lowerBound, count: range.count)
        guard bytes.count == range.count else { throw .truncated(input: "input") }
        return bytes
    }

    private static func error(_ status: cffmpeg_status, _ memory: Int) -> ImageError {
        switch status {
        case CFFMPEG_UNSUPPORTED: .unsupported(input: "input", reason: "libavcodec cannot decode its tiles")
        case CFFMPEG_MEMORY: .limitExceeded(input: "input", limit: .memory, actual: memory, allowed: memory)
        default: .corrupt(input: "input", reason: "a tile cannot be decoded")
        }
    }
}

/// Decodes the tiles of a row on several threads.
private struct TileThreads {
    /// The common state of the threads of one row.
    ///
    /// Unchecked: `monitor` guards the properties.
    private final class Row: @unchecked Sendable {
        private let monitor = Monitor()
        private var running: Int
        private var failure: (column: Int, error: ImageError)?

        init(threads: Int) { running = threads }

        /// - Parameter failure: Where the thread ended early, and why.
        func end(_ failure: (column: Int, error: ImageError)?) {
            monitor.lock()
            if let failure, failure.column < self.failure?.column ?? .max { self.failure = failure }
            running -= 1
            if running == 0 { monitor.signal() }
            monitor.unlock()
        }

        /// Waits for all threads.
        ///
        /// - Throws: The error of the leftmost tile.
        func wait() throws(ImageError) {
            monitor.lock()
            while running > 0 { monitor.wait() }
            let failure = failure
            monitor.unlock()
            if let failure { throw failure.error }
        }
    }

    private let sessions: [TileSession]
    private let executor: BlockingExecutor

    init(_ sessions: [TileSession]) {
        self.sessions = sessions
        executor = BlockingExecutor(threads: sessions.count - 1, name: "tiles")
    }

    /// Decodes a row of tiles, the n-th session every n-th column.
    func decode(_ row: Int, _ columns: Range<Int>, of tiles: HEICTiles, into room: [TileRoom]) throws(ImageError) {
        let result = Row(threads: sessions.count)
        let step = sessions.count
        let first = row * tiles.columns
        for (i, session) in sessions.enumerated() {
            let work: @Sendable () -> Void = {
                for column in stride(from: columns.lowerBound + i, to: columns.upperBound, by: step) {
                    do throws(ImageError) {
                        let frame = try session.decode(first + column)
                        let planes = [frame.planes.0, frame.planes.1, frame.planes.2]
                        let strides = [frame.strides.0, frame.strides.1, frame.strides.2]
                        for (c, room) in room.enumerated() {
                            room.put(planes[c], Int(strides[c]), column: column - columns.lowerBound)
                        }
                    } catch {
                        return result.end((column, error))
                    }
                }
                result.end(nil)
            }
            if i + 1 < step { executor.submit(work) } else { work() }
        }
        try result.wait()
    }
}

/// The memory for one channel of a row of tiles.
///
/// Unchecked: threads write the samples of different columns.
private struct TileRoom: @unchecked Sendable {
    let samples: UnsafeMutablePointer<UInt8>
    /// Samples a row, and those of a tile.
    let width: Int
    let tileWidth: Int
    /// The rows to copy.
    let rows: Range<Int>

    func put(_ plane: UnsafePointer<UInt8>?, _ stride: Int, column: Int) {
        guard let plane else { return }
        let target = samples + column * tileWidth
        for y in rows { (target + y * width).update(from: plane + y * stride, count: tileWidth) }
    }
}

/// Memory for samples, zeros at first.
private final class TileMemory {
    let samples: UnsafeMutablePointer<UInt8>

    init(count: Int) {
        samples = .allocate(capacity: count)
        samples.initialize(repeating: 0, count: count)
    }

    deinit { samples.deallocate() }
}

/// One row of tiles, and the means of all rows so far.
private struct TileStrip: ~Copyable {
    /// The side of blocks of luma.
    let factor: Int
    /// The rows and columns of tiles that the area touches.
    let rows: Range<Int>
    let columns: Range<Int>
    private let tile: PixelSize
    private let area: PixelRect
    private var luma: StripPlane
    private var blue: StripPlane
    private var red: StripPlane

    /// - Parameter area: The pixels to reduce, of the whole picture.
    init(_ tiles: HEICTiles, area: PixelRect, factor: Int) {
        tile = tiles.tileSize
        self.area = area
        self.factor = factor
        let (right, bottom) = (area.x + area.size.width, area.y + area.size.height)
        columns = (area.x / tile.width)..<((right - 1) / tile.width + 1)
        rows = (area.y / tile.height)..<((bottom - 1) / tile.height + 1)
        luma = StripPlane(x: area.x..<right, y: area.y..<bottom, tile: tile, columns: columns, factor: factor)
        let x = (area.x / 2)..<((right + 1) / 2), y = (area.y / 2)..<((bottom + 1) / 2)
        let half = PixelSize(width: (tile.width + 1) / 2, height: (tile.height + 1) / 2)
        blue = StripPlane(x: x, y: y, tile: half, columns: columns, factor: max(1, factor / 2))
        red = StripPlane(x: x, y: y, tile: half, columns: columns, factor: max(1, factor / 2))
    }

    mutating func put(_ frame: cffmpeg_frame, column: Int, row: Int) {
        luma.put(frame.planes.0, Int(frame.strides.0), column: column, row: row)
        blue.put(frame.planes.1, Int(frame.strides.1), column: column, row: row)
        red.put(frame.planes.2, Int(frame.strides.2), column: column, row: row)
    }

    /// Where the samples of a row go, of more than one column.
    func room(_ row: Int) -> [TileRoom] { [luma.room(row), blue.room(row), red.room(row)].compactMap(\.self) }

    mutating func reduceRow(_ row: Int) {
        luma.reduce(row)
        blue.reduce(row)
        red.reduce(row)
    }

    consuming func finish(_ colors: HEICTiles.Colors?, of session: TileSession) throws(ImageError) -> DecodedImage {
        var model = DecodedImage.Model.yCbCr(.bt601, fullRange: colors?.isFullRange ?? session.isFullRange)
        guard let matrix = colors?.matrix ?? DecodedImage.Matrix(codePoint: session.matrix) else {
            throw .unsupported(input: "input", reason: "another matrix of colours")
        }
        model = .yCbCr(matrix, fullRange: colors?.isFullRange ?? session.isFullRange)
        let (area, factor) = (area, factor)
        let coarse = 2 * max(1, factor / 2)
        var planes = [luma.finish(), blue.finish(), red.finish()]
        for i in 1...2 {
            // The last coarse sample of an odd side covers one pixel, not two.
            planes[i].extentWidth = min(Double(planes[i].width), Double(area.size.width) / Double(coarse))
            planes[i].extentHeight = min(Double(planes[i].height), Double(area.size.height) / Double(coarse))
        }
        return DecodedImage(planes: planes, model: model, samplesAreMeans: factor > 1)
    }
}

/// One channel of a row of tiles.
private struct StripPlane: ~Copyable {
    private let x: Range<Int>
    private let y: Range<Int>
    private let tile: PixelSize
    private let columns: Range<Int>
    private var reducer: BoxReducer
    /// The samples of a row of tiles; nil for a single column, which is reduced where it was decoded.
    private let memory: TileMemory?

    /// - Parameters:
    ///   - x: The columns of samples to reduce.
    ///   - y: The rows of samples to reduce.
    ///   - tile: The samples of a tile.
    ///   - columns: The columns of tiles to hold.
    init(x: Range<Int>, y: Range<Int>, tile: PixelSize, columns: Range<Int>, factor: Int) {
        (self.x, self.y, self.tile, self.columns) = (x, y, tile, columns)
        reducer = BoxReducer(width: x.count, height: y.count, factor: factor)
        memory = columns.count > 1 ? TileMemory(count: columns.count * tile.width * tile.height) : nil
    }

    /// The wanted rows of a row of tiles, counted from its first.
    private func wanted(_ row: Int) -> Range<Int> {
        let top = row * tile.height
        return max(0, y.lowerBound - top)..<max(0, min(tile.height, y.upperBound - top))
    }

    /// Where the samples of a row go; nil for a single column.
    func room(_ row: Int) -> TileRoom? {
        memory.map {
            TileRoom(samples: $0.samples, width: columns.count * tile.width, tileWidth: tile.width, rows: wanted(row))
        }
    }

    mutating func put(_ plane: UnsafePointer<UInt8>?, _ stride: Int, column: Int, row: Int) {
        if let room = room(row) { return room.put(plane, stride, column: column - columns.lowerBound) }
        guard let plane else { return }
        let wanted = wanted(row)
        let start = plane + wanted.lowerBound * stride + (x.lowerBound - columns.lowerBound * tile.width)
        reducer.add(rows: start, count: wanted.count, bytesPerRow: stride)
    }

    mutating func reduce(_ row: Int) {
        guard let room = room(row) else { return }
        let start = room.samples + room.rows.lowerBound * room.width + (x.lowerBound - columns.lowerBound * tile.width)
        reducer.add(rows: start, count: room.rows.count, bytesPerRow: room.width)
    }

    consuming func finish() -> PixelPlane { reducer.finish() }
}
