import VitrineImageCore

/// Finds the first pages of comics in tar archives (POSIX.1-1988 ustar, with the long names of GNU).
///
/// An archive counts as a comic if it holds images and nothing else that matters.
enum ComicTarPictures: PictureLocating {
    static let formats: [ImageFormat] = [.comicTar]

    private static let block = 512
    private static let maximumEntries = 65_535

    static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.matches("ustar", at: 257) else { return nil }
        return try pages(reader).isEmpty ? nil : .comicTar
    }

    static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        EmbeddedPictures(
            pictures: try pages(reader).map { EmbeddedPicture(content: .range($0)) }, isRanked: true)
    }

    /// The first pages by name; none if the archive is no comic.
    private static func pages(_ reader: ByteReader) throws(ImageError) -> [Range<Int>] {
        var at = 0
        var (choice, places) = (ArchivePages(), [Int: Range<Int>]())
        var longName: [UInt8]?
        for index in 0..<maximumEntries where at &+ block <= reader.count {
            let header = try reader.bytes(from: at, to: at &+ block)
            guard header[257..<262].elementsEqual("ustar".utf8), let size = number(header[124..<136]) else { break }
            let start = at &+ block
            guard size <= reader.count &- start else { break }
            let (folder, last) = (text(header[345..<500]), text(header[0..<100]) ?? [])
            let name = longName ?? folder.map { $0 + [UInt8(ascii: "/")] + last } ?? last
            longName = nil
            switch header[156] {
            case UInt8(ascii: "L"):
                longName = text(try reader.bytes(from: start, to: start &+ min(size, 4_096))[...])
            case UInt8(ascii: "0"), 0:
                if name.last == UInt8(ascii: "/") { break }
                guard choice.consider(name, index: index) else { return [] }
                if choice.indices.contains(index) { places[index] = Range(from: start, to: start &+ size) }
            default: break
            }
            at = start &+ (size &+ block &- 1) / block &* block
        }
        return choice.indices.compactMap { places[$0] }
    }

    private static func text(_ field: ArraySlice<UInt8>) -> [UInt8]? {
        let text = field.prefix { $0 != 0 }
        return text.isEmpty ? nil : Array(text)
    }

    /// A number in octal digits, or in binary if its first bit is set.
    private static func number(_ field: ArraySlice<UInt8>) -> Int? {
        if field[field.startIndex] & 0x80 != 0 {
            return field.dropFirst(4).reduce(0) { $0 << 8 | Int($1) } & Int.max
        }
        var value = 0
        for byte in field.drop(while: { $0 == 32 }) {
            if byte == 0 || byte == 32 { break }
            guard (0x30...0x37).contains(byte) else { return nil }
            value = value << 3 | Int(byte & 7)
        }
        return value
    }
}

/// Finds the first pages of comics in RAR archives, and asks the worker for pages that are compressed.
///
/// The headers of both versions of the format are read here (RAR 5.0 archive format; `technote.txt` of RAR 4), so that
/// other archives are told from comics. A stored page needs no helper. Archives in 7z keep their names compressed: the
/// worker reads them.
package enum ComicArchivePictures: PictureLocating {
    package static let formats: [ImageFormat] = [.comicRAR, .comic7z]

    private static let maximumEntries = 65_535

    private struct File {
        var name: [UInt8]
        var data: Range<Int>
        var isStored: Bool
        var isEncrypted: Bool
    }

    package static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.count >= 20 else { return nil }
        if reader.matches("7z", at: 0), try reader.u32(at: 2) == 0xBCAF_271C { return .comic7z }
        return try files(reader).map(pages)?.isEmpty == false ? .comicRAR : nil
    }

    package static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        var stored = [Range<Int>?](repeating: nil, count: ArchivePages.most)
        if format == .comicRAR {
            let comic = try files(reader).map(pages) ?? []
            guard let first = comic.first else { return EmbeddedPictures() }
            if first.isEncrypted { throw .unsupported(input: reader.name, reason: "its content is encrypted") }
            stored = comic.map { $0.isStored && !$0.isEncrypted ? $0.data : nil }
        }
        let pictures = stored.enumerated().map { number, range in
            EmbeddedPicture(content: range.map { .range($0) } ?? .archived(page: number))
        }
        return EmbeddedPictures(pictures: pictures, isRanked: true)
    }

    /// The first pages by name; none if an archive is no comic.
    private static func pages(_ files: [File]) -> [File] {
        var choice = ArchivePages()
        for (index, file) in files.enumerated() where !choice.consider(file.name, index: index) { return [] }
        return choice.indices.map { files[$0] }
    }

    /// The files of a RAR archive; nil for any other input. Ends at damage, and at encrypted headers.
    private static func files(_ reader: ByteReader) throws(ImageError) -> [File]? {
        guard reader.matches("Rar!\u{1A}\u{7}", at: 0) else { return nil }
        var files: [File] = []
        do throws(ImageError) {
            if try reader.u8(at: 6) == 0 { try readVersion4(reader, &files) } else { try readVersion5(reader, &files) }
        } catch {
            if case .unreadable = error { throw error }
        }
        return files
    }

    private static func readVersion4(_ reader: ByteReader, _ files: inout [File]) throws(ImageError) {
        var at = 7
        for _ in 0..<maximumEntries where at &+ 7 <= reader.count {
            let type = try reader.u8(at: at &+ 2)
            let flags = try reader.u16(at: at &+ 3, bigEndian: false)
            let size = try reader.u16(at: at &+ 5, bigEndian: false)
            // The headers behind the main one are encrypted.
            guard size >= 7, !(type == 0x73 && flags & 0x80 != 0), type != 0x7B else { return }
            var data = 0
            if type == 0x74 || flags & 0x8000 != 0 { data = try reader.u32(at: at &+ 7, bigEndian: false) }
            if type == 0x74 {
                var name = at &+ 32
                if flags & 0x100 != 0 {
                    data |= (try reader.u32(at: name, bigEndian: false) & 0x7FFF_FFFF) << 32
                    name &+= 8
                }
                let length = try reader.u16(at: at &+ 26, bigEndian: false)
                let isDirectory = flags & 0xE0 == 0xE0
                let start = at &+ size
                // Unix systems put the target of a link where others have content.
                let mode = try reader.u32(at: at &+ 28, bigEndian: false)
                let isLink = try reader.u8(at: at &+ 15) == 3 && mode & 0xF000 == 0xA000
                guard data <= reader.count &- start else { return }
                if !isDirectory, !isLink {
                    // Behind a zero the name follows once more, in a code of its own.
                    let text = try reader.bytes(reader.range(at: name, count: min(length, 1_024))).prefix { $0 != 0 }
                    files.append(
                        File(
                            name: slashes(text), data: Range(from: start, to: start &+ data),
                            isStored: try reader.u8(at: at &+ 25) == 0x30 && flags & 3 == 0,
                            isEncrypted: flags & 4 != 0))
                }
            }
            at = at &+ size &+ data
        }
    }

    private static func readVersion5(_ reader: ByteReader, _ files: inout [File]) throws(ImageError) {
        var at = 8
        for _ in 0..<maximumEntries where at &+ 7 <= reader.count {
            var next = at &+ 4
            let size = try number(reader, &next)
            let (end, overflow) = next.addingReportingOverflow(size)
            guard !overflow, size > 0, end <= reader.count else { return }
            let type = try number(reader, &next)
            let flags = try number(reader, &next)
            let extra = flags & 1 != 0 ? try number(reader, &next) : 0
            let data = flags & 2 != 0 ? try number(reader, &next) : 0
            guard type != 4, type != 5, data <= reader.count &- end else { return }
            if type == 2 {
                let about = try number(reader, &next)
                _ = try number(reader, &next)  // unpacked size
                _ = try number(reader, &next)  // attributes
                next &+= (about & 2 != 0 ? 4 : 0) &+ (about & 4 != 0 ? 4 : 0)
                let compression = try number(reader, &next)
                _ = try number(reader, &next)  // system
                let length = try number(reader, &next)
                guard next <= end else { return }
                let name = try reader.bytes(reader.range(at: next, count: min(length, 4_096)))
                let fields = Range(from: max(next, end &- min(extra, size)), to: end)
                let (isEncrypted, isLink) = try marks(reader, fields)
                if about & 1 == 0, !isLink {
                    files.append(
                        File(
                            name: slashes(name[...]), data: Range(from: end, to: end &+ data),
                            isStored: compression >> 7 & 7 == 0 && flags & 0x18 == 0, isEncrypted: isEncrypted))
                }
            }
            at = end &+ data
        }
    }

    /// Whether the extra fields of a file call it encrypted or a link.
    private static func marks(
        _ reader: ByteReader, _ fields: Range<Int>
    ) throws(ImageError) -> (isEncrypted: Bool, isLink: Bool) {
        var (isEncrypted, isLink) = (false, false)
        var at = fields.lowerBound
        while at < fields.upperBound {
            let size = try number(reader, &at)
            guard size > 0, size <= fields.upperBound &- at else { break }
            var type = at
            switch try number(reader, &type) {
            case 1: isEncrypted = true
            case 5: isLink = true
            default: break
            }
            at &+= size
        }
        return (isEncrypted, isLink)
    }

    /// A number of seven bits a byte, the lowest first.
    private static func number(_ reader: ByteReader, _ at: inout Int) throws(ImageError) -> Int {
        var value = 0
        for shift in stride(from: 0, to: 56, by: 7) {
            let byte = try reader.u8(at: at)
            at &+= 1
            value |= (byte & 0x7F) << shift
            if byte & 0x80 == 0 { return value }
        }
        throw reader.corrupt("a number in it is too long")
    }

    private static func slashes(_ name: ArraySlice<UInt8>) -> [UInt8] {
        name.map { $0 == UInt8(ascii: "\\") ? UInt8(ascii: "/") : $0 }
    }
}

/// The choice of the first pages of an archive, by name, for the worker that opens archives by libarchive.
package struct ArchivePages: Sendable {
    /// Bytes that a page can have.
    package static let maximumBytes = EmbeddedPicture.maximumBytes
    /// Entries that are looked at.
    package static let maximumEntries = 65_535
    /// Pages that are kept: the first, and those that take its place if it is damaged.
    package static let most = 8

    private var pages: [(name: [UInt8], index: Int)] = []
    private var isComic = true

    package init() {}

    /// The numbers of the first entries, in the order of their names; none as long as there is no page.
    package var indices: [Int] { pages.map(\.index) }

    /// Takes a file of the archive into account.
    ///
    /// - Returns: Whether the archive can still be a comic.
    package mutating func consider(_ name: [UInt8], index: Int) -> Bool {
        guard isComic else { return false }
        if ArchivePath.isCompanion(name[...]) { return true }
        guard ArchivePath.isPicture(name[...]) else {
            (isComic, pages) = (false, [])
            return false
        }
        let place = pages.firstIndex { ArchivePath.isBefore(name[...], $0.name[...]) } ?? pages.count
        guard place < Self.most else { return true }
        pages.insert((name, index), at: place)
        if pages.count > Self.most { pages.removeLast() }
        return true
    }
}
