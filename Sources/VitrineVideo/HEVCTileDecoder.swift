import CVitrineFFmpeg
import VitrineImaging

/// Decodes the tiles of HEIC pictures by libavcodec, and averages their blocks.
///
/// One row of tiles is in memory at a time. Tiles outside of the request's region are not decoded. A damaged tile ends
/// the decode: the client then asks libheif.
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
        let session = try TileSession(tiles, source, skipsFilters: strip.factor >= HEVCTileDecoder.filterless, request)
        for row in strip.rows {
            for column in strip.columns {
                strip.put(try session.decode(row * tiles.columns + column), column: column, row: row)
            }
            strip.reduceRow(row)
        }
        var image = try strip.finish(tiles.colors, of: session)
        image.colorProfile = request.info.colorProfile
        return image
    }

    /// Blocks that the final filter reads beside a region: three samples of chroma, and one more for rounding.
    private static let margin = 8
    /// The side of blocks from which on their means hide the edges that the loop filters smooth.
    private static let filterless = 4
}

/// A decoder of libavcodec for the tiles of one picture.
private final class TileSession {
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
    /// The samples of a row of tiles; empty for a single column, which is reduced where it was decoded.
    private var samples: [UInt8]

    /// - Parameters:
    ///   - x: The columns of samples to reduce.
    ///   - y: The rows of samples to reduce.
    ///   - tile: The samples of a tile.
    ///   - columns: The columns of tiles to hold.
    init(x: Range<Int>, y: Range<Int>, tile: PixelSize, columns: Range<Int>, factor: Int) {
        (self.x, self.y, self.tile, self.columns) = (x, y, tile, columns)
        reducer = BoxReducer(width: x.count, height: y.count, factor: factor)
        samples = columns.count > 1 ? [UInt8](repeating: 0, count: columns.count * tile.width * tile.height) : []
    }

    /// The wanted rows of a row of tiles, counted from its first.
    private func wanted(_ row: Int) -> Range<Int> {
        let top = row * tile.height
        return max(0, y.lowerBound - top)..<max(0, min(tile.height, y.upperBound - top))
    }

    mutating func put(_ plane: UnsafePointer<UInt8>?, _ stride: Int, column: Int, row: Int) {
        guard let plane else { return }
        let wanted = wanted(row)
        let width = columns.count * tile.width
        if samples.isEmpty {
            let start = plane + wanted.lowerBound * stride + (x.lowerBound - columns.lowerBound * tile.width)
            reducer.add(rows: start, count: wanted.count, bytesPerRow: stride)
            return
        }
        let (offset, tile) = ((column - columns.lowerBound) * tile.width, tile)
        samples.withUnsafeMutableBufferPointer { target in
            guard let base = target.baseAddress else { return }
            for y in wanted { (base + y * width + offset).update(from: plane + y * stride, count: tile.width) }
        }
    }

    mutating func reduce(_ row: Int) {
        guard !samples.isEmpty else { return }
        let wanted = wanted(row)
        let width = columns.count * tile.width
        samples.withUnsafeBufferPointer { source in
            guard let base = source.baseAddress else { return }
            let start = base + wanted.lowerBound * width + (x.lowerBound - columns.lowerBound * tile.width)
            reducer.add(rows: start, count: wanted.count, bytesPerRow: width)
        }
    }

    consuming func finish() -> PixelPlane { reducer.finish() }
}
