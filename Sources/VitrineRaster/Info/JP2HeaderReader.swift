import VitrineImageCore

/// Reads JPEG 2000, with boxes or as a bare codestream.
///
/// Source: ITU-T T.800 annex A.5.1 (SIZ), annex I.5 (JP2 boxes).
package enum JP2HeaderReader: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        if try reader.u16(at: 0) == 0xFF4F { return try codestream(reader, at: 0) }
        let top = ISOBox.children(reader, in: 0..<reader.count)
        guard let boxes = top["jp2h"].map({ ISOBox.children(reader, in: $0.payload) }), let ihdr = boxes["ihdr"],
            ihdr.payload.count >= 11
        else {
            guard let stream = top["jp2c"] else { throw .truncated(input: reader.name) }
            return try codestream(reader, at: stream.payload.lowerBound)
        }
        let at = ihdr.payload.lowerBound
        let size = PixelSize(width: try reader.u32(at: at + 4), height: try reader.u32(at: at))
        var header = ImageHeader(info: ImageInfo(format: .jp2, storedSize: size))
        let channels = try reader.u16(at: at + 8)
        let depth = try reader.u8(at: at + 10)
        header.info.colorModel = model(channels)
        header.info.bitDepth = depth == 255 ? 8 : (depth & 0x7F) + 1
        header.info.hasAlpha = boxes["cdef"].map { hasAlpha(reader, $0.payload) } ?? false
        if header.info.hasAlpha { header.info.colorModel = model(channels - 1) }
        for box in boxes where box.type == "colr" {
            takeColor(reader, payload: box.payload, limits: limits, header: &header)
        }
        if boxes["pclr"] != nil { header.info.colorModel = .palette }
        return header
    }

    private static func model(_ channels: Int) -> ImageInfo.ColorModel {
        switch channels {
        case 1, 2: .gray
        case 3: .rgb
        default: .other
        }
    }

    private static func hasAlpha(_ reader: ByteReader, _ payload: Range<Int>) -> Bool {
        guard let count = try? reader.u16(at: payload.lowerBound) else { return false }
        return (0..<min(count, 64, payload.count / 6)).contains {
            guard let type = try? reader.u16(at: payload.lowerBound + 2 + 6 * $0 + 2) else { return false }
            return type == 1 || type == 2
        }
    }

    private static func takeColor(
        _ reader: ByteReader, payload: Range<Int>, limits: ImageLimits, header: inout ImageHeader
    ) {
        guard payload.count > 3, let method = try? reader.u8(at: payload.lowerBound) else { return }
        if method == 2 {
            header.setProfile(at: Range(from: payload.lowerBound &+ 3, to: payload.upperBound), reader, limits)
        } else if method == 1, let space = try? reader.u32(at: payload.lowerBound + 3) {
            switch space {
            case 12: header.info.colorModel = .cmyk
            case 16: header.info.colorModel = .rgb
            case 17: header.info.colorModel = .gray
            case 18: header.info.colorModel = .yCbCr
            default: break
            }
        }
    }

    private static func codestream(_ reader: ByteReader, at start: Int) throws(ImageError) -> ImageHeader {
        guard try reader.u32(at: start) == 0xFF4F_FF51 else { throw reader.corrupt("no JPEG 2000 codestream") }
        let siz = start + 8  // behind SOC, SIZ, its length and capabilities come the sides
        let width = try reader.u32(at: siz) - reader.u32(at: siz + 8)
        let height = try reader.u32(at: siz + 4) - reader.u32(at: siz + 12)
        guard width > 0, height > 0 else { throw reader.corrupt("a JPEG 2000 side of zero pixels") }
        var header = ImageHeader(info: ImageInfo(format: .jp2, storedSize: PixelSize(width: width, height: height)))
        let channels = try reader.u16(at: siz + 32)
        header.info.colorModel = channels == 4 ? .rgb : model(channels)
        header.info.hasAlpha = channels == 2 || channels == 4
        header.info.bitDepth = (try reader.u8(at: siz + 34) & 0x7F) + 1
        return header
    }
}
