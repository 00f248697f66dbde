import VitrineImageCore

/// Finds the cover of a Mobipocket or Kindle book (MOBI, AZW, AZW3), which is one of the records of a PalmDB file.
///
/// A thumbnail and images of the text follow it, and show the book if the cover is damaged.
///
/// Sources: the PalmDB and MOBI pages of the MobileRead wiki.
enum MobiPictures: PictureLocating {
    static let formats: [ImageFormat] = [.mobi]

    /// Records of images that are looked at from the first on.
    private static let mostRecords = 16

    static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        reader.matches("BOOKMOBI", at: 60) ? .mobi : nil
    }

    static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        let count = try reader.u16(at: 76)
        guard count > 0 else { return EmbeddedPictures() }
        let header = try record(0, of: count, reader)
        let start = header.lowerBound
        guard reader.matches("MOBI", at: start &+ 16) else { return EmbeddedPictures() }
        let length = try reader.u32(at: start &+ 20)
        let firstImage = try reader.u32(at: start &+ 0x6C)
        var offsets: [Int] = []
        if try reader.u32(at: start &+ 0x80) & 0x40 != 0, reader.matches("EXTH", at: start &+ 16 &+ length) {
            var (cover, thumbnail): (Int?, Int?)
            var at = start &+ 16 &+ length &+ 12
            for _ in 0..<min(try reader.u32(at: at &- 4), 1_000) {
                let size = try reader.u32(at: at &+ 4)
                guard size >= 8, at &+ size <= header.upperBound else { break }
                switch try reader.u32(at: at) {
                case 201 where size == 12: cover = try reader.u32(at: at &+ 8)
                case 202 where size == 12: thumbnail = try reader.u32(at: at &+ 8)
                default: break
                }
                at &+= size
            }
            offsets = [cover, thumbnail].compactMap(\.self).filter { $0 != 0xFFFF_FFFF }
        }
        // Books without the entries have their cover first.
        var records = offsets.map { firstImage &+ $0 }
        let first = Range(from: firstImage, to: max(firstImage, min(count, firstImage &+ mostRecords)))
        records += first.filter { !records.contains($0) }
        return EmbeddedPictures(
            pictures: records.compactMap { picture($0, of: count, reader) }, isRanked: true)
    }

    private static func picture(_ index: Int, of count: Int, _ reader: ByteReader) -> EmbeddedPicture? {
        guard let range = try? record(index, of: count, reader), range.count > 16,
            let start = try? reader.bytes(range.prefix(16)), ByteSource.isPlainPicture(start)
        else { return nil }
        return EmbeddedPicture(content: .range(range))
    }

    private static func record(_ index: Int, of count: Int, _ reader: ByteReader) throws(ImageError) -> Range<Int> {
        guard index >= 0, index < count else { throw reader.corrupt("a record of the book does not exist") }
        let start = try reader.u32(at: 78 + 8 * index)
        let end = index + 1 < count ? try reader.u32(at: 86 + 8 * index) : reader.count
        guard start < end, end <= reader.count else {
            // The last record of a file that ends early.
            if start < reader.count, end > reader.count { return start..<reader.count }
            throw reader.corrupt("a record of the book lies outside of the file")
        }
        return start..<end
    }
}

/// Finds the cover of a book in FictionBook, which stands in it as base64.
///
/// The reference is read by the scanner of XML, up to the end of the description. Behind it the file is searched for
/// the element `binary` with that name, and for others, which show the book if the cover is damaged.
enum FictionBookPictures: PictureLocating {
    static let formats: [ImageFormat] = [.fictionBook]

    /// Images beside the cover that are looked at.
    private static let mostOthers = 8

    static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.count >= 32 else { return nil }
        var first = try reader.u8(at: 0)
        if first == 0xEF { first = try reader.u8(at: 3) }
        guard first == UInt8(ascii: "<") || first == 0xFE || first == 0xFF else { return nil }
        let start = try reader.bytes(0..<min(reader.count, 4_096))
        var scanner = XMLScanner(start, input: reader.name)
        while let event = try? scanner.next() {
            if event == .start { return scanner.isNamed("FictionBook") ? .fictionBook : nil }
        }
        return nil
    }

    static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        try limits.require(reader.count, .documentBytes, atMost: EmbeddedPicture.maximumBytes, input: reader.name)
        return try pictures(in: reader.source.allBytes(), input: reader.name)
    }

    static func pictures(in bytes: [UInt8], input: String) throws(ImageError) -> EmbeddedPictures {
        var scanner = XMLScanner(bytes, input: input)
        var isCover = false
        var name: String?
        scan: while let event = try scanner.next() {
            switch event {
            case .start:
                if scanner.isNamed("coverpage") {
                    isCover = true
                } else if isCover, scanner.isNamed("image") {
                    name = scanner.attribute("href")
                    break scan
                } else if scanner.isNamed("body") {
                    break scan
                }
            case .end:
                if scanner.isNamed("coverpage") { isCover = false }
                if scanner.isNamed("description") { break scan }
            case .text: break
            }
        }
        guard let name, name.hasPrefix("#"), name.utf8.count > 1 else { return EmbeddedPictures() }
        let id = String(name.dropFirst())
        var (cover, others): (EmbeddedPicture?, [EmbeddedPicture]) = (nil, [])
        do throws(ImageError) {
            while cover == nil || others.count < mostOthers, let event = try scanner.next() {
                guard event == .start, scanner.isNamed("binary"), !scanner.isEmptyElement else { continue }
                let isCover = cover == nil && scanner.attribute("id") == id
                guard isCover || others.count < mostOthers, try scanner.next() == .text else { continue }
                let picture = EmbeddedPicture(content: .base64(scanner.raw(scanner.text)))
                if isCover { cover = picture } else { others.append(picture) }
            }
        } catch {
            // What stands behind the cover does not spoil it.
            if cover == nil { throw error }
        }
        guard let cover else { return EmbeddedPictures() }
        return EmbeddedPictures(pictures: [cover] + others, isRanked: true)
    }
}

/// Finds the thumbnails that slicers write into instructions for 3D printers.
///
/// Text: `; thumbnail begin 220x124 8012`, lines of base64 behind semicolons, `; thumbnail end` (PrusaSlicer,
/// `Thumbnails.hpp`). Binary: blocks of type 5 (Prusa, `libbgcode`, specification.md).
enum GCodePictures: PictureLocating {
    static let formats: [ImageFormat] = [.gcode, .binaryGCode]

    /// Bytes of the text that are searched.
    private static let searched = 512 << 10

    static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.count >= 16 else { return nil }
        if reader.matches("GCDE", at: 0) { return .binaryGCode }
        guard try reader.u8(at: 0) == UInt8(ascii: ";") else { return nil }
        let start = String(decoding: try reader.bytes(0..<min(reader.count, 4_096)), as: UTF8.self)
        let marks = [
            "thumbnail", "generated by", "generated with", ";FLAVOR:", "HEADER_BLOCK_START", ";TYPE:", ";LAYER",
        ]
        return marks.contains { start.contains($0) } ? .gcode : nil
    }

    static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        EmbeddedPictures(pictures: try format == .gcode ? text(reader) : binary(reader))
    }

    private static func text(_ reader: ByteReader) throws(ImageError) -> [EmbeddedPicture] {
        let bytes = try reader.bytes(0..<min(reader.count, searched))
        var found: [EmbeddedPicture] = []
        var open: [UInt8]?
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: true) {
            guard line.first == UInt8(ascii: ";") else { continue }
            let comment = line.dropFirst().drop { $0 == 32 }
            guard comment.starts(with: "thumbnail".utf8) else {
                open?.append(contentsOf: comment)
                continue
            }
            let words = comment.split(separator: 32)
            if words.count > 1, words[1].starts(with: "end".utf8) {
                if let text = open, found.count < 16 {
                    let picture = Base64Text.decode(text[...])
                    if !picture.isEmpty { found.append(EmbeddedPicture(content: .bytes(picture))) }
                }
                open = nil
            } else if words.count > 1, words[1].starts(with: "begin".utf8) {
                open = []
            }
        }
        return found
    }

    private static func binary(_ reader: ByteReader) throws(ImageError) -> [EmbeddedPicture] {
        let checksum = try reader.u16(at: 8, bigEndian: false) == 1 ? 4 : 0
        var found: [EmbeddedPicture] = []
        var at = 10
        for _ in 0..<64 where at &+ 8 <= reader.count {
            let type = try reader.u16(at: at, bigEndian: false)
            let compression = try reader.u16(at: at &+ 2, bigEndian: false)
            let size = try reader.u32(at: at &+ 4, bigEndian: false)
            let stored = compression == 0 ? size : try reader.u32(at: at &+ 8, bigEndian: false)
            let start = at &+ (compression == 0 ? 8 : 12) &+ (type == 5 ? 6 : 2)
            // Instructions come last.
            if type == 1 { break }
            if type == 5 {
                let range = try reader.range(at: start, count: stored)
                if compression == 0 {
                    found.append(EmbeddedPicture(content: .range(range)))
                } else if compression == 1 {
                    let bytes = try InflaterRange.inflate(
                        range, reader.source, wrapper: .zlib, claimed: size, maximum: EmbeddedPicture.maximumBytes)
                    found.append(EmbeddedPicture(content: .bytes(bytes)))
                }
            }
            at = start &+ stored &+ checksum
        }
        return found
    }
}
