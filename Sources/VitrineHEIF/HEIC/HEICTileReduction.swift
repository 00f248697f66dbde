import VitrineCore
import VitrineImageCore

extension HEICTiles {
    /// Decodes the part `area` tile by tile, and averages its blocks, so that the whole picture is never in memory.
    ///
    /// Each session has a thread of its own. They take the tiles one by one, and are at most one row of tiles ahead of
    /// the row that is averaged next.
    ///
    /// - Parameters:
    ///   - factor: The side of the blocks, in pixels.
    ///   - sessions: At least one.
    ///   - run: Starts the work of all sessions but the first, which runs on the calling thread.
    /// - Throws: The error of the first tile in the order of rows that has one.
    func reduce(
        _ area: PixelRect, factor: Int, sessions: [HEVCTileSession],
        on run: (@escaping @Sendable () -> Void) -> Void
    ) throws(ImageError) -> DecodedImage {
        let reduction = HEICTileReduction(self, area: area, factor: factor, threads: sessions.count)
        for session in sessions.dropFirst() { run { reduction.work(session) } }
        reduction.work(sessions[0])
        return try reduction.finish()
    }
}

/// The state that the threads of one picture share.
///
/// Unchecked: `monitor` guards the state of the work. Threads write different columns of the memory for rows of tiles,
/// and one at a time averages a row.
private final class HEICTileReduction: @unchecked Sendable {
    private let tiles: HEICTiles
    private let area: PixelRect
    private let factor: Int
    /// The rows and columns of tiles that the area touches.
    private let rows: Range<Int>
    private let columns: Range<Int>
    private let strips: [TileStrip]
    private var luma: BoxReducer
    private var blue: BoxReducer
    private var red: BoxReducer

    private let monitor = Monitor()
    private var running: Int
    /// The next tile to take, counted within the area.
    private var next = 0
    /// The tiles of each row that are not decoded.
    private var missing: [Int]
    /// The next row to average, counted within the area, and whether a thread is doing that.
    private var reducedRows = 0
    private var isReducing = false
    private var failure: (tile: Int, error: ImageError)?
    private var colors = (matrix: 2, isFullRange: false)

    init(_ tiles: HEICTiles, area: PixelRect, factor: Int, threads: Int) {
        (self.tiles, self.area, self.factor, running) = (tiles, area, factor, threads)
        let tile = tiles.tileSize
        let (right, bottom) = (area.x + area.size.width, area.y + area.size.height)
        columns = (area.x / tile.width)..<((right - 1) / tile.width + 1)
        rows = (area.y / tile.height)..<((bottom - 1) / tile.height + 1)
        missing = Array(repeating: columns.count, count: rows.count)
        let x = (area.x / 2)..<((right + 1) / 2), y = (area.y / 2)..<((bottom + 1) / 2)
        let half = PixelSize(width: (tile.width + 1) / 2, height: (tile.height + 1) / 2)
        let copies = threads > 1 && rows.count > 1 ? 2 : 1
        strips = [
            TileStrip(x: area.x..<right, y: area.y..<bottom, tile: tile, columns: columns, copies: copies),
            TileStrip(x: x, y: y, tile: half, columns: columns, copies: copies),
            TileStrip(x: x, y: y, tile: half, columns: columns, copies: copies),
        ]
        luma = BoxReducer(width: area.size.width, height: area.size.height, factor: factor)
        blue = BoxReducer(width: x.count, height: y.count, factor: max(1, factor / 2))
        red = BoxReducer(width: x.count, height: y.count, factor: max(1, factor / 2))
    }

    /// Takes tiles until none is left or one fails.
    func work(_ session: HEVCTileSession) {
        monitor.lock()
        while failure == nil, reducedRows < rows.count {
            if !isReducing, missing[reducedRows] == 0 {
                isReducing = true
                let row = reducedRows
                monitor.unlock()
                if columns.count > 1 { reduce(row) }
                monitor.lock()
                isReducing = false
                reducedRows += 1
                monitor.broadcast()
            } else if next < rows.count * columns.count, next / columns.count < reducedRows + strips[0].copies {
                let tile = next
                next += 1
                monitor.unlock()
                let failed = decode(tile, by: session)
                monitor.lock()
                if let failed, tile < failure?.tile ?? .max { failure = (tile, failed) }
                if failed == nil { colors = session.colors }
                missing[tile / columns.count] -= 1
                monitor.broadcast()
            } else {
                monitor.wait()
            }
        }
        running -= 1
        monitor.broadcast()
        monitor.unlock()
    }

    private func decode(_ tile: Int, by session: HEVCTileSession) -> ImageError? {
        let (row, column) = (tile / columns.count, tile % columns.count)
        do throws(ImageError) {
            let planes = try session.decode((rows.lowerBound + row) * tiles.columns + columns.lowerBound + column)
            if columns.count == 1 {
                // Averaged where they were decoded; there is one thread at a time, as there is one copy.
                reduce(row, of: planes)
            } else {
                for (strip, plane) in zip(strips, planes) {
                    strip.put(plane, column: column, row: rows.lowerBound + row)
                }
            }
            return nil
        } catch {
            return error
        }
    }

    private func reduce(_ row: Int) {
        let row = rows.lowerBound + row
        strips[0].reduce(row, by: &luma)
        strips[1].reduce(row, by: &blue)
        strips[2].reduce(row, by: &red)
    }

    /// Averages the tile that is a row of its own.
    private func reduce(_ row: Int, of planes: [HEVCIntraDecoder.Plane]) {
        let row = rows.lowerBound + row
        strips[0].reduce(planes[0].samples, bytesPerRow: planes[0].bytesPerRow, row: row, by: &luma)
        strips[1].reduce(planes[1].samples, bytesPerRow: planes[1].bytesPerRow, row: row, by: &blue)
        strips[2].reduce(planes[2].samples, bytesPerRow: planes[2].bytesPerRow, row: row, by: &red)
    }

    /// Waits for all threads, and makes the result.
    func finish() throws(ImageError) -> DecodedImage {
        monitor.lock()
        while running > 0 { monitor.wait() }
        let (failure, stream) = (failure, colors)
        monitor.unlock()
        if let failure { throw failure.error }
        guard let matrix = tiles.colors?.matrix ?? DecodedImage.Matrix(codePoint: stream.matrix) else {
            throw .unsupported(input: "input", reason: "another matrix of colours")
        }
        var planes = [take(&luma), take(&blue), take(&red)]
        let coarse = 2 * max(1, factor / 2)
        for i in 1...2 {
            // The last coarse sample of an odd side covers one pixel, not two.
            planes[i].extentWidth = min(Double(planes[i].width), Double(area.size.width) / Double(coarse))
            planes[i].extentHeight = min(Double(planes[i].height), Double(area.size.height) / Double(coarse))
        }
        var image = DecodedImage(
            planes: planes, model: .yCbCr(matrix, fullRange: tiles.colors?.isFullRange ?? stream.isFullRange),
            samplesAreMeans: factor > 1)
        if area != tiles.shown {
            image.region = PixelRect(
                x: area.x - tiles.shown.x, y: area.y - tiles.shown.y, width: area.size.width, height: area.size.height)
        }
        return image
    }

    private func take(_ reducer: inout BoxReducer) -> PixelPlane {
        var done = BoxReducer(width: 1, height: 1, factor: 1)
        swap(&done, &reducer)
        return done.finish()
    }
}

/// One channel of one or two rows of tiles.
///
/// Unchecked: threads write the samples of different columns.
private final class TileStrip: @unchecked Sendable {
    /// How many rows of tiles fit.
    let copies: Int
    private let x: Range<Int>
    private let y: Range<Int>
    private let tile: PixelSize
    private let width: Int
    private let left: Int
    private let samples: UnsafeMutablePointer<UInt8>

    /// - Parameters:
    ///   - x: The columns of samples to average.
    ///   - y: The rows of samples to average.
    ///   - tile: The samples of a tile.
    ///   - columns: The columns of tiles. A single one is averaged where it was decoded, and needs no memory.
    init(x: Range<Int>, y: Range<Int>, tile: PixelSize, columns: Range<Int>, copies: Int) {
        (self.x, self.y, self.tile) = (x, y, tile)
        self.copies = columns.count > 1 ? copies : 1
        width = columns.count * tile.width
        left = columns.lowerBound * tile.width
        let count = columns.count > 1 ? copies * width * tile.height : 0
        samples = .allocate(capacity: count)
        samples.initialize(repeating: 0, count: count)
    }

    deinit { samples.deallocate() }

    /// The wanted rows of a row of tiles, counted from its first.
    private func wanted(_ row: Int) -> Range<Int> {
        let top = row * tile.height
        return max(0, y.lowerBound - top)..<max(0, min(tile.height, y.upperBound - top))
    }

    /// Where the samples of a row of tiles are.
    private func memory(ofRow row: Int) -> UnsafeMutablePointer<UInt8> { samples + row % copies * width * tile.height }

    /// - Parameter column: Counted from the first of the area.
    func put(_ plane: HEVCIntraDecoder.Plane, column: Int, row: Int) {
        let target = memory(ofRow: row) + column * tile.width
        for y in wanted(row) {
            (target + y * width).update(from: plane.samples + y * plane.bytesPerRow, count: tile.width)
        }
    }

    func reduce(_ row: Int, by reducer: inout BoxReducer) {
        reduce(memory(ofRow: row), bytesPerRow: width, row: row, by: &reducer)
    }

    func reduce(_ samples: UnsafePointer<UInt8>, bytesPerRow: Int, row: Int, by reducer: inout BoxReducer) {
        let wanted = wanted(row)
        reducer.add(
            rows: samples + (wanted.lowerBound * bytesPerRow + x.lowerBound - left), count: wanted.count,
            bytesPerRow: bytesPerRow)
    }
}
