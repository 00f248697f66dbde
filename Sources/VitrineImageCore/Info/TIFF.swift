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
    package init(_ reader: ByteReader, _ range: Range<Int>, isBigEndian: Bool, firstDirectory: Int) {
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
