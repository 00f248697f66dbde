#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Pictures as sources of thumbnails.
@Suite struct ImageFileSourceTests {
    /// Ramps of red to the right and of green downwards, with a bright line along the upper left half of the diagonal.
    private static func picture(_ width: Int, _ height: Int) -> PixelImage {
        PixelImage(width: width, height: height, alpha: .opaque) { pixels in
            for y in 0..<height {
                for x in 0..<width {
                    let place = (y * width + x) * 4
                    pixels[place] = UInt8(x * 255 / max(1, width - 1))
                    pixels[place + 1] = UInt8(y * 255 / max(1, height - 1))
                    pixels[place + 2] = x < width / 2 && x / 4 == y / 4 ? 255 : 40
                    pixels[place + 3] = 255
                }
            }
        }
    }

    /// A photo that carries a red preview of its shape.
    private static func photo(preview size: PixelSize = PixelSize(width: 160, height: 120)) throws -> [UInt8] {
        var exif = ExifSample()
        exif.preview = try PixelImage(size: size, color: PixelColor(red: 255, green: 0, blue: 0)).encoded(as: .jpeg(quality: 1))
        return try picture(640, 480).encoded(as: .jpeg(quality: 1), metadata: ImageMetadata(exif: exif.bytes))
    }

    private static func request(_ side: Int, _ mode: ImageResizer.Mode = .fit) -> RenderRequest {
        RenderRequest(size: PixelSize(side), mode: mode)
    }

    /// Views on the main actor find such images without waiting.
    @Test func findsImagesInMemoryWithoutAskingForTheirIdentity() async throws {
        let folder = try TemporaryDirectory()
        let pipeline = ImagePipeline(ImagePipeline.Configuration(root: folder.path))
        var source = ImageFileSource(Self.picture(8, 8), identifier: "mine")
        for sizing in [ImageFileSource.Sizing.box, .longestSide] {
            source.sizing = sizing
            #expect(try source.knownIdentity == source.identity())
            let request = ImageRequest(source, resizing: .fit(4))
            #expect(pipeline.cachedImage(for: request) == nil)
            let image = try await pipeline.image(for: request)
            let found = await MainActor.run { pipeline.cachedImage(for: request) }
            #expect(found == image)
        }
    }

    @Test func decodesAtTheSizeOfTheRequest() throws {
        let source = ImageFileSource(path: Samples.path("lake.jpg"))
        let whole = try ImageDecoder().decode(.file(Samples.path("lake.jpg")))
        for mode: ImageResizer.Mode in [.fit, .fill, .stretch, .crop(.center), .crop(.attention), .limit] {
            let request = RenderRequest(size: PixelSize(width: 90, height: 70), mode: mode)
            let image = try source.image(request)
            #expect(image.size == (try request.resizer.outputSize(for: whole.size)), "\(mode)")
            #expect(difference(image, try request.resizer.resize(whole)) < 6, "\(mode)")
        }
    }

    @Test(arguments: [1, 3, 6, 8])
    func givesSeveralSizesByOneDecodeAsItGivesEachAlone(orientation: Int) throws {
        let source = ImageFileSource(path: Samples.path("orientation-\(orientation).jpg"))
        let requests = [
            Self.request(20), Self.request(256), Self.request(64), Self.request(40, .crop(.center)),
            Self.request(30, .crop(.attention)), Self.request(33, .stretch), Self.request(100, .limit),
            RenderRequest(size: PixelSize(2_000), allowsUpscaling: false), Self.request(0, .none),
        ]
        let together = try source.images(requests)
        for (request, image) in zip(requests, together) {
            let alone = try source.image(request)
            #expect(image.size == alone.size, "\(request.mode) \(request.size)")
            // Where the most attention lies may be a pixel further in a picture of another scale.
            let most = request.mode == .crop(.attention) ? 15.0 : 5
            #expect(difference(image, alone) < most, "\(request.mode) \(request.size)")
        }
        #expect(try source.images([]).isEmpty)
    }

    @Test func makesSmallPicturesOfTheWholeFromLargerOnesWithoutEnlargedOnes() throws {
        let bytes = try Self.picture(60, 40).encoded(as: .png)
        let images = try ImageFileSource(.bytes(bytes)).images([Self.request(600), Self.request(30)])
        #expect(images.map(\.size) == [PixelSize(width: 600, height: 400), PixelSize(width: 30, height: 20)])
        #expect(images[1] == (try ImageFileSource(.bytes(bytes)).image(Self.request(30))))
    }

    @Test func fitsTheLongestSideOnlyWhenAsked() throws {
        let bytes = try Self.picture(400, 200).encoded(as: .png)
        var source = ImageFileSource(.bytes(bytes))
        let request = RenderRequest(size: PixelSize(width: 50, height: 100))
        #expect(try source.image(request).size == PixelSize(width: 50, height: 25))
        let identity = try source.identity()
        source.sizing = .longestSide
        #expect(try source.image(request).size == PixelSize(width: 100, height: 50))
        #expect(try source.image(Self.request(1_000)).size == PixelSize(width: 400, height: 200))
        #expect(try source.image(Self.request(40, .stretch)).size == PixelSize(40))
        #expect(try source.identity() != identity)
    }

    @Test func givesTheEmbeddedPreviewAsPlaceholderAndNotAsThumbnail() throws {
        let source = ImageFileSource(.bytes(try Self.photo()))
        let small = try #require(try source.preview(Self.request(80)))
        #expect(small.size == PixelSize(width: 80, height: 60))
        #expect(small[40, 30].red > 250 && small[40, 30].green < 5)
        // Never larger than it is.
        #expect(try source.preview(Self.request(320))?.size == PixelSize(width: 160, height: 120))
        #expect(try source.preview(Self.request(0, .none))?.size == PixelSize(width: 160, height: 120))
        #expect(try source.preview(Self.request(240, .crop(.center)))?.size == PixelSize(120))
        #expect(try source.preview(Self.request(240, .crop(.attention)))?.size == PixelSize(120))
        #expect(try source.image(Self.request(80))[70, 5].green < 50)
        #expect(try source.image(Self.request(80))[10, 50].red < 100)
    }

    @Test func givesNoPlaceholderWithoutAFittingPreview() throws {
        #expect(try ImageFileSource(path: Samples.path("leaf.png")).preview(Self.request(40)) == nil)
        let other = ImageFileSource(.bytes(try Self.photo(preview: PixelSize(160))))
        #expect(try other.preview(Self.request(40)) == nil)
        #expect(thrown { _ = try ImageFileSource(path: "/nowhere.jpg").preview(Self.request(9)) } == "unreadable")
        let image = ImageFileSource(Self.picture(4, 4), identifier: "mine")
        #expect(try image.preview(Self.request(2)) == nil)
    }

    @Test func usesAnEmbeddedPreviewWhenAllowed() throws {
        var source = ImageFileSource(.bytes(try Self.photo()))
        let identity = try source.identity()
        source.options.allowsEmbeddedPreview = true
        #expect(try source.image(Self.request(80))[10, 50].red > 250)
        #expect(try source.image(Self.request(320))[10, 200].red < 100)
        #expect(try source.identity() != identity)
    }

    @Test func readsPagesFromOne() throws {
        var source = ImageFileSource(path: Samples.path("moon.gif"))
        let count = try ImageInfo(of: .file(Samples.path("moon.gif"))).frameCount
        let first = try source.image(Self.request(60))
        source.page = count
        #expect(try source.image(Self.request(60)) != first)
        #expect(try source.identity() != ImageFileSource(path: Samples.path("moon.gif")).identity())
        for page in [0, -1, .min, count + 1, 10_000, .max] {
            source.page = page
            #expect(thrown { _ = try source.image(Self.request(60)) } == "noSuchPage", "\(page)")
        }
        var photo = ImageFileSource(path: Samples.path("lake.jpg"))
        photo.page = 2
        #expect(thrown { _ = try photo.image(Self.request(60)) } == "noSuchPage")
    }

    @Test func givesPartOfATruncatedFileOnlyWhenAllowed() throws {
        let bytes = try [UInt8](Data(contentsOf: URL(filePath: Samples.path("lake.jpg"))))
        var source = ImageFileSource(.bytes(Array(bytes.prefix(bytes.count / 2)), name: "half"))
        #expect(thrown { _ = try source.image(Self.request(60)) } == "damaged")
        source.options.allowsPartial = true
        #expect(try source.image(Self.request(60)).size.longestSide == 60)
    }

    @Test func resizesPixelsUnderTheIdentifierGiven() throws {
        let source = ImageFileSource(Self.picture(100, 50), identifier: "ramp")
        #expect(try source.identity() == "ramp")
        #expect(
            try source.images([Self.request(50), Self.request(10, .stretch)]).map(\.size)
                == [PixelSize(width: 50, height: 25), PixelSize(10)])
        let request = Self.request(20)
        request.cancellation.cancel()
        #expect(thrown { _ = try source.image(request) } == "cancelled")
    }

    @Test func isKnownByContentUnlessItIsGivenAName() throws {
        let one = ImageFileSource(.bytes([1, 2, 3]))
        #expect(try one.identity() == ImageFileSource(.bytes([1, 2, 3], name: "other")).identity())
        #expect(try one.identity() != ImageFileSource(.bytes([1, 2, 4])).identity())
        let directory = try TemporaryDirectory()
        try directory.write("first", to: "a")
        let file = ImageFileSource(path: directory.file("a"))
        let before = try file.identity()
        try directory.write("longer", to: "a")
        #expect(try file.identity() != before)
        var named = file
        named.identifier = "named"
        #expect(try named.identity() == "named")
        #expect(thrown { _ = try ImageFileSource(path: directory.file("b")).identity() } == "unreadable")
    }

    @Test func namesTheSourceInEveryError() throws {
        let directory = try TemporaryDirectory()
        try directory.write("this is text", to: "text.jpg")
        try directory.write("", to: "empty.jpg")
        func error(_ source: ImageFileSource, _ request: RenderRequest = Self.request(9)) -> ImagePipelineError? {
            #expect(throws: ImagePipelineError.self) { try source.image(request) }
        }
        for (name, kind) in [("text.jpg", "unsupported"), ("empty.jpg", "damaged"), ("none.jpg", "unreadable")] {
            let error = try #require(error(ImageFileSource(path: directory.file(name))))
            #expect(error.caseName == kind)
            #expect(error.source == directory.file(name))
        }
        #expect(error(ImageFileSource(path: directory.path))?.caseName == "unreadable")
        var request = Self.request(9)
        request.limits.maximumPixels = 10
        #expect(error(ImageFileSource(path: Samples.path("lake.jpg")), request)?.caseName == "limitExceeded")
        request = Self.request(9)
        request.cancellation.cancel()
        #expect(error(ImageFileSource(path: Samples.path("lake.jpg")), request)?.caseName == "cancelled")
        #expect(error(ImageFileSource(path: Samples.path("lake.jpg")), Self.request(0))?.caseName == "underlying")
        #expect(error(ImageFileSource(path: Samples.path("lake.jpg")), Self.request(9_000))?.caseName == "limitExceeded")
    }

    /// The mean difference of the channels of two pictures of one size.
    private func difference(_ one: PixelImage, _ other: PixelImage) -> Double {
        guard one.size == other.size else { return .infinity }
        var sum = 0
        for y in 0..<one.height {
            for x in 0..<one.width {
                let (a, b) = (one[x, y], other[x, y])
                sum += abs(Int(a.red) - Int(b.red)) + abs(Int(a.green) - Int(b.green)) + abs(Int(a.blue) - Int(b.blue))
            }
        }
        return Double(sum) / Double(3 * one.size.pixelCount)
    }
}
#endif
