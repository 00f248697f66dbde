import VitrineCore
import VitrineImageCore

/// Decodes plain HEIC pictures tile by tile, by ``HEVCIntraDecoder``.
///
/// Blocks of each tile are averaged at once, so that the whole picture is never in memory, and only the tiles of a
/// region are decoded. This takes a quarter of the processor time of libheif with libde265.
///
/// Everything else is left to the next decoder, libheif in the worker:
///
/// - pictures that ``HEICTiles`` does not describe, and later pictures of a file
/// - streams that ``HEVCIntraDecoder`` does not read
/// - damaged files, and those that end early, which libheif may fill
package struct HEICDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.heic]
    private let cores: IdleCores
    private let minimumPixelsOfThread: Int

    /// The side of blocks from which on their means hide the edges that the loop filters smooth.
    private static let filterless = 4
    /// Pixels of a region or picture from which on idle processors are used.
    package static let minimumPixelsOfThread = 1_000_000
    /// Pixels beside a region that the final filter reads: three samples of chroma, and one more for rounding.
    private static let margin = 8

    package init(
        cores: IdleCores = .shared, minimumPixelsOfThread: Int = HEICDecoder.minimumPixelsOfThread
    ) {
        (self.cores, self.minimumPixelsOfThread) = (cores, minimumPixelsOfThread)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard request.options.page == 0 else { throw Self.refusal(source, "a later picture") }
        do throws(ImageError) {
            let source = ByteSource(source, polling: request.cancellation)
            let container = try HEIFContainer(ByteReader(source))
            let tiles = try HEICTiles(container, limits: request.limits)
            guard tiles.shown.size == request.info.storedSize else { throw Self.refusal(source, "another size") }
            if request.options.allowsEmbeddedPreview, request.region == nil, let target = request.target,
                let preview = HEICTiles(thumbnailOf: container, covering: target, limits: request.limits),
                let image = try? decode(preview, area: preview.shown, source: source, request: request)
            {
                return image
            }
            let margin = Self.margin * request.blockSide(for: tiles.shown.size)
            return try decode(
                tiles, area: tiles.area(for: request.region, margin: margin), source: source, request: request)
        } catch {
            switch error {
            case .cancelled, .timedOut: throw error
            default: throw Self.refusal(source, error.reason)
            }
        }
    }

    private func decode(
        _ tiles: HEICTiles, area: PixelRect, source: ByteSource, request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        let factor = request.blockSide(for: tiles.shown.size)
        let hasFilters = factor < Self.filterless
        let first = try HEVCTileSession(tiles, source: source, hasFilters: hasFilters, request: request)
        let isLarge = tiles.streams.count > 1 && area.size.pixelCount >= minimumPixelsOfThread
        let claimed = isLarge ? cores.claim(tiles.streams.count - 1) : 0
        defer { cores.release(claimed) }
        var sessions = [first]
        // A worker has none to claim, and is told how many it may use.
        let others = max(claimed, isLarge ? min(request.threads, tiles.streams.count) - 1 : 0)
        for _ in 0..<others {
            sessions.append(try HEVCTileSession(tiles, source: source, hasFilters: hasFilters, request: request))
        }
        var image = try tiles.reduce(area, factor: factor, sessions: sessions) { cores.run($0) }
        image.colorProfile = request.info.samplesProfile
        return image
    }

    private static func refusal(_ source: ByteSource, _ reason: String) -> ImageError {
        .unsupported(input: source.name, reason: reason)
    }
}

/// Decodes tiles of one picture.
///
/// Unchecked: one thread at a time uses the decoder.
final class HEVCTileSession: @unchecked Sendable {
    private let tiles: HEICTiles
    private let reader: ByteReader
    private let cancellation: CancellationToken
    private let decoder: HEVCIntraDecoder

    init(
        _ tiles: HEICTiles, source: ByteSource, hasFilters: Bool, request: DecodeRequest
    ) throws(ImageError) {
        (self.tiles, reader, cancellation) = (tiles, ByteReader(source), request.cancellation)
        let configuration = try reader.bytes(tiles.configuration)
        // Coded samples that are not shown belong to the last blocks, which have 64 at a side at most.
        let pixels = (tiles.tileSize.width + 64) * (tiles.tileSize.height + 64)
        do throws(HEVCFault) {
            decoder = try HEVCIntraDecoder(
                configuration: configuration, maximumSide: request.limits.maximumSide,
                maximumPixels: min(pixels, request.limits.maximumWholeImagePixels),
                hasFilters: hasFilters)
        } catch {
            throw error.error(source.name)
        }
    }

    /// The colours of the last tile according to its stream: the code point of the matrix, and the range.
    var colors: (matrix: Int, isFullRange: Bool) { decoder.colors }

    /// Decodes a tile of the size that the file says.
    ///
    /// - Returns: Y, Cb and Cr. They are valid until the next call.
    func decode(_ index: Int) throws(ImageError) -> [HEVCIntraDecoder.Plane] {
        let stream = try reader.bytes(tiles.streams[index])
        let planes: [HEVCIntraDecoder.Plane]
        do throws(HEVCFault) {
            planes = try stream.withUnsafeBufferPointer { (bytes) throws(HEVCFault) in
                try decoder.decode(bytes, cancellation)
            }
        } catch {
            throw error.error(reader.name)
        }
        guard planes[0].width == tiles.tileSize.width, planes[0].height == tiles.tileSize.height else {
            throw .unsupported(input: reader.name, reason: "a tile differs from its description")
        }
        return planes
    }
}

extension HEVCFault {
    fileprivate func error(_ input: String) -> ImageError {
        switch self {
        case .corrupt(let reason): .corrupt(input: input, reason: "HEVC: \(reason)")
        case .unsupported(let reason): .unsupported(input: input, reason: "HEVC: \(reason)")
        case .cancelled: .cancelled(input: input)
        }
    }
}
