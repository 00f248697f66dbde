/// Reads the directories of TIFF and BigTIFF.
///
/// Source: TIFF 6.0 §8 (baseline fields), TIFF Technical Note 1 (SubIFDs), ICC.1:2022 annex B.2 (tag 34675),
/// XMP specification part 3 §1.1.6 (tag 700).
package enum TIFFHeaderReader: HeaderReading {
    /// Pages counted at most.
    private static let maximumPages = 65_536

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let structure = try TIFFStructure(reader, 0..<reader.count)
        let first = try structure.directory(at: structure.firstDirectory)
        guard let width = structure.integer(first[256]), let height = structure.integer(first[257]) else {
            throw reader.corrupt("a TIFF without a width and a height")
        }
        guard width > 0, height > 0 else { throw reader.corrupt("a TIFF with a side of zero pixels") }
        var header = ImageHeader(info: ImageInfo(format: .tiff, storedSize: PixelSize(width: width, height: height)))
        header.info.colorModel = colorModel(structure, first)
        header.info.bitDepth = min(64, structure.integer(first[258]) ?? 1)
        header.info.hasAlpha = hasAlpha(structure, first)
        if let value = structure.integer(first[274]), let orientation = Orientation(rawValue: value) {
            header.info.orientation = orientation
        }
        if let profile = structure.bytes(first[34675]) { header.setProfile(at: profile, reader, limits) }
        header.xmp = structure.bytes(first[700])
        header.info.frameCount = pages(structure, first)
        header.info.embeddedPreviews = previews(structure, first)
        return header
    }

    private static func colorModel(
        _ structure: TIFFStructure, _ directory: TIFFStructure.Directory
    ) -> ImageInfo.ColorModel {
        switch structure.integer(directory[262]) {
        case 0, 1, 4: .gray
        case 2: .rgb
        case 3: .palette
        case 5: .cmyk
        case 6: .yCbCr
        case nil: (structure.integer(directory[277]) ?? 1) >= 3 ? .rgb : .gray
        default: .other
        }
    }

    private static func hasAlpha(_ structure: TIFFStructure, _ directory: TIFFStructure.Directory) -> Bool {
        guard let extra = directory[338] else { return false }
        return (0..<min(extra.count, 16)).contains { [1, 2].contains(structure.integer(extra, $0)) }
    }

    /// The length of the chain of directories, which may run in a circle.
    private static func pages(_ structure: TIFFStructure, _ first: TIFFStructure.Directory) -> Int {
        var seen: Set<Int> = [structure.firstDirectory]
        var next = first.next
        while next != 0, seen.count < maximumPages, seen.insert(next).inserted {
            guard let following = try? structure.nextDirectory(after: next) else {
                seen.remove(next)
                break
            }
            next = following
        }
        return seen.count
    }

    /// JPEG files in one piece below this page: thumbnails as Exif stores them, in the chain or as sub-directories.
    private static func previews(
        _ structure: TIFFStructure, _ first: TIFFStructure.Directory
    ) -> [ImageInfo.EmbeddedPreview] {
        var offsets = first.next == 0 ? [] : [first.next]
        if let field = first[330] {
            for i in 0..<min(field.count, 8) { structure.integer(field, i).map { offsets.append($0) } }
        }
        return offsets.compactMap { offset in
            guard let directory = try? structure.directory(at: offset),
                let start = structure.integer(directory[513]), let count = structure.integer(directory[514]),
                let range = try? structure.reader.range(at: start, count: count)
            else { return nil }
            return JPEGHeaderReader.preview(structure.reader, range)
        }
    }
}

/// The directories of a TIFF structure: a TIFF or BigTIFF file, or the Exif block inside another format.
///
/// Source: TIFF 6.0 §2; BigTIFF (libtiff, bigtiff.html); offsets count from the byte-order mark.
package struct TIFFStructure {
    /// A field of a directory.
    package struct Field {
        package var tag: Int
        package var type: Int
        /// How many values, as the file claims.
        package var count: Int
        /// Where the first value stands, from the byte-order mark on.
        package var offset: Int
    }

    /// One directory (IFD).
    package struct Directory {
        package var fields: [Field]
        /// Where the next directory of the chain stands; 0 at the end.
        package var next: Int

        /// The first field with this tag.
        package subscript(tag: Int) -> Field? { fields.first { $0.tag == tag } }
    }

    /// Fields of one directory read at most; the rest is passed over. Real files have below 200.
    static let maximumFields = 1_024

    package let reader: ByteReader
    /// Where the structure stands in the input.
    package let range: Range<Int>
    package let isBigEndian: Bool
    package let isBigTIFF: Bool
    /// Where the first directory stands.
    package let firstDirectory: Int

    /// A structure without a signature of its own, as makers' notes have it.
    init(_ reader: ByteReader, _ range: Range<Int>, isBigEndian: Bool, firstDirectory: Int) {
        self.reader = reader
        self.range = range
        self.isBigEndian = isBigEndian
        self.firstDirectory = firstDirectory
        isBigTIFF = false
    }

    /// - Parameter allowsRaw: Whether the signatures count that Olympus and Panasonic have in the place of TIFF's.
    /// - Throws: ``ImageError/corrupt(input:reason:)`` without a TIFF signature.
    package init(_ reader: ByteReader, _ range: Range<Int>, allowsRaw: Bool = false) throws(ImageError) {
        let start = range.lowerBound
        guard range.count >= 8 else { throw .truncated(input: reader.name) }
        switch try reader.u16(at: start) {
        case 0x4949: isBigEndian = false
        case 0x4D4D: isBigEndian = true
        default: throw reader.corrupt("no TIFF byte order mark")
        }
        switch try reader.u16(at: start + 2, bigEndian: isBigEndian) {
        case let signature where signature == 42 || (allowsRaw && [0x0055, 0x4F52, 0x5352].contains(signature)):
            isBigTIFF = false
            firstDirectory = try reader.u32(at: start + 4, bigEndian: isBigEndian)
        case 43:
            isBigTIFF = true
            guard range.count >= 16 else { throw .truncated(input: reader.name) }
            firstDirectory = try reader.u64(at: start + 8, bigEndian: isBigEndian)
        default: throw reader.corrupt("no TIFF signature")
        }
        self.reader = reader
        self.range = range
    }

    /// The directory at `offset`.
    package func directory(at offset: Int) throws(ImageError) -> Directory {
        let (entrySize, countSize) = isBigTIFF ? (20, 8) : (12, 2)
        let start = try position(offset, countSize)
        let count =
            try isBigTIFF
            ? reader.u64(at: start, bigEndian: isBigEndian) : reader.u16(at: start, bigEndian: isBigEndian)
        guard count <= range.count / entrySize else { throw .truncated(input: reader.name) }
        var fields: [Field] = []
        fields.reserveCapacity(min(count, TIFFStructure.maximumFields))
        for i in 0..<min(count, TIFFStructure.maximumFields) {
            let relative = offset &+ countSize &+ i &* entrySize
            let entry = try position(relative, entrySize)
            let type = try reader.u16(at: entry + 2, bigEndian: isBigEndian)
            let values = try word(entry + 4)
            let inline = isBigTIFF ? 12 : 8
            let (bytes, overflow) = values.multipliedReportingOverflow(by: TIFFStructure.size(ofType: type))
            let fits = !overflow && bytes <= (isBigTIFF ? 8 : 4)
            fields.append(
                Field(
                    tag: try reader.u16(at: entry, bigEndian: isBigEndian), type: type, count: values,
                    offset: fits ? relative &+ inline : try word(entry + inline)))
        }
        // A chain that ends with the input is an end, not damage: many Exif writers leave the pointer out.
        let after = offset &+ countSize &+ count &* entrySize
        let next = (try? position(after, isBigTIFF ? 8 : 4)).flatMap { try? word($0) } ?? 0
        return Directory(fields: fields, next: next)
    }

    /// Where the directory behind the one at `offset` stands, without reading its fields; 0 at the end of the chain.
    package func nextDirectory(after offset: Int) throws(ImageError) -> Int {
        let (entrySize, countSize) = isBigTIFF ? (20, 8) : (12, 2)
        let start = try position(offset, countSize)
        let count =
            try isBigTIFF
            ? reader.u64(at: start, bigEndian: isBigEndian) : reader.u16(at: start, bigEndian: isBigEndian)
        guard count > 0, count <= range.count / entrySize else { throw .truncated(input: reader.name) }
        let after = try position(offset &+ countSize &+ count &* entrySize, isBigTIFF ? 8 : 4)
        return try word(after)
    }

    /// A whole number of a field; nil when it is none, is negative, or lies outside the structure.
    package func integer(_ field: Field?, _ index: Int = 0) -> Int? {
        guard let field, index < field.count else { return nil }
        let size = TIFFStructure.size(ofType: field.type)
        guard let at = try? position(field.offset &+ index &* size, size) else { return nil }
        switch field.type {
        case 1, 7: return try? reader.u8(at: at)
        case 3: return try? reader.u16(at: at, bigEndian: isBigEndian)
        case 4, 13: return try? reader.u32(at: at, bigEndian: isBigEndian)
        case 9: return (try? reader.u32(at: at, bigEndian: isBigEndian)).flatMap { $0 > 0x7FFF_FFFF ? nil : $0 }
        case 16, 18: return try? reader.u64(at: at, bigEndian: isBigEndian)
        default: return nil
        }
    }

    /// The bytes of a field, where they stand in the input; nil when they lie outside the structure.
    package func bytes(_ field: Field?) -> Range<Int>? {
        guard let field else { return nil }
        let (count, overflow) = field.count.multipliedReportingOverflow(by: TIFFStructure.size(ofType: field.type))
        guard !overflow, let start = try? position(field.offset, count) else { return nil }
        return Range(from: start, to: start &+ count)
    }

    /// The text of a field, at most 256 bytes of it, without trailing blanks; nil when there is none.
    package func text(_ field: Field?) -> String? {
        guard let field, field.type == 2, let range = bytes(field),
            let bytes = try? reader.bytes(range.prefix(256))
        else { return nil }
        var text = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        while text.last?.isWhitespace == true { text.removeLast() }
        return text.isEmpty ? nil : text
    }

    /// Where `offset` stands in the input, if `count` bytes from there are inside the structure.
    package func position(_ offset: Int, _ count: Int) throws(ImageError) -> Int {
        guard offset >= 0, count >= 0, count <= range.count, offset <= range.count &- count else {
            throw .truncated(input: reader.name)
        }
        return range.lowerBound &+ offset
    }

    private func word(_ at: Int) throws(ImageError) -> Int {
        try isBigTIFF ? reader.u64(at: at, bigEndian: isBigEndian) : reader.u32(at: at, bigEndian: isBigEndian)
    }

    /// Bytes of one value; 1 for types that do not exist.
    static func size(ofType type: Int) -> Int {
        switch type {
        case 3, 8: 2
        case 4, 9, 11, 13: 4
        case 5, 10, 12, 16, 17, 18: 8
        default: 1
        }
    }
}
