import VitrineImageCore

/// Finds the images of documents, books, drawings, models and comics that are ZIP archives.
///
/// The names of the entries and the entry `mimetype` decide which kind an archive is. An archive of any other content,
/// such as a plain ZIP or JAR file, is none.
package enum ZipPictures: PictureLocating {
    package static let formats: [ImageFormat] = [
        .epub, .comicZip, .odt, .ods, .odp, .odg, .docx, .xlsx, .pptx, .vsdx, .xps, .threeMF, .iWork, .krita,
        .openRaster, .sketch, .procreate, .figma, .apk, .fictionBookZip,
    ]

    package static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard looksRight(reader) else { return nil }
        // A damaged directory is no archive of a known kind; errors of the system remain.
        do throws(ImageError) {
            guard let archive = try ZipArchive(reader) else { return nil }
            return try ZipSurvey(archive).format(archive, reader)
        } catch {
            if case .unreadable = error { throw error }
            return nil
        }
    }

    static func looksRight(_ reader: ByteReader) -> Bool { reader.matches("PK\u{3}\u{4}", at: 0) }

    package static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        guard let archive = try ZipArchive(reader) else { throw reader.corrupt("it is no ZIP archive") }
        let survey = try ZipSurvey(archive)
        var found = ZipPictureList(archive: archive, reader: reader)
        switch format {
        case .epub:
            found.isRanked = true
            for entry in try EPUBCover(archive, reader).entries() { try found.add(entry) }
        case .comicZip:
            found.isRanked = true
            for entry in try survey.comicPages(archive, reader) { try found.add(entry) }
        case .docx, .xlsx, .pptx, .vsdx, .xps, .threeMF:
            try found.add(relatedThumbnail(archive, reader: reader, survey: survey))
            if format == .threeMF {
                try found.add(survey.entries[.metadataPlate])
                try found.add(survey.entries[.metadataThumbnail])
            }
        case .odt, .ods, .odp, .odg: try found.add(survey.entries[.documentThumbnail])
        case .openRaster:
            try found.add(survey.entries[.documentThumbnail])
            try found.add(survey.entries[.mergedImage])
        case .krita:
            try found.add(survey.entries[.preview])
            try found.add(survey.entries[.mergedImage])
        case .iWork:
            for name in [ZipSurvey.Name.iWorkPreview, .iWorkWeb, .iWorkMicro, .quickLookJPEG] {
                try found.add(survey.entries[name])
            }
        case .sketch: try found.add(survey.entries[.sketchPreview])
        case .procreate: try found.add(survey.entries[.quickLookPNG])
        case .figma: try found.add(survey.entries[.figmaThumbnail])
        case .apk: try found.add(survey.icon)
        case .fictionBookZip:
            guard let book = survey.book else { break }
            let bytes = try archive.bytes(of: book, reader, maximum: EmbeddedPicture.maximumBytes)
            return try FictionBookPictures.pictures(in: bytes, input: reader.name)
        default: break
        }
        return try found.result()
    }

    /// The entry that `_rels/.rels` names as thumbnail (ECMA-376 part 2, 11.1). Targets outside of the package are no
    /// images of it.
    private static func relatedThumbnail(
        _ archive: ZipArchive, reader: ByteReader, survey: ZipSurvey
    ) throws(ImageError) -> ZipArchive.Entry? {
        guard let entry = survey.entries[.relationships] else { return nil }
        let document = try archive.bytes(of: entry, reader, maximum: ZipArchive.maximumDocument)
        var scanner = XMLScanner(document, input: reader.name)
        while let event = try scanner.next() {
            guard event == .start, scanner.isNamed("Relationship"), let type = scanner.attribute("Type"),
                type.hasSuffix("metadata/thumbnail"), scanner.attribute("TargetMode") != "External",
                let target = scanner.attribute("Target"), let path = ArchivePath.resolve(target, relativeTo: "")
            else { continue }
            return try archive.entry(named: path)
        }
        return nil
    }
}

/// The images found in an archive. An entry that cannot be read is passed over if there is another one.
private struct ZipPictureList {
    let archive: ZipArchive
    let reader: ByteReader
    private var pictures: [EmbeddedPicture] = []
    private var failure: ImageError?
    /// See ``EmbeddedPictures/isRanked``.
    var isRanked = false

    init(archive: ZipArchive, reader: ByteReader) {
        self.archive = archive
        self.reader = reader
    }

    mutating func add(_ entry: ZipArchive.Entry?) throws(ImageError) {
        guard let entry else { return }
        do throws(ImageError) {
            switch try archive.storage(of: entry, reader) {
            case .stored(let range): pictures.append(EmbeddedPicture(content: .range(range)))
            case .deflated(let range) where isRanked && !pictures.isEmpty:
                // Inflated only if those before cannot be read.
                pictures.append(EmbeddedPicture(content: .deflated(range, count: entry.size)))
            case .deflated:
                let bytes = try archive.bytes(of: entry, reader, maximum: EmbeddedPicture.maximumBytes)
                pictures.append(EmbeddedPicture(content: .bytes(bytes)))
            }
        } catch {
            if case .unreadable = error { throw error }
            failure = failure ?? error
        }
    }

    func result() throws(ImageError) -> EmbeddedPictures {
        if pictures.isEmpty, let failure { throw failure }
        return EmbeddedPictures(pictures: pictures, orientation: nil, isRanked: isRanked)
    }
}

/// References inside an archive.
enum ArchivePath {
    /// Joins a reference with the path of the document it stands in.
    ///
    /// - Returns: The name of an entry, without percent signs, dots and fragment; nil for a reference that leads out of
    ///   the archive: with a scheme, with a host, or above the root.
    static func resolve(_ reference: String, relativeTo document: String) -> String? {
        var reference = reference[...]
        if let end = reference.firstIndex(where: { $0 == "#" || $0 == "?" }) { reference = reference[..<end] }
        guard !reference.isEmpty, !reference.hasPrefix("//"), !reference.contains("\\") else { return nil }
        if let colon = reference.firstIndex(of: ":"), !reference[..<colon].contains("/") { return nil }
        var parts: [Substring] = []
        if !reference.hasPrefix("/") { parts = document.split(separator: "/").dropLast() }
        let plain = decodingPercents(reference)
        for part in plain.split(separator: "/") {
            switch part {
            case ".": continue
            case "..":
                if parts.popLast() == nil { return nil }
            default: parts.append(part)
            }
        }
        return parts.isEmpty ? nil : parts.joined(separator: "/")
    }

    private static func decodingPercents(_ text: Substring) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        var result: [UInt8] = []
        var bytes = Array(text.utf8)[...]
        while let byte = bytes.popFirst() {
            if byte == UInt8(ascii: "%"), bytes.count >= 2,
                let value = UInt8(String(decoding: bytes.prefix(2), as: UTF8.self), radix: 16)
            {
                result.append(value)
                bytes = bytes.dropFirst(2)
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Whether a file of an archive is a page of a comic, by the end of its name.
    static func isPicture(_ name: ArraySlice<UInt8>) -> Bool {
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), name.endIndex - dot <= 6, dot > name.startIndex else {
            return false
        }
        switch name[(dot + 1)...].reduce(0, { $0 << 8 | UInt64($1 | 0x20) }) {
        case 0x6A7067, 0x6A706567, 0x706E67, 0x77656270, 0x676966, 0x61766966, 0x6A786C, 0x626D70, 0x68656963,
            0x746966, 0x74696666:
            return true  // jpg jpeg png webp gif avif jxl bmp heic tif tiff
        default: return false
        }
    }

    /// Whether a file is a drawing, by the end of its name.
    static func isDrawing(_ name: String) -> Bool {
        [".svg", ".svgz"].contains { name.utf8.suffix($0.utf8.count).map { lower($0) }.elementsEqual($0.utf8) }
    }

    /// Whether a file is one that systems and collectors put beside pages.
    static func isCompanion(_ name: ArraySlice<UInt8>) -> Bool {
        let last = name.lastIndex(of: UInt8(ascii: "/")).map { name[($0 + 1)...] } ?? name
        if last.isEmpty || last.starts(with: "._".utf8) || last.first == UInt8(ascii: ".") { return true }
        if name.starts(with: "__MACOSX/".utf8) { return true }
        return ["thumbs.db", "comicinfo.xml", "desktop.ini"].contains { $0.utf8.elementsEqual(last.map { lower($0) }) }
            || [".txt", ".nfo", ".sfv", ".url", ".xml", ".json", ".acbf", ".md5"].contains {
                last.suffix($0.utf8.count).map { lower($0) }.elementsEqual($0.utf8)
            }
    }

    static func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    /// Whether a page stands before another: numbers by their value, letters without case, directories first to last.
    static func isBefore(_ a: ArraySlice<UInt8>, _ b: ArraySlice<UInt8>) -> Bool {
        var (i, j) = (a.startIndex, b.startIndex)
        while i < a.endIndex, j < b.endIndex {
            if isDigit(a[i]), isDigit(b[j]) {
                while i < a.endIndex, a[i] == UInt8(ascii: "0") { i += 1 }
                while j < b.endIndex, b[j] == UInt8(ascii: "0") { j += 1 }
                let (x, y) = (a[i...].prefix { isDigit($0) }, b[j...].prefix { isDigit($0) })
                if x.count != y.count { return x.count < y.count }
                if !x.elementsEqual(y) { return x.lexicographicallyPrecedes(y) }
                (i, j) = (x.endIndex, y.endIndex)
                continue
            }
            // A separator stands before all that can follow in a name.
            let (x, y) = (rank(a[i]), rank(b[j]))
            if x != y { return x < y }
            i += 1
            j += 1
        }
        return a.endIndex - i < b.endIndex - j
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func rank(_ byte: UInt8) -> UInt8 { byte == UInt8(ascii: "/") ? 0 : lower(byte) }
}

/// The findings of one pass over the names of an archive.
struct ZipSurvey {
    /// Entries with a fixed name.
    enum Name: CaseIterable {
        case mimeType, container, contentTypes, relationships, documentThumbnail, stack, mergedImage, preview
        case mainDocument, iWorkPreview, iWorkWeb, iWorkMicro, quickLookJPEG, quickLookPNG, documentArchive
        case sketchPreview, figmaCanvas, figmaThumbnail, manifest, metadataThumbnail, metadataPlate, comicInfo

        var text: StaticString {
            switch self {
            case .mimeType: "mimetype"
            case .container: "META-INF/container.xml"
            case .contentTypes: "[Content_Types].xml"
            case .relationships: "_rels/.rels"
            case .documentThumbnail: "Thumbnails/thumbnail.png"
            case .stack: "stack.xml"
            case .mergedImage: "mergedimage.png"
            case .preview: "preview.png"
            case .mainDocument: "maindoc.xml"
            case .iWorkPreview: "preview.jpg"
            case .iWorkWeb: "preview-web.jpg"
            case .iWorkMicro: "preview-micro.jpg"
            case .quickLookJPEG: "QuickLook/Thumbnail.jpg"
            case .quickLookPNG: "QuickLook/Thumbnail.png"
            case .documentArchive: "Document.archive"
            case .sketchPreview: "previews/preview.png"
            case .figmaCanvas: "canvas.fig"
            case .figmaThumbnail: "thumbnail.png"
            case .manifest: "AndroidManifest.xml"
            case .metadataThumbnail: "Metadata/thumbnail.png"
            case .metadataPlate: "Metadata/plate_1.png"
            case .comicInfo: "ComicInfo.xml"
            }
        }
    }

    private(set) var entries: [Name: ZipArchive.Entry] = [:]
    /// The largest launcher icon of a program for Android.
    private(set) var icon: ZipArchive.Entry?
    /// The only file of the archive, if it is a book in FictionBook.
    private(set) var book: ZipArchive.Entry?
    private var pages = 0
    private var others = 0
    private var hasIWorkIndex = false
    private var part: ImageFormat?
    /// The kind of a package that has nothing but its thumbnail.
    private var bare: ImageFormat?

    private static let names: [Int: [Name]] = Dictionary(grouping: Name.allCases) { $0.text.utf8CodeUnitCount }

    init(_ archive: ZipArchive) throws(ImageError) {
        let directory = archive.directory
        func isAlike(_ range: Range<Int>, _ text: StaticString) -> Bool {
            (0..<text.utf8CodeUnitCount).allSatisfy {
                ArchivePath.lower(directory[range.lowerBound + $0]) == ArchivePath.lower(text.utf8Start[$0])
            }
        }
        func equals(_ range: Range<Int>, _ text: StaticString) -> Bool {
            range.count == text.utf8CodeUnitCount && begins(range, text)
        }
        func begins(_ range: Range<Int>, _ text: StaticString) -> Bool {
            guard range.count >= text.utf8CodeUnitCount else { return false }
            for i in 0..<text.utf8CodeUnitCount where directory[range.lowerBound + i] != text.utf8Start[i] {
                return false
            }
            return true
        }
        func ends(_ range: Range<Int>, _ text: StaticString) -> Bool {
            range.count >= text.utf8CodeUnitCount && begins(range.suffix(text.utf8CodeUnitCount), text)
        }
        var files = 0
        var exact: Set<Name> = []
        var lastBook: ZipArchive.Entry?
        try archive.forEach { entry in
            let name = entry.name
            if let candidates = Self.names[name.count], let hit = candidates.first(where: { isAlike(name, $0.text) }) {
                // Another case of letters will do where the right one is missing.
                let isExact = equals(name, hit.text)
                if isExact || !exact.contains(hit) { entries[hit] = entry }
                if isExact { exact.insert(hit) }
            }
            guard !ends(name, "/"), !entry.isDirectory else { return true }
            files += 1
            if part == nil {
                if begins(name, "word/") { part = .docx }
                if begins(name, "xl/") { part = .xlsx }
                if begins(name, "ppt/") { part = .pptx }
                if begins(name, "visio/") { part = .vsdx }
                if begins(name, "3D/") || ends(name, ".model") { part = .threeMF }
                if ends(name, ".fdseq") { part = .xps }
                if begins(name, "docProps/") { bare = .docx }
                if begins(name, "Metadata/") { bare = bare ?? .threeMF }
            }
            if begins(name, "Index/") && ends(name, ".iwa") || equals(name, "Index.zip") || begins(name, "index.apxl")
                || begins(name, "index.xml")
            {
                hasIWorkIndex = true
            }
            if ends(name, ".fb2") || ends(name, ".FB2") { lastBook = entry }
            let text = directory[name]
            if begins(name, "res/mipmap"), ends(name, ".png") || ends(name, ".webp"), entry.size > icon?.size ?? 0,
                let slash = text.lastIndex(of: UInt8(ascii: "/")), text[(slash + 1)...].starts(with: "ic_launcher".utf8)
            {
                icon = entry
            }
            if ArchivePath.isCompanion(text) {
                return true
            } else if ArchivePath.isPicture(text) {
                pages += 1
            } else {
                others += 1
            }
            return true
        }
        if files == 1 { book = lastBook }
    }

    /// The kind of the archive; nil for any other.
    func format(_ archive: ZipArchive, _ reader: ByteReader) throws(ImageError) -> ImageFormat? {
        if let entry = entries[.mimeType], !entry.isEncrypted, !entry.isSpecial {
            let type = String(decoding: try archive.prefix(of: entry, reader, count: 128), as: UTF8.self)
            if let format = Self.format(ofType: type) { return format }
        }
        if entries[.container] != nil { return .epub }
        // Packages of other kinds are not comics, whatever images they hold.
        if entries[.contentTypes] != nil || entries[.relationships] != nil { return part ?? bare }
        if entries[.manifest] != nil { return .apk }
        if entries[.sketchPreview] != nil { return .sketch }
        if entries[.figmaCanvas] != nil { return .figma }
        if entries[.stack] != nil { return .openRaster }
        if entries[.mainDocument] != nil { return .krita }
        if hasIWorkIndex { return .iWork }
        if entries[.documentArchive] != nil || entries[.quickLookPNG] != nil { return .procreate }
        if entries[.documentThumbnail] != nil { return .odt }
        if book != nil { return .fictionBookZip }
        return pages > 0 && others == 0 ? .comicZip : nil
    }

    private static func format(ofType type: String) -> ImageFormat? {
        let type = type.prefix { !$0.isWhitespace }
        switch type {
        case "application/epub+zip": return .epub
        case "image/openraster": return .openRaster
        case "application/x-krita": return .krita
        default: break
        }
        for (start, format) in [
            ("text", ImageFormat.odt), ("spreadsheet", .ods), ("presentation", .odp), ("graphics", .odg),
            ("", .odt),
        ] where type.hasPrefix("application/vnd.oasis.opendocument." + start) {
            return format
        }
        return nil
    }

    /// Pages that are looked at if those before are damaged.
    private static let maximumPages = 8

    /// The page that `ComicInfo.xml` calls the front cover, and the first ones by name.
    func comicPages(_ archive: ZipArchive, _ reader: ByteReader) throws(ImageError) -> [ZipArchive.Entry] {
        var all: [ZipArchive.Entry] = []
        try archive.forEach { entry in
            let text = archive.directory[entry.name]
            if text.last != UInt8(ascii: "/"), !entry.isDirectory, !ArchivePath.isCompanion(text),
                ArchivePath.isPicture(text)
            {
                all.append(entry)
            }
            return true
        }
        all.sort { ArchivePath.isBefore(archive.directory[$0.name], archive.directory[$1.name]) }
        var pages = Array(all.prefix(Self.maximumPages))
        if let info = entries[.comicInfo], let document = try? archive.bytes(
            of: info, reader, maximum: ZipArchive.maximumDocument), let index = ComicInfo.cover(document), index > 0,
            index < all.count
        {
            pages.insert(all[index], at: 0)
        }
        return pages
    }
}

/// The description that comic readers put into an archive.
enum ComicInfo {
    /// The index of the page of the type `FrontCover`; nil if there is none.
    static func cover(_ document: [UInt8]) -> Int? {
        var scanner = XMLScanner(document, input: "ComicInfo.xml")
        while let event = try? scanner.next() {
            guard event == .start, scanner.isNamed("Page"), scanner.attribute("Type") == "FrontCover" else { continue }
            return scanner.attribute("Image").flatMap { Int($0) }
        }
        return nil
    }
}

/// The cover of a book in EPUB.
///
/// EPUB 3.3 §5.5.4 (`cover-image`), the `meta` element that EPUB 2 readers agreed on, `guide` of OPF 2.0.1 §2.6, and
/// the first image of the first documents in reading order.
private struct EPUBCover {
    private struct Item {
        var id = ""
        var href = ""
        var mediaType = ""
        var properties = ""

        var isPicture: Bool { mediaType.hasPrefix("image/") }
    }

    /// Images that are looked at if those before are damaged.
    private static let maximumPictures = 8
    /// Items of a manifest that are kept.
    private static let maximumItems = 20_000

    private let archive: ZipArchive
    private let reader: ByteReader

    init(_ archive: ZipArchive, _ reader: ByteReader) {
        self.archive = archive
        self.reader = reader
    }

    /// The images that may be the cover, the most certain first.
    func entries() throws(ImageError) -> [ZipArchive.Entry] {
        guard let container = try document("META-INF/container.xml"), let path = try package(container),
            path != "META-INF/container.xml", let bytes = try document(path)
        else { return [] }
        var items: [Item] = []
        var (coverID, guide): (String?, String?)
        var spine: [String] = []
        var scanner = XMLScanner(bytes, input: reader.name)
        while let event = try scanner.next() {
            guard event == .start else { continue }
            if scanner.isNamed("item"), items.count < Self.maximumItems {
                items.append(
                    Item(
                        id: scanner.attribute("id") ?? "", href: scanner.attribute("href") ?? "",
                        mediaType: scanner.attribute("media-type") ?? "",
                        properties: scanner.attribute("properties") ?? ""))
            } else if scanner.isNamed("meta"), scanner.attribute("name") == "cover" {
                coverID = coverID ?? scanner.attribute("content")
            } else if scanner.isNamed("itemref"), spine.count < 3 {
                if let id = scanner.attribute("idref") { spine.append(id) }
            } else if scanner.isNamed("reference"), scanner.attribute("type")?.lowercased() == "cover" {
                guide = guide ?? scanner.attribute("href")
            }
        }
        var references: [String] = []
        references += items.filter { $0.properties.split(separator: " ").contains("cover-image") }.map(\.href)
        if let coverID {
            references += items.filter { $0.id == coverID }.map(\.href)
            // Some tools write the path itself.
            references += items.filter { $0.href == coverID }.map(\.href)
        }
        if let guide { references.append(guide) }
        references += items.filter { $0.isPicture && $0.id.lowercased().contains("cover") }.map(\.href)
        references += items.filter { $0.isPicture && $0.href.lowercased().contains("cover") }.map(\.href)
        for id in spine { references += items.filter { $0.id == id }.map(\.href) }
        var found: [ZipArchive.Entry] = []
        for reference in references.prefix(16) {
            guard let entry = try picture(reference, relativeTo: path), !found.contains(where: { $0.name == entry.name })
            else { continue }
            found.append(entry)
            if found.count == Self.maximumPictures { break }
        }
        return found
    }

    /// The path of the package document.
    private func package(_ container: [UInt8]) throws(ImageError) -> String? {
        var scanner = XMLScanner(container, input: reader.name)
        while let event = try scanner.next() {
            guard event == .start, scanner.isNamed("rootfile"), let path = scanner.attribute("full-path") else {
                continue
            }
            return ArchivePath.resolve(path, relativeTo: "")
        }
        return nil
    }

    private func document(_ path: String) throws(ImageError) -> [UInt8]? {
        guard let entry = try archive.entry(named: path) else { return nil }
        return try archive.bytes(of: entry, reader, maximum: ZipArchive.maximumDocument)
    }

    /// The image that a reference leads to: itself, or the first one of a page.
    private func picture(_ reference: String, relativeTo document: String) throws(ImageError) -> ZipArchive.Entry? {
        guard let path = ArchivePath.resolve(reference, relativeTo: document),
            let entry = try archive.entry(named: path)
        else { return nil }
        if ArchivePath.isPicture(Array(path.utf8)[...]) || ArchivePath.isDrawing(path) { return entry }
        guard let bytes = try? archive.bytes(of: entry, reader, maximum: ZipArchive.maximumDocument) else { return nil }
        if ByteSource.isPlainPicture(bytes) { return entry }
        var scanner = XMLScanner(bytes, input: reader.name)
        // Pages declare entities at times; a broken page is no reason to show nothing of the book.
        while let event = try? scanner.next() {
            guard event == .start else { continue }
            let isImage = scanner.isNamed("image")
            guard isImage || scanner.isNamed("img"), let inner = scanner.attribute(isImage ? "href" : "src"),
                let target = ArchivePath.resolve(inner, relativeTo: path),
                ArchivePath.isPicture(Array(target.utf8)[...]) || ArchivePath.isDrawing(target)
            else { continue }
            return try archive.entry(named: target)
        }
        return nil
    }
}

extension ByteSource {
    /// Whether bytes begin like an image of a format that stands in documents.
    static func isPlainPicture(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: [0xFF, 0xD8, 0xFF]) || bytes.starts(with: [0x89, 0x50, 0x4E, 0x47])
            || bytes.starts(with: "GIF8".utf8) || bytes.starts(with: "RIFF".utf8) && bytes.count > 12
            && bytes[8..<12].elementsEqual("WEBP".utf8) || bytes.starts(with: "BM".utf8)
    }
}
