import VitrineCore
import VitrineImageCore

/// Decodes Windows and OS/2 bitmaps, in Swift alone.
///
/// All header versions, 1 to 32 bits a pixel, RLE4, RLE8 and colour masks with alpha. Rows are averaged while they are
/// read, so memory does not grow with the image. Huffman, RLE24 and embedded JPEG or PNG are refused.
package struct BMPDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.bmp]

    package init() {}

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard request.options.page == 0 else {
            throw .invalidRequest(reason: "page \(request.options.page) of a still image")
        }
        let head = BMPReader(bytes: try source.bytes(at: 0, count: 14))
        guard head.count > 0 else { throw .empty(input: source.name) }
        guard head[0] == 0x42, head[1] == 0x4D else { throw .notAnImage(input: source.name) }
        guard head.count == 14 else { throw .truncated(input: source.name) }
        let stated = Int(head.u32(10))
        let header = try BMPHeader(source, at: 14, pixels: stated == 0 ? nil : stated, isIcon: false)
        let bitmap = BMPBitmap(
            source: source, header: header, offset: stated == 0 ? header.end : stated, request: request)
        return try bitmap.decode()
    }
}

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
    /// Where an embedded colour profile begins, counted from the header; nil without one.
    var profileOffset: Int?

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

        // BITMAPV5HEADER: PROFILE_EMBEDDED, "MBED".
        if length >= 124, bytes.u32(56) == 0x4D42_4544 { profileOffset = Int(bytes.u32(112)) }

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

/// Decodes the pixels of a bitmap from the top, a window of rows at a time.
struct BMPBitmap {
    let source: ByteSource
    let header: BMPHeader
    /// Where stored pixels begin.
    let offset: Int
    /// Where an icon's transparency mask begins: one bit a pixel, 1 for transparent.
    var mask: Int?
    let request: DecodeRequest

    /// Bytes read from the source at once.
    private static let window = 256 << 10

    func decode() throws(ImageError) -> DecodedImage {
        try request.limits.check(storedSize: header.size, input: source.name)
        let (width, height) = (header.size.width, header.size.height)
        let hasAlpha = header.hasAlpha || mask != nil
        let channels = hasAlpha ? 4 : 3
        let factor = self.factor
        let converter = BMPRowConverter(header, channels: channels)
        var reducer = BoxReducer(width: width, height: height, channels: channels, factor: factor)
        let row = UnsafeMutablePointer<UInt8>.allocate(capacity: width * channels)
        defer { row.deallocate() }
        let isPartial = try forEachRow { y, stored, maskRow in
            converter.convert(stored, into: row)
            if let maskRow {
                for x in 0..<width where maskRow[x >> 3] & (0x80 >> UInt8(x & 7)) != 0 { row[4 * x + 3] = 0 }
            }
            if hasAlpha, factor > 1 { AlphaMath.premultiply(row, count: width) }
            reducer.add(rows: row, count: 1, bytesPerRow: width * channels)
        }
        return DecodedImage(
            planes: [reducer.finish()], model: .rgb,
            alpha: !hasAlpha ? .none : factor > 1 ? .premultiplied : .straight, isPartial: isPartial,
            samplesAreMeans: factor > 1)
    }

    /// The side of the blocks to average, which leaves at least twice the target.
    private var factor: Int {
        guard let target = request.target, !target.isEmpty else { return 1 }
        let reduction = min(
            Double(header.size.width) / Double(target.width), Double(header.size.height) / Double(target.height))
        return max(1, Int(reduction / 2))
    }

    /// Hands over every stored row from the top, with its row of the mask.
    ///
    /// - Returns: Whether rows were missing; they are handed over as zeros.
    private func forEachRow(
        _ body: (Int, UnsafePointer<UInt8>, UnsafePointer<UInt8>?) -> Void
    ) throws(ImageError) -> Bool {
        if case .runLength = header.packing { return try forEachCodedRow(body) }
        let bytesPerRow = header.bytesPerRow
        let isPartial = try checkTruncation(needed: bytesPerRow * header.size.height)
        var pixels = BMPRowWindow(
            source, offset: offset, bytesPerRow: bytesPerRow, rows: header.size.height,
            capacity: BMPBitmap.window, isTopDown: header.isTopDown)
        var masks = maskWindow
        for y in 0..<header.size.height {
            if y & 63 == 0, request.cancellation.isCancelled { throw .cancelled(input: source.name) }
            body(y, try pixels.row(y), try masks?.row(y))
        }
        return isPartial
    }

    private func forEachCodedRow(
        _ body: (Int, UnsafePointer<UInt8>, UnsafePointer<UInt8>?) -> Void
    ) throws(ImageError) -> Bool {
        let limit = request.limits.maximumInputBytes
        let code = BMPRunLength(
            try source.bytes(at: offset, count: limit), size: header.size, bits: header.bits)
        if code.isTruncated, !request.options.allowsPartial || code.isEmpty { throw .truncated(input: source.name) }
        let indices = UnsafeMutablePointer<UInt8>.allocate(capacity: header.size.width)
        defer { indices.deallocate() }
        var masks = maskWindow
        for y in 0..<header.size.height {
            if y & 63 == 0, request.cancellation.isCancelled { throw .cancelled(input: source.name) }
            code.row(header.isTopDown ? y : header.size.height - 1 - y, into: indices)
            body(y, indices, try masks?.row(y))
        }
        return code.isTruncated
    }

    private var maskWindow: BMPRowWindow? {
        guard let mask else { return nil }
        return BMPRowWindow(
            source, offset: mask, bytesPerRow: (header.size.width + 31) / 32 * 4, rows: header.size.height,
            capacity: BMPBitmap.window, isTopDown: header.isTopDown)
    }

    /// Whether fewer than `needed` bytes of pixels are there.
    private func checkTruncation(needed: Int) throws(ImageError) -> Bool {
        // The padding of the last row is missing in many files.
        let padding = header.bytesPerRow - (header.size.width * header.bits + 7) / 8
        if source.count - offset >= needed - padding { return false }
        guard request.options.allowsPartial, source.count > offset else { throw .truncated(input: source.name) }
        return true
    }
}
