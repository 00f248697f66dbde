#if SystemCodecs
import Testing
import VitrineCore
import VitrineImaging
import VitrineHEIF

struct AVIFDecoderTests {
    private let size = PixelSize(width: 75, height: 53)

    private func decode(
        _ name: String, target: PixelSize? = nil, page: Int = 0, limits: ImageLimits = .standard
    ) throws -> DecodedImage {
        let info = ImageInfo(format: .avif, storedSize: size)
        return try AVIFDecoder().decode(
            ByteSource(bytes: Fixture.bytes("AVIF/\(name)"), name: "test"),
            DecodeRequest(info: info, target: target, options: DecodeOptions(page: page), limits: limits))
    }

    @Test(arguments: [
        ("420", "rgb"), ("420-limited-709", "rgb"), ("444-10-limited", "rgb"), ("422-12", "rgb"), ("400", "rgb"),
        ("400-10-limited", "rgb"), ("444-identity", "rgb"), ("444-ycgco", "rgb"), ("444-10-2020", "rgb"),
        ("420-alpha", "rgba"), ("444-premultiplied", "rgba"),
    ])
    func fullSizeEqualsTheReference(name: String, kind: String) throws {
        let image = try decode("\(name).avif")
        let difference = FlatPixels(image).difference(to: try Fixture.bytes("AVIF/\(name).\(kind)"))
        // Differences are those of chroma interpolation, and of rounding to 8 bits before the conversion.
        #expect(difference.mean < 0.6)
        #expect(difference.largest <= (name.hasPrefix("42") ? 12 : 3))
    }

    /// ITU-T H.273 matrix 16, of which no libavif of this interface knows.
    @Test func losslessColoursOfYCgCoComeBackExactly() throws {
        let image = FlatPixels(try decode("444-ycgco-re.avif"))
        for y in 0..<53 {
            for x in 0..<75 {
                let at = (y * 75 + x) * 4
                let expected = [40 + x * 2, 200 - y * 3, 90 + (x + y) % 80, 255].map { UInt8($0) }
                if !image.bytes[at..<(at + 4)].elementsEqual(expected) { Issue.record("\(x), \(y)") }
            }
        }
        let small = FlatPixels(try decode("444-ycgco-re.avif", target: PixelSize(width: 9, height: 6)))
        #expect(small.width == 19 && abs(Int(small.bytes[0]) - 43) <= 1 && abs(Int(small.bytes[1]) - 196) <= 1)
    }

    @Test func colourMatricesThatNobodyConvertsAreRefused() throws {
        var bytes = try Fixture.bytes("AVIF/444-ycgco-re.avif")
        let colors = try #require(bytes.indices.first { bytes[$0...].starts(with: "nclx".utf8) })
        for matrix: UInt8 in [10, 11, 14, 15, 18, 200] {
            bytes[colors + 9] = matrix
            let source = ByteSource(bytes: bytes, name: "test")
            let error = JPEG.error {
                _ = try AVIFDecoder().decode(
                    source, DecodeRequest(info: ImageInfo(format: .avif, storedSize: size), target: nil))
            }
            #expect(JPEG.isUnsupported(error), "\(matrix)")
            #expect(try HEIFContainer(ByteReader(source)).reasonAgainstLibheif != nil)
        }
    }

    @Test func depthIsNoAlpha() throws {
        let source = try ByteSource(.file(Fixture.path("AVIF/libavif/colors-animated-8bpc-depth-exif-xmp.avif")))
        let info = try ImageInfo(reading: source)
        #expect(!info.hasAlpha && info.frameCount == 5)
        let request = DecodeRequest(info: info, target: nil)
        #expect(try AVIFDecoder().decode(source, request).alpha == .none)
        let frames = try AVIFDecoder().frames(of: source, request)
        while try frames.advance(CancellationToken()) {
            #expect(try frames.samples(CancellationToken()).alpha == .none)
        }
        #expect(try HEIFContainer(ByteReader(source)).auxiliaryTracks == [.other])
    }

    @Test func theLastBoxMayBeOpen() throws {
        let source = try ByteSource(.file(Fixture.path("AVIF/libavif/draw_points_idat_metasize0.avif")))
        let info = try ImageInfo(reading: source)
        let image = try AVIFDecoder().decode(source, DecodeRequest(info: info, target: nil))
        #expect(image.planes[0].width == 33 && image.planes[0].height == 11 && image.alpha != .none)
    }

    @Test func greyProfileOfThreeChannelsIsApplied() throws {
        let image = try ImageDecoder(isolation: .inProcess).decode(.file(Fixture.path("AVIF/gray-linear-icc.avif")))
        for (i, level) in [0, 99, 137, 165, 188, 208, 229, 255].enumerated() {
            let pixel = image[min(255, 16 + 32 * i), 16]
            #expect(abs(Int(pixel.green) - level) <= 2 && pixel.red == pixel.blue, "field \(i): \(pixel)")
        }
    }

    @Test func modelsFollowTheFile() throws {
        #expect(try decode("420.avif").model == .yCbCr(.bt601, fullRange: true))
        #expect(try decode("420-limited-709.avif").model == .yCbCr(.bt709, fullRange: false))
        #expect(try decode("444-10-2020.avif").model == .yCbCr(.bt2020, fullRange: true))
        #expect(try decode("400-10-limited.avif").model == .gray)
        #expect(try decode("444-identity.avif").model == .rgb)
        #expect(try decode("420-alpha.avif").alpha == .straight)
        #expect(try decode("444-premultiplied.avif").alpha == .premultiplied)
        #expect(try decode("420-alpha.avif").planes.map(\.width) == [75, 38, 38, 75])
    }

    @Test func reductionAveragesPlanes() throws {
        for name in ["420.avif", "422-12.avif", "444-10-limited.avif"] {
            let full = try decode(name)
            let small = try decode(name, target: PixelSize(width: 4, height: 3))
            #expect(small.planes[0].extentWidth == 75.0 / 8)
            #expect(small.planes[1].extentWidth == 75.0 / 8 && small.planes[1].extentHeight == 53.0 / 8)
            #expect(small.planes[1].width == 10 && small.planes[1].height == 7)
            var reducer = BoxReducer(width: 75, height: 53, factor: 8)
            full.planes[0].storage.withUnsafeBytes {
                reducer.add(rows: $0.baseAddress!.assumingMemoryBound(to: UInt8.self), count: 53, bytesPerRow: 75)
            }
            let expected = reducer.finish().storage.withUnsafeBytes { Array($0) }
            let actual = small.planes[0].storage.withUnsafeBytes { Array($0) }
            // Deep samples are rounded once here, twice in the expectation.
            #expect(zip(expected, actual).allSatisfy { abs(Int($0) - Int($1)) <= (name == "420.avif" ? 0 : 1) })
        }
    }

    @Test func hiddenColoursDoNotBleedIntoReducedOnes() throws {
        let full = FlatPixels(try decode("420-alpha.avif"))
        let small = FlatPixels(try decode("420-alpha.avif", target: PixelSize(width: 9, height: 6)))
        // Blocks on the edge of the ellipse: compare with the mean weighted by alpha.
        for (x, y) in [(2, 5), (4, 1), (14, 8)] {
            var (sum, weight) = (0.0, 0.0)
            for j in (y * 4)..<(y * 4 + 4) {
                for i in (x * 4)..<(x * 4 + 4) {
                    let at = (j * 75 + i) * 4
                    sum += Double(full.bytes[at]) * Double(full.bytes[at + 3])
                    weight += Double(full.bytes[at + 3])
                }
            }
            if weight > 0 { #expect(abs(Double(small.bytes[(y * 19 + x) * 4]) - sum / weight) <= 6) }
        }
    }

    @Test func framesOfASequenceAreReachable() throws {
        #expect(try decode("sequence.avif", page: 3).planes[0].width == 75)
        #expect(throws: ImageError.invalidRequest(reason: "frame 4 of an image of 4")) {
            try decode("sequence.avif", page: 4)
        }
        var limits = ImageLimits.standard
        limits.maximumFrames = 2
        #expect(throws: ImageError.limitExceeded(input: "test", limit: .frames, actual: 3, allowed: 2)) {
            try decode("sequence.avif", page: 2, limits: limits)
        }
    }

    @Test func codePointsBecomeAProfile() throws {
        let profile = try #require(try decode("444-10-2020.avif").colorProfile)
        #expect(Array(profile[36..<40]) == Array("acsp".utf8))
        #expect(profile[0..<4].reduce(0) { $0 << 8 | Int($1) } == profile.count)
        #expect(try decode("420.avif").colorProfile == nil)
    }

    @Test func limitsAreCheckedBeforeDecoding() throws {
        var limits = ImageLimits.standard
        limits.maximumWholeImagePixels = 75 * 53 - 1
        #expect(throws: ImageError.self) { try decode("420.avif", limits: limits) }
        limits = .standard
        limits.maximumSide = 74
        #expect(throws: ImageError.self) { try decode("420.avif", limits: limits) }
    }

    @Test func truncatedAndCancelledInputEndsInItsError() throws {
        let bytes = try Fixture.bytes("AVIF/420.avif")
        let info = ImageInfo(format: .avif, storedSize: size)
        #expect(throws: ImageError.truncated(input: "test")) {
            try AVIFDecoder().decode(
                ByteSource(bytes: Array(bytes.dropLast(40)), name: "test"), DecodeRequest(info: info, target: nil))
        }
        let token = CancellationToken()
        token.cancel()
        #expect(throws: ImageError.cancelled(input: "test")) {
            try AVIFDecoder().decode(
                ByteSource(bytes: bytes, name: "test"), DecodeRequest(info: info, target: nil, cancellation: token))
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func everyPictureOfTheCorpusDecodes() throws {
        for path in Corpus.files(in: "corpus/avif") {
            let info = ImageInfo(format: .avif, storedSize: PixelSize(2_000))
            let image = try AVIFDecoder().decode(
                ByteSource(.file(path)), DecodeRequest(info: info, target: PixelSize(100)))
            #expect(image.planes[0].width >= 200, "\(path)")
        }
    }
}
#endif
