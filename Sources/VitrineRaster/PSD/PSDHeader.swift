import VitrineImageCore

/// The structure of a Photoshop file (PSD, PSB): header, colours, resources, and where the merged image stands.
///
/// Source: Adobe, "Adobe Photoshop File Formats Specification" (2019).
struct PSDHeader {
    enum Mode: Int {
        case bitmap = 0, gray, indexed, rgb, cmyk
        case multichannel = 7, duotone, lab

        /// Bits a sample that Photoshop writes in this mode.
        var depths: Set<Int> {
            switch self {
            case .bitmap: [1]
            case .indexed: [8]
            case .gray, .rgb, .cmyk, .multichannel, .duotone, .lab: [8, 16, 32]
            }
        }
    }

    /// A small JPEG image: resource 1036, or 1033 with red and blue exchanged.
    struct Preview {
        var range: Range<Int>
        var size: PixelSize
        var isSwapped: Bool
    }

    private static let maximumResources = 4_096
    private static let maximumBlocks = 4_096

    /// Whether the file is of the kind for large documents.
    var isLarge: Bool
    var channels: Int
    var size: PixelSize
    /// Bits a sample.
    var depth: Int
    var mode: Mode
    /// 256 reds, greens, blues of an indexed image.
    var palette: Range<Int>
    /// The index that is transparent.
    var transparentIndex: Int?
    var previews: [Preview] = []
    var profile: Range<Int>?
    var exif: Range<Int>?
    var xmp: Range<Int>?
    /// Whether the merged image shows the image. Files saved without compatibility have a white one.
    var hasMergedImage = true
    /// Whether the first channel behind the colours is the transparency of the merged image.
    var hasTransparency = false
    /// Where the merged image begins, with its kind of compression.
    var imageOffset: Int

    /// Channels of colour.
    var colors: Int {
        switch mode {
        case .rgb, .lab: 3
        case .cmyk: 4
        default: 1
        }
    }

    init(_ reader: ByteReader) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        guard reader.matches("8BPS", at: 0) else { throw .notAnImage(input: reader.name) }
        let version = try reader.u16(at: 4)
        guard version == 1 || version == 2 else { throw reader.corrupt("version \(version)") }
        isLarge = version == 2
        channels = try reader.u16(at: 12)
        size = PixelSize(width: try reader.u32(at: 18), height: try reader.u32(at: 14))
        depth = try reader.u16(at: 22)
        let stored = try reader.u16(at: 24)
        guard let mode = Mode(rawValue: stored) else { throw reader.corrupt("colour mode \(stored)") }
        self.mode = mode
        guard !size.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        guard mode.depths.contains(depth), (1...56).contains(channels) else {
            throw reader.corrupt("\(channels) channels of \(depth) bits in mode \(stored)")
        }
        let colorLength = try reader.u32(at: 26)
        palette = 30..<(30 + min(colorLength, 768))
        let resources = 30 + colorLength
        let resourceLength = try reader.u32(at: resources)
        let layers = resources + 4 + resourceLength
        imageOffset = layers
        try readResources(reader, (resources + 4)..<layers)
        let count = isLarge ? 8 : 4
        let layerLength = try isLarge ? reader.u64(at: layers) : reader.u32(at: layers)
        guard layerLength <= reader.count else { throw .truncated(input: reader.name) }
        imageOffset = layers + count + layerLength
        hasTransparency = channels > colors && ![.bitmap, .indexed, .multichannel].contains(mode)
            && ((try? readTransparency(reader, (layers + count)..<imageOffset)) ?? false)
        if channels < colors { throw reader.corrupt("\(channels) channels in mode \(stored)") }
    }

    private mutating func readResources(_ reader: ByteReader, _ range: Range<Int>) throws(ImageError) {
        var at = range.lowerBound
        var count = 0
        while at + 12 <= min(range.upperBound, reader.count), count < PSDHeader.maximumResources {
            count += 1
            // Other programs have signatures of their own; all have the same structure.
            let identifier = try reader.u16(at: at + 4)
            let name = try reader.u8(at: at + 6)
            let start = at + 6 + (name + 2) & ~1
            guard let length = try? reader.u32(at: start), length <= range.upperBound - start - 4 else { return }
            let data = (start + 4)..<(start + 4 + length)
            guard data.upperBound <= reader.count else { return }
            take(identifier, data: data, reader: reader)
            at = data.upperBound + length & 1
        }
    }

    private mutating func take(_ identifier: Int, data: Range<Int>, reader: ByteReader) {
        let at = data.lowerBound
        switch identifier {
        case 1033, 1036:
            guard data.count > 28, (try? reader.u32(at: at)) == 1, let width = try? reader.u32(at: at + 4),
                let height = try? reader.u32(at: at + 8)
            else { return }
            let preview = Preview(
                range: (at + 28)..<data.upperBound, size: PixelSize(width: width, height: height),
                isSwapped: identifier == 1033)
            // The newer kind first.
            previews.insert(preview, at: preview.isSwapped ? previews.count : 0)
        case 1039: profile = data
        case 1047: transparentIndex = try? reader.u16(at: at)
        case 1057: hasMergedImage = (try? reader.u8(at: at + 4)) != 0
        case 1058: exif = data
        case 1060: xmp = data
        default: break
        }
    }

    /// Whether the number of layers is negative, or a block says that transparency is merged.
    private func readTransparency(_ reader: ByteReader, _ section: Range<Int>) throws(ImageError) -> Bool {
        guard section.count > 4 else { return false }
        func length(_ at: Int, isLong: Bool) throws(ImageError) -> (Int, next: Int) {
            try isLong ? (reader.u64(at: at), at + 8) : (reader.u32(at: at), at + 4)
        }
        func isNegative(_ at: Int) throws(ImageError) -> Bool { try reader.u16(at: at) & 0x8000 != 0 }
        var (info, at) = try length(section.lowerBound, isLong: isLarge)
        if info >= 2 {
            if try isNegative(at) { return true }
            guard info <= section.upperBound - at else { return false }
            at += info
        }
        guard at + 4 <= section.upperBound else { return false }
        (info, at) = try length(at, isLong: false)  // the mask of all layers
        guard info <= section.upperBound - at else { return false }
        at += info
        for _ in 0..<PSDHeader.maximumBlocks where at + 12 <= section.upperBound {
            guard reader.matches("8BIM", at: at) || reader.matches("8B64", at: at) else { return false }
            let key = try reader.fourCC(at: at + 4)
            let isLong = isLarge && PSDHeader.longKeys.contains(key)
            (info, at) = try length(at + 8, isLong: isLong)
            switch key {
            case "Mtrn", "Mt16", "Mt32": return true
            case "Layr", "Lr16", "Lr32": if info >= 2, try isNegative(at) { return true }
            default: break
            }
            guard info <= section.upperBound - at else { return false }
            at += (info + 3) & ~3
        }
        return false
    }

    /// Blocks whose length has eight bytes in large documents.
    private static let longKeys: Set<FourCC> = [
        "LMsk", "Lr16", "Lr32", "Layr", "Mt16", "Mt32", "Mtrn", "Alph", "FMsk", "lnk2", "FEid", "FXid", "PxSD",
    ]
}

extension PSDDecoder: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let psd = try PSDHeader(reader)
        var header = ImageHeader(info: ImageInfo(format: .psd, storedSize: psd.size))
        header.info.bitDepth = psd.depth
        header.info.hasAlpha = psd.hasTransparency || psd.mode == .indexed && psd.transparentIndex != nil
        switch psd.mode {
        case .bitmap, .gray, .duotone: header.info.colorModel = .gray
        case .indexed: header.info.colorModel = .palette
        case .rgb: header.info.colorModel = .rgb
        case .cmyk: header.info.colorModel = .cmyk
        case .multichannel, .lab: header.info.colorModel = .other
        }
        if let profile = psd.profile { header.setProfile(at: profile, reader, limits) }
        header.exif = psd.exif
        header.xmp = psd.xmp
        for preview in psd.previews where !preview.isSwapped {
            header.info.embeddedPreviews.append(
                .init(offset: preview.range.lowerBound, count: preview.range.count, size: preview.size))
        }
        return header
    }
}
