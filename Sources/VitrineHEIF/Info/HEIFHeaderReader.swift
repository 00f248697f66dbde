import VitrineImageCore

/// Reads the primary item of HEIC and AVIF: size, cut, turning, depth, alpha, profile, thumbnails; or an image sequence.
///
/// Source: ISO/IEC 23008-12 §6.5 (ispe, pixi, colr, auxC, clap, irot, imir), §7 (sequences); AV1-ISOBMFF and AVIF 1.1.
/// Orientation comes from irot and imir alone: §6.5.10 and MIAF have readers ignore the one in Exif.
package enum HEIFHeaderReader: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let container = try HEIFContainer(reader)
        let sequence = container.movie.flatMap { HEIFSequence(reader, $0) }
        let major = try reader.fourCC(at: 8)
        let isSequence = sequence != nil && ["avis", "hevc", "hevx", "msf1"].contains(major)
        let format: ImageFormat = try HEIFBrands.format(of: reader) == .avif ? .avif : .heic
        guard let primary = container.primary, let item = container.items[primary],
            let size = container.size(of: item)
        else {
            guard let sequence else { throw reader.corrupt("no primary item with a size") }
            var header = ImageHeader(info: ImageInfo(format: format, storedSize: sequence.size))
            sequence.apply(to: &header, limits)
            header.info.hasAlpha = container.auxiliaryTracks.contains(.alpha)
            return header
        }
        var header = ImageHeader(info: ImageInfo(format: format, storedSize: size))
        header.info.colorModel = .yCbCr
        let presentation = container.presentation(of: item, size)
        header.info.orientation = presentation.orientation
        // A decoder may need the whole picture for any part of it, so that the limits are to see it.
        let mostPixels = max(limits.maximumWholeImagePixels, format == .heic ? limits.maximumPixels : 0)
        if container.movie == nil, size.pixelCount <= mostPixels, size.longestSide <= limits.maximumSide {
            header.info.storedSize = presentation.shown.size
        }
        for box in container.boxes(of: item) { take(reader, box: box, limits: limits, header: &header) }
        if header.info.colorProfile == nil, header.info.codedColors == nil {
            takeTileProfile(container, primary: primary, limits: limits, header: &header)
        }
        if format == .heic, header.info.colorProfile == nil, header.info.codedColors == nil {
            header.info.codedColors = streamColors(container, primary: primary, item: item)
        }
        header.info.hasAlpha = container.hasAlpha(primary) || container.hasAlphaInTiles
        header.info.embeddedPreviews = thumbnails(container, primary)
        if isSequence, let sequence {
            sequence.apply(to: &header, limits)
            header.info.hasAlpha = container.auxiliaryTracks.contains(.alpha)
        } else {
            header.info.frameCount = pictures(container)
        }
        takeMetadata(container, primary: primary, header: &header)
        return header
    }

    private static func take(_ reader: ByteReader, box: ISOBox, limits: ImageLimits, header: inout ImageHeader) {
        let at = box.payload.lowerBound
        switch box.type {
        case "pixi":
            guard box.payload.count >= 6, let channels = try? reader.u8(at: at + 4),
                let depth = try? reader.u8(at: at + 5)
            else { return }
            header.info.bitDepth = depth
            if channels == 1 { header.info.colorModel = .gray }
        case "hvcC":
            if box.payload.count >= 18, let depth = try? reader.u8(at: at + 17) {
                header.info.bitDepth = 8 + (depth & 7)
            }
        case "av1C":
            guard box.payload.count >= 4, let flags = try? reader.u8(at: at + 2) else { return }
            header.info.bitDepth = flags & 0x40 == 0 ? 8 : flags & 0x20 == 0 ? 10 : 12
            if flags & 0x10 != 0 { header.info.colorModel = .gray }
        case "colr": takeColor(reader, box: box, limits: limits, header: &header)
        case "clli":
            guard header.info.contentLight == nil, let maximum = try? reader.u16(at: at),
                let average = try? reader.u16(at: at + 2), maximum > 0, average > 0
            else { return }
            header.info.contentLight = ContentLight(maximum: Double(maximum), average: Double(average))
        default: break
        }
    }

    private static func takeColor(
        _ reader: ByteReader, box: ISOBox, limits: ImageLimits, header: inout ImageHeader
    ) {
        guard box.payload.count > 4, let kind = try? reader.fourCC(at: box.payload.lowerBound) else { return }
        if kind == "prof" || kind == "rICC" {
            header.setProfile(
                at: Range(from: box.payload.lowerBound &+ 4, to: box.payload.upperBound), reader, limits)
        } else if kind == "nclx", box.payload.count >= 10 {
            let at = box.payload.lowerBound
            // The identity matrix of ITU-T H.273.
            if (try? reader.u16(at: at + 8)) == 0 { header.info.colorModel = .rgb }
            guard header.info.codedColors == nil, let primaries = try? reader.u16(at: at + 4),
                let transfer = try? reader.u16(at: at + 6)
            else { return }
            header.info.codedColors = CodedColors(primaries: primaries, transfer: transfer)
        }
    }

    /// Some writers give the profile and the depth to the tiles of a grid only.
    private static func takeTileProfile(
        _ container: HEIFContainer, primary: Int, limits: ImageLimits, header: inout ImageHeader
    ) {
        let tiles = container.references.first { $0.from == primary && $0.type == "dimg" }
        guard let tile = tiles?.to.first.flatMap({ container.items[$0] }) else { return }
        for box in container.boxes(of: tile) where ["colr", "pixi", "hvcC", "av1C"].contains(box.type) {
            take(container.reader, box: box, limits: limits, header: &header)
        }
    }

    /// The colour space of a picture of high dynamic range that only its stream of HEVC names.
    private static func streamColors(
        _ container: HEIFContainer, primary: Int, item: HEIFContainer.Item
    ) -> CodedColors? {
        var items = [item]
        let tiles = container.references.first { $0.from == primary && $0.type == "dimg" }
        if let tile = tiles?.to.first.flatMap({ container.items[$0] }) { items.append(tile) }
        for item in items {
            guard let box = container.boxes(of: item).first(where: { $0.type == "hvcC" }), box.payload.count <= 16 << 10,
                let bytes = try? container.reader.bytes(box.payload), let colors = HEVCParameterSets.colors(bytes),
                HighRangeColors.Transfer(rawValue: colors.transfer) != nil
            else { continue }
            return CodedColors(primaries: colors.primaries, transfer: colors.transfer)
        }
        return nil
    }

    private static func thumbnails(_ container: HEIFContainer, _ primary: Int) -> [ImageInfo.EmbeddedPreview] {
        container.references.filter { $0.type == "thmb" && $0.to.contains(primary) }.prefix(16).compactMap {
            guard let item = container.items[$0.from], let extent = item.extent else { return nil }
            return .init(offset: extent.lowerBound, count: extent.count, size: container.size(of: item))
        }
    }

    /// Images to be shown on their own: not hidden, no thumbnail, no alpha or depth, no tile of another.
    private static func pictures(_ container: HEIFContainer) -> Int {
        var parts: Set<Int> = []
        for reference in container.references {
            switch reference.type {
            case "thmb", "auxl": parts.insert(reference.from)
            case "dimg": parts.formUnion(reference.to)
            default: break
            }
        }
        let kinds: Set<FourCC> = ["hvc1", "av01", "grid", "iovl", "iden"]
        return max(
            1, container.items.count { !$0.value.isHidden && kinds.contains($0.value.type) && !parts.contains($0.key) })
    }

    private static func takeMetadata(_ container: HEIFContainer, primary: Int, header: inout ImageHeader) {
        for reference in container.references where reference.type == "cdsc" && reference.to.contains(primary) {
            guard let item = container.items[reference.from], let extent = item.extent else { continue }
            if item.type == "Exif", header.exif == nil, extent.count > 8,
                let skip = try? container.reader.u32(at: extent.lowerBound), skip < extent.count - 4
            {
                header.exif = Range(from: extent.lowerBound &+ 4 &+ skip, to: extent.upperBound)
            } else if item.isXMP, header.xmp == nil {
                header.xmp = extent
            }
        }
    }
}

/// The image track of an image sequence (AVIF `avis`, HEIC `hevc`).
///
/// Source: ISO/IEC 14496-12 §8.2 to §8.7; ISO/IEC 23008-12 §7. Loops: the edit list as libavif documents it.
private struct HEIFSequence {
    private(set) var size: PixelSize
    private(set) var samples = 1
    private(set) var seconds: Double?
    /// Times shown, 0 for ever; for ever when the file does not say.
    private(set) var plays = 0
    /// How long frames stay, in runs of equal ones.
    private(set) var delays: [(count: Int, seconds: Double)] = []

    /// Runs of durations that are read.
    private static let maximumRuns = 65_536

    /// The first track with images; nil when there is none.
    init?(_ reader: ByteReader, _ movie: ISOBox) {
        for track in ISOBox.children(reader, in: movie.payload) where track.type == "trak" {
            let boxes = ISOBox.children(reader, in: track.payload)
            guard let media = boxes["mdia"].map({ ISOBox.children(reader, in: $0.payload) }),
                let handler = media["hdlr"], (try? reader.fourCC(at: handler.payload.lowerBound + 8)) == "pict",
                let table = media["minf"].map({ ISOBox.children(reader, in: $0.payload) })?["stbl"],
                let header = boxes["tkhd"], header.payload.count >= 84,
                let width = try? reader.u32(at: header.payload.upperBound - 8),
                let height = try? reader.u32(at: header.payload.upperBound - 4)
            else { continue }
            size = PixelSize(width: width >> 16, height: height >> 16)  // 16.16 fixed point
            let samples = ISOBox.children(reader, in: table.payload)
            if let sizes = samples["stsz"], let count = try? reader.u32(at: sizes.payload.lowerBound + 8) {
                self.samples = max(1, count)
            }
            if let box = media["mdhd"] {
                seconds = HEIFSequence.duration(reader, box.payload)
                if let scale = HEIFSequence.scale(reader, box.payload), let times = samples["stts"] {
                    delays = HEIFSequence.delays(reader, times.payload, scale: scale)
                }
            }
            plays = HEIFSequence.plays(reader, track: boxes, header: header) ?? 0
            return
        }
        return nil
    }

    func apply(to header: inout ImageHeader, _ limits: ImageLimits) {
        header.info.colorModel = .yCbCr
        header.info.frameCount = samples
        guard samples > 1 else { return }
        header.info.duration = seconds ?? 0
        header.info.loopCount = plays
        for (count, seconds) in delays {
            let available = max(0, limits.maximumFrames - header.frameSeconds.count)
            for _ in 0..<min(count, samples, available) {
                header.addFrame(seconds: seconds, limits)
            }
        }
    }

    /// The runs of equal durations in a `stts` box (ISO/IEC 14496-12 §8.6.1.2).
    private static func delays(_ reader: ByteReader, _ payload: Range<Int>, scale: Int) -> [(count: Int, seconds: Double)] {
        guard let entries = try? reader.u32(at: payload.lowerBound + 4) else { return [] }
        var delays: [(count: Int, seconds: Double)] = []
        for entry in 0..<min(entries, max(0, payload.count - 8) / 8) {
            let at = payload.lowerBound + 8 + entry * 8
            guard let count = try? reader.u32(at: at), let units = try? reader.u32(at: at + 4) else { break }
            delays.append((count, Double(units) / Double(scale)))
            if delays.count == maximumRuns { break }
        }
        return delays
    }

    private static func duration(_ reader: ByteReader, _ payload: Range<Int>) -> Double? {
        let at = payload.lowerBound
        guard let version = try? reader.u8(at: at) else { return nil }
        let units = version == 1 ? try? reader.u64(at: at + 24) : try? reader.u32(at: at + 16)
        guard let scale = scale(reader, payload), let units else { return nil }
        return Double(units) / Double(scale)
    }

    /// Units of time a second of a `mdhd` box; nil without any.
    private static func scale(_ reader: ByteReader, _ payload: Range<Int>) -> Int? {
        let at = payload.lowerBound
        guard let version = try? reader.u8(at: at), let scale = try? reader.u32(at: at + (version == 1 ? 20 : 12)),
            scale > 0
        else { return nil }
        return scale
    }

    private static func plays(_ reader: ByteReader, track: [ISOBox], header: ISOBox) -> Int? {
        guard let edits = track["edts"].map({ ISOBox.children(reader, in: $0.payload) })?["elst"],
            let flags = try? reader.u32(at: edits.payload.lowerBound), flags & 1 != 0
        else { return track["edts"] == nil ? nil : 1 }
        let at = header.payload.lowerBound
        guard let version = try? reader.u8(at: at),
            let total = version == 1 ? try? reader.u64(at: at + 28) : try? reader.u32(at: at + 20),
            total != (version == 1 ? Int.max : 0xFFFF_FFFF),
            let segment = flags >> 24 == 1
                ? try? reader.u64(at: edits.payload.lowerBound + 8) : try? reader.u32(at: edits.payload.lowerBound + 8),
            segment > 0
        else { return 0 }
        return max(1, total / segment)
    }
}

extension Orientation {
    /// Mirrored left to right first, then turned clockwise by quarters: how every orientation can be said.
    private static let parts: [(mirrored: Bool, quarters: Int)] = [
        (false, 0), (true, 0), (false, 2), (true, 2), (true, 3), (false, 1), (true, 1), (false, 3),
    ]

    private var parts: (mirrored: Bool, quarters: Int) { Orientation.parts[rawValue - 1] }

    private init(mirrored: Bool, quarters: Int) {
        let quarters = quarters & 3
        let index = Orientation.parts.firstIndex { $0.mirrored == mirrored && $0.quarters == quarters } ?? 0
        self = Orientation(rawValue: index + 1) ?? .up
    }

    /// This turning followed by quarters of a turn, clockwise.
    package func turned(clockwiseQuarters quarters: Int) -> Orientation {
        Orientation(mirrored: parts.mirrored, quarters: parts.quarters &+ quarters)
    }

    /// This turning followed by exchanging left and right.
    package func mirroredLeftRight() -> Orientation {
        Orientation(mirrored: !parts.mirrored, quarters: 0 &- parts.quarters)
    }

    /// This turning followed by exchanging top and bottom.
    package func mirroredTopBottom() -> Orientation {
        mirroredLeftRight().turned(clockwiseQuarters: 2)
    }
}
