import VitrineImageCore

/// A HEIC picture as the HEVC pictures that it is put together from: the tiles of a grid, or one.
///
/// Only plain pictures of 8 bits with 4:2:0 chroma are described. For everything else, such as other depths, alpha,
/// overlays, derived items and unknown properties, the initializers throw ``ImageError/unsupported(input:reason:)``.
///
/// Source: ISO/IEC 23008-12 §6.6.2.3 (grid), ISO/IEC 14496-15 §8.3.3 (hvcC), ITU-T H.273 §8 (nclx).
package struct HEICTiles: Sendable {
    /// Colours according to the file, which go before those of the stream.
    package struct Colors: Sendable, Hashable {
        package var matrix: DecodedImage.Matrix
        package var isFullRange: Bool
    }

    /// The size of the whole picture before it is cut and turned.
    package let size: PixelSize
    package let tileSize: PixelSize
    package let columns: Int
    package let rows: Int
    /// The places of the tiles' streams in the file, row by row.
    package let streams: [Range<Int>]
    /// The place of the decoder's configuration, which all tiles share.
    package let configuration: Range<Int>
    /// Nil: the stream's own.
    package let colors: Colors?
    /// The part of the picture that is shown, by `clap`.
    package let shown: PixelRect

    /// Thumbnails looked at. Each can be a grid of its own.
    private static let maximumThumbnails = 16
    /// The most bytes of a decoder's configuration: parameter sets of some hundred bytes.
    private static let maximumConfiguration = 16 << 10

    /// Properties that leave the samples as they are, or that are applied here or by the caller.
    private static let harmless: Set<FourCC> = [
        "hvcC", "ispe", "colr", "pixi", "pasp", "irot", "imir", "clap", "clli", "mdcv", "cclv", "amve", "udes",
        "altt", "crtt", "mdft",
    ]

    /// Describes the primary picture.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` for pictures with anything unusual, and for larger ones than
    ///   `limits` allow.
    package init(_ container: HEIFContainer, limits: ImageLimits) throws(ImageError) {
        guard let primary = container.primary else { throw Self.refusal(container, "no primary item") }
        try self.init(container, item: primary, limits: limits)
    }

    /// Describes the smallest thumbnail of the primary picture that shows the same and has at least `target` pixels;
    /// nil if there is none.
    package init?(thumbnailOf container: HEIFContainer, covering target: PixelSize, limits: ImageLimits) {
        guard let primary = container.primary, let picture = container.items[primary],
            let size = container.size(of: picture), container.hasThumbnailTurnedAlike,
            container.presentation(of: picture, size).shown.size == size
        else { return nil }
        var best: HEICTiles?
        let thumbnails = container.references.lazy.filter { $0.type == "thmb" && $0.to.contains(primary) }
        for reference in thumbnails.prefix(Self.maximumThumbnails) {
            guard let tiles = try? HEICTiles(container, item: reference.from, limits: limits),
                tiles.shown.size == tiles.size, tiles.size.width < size.width,
                tiles.size.pixelCount < best?.size.pixelCount ?? .max
            else { continue }
            let preview = ImageInfo.EmbeddedPreview(offset: 0, count: 0, size: tiles.size)
            if preview.hasShape(of: size), preview.covers(target) { best = tiles }
        }
        guard let best else { return nil }
        self = best
    }

    private init(_ container: HEIFContainer, item id: Int, limits: ImageLimits) throws(ImageError) {
        guard let item = container.items[id], let size = container.size(of: item), !size.isEmpty else {
            throw Self.refusal(container, "an item without a size")
        }
        // A grid is never in memory as a whole.
        let mostPixels = item.type == "grid" ? limits.maximumPixels : limits.maximumWholeImagePixels
        guard size.longestSide <= limits.maximumSide, size.pixelCount <= mostPixels else {
            throw Self.refusal(container, "a picture beyond the limits")
        }
        guard !container.hasAlpha(id) else { throw Self.refusal(container, "an alpha channel") }
        self.size = size
        shown = container.presentation(of: item, size).shown
        // Chroma of such a part would need values between its samples (ISO/IEC 23000-22 §7.3.6.7).
        guard shown.x % 2 == 0, shown.y % 2 == 0 else {
            throw Self.refusal(container, "a cut between two samples of chroma")
        }
        var own = try Self.colors(container, item)
        var tiles = [item]
        // Each item once: a grid may name one of them for thousands of places.
        var parts = tiles
        if item.type == "grid" {
            let grid = try GridItem(container, id: id, item: item, size: size)
            (columns, rows, tiles, parts) = (grid.columns, grid.rows, grid.tiles, grid.parts)
            for tile in parts.dropFirst() where tile.type != "hvc1" {
                throw Self.refusal(container, "tiles that are not HEVC")
            }
            for tile in parts where !container.boxes(of: tile).allSatisfy(Self.isPlain) {
                throw Self.refusal(container, "tiles with transformations")
            }
        } else {
            (columns, rows) = (1, 1)
        }
        let first = parts[0]
        guard first.type == "hvc1" else { throw Self.refusal(container, "an item that is not HEVC") }
        guard (parts + [item]).allSatisfy({ part in
            container.boxes(of: part).allSatisfy { Self.harmless.contains($0.type) }
        }) else { throw Self.refusal(container, "properties that are not known here") }
        if own == nil { own = try Self.colors(container, first) }
        colors = own
        guard let tileSize = container.size(of: first), !tileSize.isEmpty, tileSize.longestSide <= limits.maximumSide,
            parts.allSatisfy({ container.size(of: $0) == tileSize })
        else { throw Self.refusal(container, "tiles of different sizes") }
        self.tileSize = tileSize
        configuration = try Self.configuration(container, parts)
        var streams: [Range<Int>] = []
        for tile in tiles {
            guard let extent = tile.extent, !extent.isEmpty else {
                throw Self.refusal(container, "a tile in several pieces, or missing")
            }
            streams.append(extent)
        }
        self.streams = streams
        try checkGrid(container, limits)
    }

    /// Rejects grids that do more work than their picture: superfluous tiles, and tiles that share their bytes.
    private func checkGrid(_ container: HEIFContainer, _ limits: ImageLimits) throws(ImageError) {
        let (width, height) = (columns * tileSize.width, rows * tileSize.height)
        guard width >= size.width, height >= size.height, width - tileSize.width < size.width,
            height - tileSize.height < size.height
        else { throw Self.refusal(container, "a grid that does not fit its tiles") }
        // Chroma has half as many samples, which must not span two tiles.
        guard (columns == 1 || tileSize.width % 2 == 0) && (rows == 1 || tileSize.height % 2 == 0) else {
            throw Self.refusal(container, "tiles with odd sides")
        }
        let decoded = PixelSize(width: width, height: height).pixelCount
        guard decoded / 4 <= max(limits.maximumWholeImagePixels / 2, size.pixelCount),
            streams.reduce(0, { $0 + $1.count }) <= container.reader.count
        else { throw Self.refusal(container, "tiles that overlap in the file") }
    }

    /// The part to decode for a region of the shown picture, in pixels of ``size``. Its origin is even, so that luma
    /// and chroma begin together.
    ///
    /// - Parameter margin: Pixels around the region that scaling its edges needs.
    package func area(for region: PixelRect?, margin: Int) -> PixelRect {
        guard let region = region?.clipped(to: shown.size) else { return shown }
        let margin = max(0, min(margin, shown.size.longestSide))
        let x = shown.x + max(0, region.x - margin) & ~1, y = shown.y + max(0, region.y - margin) & ~1
        let right = shown.x + min(shown.size.width, region.x + region.size.width + margin)
        let bottom = shown.y + min(shown.size.height, region.y + region.size.height + margin)
        return PixelRect(x: x, y: y, width: right - x, height: bottom - y)
    }

    // MARK: Properties

    /// The matrix and range of `nclx`; nil without one.
    private static func colors(
        _ container: HEIFContainer, _ item: HEIFContainer.Item
    ) throws(ImageError) -> Colors? {
        for box in container.boxes(of: item) where box.type == "colr" {
            let at = box.payload.lowerBound
            guard box.payload.count >= 11, (try? container.reader.fourCC(at: at)) == "nclx" else { continue }
            guard let matrix = DecodedImage.Matrix(codePoint: try container.reader.u16(at: at + 8)) else {
                throw refusal(container, "another matrix of colours")
            }
            return Colors(matrix: matrix, isFullRange: try container.reader.u8(at: at + 10) & 0x80 != 0)
        }
        return nil
    }

    private static func isPlain(_ box: ISOBox) -> Bool { !["irot", "imir", "clap"].contains(box.type) }

    /// The configuration of 8 bits and 4:2:0 that all `parts` have.
    private static func configuration(
        _ container: HEIFContainer, _ parts: [HEIFContainer.Item]
    ) throws(ImageError) -> Range<Int> {
        let reader = container.reader
        var common: Range<Int>?
        for part in parts {
            let boxes = container.boxes(of: part).filter { $0.type == "hvcC" }
            guard boxes.count == 1 else { throw refusal(container, "a tile without a configuration") }
            let own = boxes[0].payload
            if let common, common != own {
                guard common.count == own.count, try reader.bytes(common) == (try reader.bytes(own)) else {
                    throw refusal(container, "tiles of different configurations")
                }
                continue
            }
            guard (23...maximumConfiguration).contains(own.count) else {
                throw refusal(container, "a configuration of \(own.count) bytes")
            }
            let at = own.lowerBound
            guard try reader.u8(at: at) == 1, try reader.u8(at: at + 16) & 3 == 1,
                try reader.u8(at: at + 17) & 7 == 0, try reader.u8(at: at + 18) & 7 == 0
            else { throw refusal(container, "not 8 bits with 4:2:0 chroma") }
            common = own
        }
        guard let common else { throw refusal(container, "no tiles") }
        return common
    }

    fileprivate static func refusal(_ container: HEIFContainer, _ reason: String) -> ImageError {
        .unsupported(input: container.reader.name, reason: "HEIC by tiles: \(reason)")
    }
}

/// The item `grid` with its tiles.
private struct GridItem {
    let columns: Int
    let rows: Int
    /// The item of each place, row by row.
    let tiles: [HEIFContainer.Item]
    /// Each item once, in the order of their first places.
    let parts: [HEIFContainer.Item]

    init(
        _ container: HEIFContainer, id: Int, item: HEIFContainer.Item, size: PixelSize
    ) throws(ImageError) {
        let reader = container.reader
        guard let extent = item.extent, extent.count >= 8 else {
            throw HEICTiles.refusal(container, "a grid without a description")
        }
        let at = extent.lowerBound
        let isWide = try reader.u8(at: at + 1) & 1 != 0
        guard try reader.u8(at: at) == 0, extent.count >= (isWide ? 12 : 8) else {
            throw HEICTiles.refusal(container, "a grid of another version")
        }
        rows = try reader.u8(at: at + 2) + 1
        columns = try reader.u8(at: at + 3) + 1
        let width = try isWide ? reader.u32(at: at + 4) : reader.u16(at: at + 4)
        let height = try isWide ? reader.u32(at: at + 8) : reader.u16(at: at + 6)
        guard PixelSize(width: width, height: height) == size else {
            throw HEICTiles.refusal(container, "a grid of another size than its item")
        }
        let references = container.references.filter { $0.type == "dimg" && $0.from == id }
        guard references.count == 1, references[0].to.count == rows * columns else {
            throw HEICTiles.refusal(container, "a grid with missing tiles")
        }
        var (tiles, parts): ([HEIFContainer.Item], [HEIFContainer.Item]) = ([], [])
        var known: Set<Int> = []
        for number in references[0].to {
            guard let tile = container.items[number], !container.hasAlpha(number) else {
                throw HEICTiles.refusal(container, "a grid with missing tiles")
            }
            tiles.append(tile)
            if known.insert(number).inserted { parts.append(tile) }
        }
        (self.tiles, self.parts) = (tiles, parts)
    }
}

extension DecodedImage.Matrix {
    /// A code point of ITU-T H.273 table 4; nil for matrices without a case. Unspecified is BT.601, as in libheif.
    package init?(codePoint: Int) {
        switch codePoint {
        case 1: self = .bt709
        case 2, 5, 6: self = .bt601
        case 9: self = .bt2020
        default: return nil
        }
    }
}
