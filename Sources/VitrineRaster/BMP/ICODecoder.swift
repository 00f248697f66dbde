import VitrineImageCore

/// Decodes Windows icons and cursors, in Swift alone but for PNG entries.
///
/// Pages are the images inside, the largest first; of equal ones the deepest, then as stored. Viewers show page 0. The
/// header of an image decides its size, not the directory.
///
/// Source: Microsoft, "Icons" (Windows Dev Center, 1995) and "The evolution of the ICO file format".
package struct ICODecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.ico]
    private let pictures: Codecs

    /// - Parameter pictures: Decode the entries that are PNG files.
    package init(pictures: Codecs) {
        self.pictures = pictures
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard source.count > 0 else { throw .empty(input: source.name) }
        guard request.options.page >= 0 else {
            throw .invalidRequest(reason: "page \(request.options.page) is negative")
        }
        let entries = try ICODirectory.entries(of: source)
        guard request.options.page < entries.count else {
            throw .invalidRequest(reason: "page \(request.options.page) of an icon of \(entries.count)")
        }
        let entry = entries[request.options.page]
        guard entry.count <= request.limits.maximumInputBytes else {
            throw .limitExceeded(
                input: source.name, limit: .inputBytes, actual: entry.count,
                allowed: request.limits.maximumInputBytes)
        }
        let bytes = try source.bytes(at: entry.offset, count: entry.count)
        guard !bytes.isEmpty else { throw .truncated(input: source.name) }
        let inner = ByteSource(bytes: bytes, name: source.name)
        if let info = ICODecoder.pngInfo(bytes) {
            try request.limits.check(storedSize: info.storedSize, input: source.name)
            var request = request
            request.info = info
            request.options.page = 0
            return try pictures.decode(inner, request)
        }
        return try bitmap(inner, request)
    }

    /// A bitmap without a file header, its transparency mask behind the colours.
    private func bitmap(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        var header = try BMPHeader(source, at: 0, pixels: nil, isIcon: true)
        try request.limits.check(storedSize: header.size, input: source.name)
        if case .runLength = header.packing {
            throw .unsupported(input: source.name, reason: "run-length coded icons have no decoder here")
        }
        let offset = header.end
        let mask = offset + header.bytesPerRow * header.size.height
        if header.bits == 32, case .masked(let masks) = header.packing, masks[3] == 0 {
            // The fourth byte is alpha, unless none is set: then the icon is older than alpha and the mask rules.
            if try hasAlpha(source, offset..<mask) {
                header.packing = .masked(masks[0..<3] + [0xFF00_0000])
            }
        }
        let maskBytes = (header.size.width + 31) / 32 * 4 * header.size.height
        // Some writers put a profile where the mask belongs.
        let end = header.profileOffset.map { $0 >= mask ? min($0, source.count) : source.count } ?? source.count
        let hasMask = !header.hasAlpha && end >= mask + maskBytes
        return try BMPBitmap(
            source: source, header: header, offset: offset, mask: hasMask ? mask : nil, request: request
        ).decode()
    }

    private func hasAlpha(_ source: ByteSource, _ range: Range<Int>) throws(ImageError) -> Bool {
        let bytes = try source.bytes(at: range.lowerBound, count: range.count)
        var i = 3
        while i < bytes.count {
            if bytes[i] != 0 { return true }
            i += 4
        }
        return false
    }

    /// The header of a PNG; nil for any other data. Source: PNG specification, third edition, §11.2.1.
    private static func pngInfo(_ bytes: [UInt8]) -> ImageInfo? {
        guard bytes.count >= 29, bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) else {
            return nil
        }
        func number(_ at: Int) -> Int { bytes[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) } }
        var info = ImageInfo(format: .png, storedSize: PixelSize(width: number(16), height: number(20)))
        info.bitDepth = Int(bytes[24])
        info.hasAlpha = bytes[25] & 4 != 0
        info.colorModel = bytes[25] & 1 != 0 ? .palette : bytes[25] & 2 != 0 ? .rgb : .gray
        info.isProgressive = bytes[28] != 0
        return info
    }
}

/// The directory of an icon or cursor file.
private enum ICODirectory {
    /// One image: the range of its bytes, and its entry of the directory.
    struct Entry {
        var offset: Int
        var count: Int
        var size: PixelSize
        var bits: Int
    }

    /// All entries that lie within the file, in the order pages are numbered: largest, deepest, first stored.
    ///
    /// - Throws: ``ImageError/notAnImage(input:)`` for other files, ``ImageError/corrupt(input:reason:)`` when there is
    ///   no entry, ``ImageError/truncated(input:)`` when none lies within the file.
    static func entries(of source: ByteSource) throws(ImageError) -> [Entry] {
        let head = BMPReader(bytes: try source.bytes(at: 0, count: 6))
        guard head.count == 6 else { throw .truncated(input: source.name) }
        guard head.u16(0) == 0, head.u16(2) == 1 || head.u16(2) == 2 else { throw .notAnImage(input: source.name) }
        let isCursor = head.u16(2) == 2
        let count = Int(head.u16(4))
        guard count > 0 else { throw .corrupt(input: source.name, reason: "the icon has no images") }
        let table = BMPReader(bytes: try source.bytes(at: 6, count: 16 * count))
        var entries: [Entry] = []
        for i in 0..<(table.count / 16) {
            let at = 16 * i
            let (width, height) = (Int(table[at]), Int(table[at + 1]))
            let entry = Entry(
                offset: Int(table.u32(at + 12)), count: Int(table.u32(at + 8)),
                // 0 stands for 256.
                size: PixelSize(width: width == 0 ? 256 : width, height: height == 0 ? 256 : height),
                // A cursor keeps its hot spot there.
                bits: isCursor ? 0 : Int(table.u16(at + 6)))
            if entry.count > 0, entry.offset < source.count { entries.append(entry) }
        }
        guard !entries.isEmpty else { throw .truncated(input: source.name) }
        // Sorting is stable.
        return entries.sorted { a, b in
            a.size.pixelCount != b.size.pixelCount ? a.size.pixelCount > b.size.pixelCount : a.bits > b.bits
        }
    }
}
