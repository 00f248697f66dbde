/// The header of a Windows or OS/2 bitmap, with its palette.
///
/// Source: Microsoft, "Bitmap Header Types" (BITMAPCOREHEADER to BITMAPV5HEADER); IBM OS/2 2.0 for the 16- to 64-byte
/// forms.
struct BMPHeader {
    /// How pixels are packed.
    enum Packing {
        /// Indices into the palette, 1, 2, 4 or 8 bits each.
        case indexed
        /// The same, run-length coded.
        case runLength
        /// Blue, green, red in whole bytes.
        case bytes
        /// Red, green, blue and alpha picked from a little-endian word by masks.
        case masked([UInt32])
    }

    var size: PixelSize
    var bits: Int
    var packing: Packing
    /// Whether the first row stored is the top one.
    var isTopDown = false
    /// 256 colours, red, green, blue each; black where the file has none.
    var palette: [UInt8]
    /// Where pixels begin when nothing else says so: behind header, masks and palette.
    var end: Int

    /// Whether masks include alpha.
    var hasAlpha: Bool {
        if case .masked(let masks) = packing { masks[3] != 0 } else { false }
    }

    /// Bytes of a stored row, padded to four.
    var bytesPerRow: Int { (size.width * bits + 31) / 32 * 4 }

    /// Reads the header at `offset`. In an icon the stated height counts the rows of the transparency mask too.
    ///
    /// - Parameter pixels: Where pixels begin, which ends a palette that claims more; nil in icons.
    init(_ source: ByteSource, at offset: Int, pixels: Int?, isIcon: Bool) throws(ImageError) {
        // 124 bytes of header at most, 16 of masks, 256 colours of 4.
        let bytes = BMPReader(bytes: try source.bytes(at: offset, count: 124 + 16 + 1_024))
        let name = source.name
        guard bytes.count >= 12 else { throw .truncated(input: name) }
        let length = Int(bytes.u32(0))
        guard length == 12 || (16...124).contains(length) else {
            throw .unsupported(input: name, reason: "a bitmap header of \(length) bytes is not known")
        }
        guard bytes.count >= length else { throw .truncated(input: name) }
        let isCore = length == 12
        var width = isCore ? Int(bytes.u16(4)) : Int(Int32(bitPattern: bytes.u32(4)))
        var height = isCore ? Int(bytes.u16(6)) : Int(Int32(bitPattern: bytes.u32(8)))
        bits = Int(isCore ? bytes.u16(10) : bytes.u16(14))
        if height < 0 {
            isTopDown = true
            height = -height
        }
        if isIcon { height /= 2 }
        if width < 0 { width = 0 }
        guard width > 0, height > 0 else { throw .corrupt(input: name, reason: "the bitmap has no pixels") }
        size = PixelSize(width: width, height: height)

        let compression = length >= 20 ? Int(bytes.u32(16)) : 0
        let used = length >= 36 ? Int(bytes.u32(32)) : 0
        var next = length
        let hasTrailingMasks = length == 40 && (compression == 3 || compression == 6)
        packing = try BMPHeader.packing(
            bits: bits, compression: compression, isOS2: length != 40 && length < 52 || length == 64, name: name)
        if case .masked(let standard) = packing {
            packing = .masked(standard)
            if compression != 0 {
                guard length >= 52 || hasTrailingMasks else {
                    throw .corrupt(input: name, reason: "the bitmap's colour masks are missing")
                }
                let alpha = length >= 56 || compression == 6 ? bytes.u32(52) : 0
                packing = .masked([bytes.u32(40), bytes.u32(44), bytes.u32(48), alpha])
            }
        }
        if hasTrailingMasks { next += compression == 6 ? 16 : 12 }

        let entry = isCore ? 3 : 4
        let implied = bits <= 8 ? 1 << bits : 0
        let stated = used > 0 && !isCore ? used : implied
        end = offset + next + stated * entry
        var colors = min(stated, 256)
        if let pixels, pixels > offset + next { colors = min(colors, (pixels - offset - next) / entry) }
        palette = [UInt8](repeating: 0, count: 768)
        for i in 0..<(bits <= 8 ? colors : 0) {
            let at = next + i * entry
            guard at + 3 <= bytes.count else { break }
            palette[3 * i] = bytes[at + 2]
            palette[3 * i + 1] = bytes[at + 1]
            palette[3 * i + 2] = bytes[at]
        }
    }

    private static func packing(bits: Int, compression: Int, isOS2: Bool, name: String) throws(ImageError) -> Packing {
        switch (compression, bits) {
        case (0, 1), (0, 2), (0, 4), (0, 8): return .indexed
        case (0, 24): return .bytes
        case (0, 16): return .masked([0x7C00, 0x03E0, 0x001F, 0])
        case (0, 32): return .masked([0xFF_0000, 0xFF00, 0xFF, 0])
        case (1, 8), (2, 4): return .runLength
        case (3, 16), (3, 32), (6, 16), (6, 32):
            if !isOS2 { return .masked([0, 0, 0, 0]) }
        default: break
        }
        throw .unsupported(
            input: name, reason: "a \(bits)-bit bitmap of compression \(compression) has no decoder here")
    }
}

/// Little-endian numbers in bytes; 0 behind the end.
struct BMPReader {
    let bytes: [UInt8]

    var count: Int { bytes.count }

    subscript(offset: Int) -> UInt8 { offset >= 0 && offset < bytes.count ? bytes[offset] : 0 }

    func u16(_ offset: Int) -> UInt16 { UInt16(self[offset]) | UInt16(self[offset + 1]) << 8 }

    func u32(_ offset: Int) -> UInt32 { UInt32(u16(offset)) | UInt32(u16(offset + 2)) << 16 }
}
