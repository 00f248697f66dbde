/// Reads the header of a Windows bitmap.
///
/// Source: Microsoft, BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV5HEADER. Little-endian throughout.
package enum BMPHeaderReader: HeaderReading {
    private static let headerSizes: Set<Int> = [12, 16, 40, 52, 56, 64, 108, 124]

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
