import CVitrineFFmpeg
import VitrineCore
import VitrineImaging

/// Decodes the tiles of HEIC pictures by libavcodec, and averages their blocks.
///
/// Tiles outside of the request's region are not decoded. A damaged tile ends the decode: the client then asks libheif.
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
        let margin = ReducedHEICDecoder.margin * request.blockSide(for: tiles.shown.size)
        return try decode(tiles, source, request, tiles.area(for: request.region, margin: margin))
    }

    private func decode(
        _ tiles: HEICTiles, _ source: ByteSource, _ request: DecodeRequest, _ area: PixelRect
    ) throws(ImageError) -> DecodedImage {
        let factor = request.blockSide(for: tiles.shown.size)
        let skipsFilters = factor >= ReducedHEICDecoder.minimumFactor
        var sessions: [TileSession] = []
        for _ in 0..<max(1, min(request.threads, tiles.streams.count)) {
            sessions.append(try TileSession(tiles, source, skipsFilters: skipsFilters, request))
        }
        let executor = BlockingExecutor(threads: max(1, sessions.count - 1), name: "tiles")
        var image = try tiles.reduce(area, factor: factor, sessions: sessions) { executor.submit($0) }
        image.colorProfile = request.info.colorProfile
        return image
    }
}

/// A decoder of libavcodec for the tiles of one picture.
///
/// Unchecked: a C-handle type. One thread at a time uses it.
private final class TileSession: HEICTileSession, @unchecked Sendable {
    private let tiles: HEICTiles
    private let source: ByteSource
    private let handle: OpaquePointer
    private let memory: Int
    private(set) var colors = (matrix: 2, isFullRange: false)

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

    func decode(_ index: Int) throws(ImageError) -> [HEICTileSamples] {
        let stream = try Self.bytes(tiles.streams[index], of: source)
        var frame = cffmpeg_frame()
        let status = cffmpeg_tiles_decode(handle, stream, stream.count, &frame)
        guard status == CFFMPEG_OK else { throw Self.error(status, memory) }
        guard Int(frame.width) == tiles.tileSize.width, Int(frame.height) == tiles.tileSize.height,
            frame.plane_count == 3, frame.depth == 8, frame.shift == 0, frame.chroma_shift_x == 1,
            frame.chroma_shift_y == 1, !frame.is_interlaced, let luma = frame.planes.0, let blue = frame.planes.1,
            let red = frame.planes.2
        else { throw .unsupported(input: "input", reason: "a tile differs from its description") }
        colors = (Int(frame.matrix), frame.full_range)
        return [
            HEICTileSamples(first: luma, bytesPerRow: Int(frame.strides.0)),
            HEICTileSamples(first: blue, bytesPerRow: Int(frame.strides.1)),
            HEICTileSamples(first: red, bytesPerRow: Int(frame.strides.2)),
        ]
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
