import Testing
import VitrineCore
import VitrineImaging

/// JPEG XL in the worker; see ``JXLLowFrequencyDecoderTests`` for how the fixtures were made.
@Suite(.serialized) struct LibJXLDecoderTests {
    static let pool = WorkerFixture.pool(1)

    private static func source(_ name: String) throws -> ByteSource {
        try ByteSource(.file(Fixture.path("JXL/\(name).jxl")))
    }

    @Test func decodesEveryPixel() throws {
        let image = try Self.pool.decode(
            WorkerFixture.source("quadrants.jxl"), WorkerFixture.request(.jxl, 96, 64), decoder: "LibJXLDecoder")
        #expect(image.planes[0].width == 96 && image.planes[0].height == 64)
        #expect(image.model == .rgb && !image.isPartial && image.colorProfile == nil)
        #expect(image.shows(DecodedImage.quadrants, tolerance: 12))
    }

    @Test func deliversPicturesAsStoredThoughTheCodecTurnsThem() throws {
        for target in [nil, PixelSize(width: 18, height: 12)] {
            let image = try Self.pool.decode(
                WorkerFixture.source("turned.jxl"),
                WorkerFixture.request(.jxl, 96, 64, target: target, orientation: .right), decoder: "LibJXLDecoder")
            #expect(image.planes[0].width == (target == nil ? 96 : 32))
            #expect(image.shows(DecodedImage.quadrants, tolerance: 16))
        }
    }

    @Test func averagesBlocksAndWeighsColorsByAlpha() throws {
        let image = try Self.pool.decode(
            Self.source("alpha"), WorkerFixture.request(.jxl, 600, 400, target: PixelSize(width: 57, height: 38)))
        // 600 / 57 / 1.5: blocks of 7, the last ones partly covered.
        #expect(image.planes[0].width == 86 && image.planes[0].height == 58 && image.planes[0].channels == 4)
        #expect(image.alpha == .premultiplied && image.samplesAreMeans)
        let pixels = image.firstPlane
        #expect(Array(pixels[0..<4]) == [0, 0, 0, 0], "left half transparent")
        #expect(pixels[pixels.count - 1] == 255)
    }

    @Test func keepsGreyAsOneChannel() throws {
        let image = try Self.pool.decode(Self.source("grey"), WorkerFixture.request(.jxl, 600, 400))
        #expect(image.model == .gray && image.planes[0].channels == 1)
    }

    @Test func handsOverTheProfileOfSamplesThatAreNotConverted() throws {
        let image = try Self.pool.decode(Self.source("jpeg-icc"), WorkerFixture.request(.jxl, 600, 400))
        let info = try ImageInfo(reading: Self.source("jpeg-icc"))
        #expect(image.colorProfile.map { $0.count > 128 } == true && image.colorProfile == info.colorProfile)
    }

    @Test func decodesTheFrameAskedForAndRefusesOthers() throws {
        let frames = try (0..<5).map {
            try Self.pool.decode(Self.source("frames"), WorkerFixture.request(.jxl, 96, 64, page: $0)).firstPlane
        }
        #expect(Set(frames).count == 5)
        #expect {
            try Self.pool.decode(Self.source("frames"), WorkerFixture.request(.jxl, 96, 64, page: 5))
        } throws: { ($0 as? ImageError).map { isSameCase($0, .invalidRequest(reason: "")) } ?? false }
    }

    @Test func refusesMorePixelsThanAllowed() throws {
        var limits = ImageLimits()
        limits.maximumWholeImagePixels = 239_999
        #expect(throws: ImageError.limitExceeded(
            input: try Fixture.path("JXL/d1.jxl"), limit: .pixels, actual: 240_000, allowed: 239_999)
        ) {
            try Self.pool.decode(Self.source("d1"), WorkerFixture.request(.jxl, 1, 1, limits: limits))
        }
    }

    @Test func tellsATruncatedFileOrDeliversThePartThatIsThere() throws {
        let cut = ByteSource(bytes: Array(try Fixture.bytes("JXL/d1.jxl").dropLast(1_000)), name: "cut")
        #expect(throws: ImageError.truncated(input: "cut")) {
            try Self.pool.decode(cut, WorkerFixture.request(.jxl, 600, 400), decoder: "LibJXLDecoder")
        }
        let image = try Self.pool.decode(
            cut, WorkerFixture.request(.jxl, 600, 400, allowsPartial: true), decoder: "LibJXLDecoder")
        #expect(image.isPartial && image.planes[0].width == 600)
    }

    @Test(arguments: ["d1", "lossless", "alpha", "jpeg420", "frames"])
    func survivesTruncationAndMutation(name: String) throws {
        let bytes = try Fixture.bytes("JXL/\(name).jxl")
        var limits = ImageLimits()
        limits.deadline = 4
        limits.maximumWholeImagePixels = 1_000_000
        var generator = SystemRandomNumberGenerator()
        for round in 0..<80 {
            var copy = bytes
            if round < 20 {
                copy = Array(bytes.prefix(bytes.count * (round + 1) / 21))
            } else {
                for _ in 0...(round % 3) {
                    copy[Int.random(in: 0..<copy.count, using: &generator)] ^= 1 << UInt8.random(in: 0..<8)
                }
            }
            let request = WorkerFixture.request(
                .jxl, 600, 400, target: PixelSize(width: 60, height: 40), allowsPartial: round % 2 == 0, limits: limits)
            _ = try? Self.pool.decode(
                ByteSource(bytes: copy, name: "mutated"), request, decoder: "LibJXLDecoder")
        }
        let image = try Self.pool.decode(
            WorkerFixture.source("quadrants.jxl"), WorkerFixture.request(.jxl, 96, 64), decoder: "LibJXLDecoder")
        #expect(image.shows(DecodedImage.quadrants, tolerance: 12))
    }
}
