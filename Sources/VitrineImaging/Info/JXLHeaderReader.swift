/// Reads the image header of JPEG XL, bare or in its container.
///
/// Source: ISO/IEC 18181-1 annex D (SizeHeader, ImageMetadata), 18181-2 (container). Its ICC profile is entropy-coded
/// and stays unread, frames are not counted (that needs the entropy-coded tables of each), and Exif orientation does
/// not count beside the codestream's own.
package enum JXLHeaderReader: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        if try reader.u16(at: 0) == 0xFF0A { return ImageHeader(info: try codestream(reader, at: 2)) }
        let boxes = ISOBox.children(reader, in: 0..<reader.count)
        let start: Int
        if let whole = boxes["jxlc"] {
            start = whole.payload.lowerBound
        } else if let part = boxes["jxlp"] {
            start = part.payload.lowerBound + 4  // behind the number of the part
        } else {
            throw .truncated(input: reader.name)
        }
        guard try reader.u16(at: start) == 0xFF0A else { throw reader.corrupt("no JPEG XL codestream") }
        var header = ImageHeader(info: try codestream(reader, at: start + 2))
        if let exif = boxes["Exif"], exif.payload.count > 4, let skip = try? reader.u32(at: exif.payload.lowerBound),
            skip < exif.payload.count - 4
        {
            header.exif = (exif.payload.lowerBound + 4 + skip)..<exif.payload.upperBound
        }
        header.xmp = boxes["xml "]?.payload
        header.applyExif(reader, orientation: false)
        return header
    }

    private static func codestream(_ reader: ByteReader, at offset: Int) throws(ImageError) -> ImageInfo {
        var bits = JXLBitReader(reader, at: offset)
        var info = ImageInfo(format: .jxl, storedSize: try size(&bits))
        if try bits.bool() { return info }  // all defaults: 8-bit sRGB
        if try bits.bool() { try extras(&bits, &info) }
        info.bitDepth = try depth(&bits)
        bits.skip(1)  // whether 16-bit buffers suffice
        for _ in 0..<(try bits.u32((0, 0), (1, 0), (2, 4), (1, 12))) { try channel(&bits, &info) }
        bits.skip(1)  // XYB
        // Colour encoding: not the default, an ICC profile or not, the colour space.
        if try !bits.bool() {
            bits.skip(1)
            if try bits.enumeration() == 1, info.colorModel == .rgb { info.colorModel = .gray }
        }
        return info
    }

    private static let ratios = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)]

    private static func size(_ bits: inout JXLBitReader) throws(ImageError) -> PixelSize {
        let isSmall = try bits.bool()
        func side(_ bits: inout JXLBitReader) throws(ImageError) -> Int {
            if isSmall { return try (bits.bits(5) + 1) * 8 }
            return try bits.u32((1, 9), (1, 13), (1, 18), (1, 30))
        }
        let height = try side(&bits)
        let ratio = try bits.bits(3)
        if ratio == 0 { return PixelSize(width: try side(&bits), height: height) }
        return PixelSize(width: height * ratios[ratio - 1].0 / ratios[ratio - 1].1, height: height)
    }

    private static func extras(_ bits: inout JXLBitReader, _ info: inout ImageInfo) throws(ImageError) {
        info.orientation = Orientation(rawValue: try bits.bits(3) + 1) ?? .up
        if try bits.bool() { _ = try size(&bits) }  // intrinsic size
        if try bits.bool() {  // preview
            let isSmall = try bits.bool()
            func side(_ bits: inout JXLBitReader) throws(ImageError) {
                _ = try isSmall
                    ? bits.u32((16, 0), (32, 0), (1, 5), (33, 9)) : bits.u32((1, 6), (65, 8), (321, 10), (1345, 12))
            }
            try side(&bits)
            if try bits.bits(3) == 0 { try side(&bits) }
        }
        if try bits.bool() {  // animation
            _ = try bits.u32((100, 0), (1000, 0), (1, 10), (1, 30))
            _ = try bits.u32((1, 0), (1001, 0), (1, 8), (1, 10))
            _ = try bits.u32((0, 0), (0, 3), (0, 16), (0, 32))
            bits.skip(1)
        }
    }

    private static func depth(_ bits: inout JXLBitReader) throws(ImageError) -> Int {
        if try bits.bool() {
            let depth = try bits.u32((32, 0), (16, 0), (24, 0), (1, 6))
            bits.skip(4)
            return depth
        }
        return try bits.u32((8, 0), (10, 0), (12, 0), (1, 6))
    }

    private static func channel(_ bits: inout JXLBitReader, _ info: inout ImageInfo) throws(ImageError) {
        if try bits.bool() {  // all defaults: alpha
            info.hasAlpha = true
            return
        }
        let type = try bits.enumeration()
        _ = try depth(&bits)
        _ = try bits.u32((0, 0), (3, 0), (4, 0), (1, 3))
        bits.skip(8 * (try bits.u32((0, 0), (0, 4), (16, 5), (48, 10))))
        switch type {
        case 0:
            info.hasAlpha = true
            bits.skip(1)  // premultiplied or not
        case 2: bits.skip(64)  // a spot colour
        case 4: info.colorModel = .cmyk
        case 5: _ = try bits.u32((1, 0), (0, 2), (3, 4), (19, 8))
        default: break
        }
    }
}
