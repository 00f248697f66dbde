import Testing
import VitrineCore
import VitrineImaging

/// Formats that only the worker reads. Fixtures: 96 × 64, quadrants red, green, blue and white, written by libvips 8.14
/// (`vips copy quadrants.png quadrants.tif[compression=lzw]` and the like; `--pyramid --tile --subifd`; `linear` by 257
/// to 16 bits), `turn-heif.py` for irot.
@Suite(.serialized) struct VipsDecoderTests {
    static let pool = WorkerFixture.pool(1)

    @Test(arguments: [
        ("quadrants.tif", ImageFormat.tiff, 0), ("quadrants.heic", .heic, 12),
        ("quadrants.svg", .svg, 0), ("deep.tif", .tiff, 0), ("lab.tif", .tiff, 3),
        ("quadrants.png", .png, 0), ("pages.tif", .tiff, 0),
    ])
    func decodesEveryPixelOfEachFormat(name: String, format: ImageFormat, tolerance: Int) throws {
        let image = try Self.pool.decode(
            WorkerFixture.source(name), WorkerFixture.request(format, 96, 64),
            // Drawings are checked before libvips gets them.
            decoder: format == .svg ? "SVGDecoder" : "VipsDecoder")
        #expect(image.planes[0].width == 96 && image.planes[0].height == 64)
        #expect(image.model == .rgb)
        #expect(image.shows(DecodedImage.quadrants, tolerance: tolerance), "\(name)")
        #expect(!image.isPartial)
    }

    @Test(arguments: [("turned.heic", ImageFormat.heic), ("turned.avif", .avif)])
    func deliversPicturesAsStoredThoughTheCodecTurnsThem(name: String, format: ImageFormat) throws {
        for target in [nil, PixelSize(width: 18, height: 12)] {
            let image = try Self.pool.decode(
                WorkerFixture.source(name),
                WorkerFixture.request(format, 96, 64, target: target, orientation: .right), decoder: "VipsDecoder")
            #expect(image.planes[0].extentWidth > image.planes[0].extentHeight)
            #expect(image.planes[0].width == (target == nil ? 96 : 32))
            #expect(image.shows(DecodedImage.quadrants, tolerance: 16), "\(name) \(String(describing: target))")
        }
    }

    /// libavif wants the handler first, libheif does not.
    @Test func readsAVIFThatLibavifCallsDamaged() throws {
        var bytes = try Fixture.bytes("Info/turned-6.avif")
        let name = try #require(bytes.indices.first { bytes[$0...].starts(with: "hdlr".utf8) })
        let (handler, primary) = (name - 4, name - 4 + Int(bytes[name - 1]))
        let end = primary + Int(bytes[primary + 3])
        #expect(bytes[(primary + 4)...].starts(with: "pitm".utf8))
        bytes.replaceSubrange(handler..<end, with: Array(bytes[primary..<end] + bytes[handler..<primary]))
        let source = ByteSource(bytes: bytes, name: "late handler")
        let request = DecodeRequest(info: try ImageInfo(reading: source, limits: .standard), target: nil)
        #expect(throws: ImageError.self) { try Self.pool.decode(source, request, decoder: "AVIFDecoder") }
        let image = try Self.pool.decode(source, request)
        #expect(image.firstPlane == (try Self.pool.decode(source, request, decoder: "VipsDecoder")).firstPlane)
        // What neither reads keeps the error of the format's own decoder.
        let damaged = ByteSource(bytes: Array(bytes.dropLast(60)), name: "late handler")
        #expect(throws: ImageError.self) { try Self.pool.decode(damaged, request) }
    }

    @Test(arguments: [(20, 10, 50, 30), (0, 0, 75, 20), (24, 4, 51, 49)])
    func cutsAVIFLikeLibheif(x: Int, y: Int, width: Int, height: Int) throws {
        var sample = try HEICSample.avif()
        // In halves of a pixel from the middle.
        let (right, down) = (2 * x + width - 75, 2 * y + height - 53)
        sample.properties = [HEICSample.cut(width: width, height: height, x: right, y: down)]
        let source = sample.source()
        let info = try ImageInfo(reading: source, limits: .standard)
        #expect(info.storedSize == PixelSize(width: width, height: height))
        let images = try ["AVIFDecoder", "VipsDecoder"].map { decoder in
            try DecodedImageRenderer.image(
                from: try Self.pool.decode(source, DecodeRequest(info: info, target: nil), decoder: decoder),
                size: info.storedSize, orientation: .up, cancellation: CancellationToken(), inputName: "sample")
        }
        #expect(try HEICDecoderTests.decibels(images[0], images[1]) >= 38)
    }

    @Test func reducesByWholeBlocksAndKeepsTheExtent() throws {
        let request = WorkerFixture.request(.tiff, 96, 64, target: PixelSize(width: 13, height: 9))
        let image = try Self.pool.decode(WorkerFixture.source("quadrants.tif"), request)
        // 64 / 9 = 7.1 pixels on one; a margin of 1.5 leaves blocks of 4.
        #expect(image.planes[0].width == 24 && image.planes[0].height == 16)
        #expect(image.planes[0].extentWidth == 24 && image.planes[0].extentHeight == 16)
        let odd = try Self.pool.decode(
            WorkerFixture.source("quadrants.tif"),
            WorkerFixture.request(.tiff, 96, 64, target: PixelSize(width: 12, height: 8)))
        #expect(odd.planes[0].width == 20 && odd.planes[0].height == 13, "blocks of 5, the last ones partly covered")
        #expect(odd.planes[0].extentWidth == 19.2 && odd.planes[0].extentHeight == 12.8)
    }

    @Test func averagesColorsByTheirAlpha() throws {
        // One column opaque red, one fully transparent green (made by Pillow), in blocks of 4.
        let image = try Self.pool.decode(
            WorkerFixture.source("stripes.png"),
            WorkerFixture.request(.png, 32, 32, target: PixelSize(5)), decoder: "VipsDecoder")
        #expect(image.alpha == .premultiplied && image.planes[0].width == 8)
        for index in stride(from: 0, to: 8 * 8 * 4, by: 4) {
            #expect(Array(image.firstPlane[index..<(index + 4)]) == [128, 0, 0, 128])
        }
    }

    @Test(arguments: ["pyramid.tif", "pages.tif"])
    func takesTheCoarsestLevelOfAPyramidThatSuffices(name: String) throws {
        // A level of 48 × 32 or 24 × 16 exists: block averages of those come out smaller than of the whole.
        let image = try Self.pool.decode(
            WorkerFixture.source(name), WorkerFixture.request(.tiff, 96, 64, target: PixelSize(width: 24, height: 16)))
        #expect(image.planes[0].width == 48 && image.planes[0].height == 32)
        #expect(image.shows(DecodedImage.quadrants, tolerance: 2))
    }

    @Test func paintsDocumentsAtTheSizeAskedFor() throws {
        let image = try Self.pool.decode(
            WorkerFixture.source("quadrants.svg"),
            WorkerFixture.request(.svg, 96, 64, target: PixelSize(width: 960, height: 640)))
        #expect(image.planes[0].width == 960 && image.planes[0].height == 640)
        #expect(image.alpha == .straight)
        #expect(image.shows(DecodedImage.quadrants, tolerance: 0))
    }

    @Test func refusesAPageThatDoesNotExist() throws {
        #expect {
            try Self.pool.decode(
                WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64, page: 7))
        } throws: { ($0 as? ImageError).map { isSameCase($0, .invalidRequest(reason: "")) } ?? false }
    }

    @Test func refusesMorePixelsThanAllowedWhateverTheHeaderSaidBefore() throws {
        var limits = ImageLimits()
        limits.maximumPixels = 6_143
        #expect(throws: ImageError.limitExceeded(
            input: try Fixture.path("worker/quadrants.tif"), limit: .pixels, actual: 6_144, allowed: 6_143)
        ) {
            try Self.pool.decode(
                WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 1, 1, limits: limits))
        }
    }

    @Test func tellsATruncatedFileOrDeliversThePartThatIsThere() throws {
        let whole = try Fixture.bytes("worker/deep.tif")
        // Directory and tags stand behind the strips: the strips are cut by telling a lie about one's place.
        let source = ByteSource(bytes: Array(try Fixture.bytes("worker/quadrants.heic").dropLast(100)), name: "cut")
        #expect(throws: ImageError.self) {
            try Self.pool.decode(source, WorkerFixture.request(.heic, 96, 64))
        }
        #expect(throws: ImageError.self) {
            try Self.pool.decode(
                ByteSource(bytes: Array(whole.prefix(60)), name: "cut"), WorkerFixture.request(.tiff, 96, 64))
        }
    }

    @Test func paintsTextInFontsThatTheWarmUpDidNotMeet() throws {
        func painted(_ style: String) throws -> Int {
            let text = """
                <svg xmlns="http://www.w3.org/2000/svg" width="96" height="64">\
                <text x="2" y="40" font-size="30" \(style)>Wim</text></svg>
                """
            let image = try Self.pool.decode(
                ByteSource(bytes: Array(text.utf8), name: "text"), WorkerFixture.request(.svg, 96, 64))
            return image.firstPlane.count { $0 > 128 } + image.firstPlane.enumerated().count { $0 % 4 == 3 && $1 > 128 }
        }
        let known = try painted("")
        // A system without fonts paints none, which is as it should be.
        try #require(known > 0)
        for style in [
            "font-family='serif' font-style='italic'", "font-family='monospace' font-weight='bold'",
            "font-family='sans-serif' font-stretch='condensed' font-weight='bold' font-style='italic'",
        ] { #expect(try painted(style) > known / 3, "\(style)") }
    }

    @Test func opensNoFileThatADocumentNames() throws {
        let path = try Fixture.path("worker/quadrants.png")
        let text = """
            <svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="96" height="64">\
            <image width="96" height="64" xlink:href="file://\(path)"/></svg>
            """
        let image = try Self.pool.decode(
            ByteSource(bytes: Array(text.utf8), name: "include"), WorkerFixture.request(.svg, 96, 64))
        #expect(image.firstPlane.allSatisfy { $0 == 0 })
    }
}
