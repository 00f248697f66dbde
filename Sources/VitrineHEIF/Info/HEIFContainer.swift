import VitrineImageCore

/// The items of a HEIF file (HEIC, AVIF) and their properties: the `meta` box.
///
/// Source: ISO/IEC 14496-12 §8.11 (meta, iloc, iinf, iref), ISO/IEC 23008-12 §6, §9.3 (item properties).
package struct HEIFContainer {
    /// One item.
    struct Item {
        var type: FourCC = "    "
        var isHidden = false
        /// Of `mime` items: whether it is XMP.
        var isXMP = false
        /// Numbers of its properties in their order of application, from 1.
        var properties: [Int] = []
        /// Where its bytes stand in the file, which may be inside of `idat`; nil when they are in several pieces.
        var extent: Range<Int>?
        /// Whether its bytes would go on behind the end of the file.
        var endsEarly = false
        /// How many items the lists of types and of locations name before it.
        var rank = (type: 0, location: 0)
    }

    /// A reference between items: a thumbnail to its image, alpha to its image, a grid to its tiles.
    struct Reference {
        var type: FourCC
        var from: Int
        var to: [Int]
    }

    /// Items, and references in all, read at most. A 100 MP HEIC in 512 pixel tiles has about 400.
    static let maximumItems = 16_384

    let reader: ByteReader
    private(set) var items: [Int: Item] = [:]
    private(set) var references: [Reference] = []
    private(set) var properties: [ISOBox] = []
    private(set) var primary: Int?
    /// The items that have an alpha channel. Found once: a grid asks for each of its tiles.
    private var withAlpha: Set<Int> = []
    /// The movie box of an image sequence.
    let movie: ISOBox?

    /// - Throws: ``ImageError/truncated(input:)`` without a `meta` or `moov` box.
    package init(_ reader: ByteReader) throws(ImageError) {
        self.reader = reader
        let top = ISOBox.children(reader, in: 0..<reader.count)
        movie = top["moov"]
        guard let meta = top["meta"]?.fullPayload else {
            // Boxes that could not be read in time look like none.
            try reader.source.poll()
            guard movie != nil else { throw .truncated(input: reader.name) }
            return
        }
        let boxes = ISOBox.children(reader, in: meta)
        if let pitm = boxes["pitm"], let version = try? reader.u8(at: pitm.payload.lowerBound) {
            primary = try? number(at: pitm.payload.lowerBound + 4, wide: version > 0)
        }
        if let iinf = boxes["iinf"] { try? readItems(iinf) }
        if let iloc = boxes["iloc"] { try? readLocations(iloc, inline: boxes["idat"]?.payload) }
        if let iref = boxes["iref"] { try? readReferences(iref) }
        if let iprp = boxes["iprp"] { try? readProperties(iprp) }
        findAlpha()
        try reader.source.poll()
    }

    /// The item type that says which codec the image needs: `hvc1`, `av01`; that of the first tile for a grid.
    package var codec: FourCC? {
        if let primary, let item = items[primary] {
            if item.type == "hvc1" || item.type == "av01" { return item.type }
            for reference in references where reference.from == primary && reference.type == "dimg" {
                if let tile = reference.to.first.flatMap({ items[$0] }) { return tile.type }
            }
        }
        return items.values.contains { $0.type == "av01" } ? "av01" : nil
    }

    /// The properties of an item, in order.
    func boxes(of item: Item) -> [ISOBox] {
        item.properties.compactMap { $0 >= 1 && $0 <= properties.count ? properties[$0 - 1] : nil }
    }

    /// The size of an item in `ispe`, before any turning.
    func size(of item: Item) -> PixelSize? {
        guard let payload = boxes(of: item)["ispe"]?.fullPayload,
            let width = try? reader.u32(at: payload.lowerBound),
            let height = try? reader.u32(at: payload.lowerBound + 4)
        else { return nil }
        return PixelSize(width: width, height: height)
    }

    private func number(at offset: Int, wide: Bool) throws(ImageError) -> Int {
        try wide ? reader.u32(at: offset) : reader.u16(at: offset)
    }

    private mutating func readItems(_ iinf: ISOBox) throws(ImageError) {
        let at = iinf.payload.lowerBound
        let entries = try reader.u8(at: at) == 0 ? at + 6 : at + 8
        guard entries <= iinf.payload.upperBound else { return }
        var offset = entries
        // Children are walked in runs: a list of items may be longer than other lists of boxes.
        while items.count < HEIFContainer.maximumItems {
            let run = ISOBox.children(reader, in: Range(from: offset, to: iinf.payload.upperBound))
            for box in run.prefix(HEIFContainer.maximumItems) where box.type == "infe" { try readItem(box.payload) }
            guard run.count == ISOBox.maximumSiblings, let last = run.last else { return }
            offset = last.payload.upperBound
        }
    }

    private mutating func readItem(_ payload: Range<Int>) throws(ImageError) {
        let at = payload.lowerBound
        let version = try reader.u8(at: at)
        guard version == 2 || version == 3 else { return }
        let wide = version == 3
        let id = try number(at: at + 4, wide: wide)
        let typeAt = at + (wide ? 10 : 8)
        var item = items[id] ?? Item()
        item.rank.type = items.count
        item.type = try reader.fourCC(at: typeAt)
        item.isHidden = try reader.u8(at: at + 3) & 1 != 0
        if item.type == "mime", payload.upperBound - typeAt <= 512, typeAt + 4 <= payload.upperBound {
            let rest = try reader.bytes((typeAt + 4)..<payload.upperBound)
            // Two texts with a zero each: the item's name, its media type.
            let mediaType = rest.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false).dropFirst().first
            item.isXMP = mediaType?.elementsEqual("application/rdf+xml".utf8) ?? false
        }
        items[id] = item
    }

    /// - Parameter inline: The bytes of `idat`, in which items of construction method 1 stand.
    private mutating func readLocations(_ iloc: ISOBox, inline: Range<Int>?) throws(ImageError) {
        var at = iloc.payload.lowerBound
        let version = try reader.u8(at: at)
        let sizes = try reader.u16(at: at + 4)
        let (offsetSize, lengthSize, baseSize) = (sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15)
        let indexSize = version == 0 ? 0 : sizes & 15
        let count = try number(at: at + 6, wide: version >= 2)
        at += version >= 2 ? 10 : 8
        var extents = 0
        for rank in 0..<min(count, HEIFContainer.maximumItems) {
            guard at < iloc.payload.upperBound else { return }
            let id = try number(at: at, wide: version >= 2)
            at += version >= 2 ? 4 : 2
            let method = try version == 0 ? 0 : reader.u16(at: at) & 15
            at += version == 0 ? 2 : 4
            items[id]?.rank.location = rank
            let base = try sized(at: at, baseSize)
            at += baseSize
            let pieces = try reader.u16(at: at)
            at += 2
            extents += pieces
            guard extents <= 8 * HEIFContainer.maximumItems else { return }
            if pieces == 1, let origin = method == 0 ? 0 : method == 1 ? inline?.lowerBound : nil {
                let offset = try sized(at: at + indexSize, offsetSize)
                let length = try sized(at: at + indexSize + offsetSize, lengthSize)
                let (start, overflow) = base.addingReportingOverflow(offset)
                let (place, outside) = start.addingReportingOverflow(origin)
                items[id]?.endsEarly = method == 0 && !overflow && length > max(0, reader.count &- start)
                if !overflow, !outside, let range = try? reader.range(at: place, count: length),
                    method == 0 || (inline?.upperBound ?? 0) >= range.upperBound
                {
                    items[id]?.extent = range
                }
            }
            at += pieces * (indexSize + offsetSize + lengthSize)
        }
    }

    /// A number of 0, 4 or 8 bytes.
    private func sized(at offset: Int, _ size: Int) throws(ImageError) -> Int {
        switch size {
        case 4: try reader.u32(at: offset)
        case 8: try reader.u64(at: offset)
        default: 0
        }
    }

    private mutating func readReferences(_ iref: ISOBox) throws(ImageError) {
        guard let payload = iref.fullPayload else { return }
        let wide = try reader.u8(at: iref.payload.lowerBound) > 0
        let step = wide ? 4 : 2
        var total = 0
        for box in ISOBox.children(reader, in: payload) {
            let at = box.payload.lowerBound
            let count = try reader.u16(at: at + step)
            total += count
            guard total <= HEIFContainer.maximumItems, at + 2 + step * (count + 1) <= box.payload.upperBound else {
                return
            }
            var reference = Reference(type: box.type, from: try number(at: at, wide: wide), to: [])
            for i in 0..<count { reference.to.append(try number(at: at + 2 + step * (i + 1), wide: wide)) }
            references.append(reference)
        }
    }

    private mutating func readProperties(_ iprp: ISOBox) throws(ImageError) {
        let boxes = ISOBox.children(reader, in: iprp.payload)
        if let ipco = boxes["ipco"] { properties = ISOBox.children(reader, in: ipco.payload) }
        var total = 0
        var isDescribed: Set<Int> = []
        for ipma in boxes where ipma.type == "ipma" {
            var at = ipma.payload.lowerBound
            let version = try reader.u8(at: at)
            let wide = try reader.u8(at: at + 3) & 1 != 0
            let count = try reader.u32(at: at + 4)
            at += 8
            for _ in 0..<min(count, HEIFContainer.maximumItems) {
                guard at < ipma.payload.upperBound else { break }
                let id = try number(at: at, wide: version > 0)
                at += version > 0 ? 4 : 2
                let associations = try reader.u8(at: at)
                at += 1
                total += associations
                guard total <= 8 * HEIFContainer.maximumItems else { return }
                // An item stands here once (ISO/IEC 23008-12 §9.3.1), and has each property once: otherwise a few
                // bytes would give all tiles of a grid any number of properties to look at.
                let isNew = isDescribed.insert(id).inserted
                var numbers: [Int] = []
                for _ in 0..<associations {
                    // The highest bit says whether the property is essential.
                    let index = try wide ? reader.u16(at: at) & 0x7FFF : reader.u8(at: at) & 0x7F
                    if isNew, !numbers.contains(index) { numbers.append(index) }
                    at += wide ? 2 : 1
                }
                if isNew { items[id]?.properties = numbers }
            }
        }
    }
}

extension HEIFContainer {
    /// Whether the primary item has thumbnails, and all of them are turned, mirrored and cut by the same properties as
    /// it is. Decoders apply an item's own properties only; a thumbnail that lacks them shows another image.
    ///
    /// Source: ISO/IEC 23008-12 §6.5.9 to §6.5.12 (clap, irot, imir), ISO/IEC 14496-12 §12.1.4 (clap).
    package var hasThumbnailTurnedAlike: Bool {
        guard let primary, let picture = items[primary] else { return false }
        let thumbnails = references.filter { $0.type == "thmb" && $0.to.contains(primary) }
        return !thumbnails.isEmpty
            && thumbnails.allSatisfy { reference in
                guard let item = items[reference.from] else { return false }
                return isTurned(item, like: picture)
            }
    }

    private func isTurned(_ item: Item, like other: Item) -> Bool {
        let (own, its) = (transformations(of: item), transformations(of: other))
        return own.count == its.count
            && zip(own, its).allSatisfy { one, two in
                // The cut is in pixels of the item, so it differs between sizes.
                one.type == two.type && (one.type == "clap" || firstByte(one) == firstByte(two))
            }
    }

    private func transformations(of item: Item) -> [ISOBox] {
        boxes(of: item).filter { ["irot", "imir", "clap"].contains($0.type) }
    }

    private func firstByte(_ box: ISOBox) -> Int? {
        box.payload.isEmpty ? nil : try? reader.u8(at: box.payload.lowerBound)
    }
}

extension HEIFContainer {
    /// The part of an item that is shown, in the item's own pixels, and its turning.
    struct Presentation {
        var shown: PixelRect
        var orientation = Orientation.up
    }

    /// Applies the properties `irot`, `imir` and `clap` of an item of `size` pixels in their order.
    ///
    /// A cut without pixels, or with impossible numbers, is ignored.
    ///
    /// Source: ISO/IEC 23008-12 §6.5.9 (clap), §6.5.10 (irot), §6.5.12 (imir; amendment 2: 0 exchanges top and bottom,
    /// 1 left and right).
    func presentation(of item: Item, _ size: PixelSize) -> Presentation {
        var result = Presentation(shown: PixelRect(x: 0, y: 0, width: size.width, height: size.height))
        for box in boxes(of: item) {
            switch box.type {
            case "irot":
                if let angle = firstByte(box) {
                    result.orientation = result.orientation.turned(clockwiseQuarters: 4 - (angle & 3))
                }
            case "imir":
                guard let axis = firstByte(box) else { continue }
                result.orientation =
                    axis & 1 == 0 ? result.orientation.mirroredTopBottom() : result.orientation.mirroredLeftRight()
            case "clap":
                let upright = result.orientation.upright(result.shown.size)
                guard let cut = aperture(box, upright) else { continue }
                let part = result.orientation.stored(cut, of: upright)
                result.shown = PixelRect(
                    x: result.shown.x + part.x, y: result.shown.y + part.y, width: part.size.width,
                    height: part.size.height)
            default: break
            }
        }
        return result
    }

    /// The part of the primary still picture that `clap` leaves, in its own pixels; nil for all of it.
    package var cut: PixelRect? {
        guard movie == nil, let primary, let item = items[primary], let size = size(of: item) else { return nil }
        let shown = presentation(of: item, size).shown
        return shown.size == size ? nil : shown
    }

    /// The clean aperture of a picture of `size`, cut at its edges and rounded like libheif: sizes to nearest, the left
    /// and upper edge down (ISO/IEC 14496-12 §12.1.4).
    private func aperture(_ box: ISOBox, _ size: PixelSize) -> PixelRect? {
        var numbers: [Double] = []
        for i in 0..<8 {
            guard box.payload.count >= 32, let bits = try? reader.u32(at: box.payload.lowerBound + 4 * i) else {
                return nil
            }
            // Both offsets have a sign.
            numbers.append(i == 4 || i == 6 ? Double(Int32(truncatingIfNeeded: bits)) : Double(bits))
        }
        guard numbers[1] > 0, numbers[3] > 0, numbers[5] > 0, numbers[7] > 0 else { return nil }
        func span(_ whole: Int, length: Double, offset: Double) -> Range<Int>? {
            let start = (offset + (Double(whole) - 1) / 2 - (length - 1) / 2 + 1e-6).rounded(.down)
            let first = max(0, start)
            let end = min(Double(whole), start + (length + 1e-6).rounded())
            return first < end ? Int(first)..<Int(end) : nil
        }
        guard let x = span(size.width, length: numbers[0] / numbers[1], offset: numbers[4] / numbers[5]),
            let y = span(size.height, length: numbers[2] / numbers[3], offset: numbers[6] / numbers[7])
        else { return nil }
        return PixelRect(x: x.lowerBound, y: y.lowerBound, width: x.count, height: y.count)
    }

    /// The tiles of the primary picture, if that is a grid.
    private var tiles: [Int] {
        guard let primary, items[primary]?.type == "grid" else { return [] }
        return references.first { $0.from == primary && $0.type == "dimg" }?.to ?? []
    }

    /// Whether a grid names its tiles in the order in which the file lists them. Libavif before version 1.1.1 takes the
    /// latter.
    package var listsTilesInOrder: Bool {
        let ranks = tiles.compactMap { items[$0]?.rank }
        return zip(ranks, ranks.dropFirst()).allSatisfy { $0.type < $1.type && $0.location < $1.location }
    }

    /// Whether the file ends before the primary picture or one of its tiles does. Libheif 1.23 makes a picture of the
    /// other tiles.
    package var endsEarly: Bool { ([primary].compactMap(\.self) + tiles).contains { items[$0]?.endsEarly == true } }

    /// Whether a tile of the primary picture has an alpha channel of its own. Libheif and libavif before version 1.0.4
    /// ignore it.
    package var hasAlphaInTiles: Bool {
        let tiles = Set(tiles)
        guard !tiles.isEmpty else { return false }
        var owners: Set<Int> = []
        for reference in references where reference.type == "auxl" { owners.formUnion(reference.to) }
        return tiles.intersection(owners).contains(where: hasAlpha)
    }

    /// The matrix of colours (ITU-T H.273 table 4) that the file states for the primary picture or its first tile.
    package var matrix: Int? {
        for id in [primary, tiles.first] {
            guard let item = id.flatMap({ items[$0] }) else { continue }
            for box in boxes(of: item) where box.type == "colr" && box.payload.count >= 11 {
                let at = box.payload.lowerBound
                guard (try? reader.fourCC(at: at)) == "nclx" else { continue }
                return try? reader.u16(at: at + 8)
            }
        }
        return nil
    }

    /// Why libheif would show the primary picture wrong; nil if it would not.
    package var reasonAgainstLibheif: String? {
        if hasAlphaInTiles { return "tiles with alpha channels of their own have no decoder here" }
        // Constant luminance, ICtCp, and what came later.
        guard let matrix, [10, 11, 14].contains(matrix) || matrix > 14 else { return nil }
        return "colours with the matrix \(matrix) of ITU-T H.273 have no decoder here"
    }

    /// The meaning of an auxiliary track of an image sequence.
    package enum AuxiliaryTrack: Sendable, Hashable {
        /// Alpha, also of a track that does not state its kind.
        case alpha
        /// Anything else, such as depth.
        case other
    }

    /// The auxiliary tracks of an image sequence, in the order of the file (ISO/IEC 23008-12 §7.5.3, `auxi`).
    package var auxiliaryTracks: [AuxiliaryTrack] {
        guard let movie else { return [] }
        return ISOBox.children(reader, in: movie.payload).filter { $0.type == "trak" }.compactMap { track in
            func inner(_ box: ISOBox?, _ type: FourCC) -> ISOBox? {
                box.flatMap { ISOBox.children(reader, in: $0.payload)[type] }
            }
            let media = inner(track, "mdia")
            guard let handler = inner(media, "hdlr"),
                (try? reader.fourCC(at: handler.payload.lowerBound &+ 8)) == "auxv"
            else { return nil }
            guard let samples = inner(inner(inner(media, "minf"), "stbl"), "stsd"), samples.payload.count > 8,
                let entry = ISOBox.children(
                    reader, in: (samples.payload.lowerBound + 8)..<samples.payload.upperBound
                ).first, entry.payload.count > Self.visualSampleEntry,
                let kind = ISOBox.children(
                    reader, in: (entry.payload.lowerBound + Self.visualSampleEntry)..<entry.payload.upperBound
                )["auxi"]?.fullPayload
            else { return .alpha }
            return Self.alphaNames.contains { reader.matches($0, at: kind.lowerBound) } ? .alpha : .other
        }
    }

    /// Bytes of a visual sample entry before its boxes (ISO/IEC 14496-12 §12.1.3).
    private static let visualSampleEntry = 78
    private static let alphaNames: [StaticString] = [
        "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1",
    ]

    /// Writes its size into the last box of a file that leaves it open, to the end of the file, which libavif before
    /// version 1.0 does not read.
    package static func closeLastBox(_ bytes: inout [UInt8], _ name: String) {
        let reader = ByteReader(ByteSource(bytes: bytes, name: name))
        guard let last = ISOBox.children(reader, in: 0..<bytes.count).last else { return }
        let start = last.payload.lowerBound - 8
        guard start >= 0, (try? reader.u32(at: start)) == 0, let size = UInt32(exactly: bytes.count - start) else {
            return
        }
        withUnsafeBytes(of: size.bigEndian) { bytes.replaceSubrange(start..<(start + 4), with: $0) }
    }

    /// Whether an item has an alpha channel.
    func hasAlpha(_ id: Int) -> Bool { withAlpha.contains(id) }

    /// Whether an item is an auxiliary picture of alpha by its property `auxC`.
    private func isAlpha(_ item: Item) -> Bool {
        guard let type = boxes(of: item)["auxC"]?.fullPayload else { return false }
        return Self.alphaNames.contains { reader.matches($0, at: type.lowerBound) }
    }

    private mutating func findAlpha() {
        var known: [Int: Bool] = [:]
        for reference in references where reference.type == "auxl" {
            guard let item = items[reference.from] else { continue }
            let isAlpha = known[reference.from] ?? isAlpha(item)
            known[reference.from] = isAlpha
            if isAlpha { withAlpha.formUnion(reference.to) }
        }
    }
}
