import VitrineCore
import VitrineImageCore

/// Decodes Apple icons: PNG and JPEG 2000 entries, and run-length coded ones of 24 bits with a mask or of 32 bits.
///
/// Pages are the images inside, the largest first. Page 0 at a size comes from the smallest image that is large enough.
/// JPEG 2000 needs another decoder; without one, images of other kinds take its place.
///
/// Source: the list of types and codings in Wikipedia, "Apple Icon Image format" (2024), checked against files of
/// macOS. Bitmaps of 1 to 8 bits, of systems before Mac OS 8.5, are not read.
package struct ICNSDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.icns]
    private let pictures: Codecs

    /// - Parameter pictures: Read the entries that are PNG and JPEG 2000 files.
    package init(pictures: Codecs) {
        self.pictures = pictures
    }

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let entries = try ICNSEntry.entries(reader)
        var info = ImageInfo(format: .icns, storedSize: entries[0].size)
        info.hasAlpha = true
        info.frameCount = entries.count
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        let entries = try ICNSEntry.entries(ByteReader(source))
        guard entries.indices.contains(request.options.page) else {
            throw .invalidRequest(reason: "page \(request.options.page) of an icon of \(entries.count)")
        }
        var candidates = [entries[request.options.page]]
        if request.options.page == 0, let target = request.target {
            candidates = entries.reversed().filter { $0.size.width >= target.width && $0.size.height >= target.height }
        }
        if candidates.isEmpty { candidates = [entries[request.options.page]] }
        var refusal = ImageError.unsupported(input: source.name, reason: "no entry of the icon has a decoder here")
        for entry in candidates {
            do {
                return try decode(entry, source: source, request: request)
            } catch .unsupported(let input, let reason) {
                refusal = .unsupported(input: input, reason: reason)
            }
        }
        throw refusal
    }

    private func decode(
        _ entry: ICNSEntry, source: ByteSource, request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        guard entry.range.count <= request.limits.maximumInputBytes else {
            throw .limitExceeded(
                input: source.name, limit: .inputBytes, actual: entry.range.count,
                allowed: request.limits.maximumInputBytes)
        }
        let bytes = try source.bytes(at: entry.range.lowerBound, count: entry.range.count)
        guard entry.coding == .file else { return try bitmap(entry, bytes: bytes, source: source, request: request) }
        let inner = ByteSource(bytes: bytes, name: source.name)
        let info = try pictures.header(ofPictureIn: ByteReader(inner), request.limits).info
        guard info.format == .png || info.format == .jp2 else {
            throw .corrupt(input: source.name, reason: "an entry of the icon is \(info.format)")
        }
        try request.limits.check(info, source: inner)
        var request = request
        (request.info, request.options.page, request.region) = (info, 0, nil)
        return try pictures.decode(inner, request)
    }

    /// An entry of planes, each run-length coded by itself.
    private func bitmap(
        _ entry: ICNSEntry, bytes: [UInt8], source: ByteSource, request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        let (width, height) = (entry.size.width, entry.size.height)
        let count = width * height
        let isARGB = entry.coding == .argb
        let planeCount = isARGB ? 4 : 3
        var planes: [UInt8]
        if !isARGB, bytes.count == 4 * count {
            // Not coded: four bytes a pixel, of which the first is unused.
            planes = (1...3).flatMap { channel in (0..<count).map { bytes[4 * $0 + channel] } }
        } else {
            let start = isARGB ? 4 : entry.skips
            guard let unpacked = Self.unpack(bytes.dropFirst(start), count: planeCount * count) else {
                throw .truncated(input: source.name)
            }
            planes = unpacked
        }
        var alpha: [UInt8]?
        if isARGB {
            alpha = Array(planes[..<count])
            planes.removeFirst(count)
        } else if let mask = entry.mask, mask.count >= count {
            alpha = try source.bytes(at: mask.lowerBound, count: count)
        }
        var rows = try RowCollector(source, request, size: entry.size, channels: 4, alpha: .straight)
        for y in 0..<height {
            let row = rows.row
            for x in 0..<width {
                let at = y * width + x
                for c in 0..<3 { row[4 * x + c] = planes[c * count + at] }
                row[4 * x + 3] = alpha.map { at < $0.count ? $0[at] : 0 } ?? 255
            }
            try rows.advance()
        }
        return try rows.finish()
    }

    /// A byte below 128 is followed by so many and one more as they are; from 128 on by one that is repeated.
    private static func unpack(_ bytes: ArraySlice<UInt8>, count: Int) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(count)
        var at = bytes.startIndex
        while result.count < count {
            guard at + 1 < bytes.endIndex else { return nil }
            let head = Int(bytes[at])
            if head < 128 {
                let end = min(at + 2 + head, bytes.endIndex)
                result += bytes[(at + 1)..<end]
                at = end
            } else {
                result += repeatElement(bytes[at + 1], count: head - 125)
                at += 2
            }
        }
        return Array(result.prefix(count))
    }
}

/// One image of an icon file.
struct ICNSEntry {
    enum Coding { case file, rgb, argb }

    private static let maximumEntries = 256

    var size: PixelSize
    var coding: Coding
    var range: Range<Int>
    /// Bytes before the planes.
    var skips = 0
    /// Alpha of one byte a pixel.
    var mask: Range<Int>?

    /// All images, the largest first; of equal ones, files come before bitmaps.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` if there is none that can be read.
    static func entries(_ reader: ByteReader) throws(ImageError) -> [ICNSEntry] {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        guard reader.matches("icns", at: 0) else { throw .notAnImage(input: reader.name) }
        let end = min(reader.count, max(8, try reader.u32(at: 4)))
        var entries: [ICNSEntry] = []
        var masks: [Int: Range<Int>] = [:]
        var (at, seen) = (8, 0)
        while at <= end - 8, seen < maximumEntries {
            let type = try reader.fourCC(at: at)
            let length = try reader.u32(at: at + 4)
            guard length >= 8, length <= end - at else { break }
            let range = (at + 8)..<(at + length)
            if let side = maskSides[type] { masks[side] = range }
            if let entry = entry(reader, type: type, range: range) { entries.append(entry) }
            at += length
            seen += 1
        }
        guard !entries.isEmpty else {
            if at < end, end < (try reader.u32(at: 4)) || end < at + 8 { throw .truncated(input: reader.name) }
            throw .unsupported(input: reader.name, reason: "the icon has no image of a kind that is read")
        }
        for i in entries.indices where entries[i].coding == .rgb { entries[i].mask = masks[entries[i].size.width] }
        return entries.enumerated().sorted { a, b in
            let (p, q) = (a.element.size.pixelCount, b.element.size.pixelCount)
            return p == q ? a.offset < b.offset : p > q
        }.map(\.element)
    }

    private static let maskSides: [FourCC: Int] = ["s8mk": 16, "l8mk": 32, "h8mk": 48, "t8mk": 128]
    private static let bitmapSides: [FourCC: Int] = [
        "is32": 16, "il32": 32, "ih32": 48, "it32": 128, "icp4": 16, "icp5": 32,
    ]
    private static let argbSides: [FourCC: Int] = ["ic04": 16, "ic05": 32, "icsb": 18]
    private static let fileTypes: Set<FourCC> = [
        "ic04", "ic05", "ic07", "ic08", "ic09", "ic10", "ic11", "ic12", "ic13", "ic14", "icp4", "icp5", "icp6", "icsb",
        "icsB", "sb24", "SB24",
    ]

    private static func entry(_ reader: ByteReader, type: FourCC, range: Range<Int>) -> ICNSEntry? {
        let at = range.lowerBound
        if fileTypes.contains(type), let size = fileSize(reader, range) {
            return ICNSEntry(size: size, coding: .file, range: range)
        }
        if let side = argbSides[type], range.count > 4, reader.matches("ARGB", at: at) {
            return ICNSEntry(size: PixelSize(side), coding: .argb, range: range)
        }
        if let side = bitmapSides[type], !range.isEmpty {
            let isLarge = side == 128 && range.count > 4 && (try? reader.u32(at: at)) == 0
            return ICNSEntry(size: PixelSize(side), coding: .rgb, range: range, skips: isLarge ? 4 : 0)
        }
        return nil
    }

    /// The size that a PNG or JPEG 2000 file states; nil for anything else.
    private static func fileSize(_ reader: ByteReader, _ range: Range<Int>) -> PixelSize? {
        let at = range.lowerBound
        func number(_ offset: Int) -> Int { (try? reader.u32(at: at + offset)) ?? 0 }
        var size = PixelSize.zero
        if range.count > 33, reader.matches("PNG\r\n", at: at + 1) {
            size = PixelSize(width: number(16), height: number(20))
        } else if range.count > 40, reader.matches("jP  \r\n", at: at + 4) || number(0) == 0xFF4F_FF51 {
            // The header of the box `ihdr`, or of the segment SIZ, stands within the first bytes.
            let isStream = number(0) == 0xFF4F_FF51
            if isStream { return PixelSize(width: number(8), height: number(12)) }
            for offset in 12..<min(range.count - 16, 200) where reader.matches("ihdr", at: at + offset) {
                size = PixelSize(width: number(offset + 8), height: number(offset + 4))
                break
            }
        }
        return size.isEmpty ? nil : size
    }
}
