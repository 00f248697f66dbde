#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrineContainers

/// Documents, books and comics that are ZIP archives.
@Suite struct ZipPictureTests {
    private typealias Entry = ZipSample.Entry
    private let decoder = ImageDecoder(isolation: .inProcess)

    /// A picture that is known by its width.
    private func jpeg(_ width: Int) throws -> [UInt8] { try EmbeddedPictureTests.jpeg(width, 40) }

    private func width(_ entries: [Entry]) throws -> Int {
        try ImageInfo(of: .bytes(ZipSample(entries).bytes)).storedSize.width
    }

    private func format(_ entries: [Entry]) throws -> ImageFormat? {
        try ImageFormat.detect(ByteReader(ByteSource(bytes: ZipSample(entries).bytes, name: "made.zip")))
    }

    private func error(_ bytes: [UInt8]) -> ImageError? {
        do {
            _ = try decoder.decode(.bytes(bytes, name: "made.zip"), at: .fit(20))
            return nil
        } catch {
            return error
        }
    }

    // MARK: Kinds

    @Test func kindIsKnownByItsEntries() throws {
        let none: [UInt8] = [1]
        let kinds: [([Entry], ImageFormat?)] = [
            ([Entry("mimetype", text: "application/epub+zip")], .epub),
            ([Entry("META-INF/container.xml", none)], .epub),
            ([Entry("mimetype", text: "application/vnd.oasis.opendocument.text")], .odt),
            ([Entry("mimetype", text: "application/vnd.oasis.opendocument.spreadsheet-template\n")], .ods),
            ([Entry("mimetype", text: "application/vnd.oasis.opendocument.presentation")], .odp),
            ([Entry("mimetype", text: "application/vnd.oasis.opendocument.graphics")], .odg),
            ([Entry("mimetype", text: "application/x-krita")], .krita),
            ([Entry("mimetype", text: "image/openraster")], .openRaster),
            ([Entry("[Content_Types].xml", none), Entry("word/document.xml", none)], .docx),
            ([Entry("[Content_Types].xml", none), Entry("xl/workbook.xml", none)], .xlsx),
            ([Entry("[Content_Types].xml", none), Entry("ppt/presentation.xml", none)], .pptx),
            ([Entry("[Content_Types].xml", none), Entry("visio/document.xml", none)], .vsdx),
            ([Entry("[Content_Types].xml", none), Entry("3D/3dmodel.model", none)], .threeMF),
            ([Entry("[Content_Types].xml", none), Entry("FixedDocSeq.fdseq", none)], .xps),
            ([Entry("Index/Document.iwa", none), Entry("preview.jpg", none)], .iWork),
            ([Entry("document.json", none), Entry("previews/preview.png", none)], .sketch),
            ([Entry("Document.archive", none), Entry("QuickLook/Thumbnail.png", none)], .procreate),
            ([Entry("canvas.fig", none), Entry("thumbnail.png", none)], .figma),
            ([Entry("AndroidManifest.xml", none), Entry("classes.dex", none)], .apk),
            ([Entry("book.fb2", none)], .fictionBookZip),
            ([Entry("a/1.jpg", none), Entry("ComicInfo.xml", none), Entry("__MACOSX/x", none)], .comicZip),
            // Plain archives are no pictures.
            ([Entry("META-INF/MANIFEST.MF", none), Entry("A.class", none)], nil),
            ([Entry("photo.jpg", none), Entry("letter.pdf", none)], nil),
            ([Entry("[Content_Types].xml", none), Entry("package.nuspec", none)], nil),
            ([Entry("_rels/.rels", none), Entry("icon.png", none)], nil),
            ([Entry("_rels/.rels", none), Entry("docProps/thumbnail.jpeg", none)], .docx),
            ([Entry("_rels/.rels", none), Entry("Metadata/thumbnail.png", none)], .threeMF),
            ([], nil),
        ]
        for (entries, format) in kinds {
            #expect(try self.format(entries) == format, "\(entries.map(\.name))")
        }
        #expect(error(ZipSample([Entry("A.class", [1])]).bytes)?.caseName == "notAnImage")
    }

    @Test func largestAndSmallestPicturesOfAPaintingAreUsed() throws {
        let bytes = ZipSample([
            Entry("mimetype", text: "application/x-krita"), Entry("preview.png", try jpeg(60)),
            Entry("mergedimage.png", try EmbeddedPictureTests.jpeg(300, 200, PixelColor(red: 0, green: 0, blue: 250))),
        ]).bytes
        #expect(try ImageInfo(of: .bytes(bytes)).storedSize == PixelSize(width: 300, height: 200))
        let small = try decoder.decode(.bytes(bytes), at: .fit(30))
        #expect(EmbeddedPictureTests.isClose(small, PixelColor(red: 200, green: 60, blue: 20)))
        let large = try decoder.decode(.bytes(bytes), at: .fit(200))
        #expect(EmbeddedPictureTests.isClose(large, PixelColor(red: 0, green: 0, blue: 250)))
    }

    @Test func relationshipsNameTheThumbnail() throws {
        func package(_ target: String, mode: String = "") -> [Entry] {
            let type = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/thumbnail"
            return [
                Entry("[Content_Types].xml", text: "<Types/>"), Entry("word/document.xml", text: "<document/>"),
                Entry(
                    "_rels/.rels",
                    text: "<?xml version='1.0'?><Relationships><Relationship Id='a' Type='x' Target='b'/>"
                        + "<Relationship Type=\"\(type)\" Target=\"\(target)\"\(mode)/></Relationships>"),
            ]
        }
        let picture = Entry("docProps/thumbnail.jpeg", try jpeg(33))
        for target in ["docProps/thumbnail.jpeg", "/docProps/thumbnail.jpeg", "./docProps/a/../thumb%6Eail.jpeg"] {
            #expect(try width(package(target) + [picture]) == 33)
        }
        for (target, mode) in [
            ("docProps/thumbnail.jpeg", " TargetMode='External'"), ("file:///etc/passwd", ""),
            ("http://127.0.0.1/docProps/thumbnail.jpeg", ""), ("//127.0.0.1/docProps/thumbnail.jpeg", ""),
            ("../docProps/thumbnail.jpeg", ""), ("..\\docProps\\thumbnail.jpeg", ""), ("docProps/none.jpeg", ""),
        ] {
            #expect(error(ZipSample(package(target, mode: mode) + [picture]).bytes)?.caseName == "unsupported")
        }
    }

    // MARK: Books

    private func book(_ package: String, _ entries: [Entry]) -> [Entry] {
        [
            Entry("mimetype", text: "application/epub+zip"),
            Entry(
                "META-INF/container.xml",
                text: "<container><rootfiles><rootfile full-path=\"OEBPS/book.opf\"/></rootfiles></container>"),
            Entry("OEBPS/book.opf", text: package),
        ] + entries
    }

    @Test func coverOfABookIsFoundByEachRule() throws {
        let page = Entry(
            "OEBPS/text/one.xhtml",
            text: "<!DOCTYPE html><html><body><p>&nbsp;</p><svg><image xlink:href='../images/b%20b.jpg'/></svg></body>")
        let pictures = [
            Entry("OEBPS/images/a.jpg", try jpeg(11)), Entry("OEBPS/images/b b.jpg", try jpeg(22)),
            Entry("OEBPS/images/c.jpg", try jpeg(44)), page,
        ]
        let items = """
            <item id="a" href="images/a.jpg" media-type="image/jpeg"/><item id="one" href="text/one.xhtml"
            media-type="application/xhtml+xml"/>
            """
        let spine = "<spine><itemref idref='one'/></spine>"
        let rules: [(String, Int)] = [
            ("<manifest>\(items)<item id='z' href='images/c.jpg' properties='svg cover-image'/></manifest>", 44),
            ("<metadata><meta name='cover' content='a'/></metadata><manifest>\(items)</manifest>\(spine)", 11),
            ("<manifest>\(items)</manifest><guide><reference type='Cover' href='text/one.xhtml#x'/></guide>", 22),
            ("<manifest>\(items)</manifest>\(spine)", 22),
            ("<manifest>\(items)<item id='coverimage' href='images/c.jpg' media-type='image/jpeg'/></manifest>", 44),
            // What leads nowhere gives way to the next rule.
            (
                "<meta name='cover' content='q'/><manifest>\(items)"
                    + "<item id='q' href='../../etc/passwd'/></manifest>\(spine)", 22
            ),
        ]
        for (text, expected) in rules {
            #expect(try width(book("<?xml version='1.0'?><opf:package>\(text)</opf:package>", pictures)) == expected)
        }
        // In UTF-16.
        let units = "\u{FEFF}<package>\(rules[0].0)</package>".utf16
        let wide = units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        var entries = book("", pictures)
        entries[2].content = wide
        #expect(try width(entries) == 44)
    }

    @Test func entriesAreFoundInAnyCaseOfLetters() throws {
        let text = "<manifest><item href='Images/Cover.JPG' properties='cover-image'/></manifest>"
        var entries = book(text, [Entry("OEBPS/images/cover.jpg", try jpeg(11))])
        #expect(try width(entries) == 11)
        for index in entries.indices where entries[index].name != "mimetype" {
            entries[index].name = entries[index].name.uppercased()
        }
        #expect(try width(entries) == 11)
        // The right one comes first, whatever the order.
        let both = [Entry("OEBPS/Images/Cover.JPG", try jpeg(22)), Entry("OEBPS/images/cover.jpg", try jpeg(11))]
        #expect(try width(book(text, both)) == 22 && width(book(text, both.reversed())) == 22)
        let thumbnail = [
            Entry("mimetype", text: "application/vnd.oasis.opendocument.text"),
            Entry("thumbnails/Thumbnail.PNG", try jpeg(33)),
        ]
        #expect(try width(thumbnail) == 33)
    }

    @Test func nextPictureIsShownIfTheCoverIsDamaged() throws {
        let text = """
            <manifest><item id='a' href='a.jpg' media-type='image/jpeg' properties='cover-image'/>
            <item id='cover-2' href='b.jpg' media-type='image/jpeg'/></manifest>
            """
        let sound = Entry("OEBPS/b.jpg", try EmbeddedPictureTests.jpeg(60, 30, PixelColor(red: 0, green: 0, blue: 250)))
        let whole = try jpeg(200)
        let frame = try #require(whole.indices.first { whole[$0...].starts(with: [0xFF, 0xC0]) })
        var broken = whole
        // The header is read, and the samples are not.
        broken.replaceSubrange((whole.count / 2)..<whole.count, with: [UInt8](repeating: 0xFF, count: 20))
        for cover in [[], [1, 2, 3], Array(whole[..<frame]), Array(whole.prefix(whole.count / 2)), broken] {
            let bytes = ZipSample(book(text, [Entry("OEBPS/a.jpg", cover), sound])).bytes
            let image = try decoder.decode(.bytes(bytes), at: .fit(20))
            #expect(image.size == PixelSize(width: 20, height: 10), "\(cover.count)")
            #expect(EmbeddedPictureTests.isClose(image, PixelColor(red: 0, green: 0, blue: 250)))
        }
        let pages = [Entry("1.jpg", Array(whole.prefix(whole.count / 2))), Entry("2.jpg", sound.content)]
        #expect(try decoder.decode(.bytes(ZipSample(pages).bytes), at: .fit(20)).height == 10)
        // Without any other picture the error is that of the cover.
        let alone = ZipSample(book(text, [Entry("OEBPS/a.jpg", Array(whole.prefix(whole.count / 2)))])).bytes
        #expect(error(alone)?.caseName == "truncated")
    }

    @Test func drawingsAreCoversToo() throws {
        let drawing = """
            <svg xmlns='http://www.w3.org/2000/svg' width='60' height='90'><image href='a.png'/>
            <rect width='60' height='90' fill='#c83c14'/></svg>
            """
        let page = "<html><body><img src='cover.svg'/></body></html>"
        let worker = ImageDecoder(
            limits: .standard, isolation: .automatic, codecs: .standard, pool: WorkerFixture.pool(1))
        for text in [
            "<metadata><meta name='cover' content='c'/></metadata><manifest><item id='c' href='cover.svg' "
                + "media-type='image/svg+xml'/></manifest>",
            "<manifest><item id='p' href='page.xhtml'/></manifest><spine><itemref idref='p'/></spine>",
        ] {
            let entries = book(text, [Entry("OEBPS/cover.svg", text: drawing), Entry("OEBPS/page.xhtml", text: page)])
            let bytes = ZipSample(entries).bytes
            #expect(try ImageInfo(of: .bytes(bytes)).storedSize == PixelSize(width: 60, height: 90))
            let image = try worker.decode(.bytes(bytes), at: .fit(180))
            #expect(image.size == PixelSize(width: 120, height: 180))
            #expect(EmbeddedPictureTests.isClose(image, PixelColor(red: 200, green: 60, blue: 20)))
        }
    }

    @Test func hostileBooksAreErrors() throws {
        let cover = Entry("OEBPS/a.jpg", try jpeg(11))
        for text in [
            "<!DOCTYPE p [<!ENTITY a 'b'>]><manifest><item href='a.jpg' properties='cover-image'/></manifest>",
            String(repeating: "<a>", count: 300),
        ] {
            #expect(error(ZipSample(book(text, [cover])).bytes)?.caseName == "corrupt")
        }
        for href in ["file:///etc/passwd", "../../a.jpg", "//host/a.jpg", "META-INF", "", "%2e%2e/%2e%2e/a.jpg"] {
            let text = "<manifest><item href='\(href)' properties='cover-image'/></manifest>"
            #expect(error(ZipSample(book(text, [cover])).bytes)?.caseName == "unsupported", "\(href)")
        }
    }

    // MARK: Comics

    @Test func firstPageIsTheFirstInNaturalOrder() throws {
        #expect(try width([
            Entry("p10.jpg", try jpeg(10)), Entry("P2.jpg", try jpeg(20)), Entry("p002b.jpg", try jpeg(30)),
            Entry("__MACOSX/a.jpg", try jpeg(40)), Entry("._0.jpg", try jpeg(50)), Entry("notes.txt", [1]),
        ]) == 20)
        #expect(try width([Entry("b/1.jpg", try jpeg(10)), Entry("a/2.jpg", try jpeg(20))]) == 20)
        #expect(try width([Entry("ab/1.jpg", try jpeg(10)), Entry("a/2.jpg", try jpeg(20))]) == 20)
    }

    @Test func descriptionOfAComicNamesItsCover() throws {
        let pages = [Entry("1.jpg", try jpeg(10)), Entry("3.jpg", try jpeg(30)), Entry("2.jpg", try jpeg(20))]
        for (page, expected) in [("2", 30), ("1", 20), ("0", 10), ("7", 10), ("-1", 10), ("x", 10)] {
            let cover = "<Page Image='\(page)' Type='FrontCover'/>"
            let text = "<ComicInfo><Pages><Page Image='0'/>\(cover)</Pages></ComicInfo>"
            #expect(try width(pages + [Entry("ComicInfo.xml", text: text)]) == expected)
        }
    }

    @Test func comicInATarArchiveIsShownByItsFirstPage() throws {
        func tar(_ files: [(name: String, type: UInt8, content: [UInt8])]) -> [UInt8] {
            var archive: [UInt8] = []
            for file in files {
                var header = [UInt8](repeating: 0, count: 512)
                header.replaceSubrange(0..<file.name.utf8.count, with: Array(file.name.utf8))
                let size = String(file.content.count, radix: 8)
                header.replaceSubrange(124..<(124 + size.utf8.count), with: Array(size.utf8))
                header[156] = file.type
                header.replaceSubrange(257..<262, with: Array("ustar".utf8))
                archive += header + file.content
                archive += [UInt8](repeating: 0, count: (512 - file.content.count % 512) % 512)
            }
            return archive + [UInt8](repeating: 0, count: 1_024)
        }
        let file = UInt8(ascii: "0")
        let comic = tar([
            ("2.jpg", file, try jpeg(20)), ("0.jpg", UInt8(ascii: "2"), []), ("1.jpg", file, try jpeg(10)),
        ])
        let info = try ImageInfo(of: .bytes(comic))
        #expect(info.format == .comicTar && info.storedSize.width == 10)
        #expect(try decoder.decode(.bytes(comic), at: .fit(5)).height == 5)
        #expect(error(tar([("1.jpg", file, try jpeg(20)), ("a.c", file, [1])]))?.caseName == "notAnImage")
        for count in stride(from: 0, to: comic.count, by: 97) { _ = error(Array(comic.prefix(count))) }
        // The next page takes the place of damaged ones.
        let (first, second) = (try EmbeddedPictureTests.damaged(50, 40), try jpeg(20))
        let damaged = tar([("3.jpg", file, try jpeg(30)), ("2.jpg", file, second), ("1.jpg", file, first)])
        #expect(try ImageInfo(of: .bytes(damaged)).storedSize.width == 50)
        #expect(try decoder.decode(.bytes(damaged)).width == 20)
        let unreadable = tar([("1.jpg", file, [1, 2, 3]), ("2.jpg", file, first), ("3.jpg", file, try jpeg(30))])
        #expect(try decoder.decode(.bytes(unreadable), at: .fit(10)).width == 8)
        #expect(error(tar([("1.jpg", file, first), ("2.jpg", file, first)]))?.caseName == "truncated")
    }

    @Test func storedPageOfARARArchiveNeedsNoHelper() throws {
        func number(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        func varying(_ value: Int) -> [UInt8] {
            value < 128 ? [UInt8(value)] : [UInt8(value & 127) | 128] + varying(value >> 7)
        }
        func rar4(_ files: [(String, [UInt8])], method: UInt8 = 0x30, flags: Int = 0) -> [UInt8] {
            var archive: [UInt8] = Array("Rar!\u{1A}\u{7}".utf8) + [0] + [0, 0, 0x73, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0]
            for (name, content) in files {
                archive += [0, 0, 0x74] + number(0x8000 | flags, 2) + number(32 + name.utf8.count, 2)
                archive += number(content.count, 4) + number(content.count, 4) + [3] + number(0, 8) + [29, method]
                archive += number(name.utf8.count, 2) + number(0o100644, 4) + Array(name.utf8) + content
            }
            return archive
        }
        func rar5(_ files: [(String, [UInt8])]) -> [UInt8] {
            var archive: [UInt8] = Array("Rar!\u{1A}\u{7}".utf8) + [1, 0] + [0, 0, 0, 0, 3, 1, 0, 0]
            for (name, content) in files {
                let header =
                    [2, 2] + varying(content.count) + [0] + varying(content.count) + [0, 0, 1]
                    + varying(name.utf8.count) + Array(name.utf8)
                archive += [0, 0, 0, 0] + varying(header.count) + header + content
            }
            return archive
        }
        let pages = [("b\\2.jpg", try jpeg(20)), ("b\\1.jpg", try jpeg(10))]
        for archive in [rar4(pages), rar5(pages)] {
            let info = try ImageInfo(of: .bytes(archive))
            #expect(info.format == .comicRAR && info.storedSize.width == 10)
            for count in stride(from: 0, to: archive.count, by: 53) { _ = error(Array(archive.prefix(count))) }
        }
        #expect(error(rar4(pages, flags: 4))?.caseName == "unsupported")
        let damaged = [("1.jpg", try EmbeddedPictureTests.damaged(50, 40)), ("2.jpg", try jpeg(20))]
        for archive in [rar4(damaged), rar5(damaged)] { #expect(try decoder.decode(.bytes(archive)).width == 20) }
        for archive in [rar4(pages + [("a.c", [1])]), rar5(pages + [("a.c", [1])])] {
            #expect(error(archive)?.caseName == "notAnImage")
        }
    }

    // MARK: Archives

    @Test func directoryIsFoundBehindAPrefixACommentAndInZIP64() throws {
        let page = Entry("1.jpg", try jpeg(10))
        var sample = ZipSample([page])
        sample.isZip64 = true
        #expect(try ImageInfo(of: .bytes(sample.bytes)).storedSize.width == 10)
        sample = ZipSample([page])
        sample.comment = String(repeating: "c", count: 60_000)
        #expect(try ImageInfo(of: .bytes(sample.bytes)).storedSize.width == 10)
        sample = ZipSample([page])
        // A self-extracting archive does not begin like one; its entries are found all the same.
        sample.prefix = Array("PK\u{3}\u{4} a program".utf8)
        #expect(try ImageInfo(of: .bytes(sample.bytes)).storedSize.width == 10)
    }

    @Test func entriesThatCannotBeReadAreErrors() throws {
        let picture = try jpeg(10)
        func error(_ change: (inout Entry) -> Void) -> String? {
            var page = Entry("1.jpg", picture)
            change(&page)
            return self.error(ZipSample([page]).bytes)?.caseName
        }
        #expect(error { _ in } == nil)
        #expect(error { $0.flags = 1 } == "unsupported")
        #expect(error { $0.method = 12 } == "unsupported")
        #expect(error { $0.unixMode = 0o120777 } == "unsupported")
        #expect(error { $0.method = 8 } != nil)
        // The announced size is not believed.
        #expect(error { $0.size = 3 } == nil)
        let archive = ZipSample([Entry("1.jpg", picture)]).bytes
        for count in 0..<archive.count where count % 7 == 0 || count > archive.count - 40 {
            #expect(self.error(Array(archive.prefix(count))) != nil)
        }
        // An archive in an archive is none that is shown.
        #expect(self.error(ZipSample([Entry("1.jpg", archive)]).bytes)?.caseName == "unsupported")
    }

    @Test func contentIsCountedWhileItIsInflated() throws {
        // Fixed codes: 258 zeros for each match of distance 1, 13 bits each.
        let bomb = Self.zeros(100 << 20)
        var page = Entry("1.png", bomb)
        page.method = 8
        page.size = 10
        guard case .limitExceeded(_, let limit, let actual, let allowed)? = error(ZipSample([page]).bytes) else {
            Issue.record("no limit for \(bomb.count) bytes")
            return
        }
        #expect(limit == .documentBytes && actual > allowed && allowed <= EmbeddedPicture.maximumBytes)
    }

    /// A deflate stream of so many zeros.
    static func zeros(_ count: Int) -> [UInt8] {
        var bits: [UInt8] = [1, 1, 0]  // final, fixed codes
        bits += [0, 0, 1, 1, 0, 0, 0, 0]  // literal 0
        // Length 258 (code 285, 8 bits 11000101), distance 1 (5 bits of 0): 13 bits, so 8 matches fill 13 bytes.
        let match: [UInt8] = [1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]
        func packed(_ bits: [UInt8]) -> [UInt8] {
            stride(from: 0, to: bits.count, by: 8).map { at in
                bits[at..<min(at + 8, bits.count)].enumerated().reduce(0) { $0 | $1.element << UInt8($1.offset) }
            }
        }
        while bits.count % 8 != 0 { bits += match }
        let group = packed((0..<8).flatMap { _ in match })
        var stream = packed(bits)
        for _ in 0..<(count / (258 * 8)) { stream += group }
        return stream + [0, 0]
    }

    // MARK: Real files

    @Test(.enabled(if: !Corpus.files(in: "anything/corpus").isEmpty, "the shared corpus is absent"))
    func filesOfTheCorpusShowTheirPictures() throws {
        let shown: [String: (ImageFormat, Int)] = [
            "comic/made-unsorted.cbz": (.comicZip, 1), "comic/made-dirs-webp.cbz": (.comicZip, 1),
            "layered/made.fig": (.figma, 1), "layered/made.sketch": (.sketch, 1),
            "layered/made.procreate": (.procreate, 1),
            "layered/src.kra": (.krita, 1), "layered/src.ora": (.openRaster, 1), "ooxml/made-thumb.docx": (.docx, 1),
            "model/made-thumb.3mf": (.threeMF, 1), "model/made-prusa.gcode": (.gcode, 256),
            "ebook/cole-voyage-of-life.epub": (.epub, 1), "ebook/made.fb2": (.fictionBook, 1),
            "ebook/sample-multimedia.mobi": (.mobi, 1), "iwork/testPages2013.pages": (.iWork, 1),
        ]
        let files = Corpus.files(in: "anything/corpus")
        for (name, (format, width)) in shown {
            let path = try #require(files.first { $0.hasSuffix("/" + name) }, "\(name) is absent")
            let info = try ImageInfo(of: .file(path))
            #expect(info.format == format && info.storedSize.width >= width, "\(name): \(info.storedSize)")
            #expect(try decoder.decode(.file(path), at: .fit(64)).size.longestSide == 64, "\(name)")
        }
    }

    @Test(.enabled(if: !Corpus.files(in: "anything/hostile").isEmpty, "the shared hostile files are absent"))
    func hostileFilesEndInAPictureOrAnError() throws {
        let clock = ContinuousClock()
        for path in Corpus.files(in: "anything/hostile") {
            let time = clock.measure {
                do throws(ImageError) {
                    _ = try decoder.decode(.file(path), at: .fit(64))
                } catch {
                    #expect(error.input == nil || error.input == path, "\(path): \(error)")
                }
                _ = try? ByteSource(.file(path)).withCover()
            }
            #expect(time < .seconds(10), "\(path) took \(time)")
        }
    }
}

extension ByteSource {
    fileprivate func withCover() throws -> RecordingCover? { try RecordingCover(of: self) }
}
#endif
