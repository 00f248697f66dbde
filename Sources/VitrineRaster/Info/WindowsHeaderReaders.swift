import VitrineImageCore

/// Reads the header of a Windows bitmap.
///
/// Source: Microsoft, BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV5HEADER. Little-endian throughout.
package enum BMPHeaderReader: HeaderReading {
    static let headerSizes: Set<Int> = [12, 16, 40, 52, 56, 64, 108, 124]

    /// Two letters are too little to go by; the size of the second header says more.
    static func looksRight(_ reader: ByteReader) throws(ImageError) -> Bool {
        guard reader.count >= 18 else { return reader.count == 2 }
        return headerSizes.contains(try reader.u32(at: 14, bigEndian: false))
    }

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let headerSize = try reader.u32(at: 14, bigEndian: false)
        let isCore = headerSize == 12
        func signed(_ at: Int) throws(ImageError) -> Int {
            Int(Int32(truncatingIfNeeded: try reader.u32(at: at, bigEndian: false)))
        }
        let width = try isCore ? reader.u16(at: 18, bigEndian: false) : signed(18)
        // A negative height means rows from the top.
        let height = try isCore ? reader.u16(at: 20, bigEndian: false) : abs(signed(22))
        let bits = try reader.u16(at: isCore ? 24 : 28, bigEndian: false)
        guard width > 0, height > 0 else { throw reader.corrupt("a BMP with a side of zero pixels") }
        guard [1, 2, 4, 8, 16, 24, 32].contains(bits) else { throw reader.corrupt("a BMP of \(bits) bits a pixel") }
        var header = ImageHeader(info: ImageInfo(format: .bmp, storedSize: PixelSize(width: width, height: height)))
        header.info.colorModel = bits <= 8 ? .palette : .rgb
        header.info.bitDepth = bits <= 8 ? bits : bits == 16 ? 5 : 8
        if headerSize >= 56, bits >= 16, try reader.u32(at: 30, bigEndian: false) == 3 {
            header.info.hasAlpha = try reader.u32(at: 66, bigEndian: false) != 0
        }
        if headerSize >= 124, try reader.fourCC(at: 70) == "DEBM" {  // PROFILE_EMBEDDED, 'MBED' little-endian
            let offset = try reader.u32(at: 126, bigEndian: false)
            let count = try reader.u32(at: 130, bigEndian: false)
            if let range = try? reader.range(at: 14 + offset, count: count) {
                header.setProfile(at: range, reader, limits)
            }
        }
        return header
    }
}

/// Reads the directory of a Windows icon or cursor. The image is its largest entry.
///
/// Source: Microsoft, ICONDIR and ICONDIRENTRY ("Icons", 1995). Entries hold a BMP without its file header, of twice
/// the height, or a whole PNG.
package enum ICOHeaderReader: HeaderReading {
    /// Bytes of the directory's head and of one entry.
    private static let (head, entry) = (6, 16)

    /// The first entry of a true icon has a zero and points behind the directory.
    static func looksRight(_ reader: ByteReader) throws(ImageError) -> Bool {
        guard reader.count >= head + entry else { return reader.count == 4 || reader.count == 6 }
        let count = try reader.u16(at: 4, bigEndian: false)
        let offset = try reader.u32(at: head + 12, bigEndian: false)
        let reserved = try reader.u8(at: head + 3)
        return count > 0 && reserved == 0 && offset >= head + entry
    }

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let count = try reader.u16(at: 4, bigEndian: false)
        guard count > 0 else { throw reader.corrupt("an icon without images") }
        var best: (size: PixelSize, bits: Int, entries: Int)?
        for i in 0..<min(count, 1_024) {
            guard let (size, bits) = try? picture(reader, head + i * entry) else { continue }
            let entries = (best?.entries ?? 0) + 1
            let wins = best.map { (size.pixelCount, bits) > ($0.size.pixelCount, $0.bits) } ?? true
            best = wins ? (size, bits, entries) : best.map { ($0.size, $0.bits, entries) }
        }
        guard let best else { throw .truncated(input: reader.name) }
        var header = ImageHeader(info: ImageInfo(format: .ico, storedSize: best.size))
        header.info.hasAlpha = true
        header.info.colorModel = best.bits <= 8 ? .palette : .rgb
        header.info.bitDepth = best.bits <= 8 ? best.bits : 8
        header.info.frameCount = best.entries
        return header
    }

    /// Size and bits a pixel of an entry, from the image itself: the directory's bytes cannot say more than 256.
    private static func picture(_ reader: ByteReader, _ at: Int) throws(ImageError) -> (PixelSize, Int)? {
        let count = try reader.u32(at: at + 8, bigEndian: false)
        let offset = try reader.u32(at: at + 12, bigEndian: false)
        guard offset < reader.count, count >= 16 else { return nil }
        if try reader.u32(at: offset) == 0x8950_4E47 {
            let bits = try reader.u8(at: offset + 24) * (reader.u8(at: offset + 25) == 3 ? 1 : 4)
            let size = PixelSize(width: try reader.u32(at: offset + 16), height: try reader.u32(at: offset + 20))
            return size.isEmpty ? nil : (size, min(32, bits))
        }
        let headerSize = try reader.u32(at: offset, bigEndian: false)
        guard BMPHeaderReader.headerSizes.contains(headerSize) else { return nil }
        // The oldest header has sides of 16 bits. The height counts the rows of the mask, too.
        let isCore = headerSize == 12
        func side(_ at: Int) throws(ImageError) -> Int {
            try isCore ? reader.u16(at: at, bigEndian: false) : reader.u32(at: at, bigEndian: false)
        }
        let size = PixelSize(width: try side(offset + 4), height: try side(offset + (isCore ? 6 : 8)) / 2)
        return size.isEmpty ? nil : (size, try reader.u16(at: offset + (isCore ? 10 : 14), bigEndian: false))
    }
}
