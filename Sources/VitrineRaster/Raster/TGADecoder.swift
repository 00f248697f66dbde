import VitrineCore
import VitrineImageCore

/// Decodes Truevision TGA: mapped, true-colour and grey, plain and run-length coded, in Swift alone.
///
/// The format has no mark at its beginning. A file counts as TGA by the mark at its end, or by its file name extension
/// if its header is possible. Rows are averaged as they are stored; the header's orientation tells which way up.
package struct TGADecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.tga]

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try TGAHeader(reader)
        var info = ImageInfo(format: .tga, storedSize: header.size)
        info.orientation = header.orientation
        info.hasAlpha = header.alpha != .none
        info.colorModel = header.isMapped ? .palette : header.isGray ? .gray : .rgb
        info.bitDepth = header.isMapped ? header.depth : header.depth == 15 || header.depth == 16 ? 5 : 8
        if header.isGray { info.bitDepth = 8 }
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let header = try TGAHeader(ByteReader(source))
        try request.limits.check(storedSize: header.size, input: source.name)
        // A packet of 128 pixels has two bytes at least.
        let least = header.isPacked ? header.size.pixelCount / 64 : header.size.pixelCount * header.bytesPerPixel
        try request.require(least, of: source, at: header.offset)
        let colors = try Self.palette(header, source)
        let (width, channels) = (header.size.width, header.channels)
        var rows = try RowCollector(
            source, request, size: header.size, channels: channels, alpha: header.alpha)
        var isPartial = false
        do throws(ImageError) {
            var stream = ByteStream(source, from: header.offset)
            var packets = TGAPackets(bytesPerPixel: header.bytesPerPixel)
            let stored = RowBuffer(width * header.bytesPerPixel)
            while !rows.isComplete {
                if header.isPacked {
                    try packets.read(&stream, into: stored.bytes, count: width)
                } else {
                    try stream.take(stored.count, into: stored.bytes)
                }
                Self.convert(stored.bytes, header: header, colors: colors, into: rows.row, width: width)
                try rows.advance()
            }
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }

    /// Four bytes an entry, red first.
    private static func palette(_ header: TGAHeader, _ source: ByteSource) throws(ImageError) -> [UInt8] {
        guard header.isMapped else { return [] }
        let entry = (header.mapDepth + 7) / 8
        let bytes = try source.bytes(at: header.mapOffset, count: header.mapCount * entry)
        guard bytes.count == header.mapCount * entry else { throw .truncated(input: source.name) }
        // Indices outside the map are black.
        var colors = [UInt8](repeating: 0, count: 4 * max(256, header.mapFirst + header.mapCount))
        for i in 0..<colors.count / 4 { colors[4 * i + 3] = 255 }
        for i in 0..<header.mapCount {
            let to = 4 * (header.mapFirst + i)
            let at = i * entry
            if entry == 2 {
                let word = Int(bytes[at]) | Int(bytes[at + 1]) << 8
                for c in 0..<3 { colors[to + c] = five(word >> (10 - 5 * c)) }
            } else {
                for c in 0..<3 { colors[to + c] = bytes[at + 2 - c] }
                if entry == 4 { colors[to + 3] = bytes[at + 3] }
            }
        }
        return colors
    }

    /// Five bits stretched to eight.
    @inline(__always)
    private static func five(_ value: Int) -> UInt8 { UInt8(truncatingIfNeeded: ((value & 31) &* 255 &+ 15) / 31) }

    private static func convert(
        _ stored: UnsafeMutablePointer<UInt8>, header: TGAHeader, colors: [UInt8],
        into target: UnsafeMutablePointer<UInt8>, width: Int
    ) {
        var (from, to) = (stored, target)
        let channels = header.channels
        if header.isMapped {
            let entries = colors.count / 4
            for _ in 0..<width {
                let index = header.depth == 8 ? Int(from[0]) : Int(from[0]) | Int(from[1]) << 8
                let at = 4 &* (index < entries ? index : 0)
                for c in 0..<channels { to[c] = colors[at &+ c] }
                from += header.bytesPerPixel
                to += channels
            }
            return
        }
        if header.isGray { return to.update(from: from, count: width * channels) }
        switch header.depth {
        case 15, 16:
            for _ in 0..<width {
                let word = Int(from[0]) | Int(from[1]) &<< 8
                to[0] = five(word &>> 10)
                to[1] = five(word &>> 5)
                to[2] = five(word)
                if channels == 4 { to[3] = word & 0x8000 == 0 ? 0 : 255 }
                from += 2
                to += channels
            }
        case 24:
            for _ in 0..<width {
                (to[0], to[1], to[2]) = (from[2], from[1], from[0])
                from += 3
                to += 3
            }
        default:
            for _ in 0..<width {
                (to[0], to[1], to[2]) = (from[2], from[1], from[0])
                if channels == 4 { to[3] = from[3] }
                from += 4
                to += channels
            }
        }
    }
}

/// The header of a TGA file, and the type of alpha from its footer.
///
/// Source: Truevision, "TGA File Format Specification", version 2.0 (1991).
struct TGAHeader {
    private static let length = 18
    private static let footerLength = 26
    private static let fileExtensions: Set<Substring> = ["tga", "icb", "vda", "vst", "targa"]

    var size: PixelSize
    /// Bits a stored pixel.
    var depth: Int
    var isMapped: Bool
    var isGray: Bool
    var isPacked: Bool
    var alpha = DecodedImage.Alpha.none
    var orientation: Orientation
    var mapFirst: Int
    var mapCount: Int
    var mapDepth: Int
    var mapOffset: Int
    /// Where pixels begin.
    var offset: Int

    var bytesPerPixel: Int { (depth + 7) / 8 }
    var channels: Int { (isGray ? 1 : 3) + (alpha == .none ? 0 : 1) }

    /// Whether a file has the mark at its end, or the extension and a possible header.
    static func looksRight(_ reader: ByteReader) -> Bool {
        guard reader.count > length else { return false }
        let isMarked = reader.matches("TRUEVISION-XFILE.", at: reader.count - 18)
        guard isMarked || hasExtension(reader.name) else { return false }
        do {
            _ = try TGAHeader(reader)
            return true
        } catch {
            return false
        }
    }

    private static func hasExtension(_ name: String) -> Bool {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return false }
        return fileExtensions.contains(name[name.utf8.index(after: dot)...].lowercased()[...])
    }

    init(_ reader: ByteReader) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        func u16(_ at: Int) throws(ImageError) -> Int { try reader.u16(at: at, bigEndian: false) }
        let identifier = try reader.u8(at: 0)
        let map = try reader.u8(at: 1)
        let type = try reader.u8(at: 2)
        (mapFirst, mapCount, mapDepth) = (try u16(3), try u16(5), try reader.u8(at: 7))
        size = PixelSize(width: try u16(12), height: try u16(14))
        depth = try reader.u8(at: 16)
        let descriptor = try reader.u8(at: 17)
        (isMapped, isGray, isPacked) = (type & 7 == 1, type & 7 == 3, type & 8 != 0)
        guard [1, 2, 3, 9, 10, 11].contains(type), map <= 1, !isMapped || map == 1 else {
            throw .notAnImage(input: reader.name)
        }
        guard !size.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        let depths: [Int] = isMapped ? [8, 16] : isGray ? [8, 16] : [15, 16, 24, 32]
        guard depths.contains(depth), map == 0 || [15, 16, 24, 32].contains(mapDepth) else {
            throw reader.corrupt("\(depth) bits a pixel")
        }
        mapOffset = TGAHeader.length + identifier
        offset = mapOffset + (map == 1 ? mapCount * ((mapDepth + 7) / 8) : 0)
        orientation =
            switch descriptor >> 4 & 3 {
            case 0: .downMirrored
            case 1: .down
            case 2: .up
            default: .upMirrored
            }
        let bits = descriptor & 15
        let storesAlpha = isMapped ? mapDepth == 32 : isGray ? depth == 16 : bits > 0 && (depth == 32 || depth == 16)
        guard storesAlpha else { return }
        alpha = .straight
        switch TGAHeader.attributes(reader) {
        case 0, 1, 2: alpha = .none
        case 4: alpha = .premultiplied
        default: break
        }
        // Grey and alpha share a word: without alpha, its second byte has to be passed over all the same.
        if isGray { alpha = alpha == .none ? .straight : alpha }
    }

    /// The type of attributes in the extension area: 0 to 2 for no alpha, 3 for straight, 4 for premultiplied alpha.
    /// nil if the file does not say.
    private static func attributes(_ reader: ByteReader) -> Int? {
        guard reader.matches("TRUEVISION-XFILE.", at: reader.count - 18),
            let area = try? reader.u32(at: reader.count - footerLength, bigEndian: false), area > length,
            let size = try? reader.u16(at: area, bigEndian: false), size >= 495
        else { return nil }
        return try? reader.u8(at: area + 494)
    }
}

/// Run-length coded pixels. A packet may go on in the next row.
private struct TGAPackets {
    let bytesPerPixel: Int
    private var left = 0
    private var repeats = false
    private var value: (UInt8, UInt8, UInt8, UInt8) = (0, 0, 0, 0)

    init(bytesPerPixel: Int) {
        self.bytesPerPixel = bytesPerPixel
    }

    mutating func read(
        _ stream: inout ByteStream, into target: UnsafeMutablePointer<UInt8>, count: Int
    ) throws(ImageError) {
        var (to, missing) = (target, count)
        while missing > 0 {
            if left == 0 {
                let head = try stream.byte()
                left = Int(head & 127) + 1
                repeats = head & 128 != 0
                if repeats {
                    value.0 = try stream.byte()
                    if bytesPerPixel > 1 { value.1 = try stream.byte() }
                    if bytesPerPixel > 2 { value.2 = try stream.byte() }
                    if bytesPerPixel > 3 { value.3 = try stream.byte() }
                }
            }
            let taken = min(left, missing)
            if repeats {
                for _ in 0..<taken {
                    to[0] = value.0
                    if bytesPerPixel > 1 { to[1] = value.1 }
                    if bytesPerPixel > 2 { to[2] = value.2 }
                    if bytesPerPixel > 3 { to[3] = value.3 }
                    to += bytesPerPixel
                }
            } else {
                try stream.take(taken * bytesPerPixel, into: to)
                to += taken * bytesPerPixel
            }
            left -= taken
            missing -= taken
        }
    }
}
