#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineImaging

/// Books that are no archives, and instructions for printers.
@Suite struct BookPictureTests {
    private func info(_ bytes: [UInt8]) throws -> ImageInfo { try ImageInfo(of: .bytes(bytes)) }

    private func number(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }

    // MARK: Mobipocket

    /// A book of one record with a header, and of pictures.
    private func mobi(_ pictures: [[UInt8]], _ entries: [(Int, Int)]) -> [UInt8] {
        var header = [UInt8](repeating: 0, count: 16) + Array("MOBI".utf8) + number(232, 4)
        header += [UInt8](repeating: 0, count: 16 + 232 - header.count)
        header.replaceSubrange(0x6C..<0x70, with: number(1, 4))
        if !entries.isEmpty {
            header[0x83] = 0x40
            header += Array("EXTH".utf8) + number(12 + 12 * entries.count, 4) + number(entries.count, 4)
            for (type, value) in entries { header += number(type, 4) + number(12, 4) + number(value, 4) }
        }
        let records = [header] + pictures
        var file = [UInt8](repeating: 0, count: 60) + Array("BOOKMOBI".utf8) + [UInt8](repeating: 0, count: 8)
        file += number(records.count, 2)
        var offset = 78 + 8 * records.count
        for record in records {
            file += number(offset, 4) + number(0, 4)
            offset += record.count
        }
        return file + records.joined()
    }

    @Test func coverOfAMobipocketBookIsARecord() throws {
        let pictures = [[1, 2, 3, 4], try EmbeddedPictureTests.jpeg(20, 30), try EmbeddedPictureTests.jpeg(200, 300)]
        #expect(try info(mobi(pictures, [(100, 7), (201, 2)])).storedSize.width == 200)
        #expect(try info(mobi(pictures, [(202, 1), (201, 2)])).storedSize.width == 200)
        #expect(try info(mobi(pictures, [(202, 1), (201, 0xFFFF_FFFF)])).storedSize.width == 20)
        #expect(try info(mobi([pictures[1]], [])).storedSize.width == 20)
        // Where the entry leads to no picture, the first one shows the book.
        for entries in [[(201, 0)], [(201, 9)], [(201, 0x7FFF_FFFF)]] {
            #expect(try info(mobi(pictures, entries)).storedSize.width == 20)
            #expect(throws: ImageError.self) { try info(mobi([pictures[0]], entries)) }
        }
        let book = mobi(pictures, [(201, 2)])
        for count in stride(from: 0, to: book.count, by: 31) { _ = try? info(Array(book.prefix(count))) }
    }

    @Test func nextPictureTakesThePlaceOfADamagedCover() throws {
        let decoder = ImageDecoder(isolation: .inProcess)
        let cover = try EmbeddedPictureTests.damaged(60, 90)
        let (thumbnail, other) = (try EmbeddedPictureTests.jpeg(20, 30), try EmbeddedPictureTests.jpeg(40, 10))
        let pictures = [other, thumbnail, cover]
        #expect(try info(mobi(pictures, [(202, 1), (201, 2)])).storedSize.width == 60)
        #expect(try decoder.decode(.bytes(mobi(pictures, [(202, 1), (201, 2)]))).width == 20)
        #expect(try decoder.decode(.bytes(mobi(pictures, [(201, 2)]))).width == 40)
        let book = fictionBook(cover, others: [[1, 2, 3], cover, thumbnail])
        for file in [book, ZipSample([.init("a.fb2", book)]).bytes] {
            #expect(try info(file).storedSize.width == 60)
            #expect(try decoder.decode(.bytes(file)).width == 20)
        }
        // Damage of the document behind the cover does not matter.
        let cut = fictionBook(thumbnail, others: [cover])
        #expect(try decoder.decode(.bytes(Array(cut.dropLast(300)))).width == 20)
    }

    // MARK: FictionBook

    private func fictionBook(
        _ picture: [UInt8], href: String = "#c.jpg", prologue: String = "", others: [[UInt8]] = []
    ) -> [UInt8] {
        func encoded(_ bytes: [UInt8]) -> String {
            Data(bytes).base64EncodedString(options: [.lineLength76Characters, .endLineWithLineFeed])
        }
        let text = encoded(picture)
        let binaries = others.enumerated().map { "<binary id='o\($0)'/><binary id='p\($0)'>\(encoded($1))</binary>" }
        return Array(
            """
            <?xml version="1.0" encoding="windows-1251"?>\(prologue)<FictionBook xmlns:l="http://www.w3.org/1999/xlink">
            <description><title-info><coverpage><image l:href="\(href)"/></coverpage></title-info></description>
            <body><p>a &lt; b <![CDATA[</FictionBook>]]></p></body>
            <binary id="x" content-type="image/png">AAAA</binary>
            <binary content-type="image/jpeg" id="c.jpg">\(text)</binary>\(binaries.joined())</FictionBook>
            """.utf8)
    }

    @Test func coverOfAFictionBookIsTheNamedOne() throws {
        let picture = try EmbeddedPictureTests.jpeg(50, 70)
        let info = try info(fictionBook(picture))
        #expect(info.format == .fictionBook && info.storedSize == PixelSize(width: 50, height: 70))
        let zipped = ZipSample([.init("a.fb2", fictionBook(picture))]).bytes
        #expect(try self.info(zipped).format == .fictionBookZip)
        for href in ["#none", "c.jpg", "http://127.0.0.1/c.jpg", "#"] {
            #expect(throws: ImageError.self) { try self.info(fictionBook(picture, href: href)) }
        }
        #expect(throws: ImageError.self) {
            try self.info(fictionBook(picture, prologue: "<!DOCTYPE F [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>"))
        }
        #expect(throws: ImageError.self) { try self.info(fictionBook([1, 2, 3])) }
    }

    // MARK: Instructions for printers

    @Test func thumbnailsOfInstructionsAreFound() throws {
        let (small, large) = (try EmbeddedPictureTests.jpeg(16, 16), try EmbeddedPictureTests.jpeg(160, 160))
        func block(_ name: String, _ picture: [UInt8], _ size: Int) -> String {
            let lines = Data(picture).base64EncodedString(options: [.lineLength76Characters, .endLineWithLineFeed])
                .split(separator: "\n").map { "; \($0)\n" }.joined()
            return "; \(name) begin \(size)x\(size) 100\n\(lines); \(name) end\n"
        }
        let text = "; generated by a slicer\r\n;\n" + block("thumbnail", small, 16) + "M73 P0\n"
            + block("thumbnail_JPG", large, 160) + "G28\n"
        let info = try info(Array(text.utf8))
        #expect(info.format == .gcode && info.storedSize.width == 160)
        let image = try ImageDecoder(isolation: .inProcess).decode(.bytes(Array(text.utf8)), at: .fit(16))
        #expect(image.width == 16)
        #expect(throws: ImageError.self) { try self.info(Array("; generated by a slicer\nG28\n".utf8)) }
        #expect(throws: ImageError.self) { try self.info(Array("; a comment of any other text\n".utf8)) }
    }

    @Test func thumbnailsOfBinaryInstructionsAreFound() throws {
        func low(_ value: Int, _ count: Int) -> [UInt8] { number(value, count).reversed() }
        func block(_ type: Int, _ content: [UInt8]) -> [UInt8] {
            low(type, 2) + low(0, 2) + low(content.count, 4) + [UInt8](repeating: 0, count: type == 5 ? 6 : 2) + content
                + low(0, 4)
        }
        let start = Array("GCDE".utf8) + low(1, 4) + low(1, 2)
        let picture = try EmbeddedPictureTests.jpeg(40, 30)
        let file = start + block(0, [1, 2, 3]) + block(5, picture) + block(1, [9, 9])
        #expect(try info(file).format == .binaryGCode && info(file).storedSize.width == 40)
        #expect(throws: ImageError.self) { try info(start + block(1, picture)) }
        for count in 0..<file.count { _ = try? info(Array(file.prefix(count))) }
    }

    // MARK: XML

    @Test func scannerReadsTagsAttributesAndText() throws {
        var scanner = XMLScanner(
            Array("<?x?><!-- <no/> --><a:b c = 'd>&amp;&#x41;&#66;&no;' e=\"'\"/><f>g<![CDATA[<h>]]></f>".utf8),
            input: "text")
        var event = try scanner.next()
        #expect(event == .start && scanner.isNamed("b") && scanner.isEmptyElement)
        #expect(scanner.attribute("c") == "d>&AB&no;" && scanner.attribute("e") == "'" && scanner.attribute("x") == nil)
        event = try scanner.next()
        #expect(event == .start && scanner.isNamed("f") && !scanner.isEmptyElement)
        event = try scanner.next()
        #expect(event == .text && scanner.string(scanner.text) == "g")
        event = try scanner.next()
        #expect(event == .text && scanner.string(scanner.text) == "<h>")
        event = try scanner.next()
        #expect(event == .end && scanner.isNamed("f"))
        event = try scanner.next()
        #expect(event == nil)
        let text = Array("<a b='c' d e=f g='<!-- h><i><![CDATA[ j ]]><k/></i><l m='".utf8)
        for count in 0...text.count {
            var scanner = XMLScanner(Array(text.prefix(count)), input: "text")
            while let event = try scanner.next() {
                if event == .start { _ = scanner.attribute("g") }
            }
        }
    }
}
#endif
