import Testing
import VitrineImaging
import VitrinePipeline

/// Which part of a page is drawn, and which way round.
@Suite struct PDFPageGeometryTests {
    private static let red = PixelColor(red: 255, green: 0, blue: 0)
    private static let green = PixelColor(red: 0, green: 255, blue: 0)
    private static let blue = PixelColor(red: 0, green: 0, blue: 255)
    private static let yellow = PixelColor(red: 255, green: 255, blue: 0)

    @Test(arguments: [
        (0, PixelSize(width: 200, height: 100), [red, green, blue, yellow]),
        (90, PixelSize(width: 100, height: 200), [blue, red, yellow, green]),
        (180, PixelSize(width: 200, height: 100), [yellow, blue, green, red]),
        (270, PixelSize(width: 100, height: 200), [green, yellow, red, blue]),
        (-90, PixelSize(width: 100, height: 200), [green, yellow, red, blue]),
    ])
    func turnsPagesAsTheySay(rotation: Int, size: PixelSize, corners: [PixelColor]) throws {
        let input = PDFFixture.input(
            .init(rotation: rotation, content: TinyPDF.quadrants(x: 0, y: 0, width: 200, height: 100)))
        let image = try input.page(1).blocking.image(RenderRequest(size: PixelSize(200)))
        #expect(image.size == size)
        #expect(image.corners == corners)
        #expect(
            try input.info(pages: 1...1).pageSizes
                == [.init(width: Double(size.width), height: Double(size.height))])
    }

    @Test(arguments: [0, 90, 180, 270])
    func drawsTheCropBoxWhereverItLies(rotation: Int) throws {
        let black = "0 g -1000 -1000 3000 3000 re f "
        let input = PDFFixture.input(
            .init(
                mediaBox: "-50 20 350 420", cropBox: "50 120 250 220", rotation: rotation,
                content: black + TinyPDF.quadrants(x: 50, y: 120, width: 200, height: 100)))
        let image = try input.page(1).blocking.image(RenderRequest(size: PixelSize(200)))
        let isUpright = rotation % 180 == 0
        #expect(image.size == (isUpright ? PixelSize(width: 200, height: 100) : PixelSize(width: 100, height: 200)))
        #expect(!image.edgeColors.contains(.black), "something outside the crop box shows")
        #expect(Set(image.corners).count == 4)
    }

    @Test func cutsTheCropBoxToTheMediaBox() throws {
        let input = PDFFixture.input(
            .init(
                mediaBox: "0 0 200 100", cropBox: "100 -50 290 100",
                content: "0 0 1 rg 100 0 100 100 re f"))
        #expect(try input.info(pages: 1...1).pageSizes == [.init(width: 100, height: 100)])
        let image = try input.page(1).blocking.image(RenderRequest(size: PixelSize(50)))
        #expect(image.size == PixelSize(50))
        #expect(image.edgeColors == [Self.blue])
    }

    @Test func drawsAPageWithAUserUnitLikeAnyOther() throws {
        let input = PDFFixture.input(
            .init(userUnit: 3, content: TinyPDF.quadrants(x: 0, y: 0, width: 200, height: 100)))
        let image = try input.page(1).blocking.image(RenderRequest(size: PixelSize(100)))
        #expect(image.size == PixelSize(width: 100, height: 50))
        #expect(image.corners == [Self.red, Self.green, Self.blue, Self.yellow])
    }

    @Test func countsUserUnitsIn() throws {
        let document = TinyPDF(pages: [
            .init(), .init(userUnit: 2.5), .init(rotation: 90, userUnit: 3), .init(userUnit: -1), .init(userUnit: 1e9),
        ])
        let input = PDFFixture.input(document)
        let sizes = [(200.0, 100.0), (500, 250), (300, 600), (200, 100), (200, 100)].map(PointSize.init)
        #expect(try input.info(pages: 1...5).pageSizes == sizes)
        #expect(try input.info(pages: 3...3).pageSizes == [sizes[2]])
        let image = try input.page(2).blocking.image(RenderRequest(size: .zero, mode: .none))
        #expect(image.size == PixelSize(width: 500, height: 250))
        // A page of any size is drawn where a size is wanted.
        let plan = PDFFixture.input(.init(mediaBox: "0 0 14400 7200", userUnit: 75_000))
        #expect(try plan.info(pages: 1...1).pageSizes == [.init(width: 1.08e9, height: 5.4e8)])
        #expect(try plan.page(1).blocking.image(RenderRequest(size: PixelSize(40))).size == PixelSize(width: 40, height: 20))
    }

    @Test func findsUserUnitsInObjectStreamsAndNewestObjects() throws {
        let bodies = [
            "<</Type/Catalog/Note(>> \\) /x)/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/UserUnit 4>>",
        ]
        var (head, content) = ("", "")
        for (index, body) in bodies.enumerated() {
            head += "\(index + 1) \(content.utf8.count) "
            content += body + " "
        }
        let stream = Deflater.zlib(Array((head + content).utf8))
        var file = Array("%PDF-1.5\n4 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 90 90]/UserUnit 7>> endobj\n".utf8)
        let objects = file.count
        let entries = "/Type/ObjStm/N 3/First \(head.utf8.count)/Filter/FlateDecode/Length \(stream.count)"
        file += Array("5 0 obj <<\(entries)>>stream\n".utf8) + stream + Array("\nendstream endobj\n".utf8)
        let newest = file.count
        file += Array("4 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 90 90]/UserUnit 2>> endobj\n".utf8)
        // The table of objects: free, in a stream with its place there, or at an offset.
        let table = [(0, 0, 255), (2, 5, 0), (2, 5, 1), (2, 5, 2), (1, newest, 0), (1, objects, 0), (1, file.count, 0)]
        let rows = table.flatMap { [$0.0, $0.1 >> 8, $0.1 & 255, $0.2].map(UInt8.init) }
        let start = file.count
        file += Array("6 0 obj <</Type/XRef/Root 1 0 R/Size 7/W[1 2 1]/Length \(rows.count)>>stream\n".utf8)
        file += rows + Array("\nendstream endobj\nstartxref\n\(start)\n%%EOF\n".utf8)
        let input = PDFDocument(PDFDocument(.bytes(file, name: "streams")), workers: PDFFixture.workers())
        #expect(
            try input.info(pages: 1...2).pageSizes == [.init(width: 800, height: 400), .init(width: 180, height: 180)])
    }

    @Test(arguments: [
        (ImageResizer.Mode.fit, true, PixelSize(width: 300, height: 150)),
        (.fit, false, PixelSize(width: 200, height: 100)),
        (.fill, true, PixelSize(width: 600, height: 300)),
        (.stretch, true, PixelSize(300)),
        (.crop(.center), true, PixelSize(300)),
        (.limit, true, PixelSize(width: 200, height: 100)),
        (.none, true, PixelSize(width: 200, height: 100)),
    ])
    func followsTheRule(mode: ImageResizer.Mode, allowsUpscaling: Bool, size: PixelSize) throws {
        let input = PDFFixture.input(.init(content: TinyPDF.quadrants(x: 0, y: 0, width: 200, height: 100)))
        let request = RenderRequest(size: PixelSize(300), mode: mode, allowsUpscaling: allowsUpscaling)
        let image = try input.page(1).blocking.image(request)
        #expect(image.size == size)
        #expect(image.corners == [Self.red, Self.green, Self.blue, Self.yellow])
        #expect(image.alpha == .opaque)
    }

    @Test func paintsTheBackground() throws {
        var page = PDFPageSource(PDFFixture.input(.init(content: "1 0 0 rg 0 0 100 100 re f")), page: 1)
        let request = RenderRequest(size: PixelSize(40))
        #expect(try page.image(request).corners == [Self.red, .white, Self.red, .white])
        page.backgroundColor = Self.blue
        #expect(try page.image(request).corners == [Self.red, Self.blue, Self.red, Self.blue])
        page.backgroundColor = nil
        let transparent = try page.image(request)
        #expect(transparent.corners == [Self.red, .clear, Self.red, .clear])
        #expect(transparent.alpha == .premultiplied)
        page.backgroundColor = PixelColor(red: 0, green: 0, blue: 255, alpha: 128)
        #expect(try page.image(request).corners[1].alpha == 128)
    }

    /// ISO 32000-1, 11.4.7: a page begins transparent, and paper comes behind it.
    @Test(arguments: ["Difference", "Exclusion", "Multiply", "ColorBurn", "Screen"])
    func blendsWithWhatIsOnThePageAndNotWithThePaper(mode: String) throws {
        var document = TinyPDF()
        document.resources = "/ExtGState<</B<</BM/\(mode)>> >>"
        document.pages = [.init(content: "/B gs 1 0 0 rg 0 0 100 100 re f 0 1 0 rg 0 50 100 50 re f")]
        let request = RenderRequest(size: PixelSize(40))
        for paper in [PixelColor.white, Self.blue, .clear] {
            var page = PDFPageSource(PDFFixture.input(document), page: 1)
            page.backgroundColor = paper
            let corners = try page.image(request).corners
            #expect(corners[2] == Self.red && corners[1] == paper && corners[3] == paper)
            // Where red is full already, burning keeps it (ISO 32000-2, table 134).
            let blended: [String: PixelColor] = ["Multiply": .black, "ColorBurn": Self.red]
            #expect(corners[0] == blended[mode] ?? Self.yellow)
        }
    }

    @Test func drawsAPageWithAPartThatCairoRejectsAsFarAsItGoes() throws {
        var document = TinyPDF()
        let mask = "/Type/XObject/Subtype/Form/BBox[0 0 1000 1000]/Group<</S/Transparency/CS/DeviceGray>>"
        // A glyph with a soft mask.
        document.objects = [
            TinyPDF.stream("0.5 g 0 0 1000 1000 re f", mask),
            TinyPDF.stream("1000 0 0 0 1000 1000 d1 /S gs 0 0 1000 1000 re f"),
            """
            <</Type/Font/Subtype/Type3/FontBBox[0 0 1000 1000]/FontMatrix[0.001 0 0 0.001 0 0]/FirstChar 97/LastChar 97
            /Widths[1000]/Encoding<</Type/Encoding/Differences[97/a]>>/CharProcs<</a 2 0 R>>
            /Resources<</ExtGState<</S<</Type/ExtGState/SMask<</Type/Mask/S/Luminosity/G 1 0 R>> >> >> >> >>
            """,
        ]
        document.resources = "/Font<</F 3 0 R>>"
        document.pages = [.init(content: "1 0 0 rg 0 0 100 100 re f BT /F 50 Tf 120 20 Td (a) Tj ET")]
        let image = try PDFFixture.input(document).page(1).blocking.image(RenderRequest(size: PixelSize(100)))
        #expect(image.size == PixelSize(width: 100, height: 50))
        #expect(image.corners == [Self.red, .white, Self.red, .white])
    }

    @Test func makesSeveralSizesOfOneDrawing() throws {
        let input = PDFFixture.input(.init(content: TinyPDF.quadrants(x: 0, y: 0, width: 200, height: 100)))
        let images = try input.page(1).blocking.images([
            RenderRequest(size: PixelSize(64)), RenderRequest(size: PixelSize(400)),
            RenderRequest(size: PixelSize(100), mode: .crop(.center)),
        ])
        let sizes = [PixelSize(width: 64, height: 32), PixelSize(width: 400, height: 200), PixelSize(100)]
        #expect(images.map(\.size) == sizes)
        for image in images { #expect(image.corners == [Self.red, Self.green, Self.blue, Self.yellow]) }
    }

    @Test func givesAnEmptyPageOfItsShapeAsPlaceholder() throws {
        var page = PDFPageSource(PDFFixture.input(.init(rotation: 90)), page: 1)
        page.backgroundColor = Self.green
        let placeholder = try #require(try page.preview(RenderRequest(size: PixelSize(1_000))))
        #expect(placeholder.size == PixelSize(width: 70, height: 140))
        #expect(placeholder.edgeColors == [Self.green])
    }
}
