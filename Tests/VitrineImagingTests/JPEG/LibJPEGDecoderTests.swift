import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineJPEG

#if SystemCodecs
@Suite struct LibJPEGDecoderTests {
    private let decoder = LibJPEGDecoder()

    @Test(arguments: JPEG.baselineFixtures)
    func blockMeansEqualItsEighthOnSmallFiles(name: String) throws {
        let own = try BlockMeanDecoder().decode(JPEG.fixture(name), at: .eighth)
        let reference = try decoder.decode(JPEG.fixture(name), eighths: 1, isPlanar: true)
        #expect(own.model == reference.model)
        // Components with fewer samples than the largest are transformed finer by the library.
        var compared = 0
        for (a, b) in zip(own.planes, reference.planes) {
            guard a.extentWidth == b.extentWidth, a.extentHeight == b.extentHeight else { continue }
            #expect(JPEG.difference(a, b) == 0)
            compared += 1
        }
        #expect(compared >= 1)
    }

    @Test(arguments: JPEG.progressiveFixtures)
    func blockMeansOfAFirstScanAreNearItsEighth(name: String) throws {
        let own = try BlockMeanDecoder().decode(JPEG.fixture(name), at: .eighth)
        let reference = try decoder.decode(JPEG.fixture(name), eighths: 1, isPlanar: true)
        #expect(JPEG.difference(own.planes[0], reference.planes[0]) <= 2)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func blockMeansEqualItsEighthOnPhotos() throws {
        var compared = 0
        for path in Corpus.files(in: "corpus/jpeg") + Corpus.files(in: "corpus/exif-orientation") {
            guard path.hasSuffix(".jpg"), !path.contains("progressive") else { continue }
            guard let own = try? BlockMeanDecoder().decode(ByteSource(.file(path)), at: .eighth) else { continue }
            let reference = try decoder.decode(ByteSource(.file(path)), eighths: 1, isPlanar: true)
            #expect(JPEG.difference(own.planes[0], reference.planes[0]) == 0, "\(path)")
            compared += 1
        }
        #expect(compared > 5)
    }

    @Test func cmykIsInvertedWhoeverWroteIt() throws {
        let image = try decoder.decode(JPEG.fixture("cmyk"), eighths: 8, isPlanar: true)
        #expect(image.model == .cmyk(inverted: true))
        #expect(image.planes[0].channels == 4 && image.planes[0].width == 107)
        // Eight fields: cyan, magenta, yellow, black, white, red ink and two mixtures; no marker of Adobe.
        let fields = try ImageDecoder().decode(.bytes(Fixture.bytes("JPEG/cmyk-no-adobe-marker.jpg")))
        let expected = [
            PixelColor(red: 0, green: 255, blue: 255), PixelColor(red: 255, green: 0, blue: 255),
            PixelColor(red: 255, green: 255, blue: 0), PixelColor(white: 0), PixelColor(white: 255),
            PixelColor(red: 0, green: 128, blue: 128), PixelColor(red: 207, green: 180, blue: 51), PixelColor(white: 127),
        ]
        for (i, color) in expected.enumerated() {
            let pixel = fields[16 + 32 * i, 32]
            let difference = zip(
                [pixel.red, pixel.green, pixel.blue], [color.red, color.green, color.blue]
            ).map { abs(Int($0) - Int($1)) }
            #expect(difference.allSatisfy { $0 <= 3 }, "field \(i): \(pixel)")
        }
    }

    @Test func scaleFollowsTheRequest() throws {
        let size = PixelSize(width: 107, height: 77)
        let source = try JPEG.fixture("sampling-2x2")
        let full = try decoder.decode(source, JPEG.request(size, target: nil))
        #expect(full.model == .rgb && full.planes[0].width == 107)
        let half = try decoder.decode(source, JPEG.request(size, target: PixelSize(width: 30, height: 22)))
        // The library transforms colour finer, up to the size of brightness: planes of their own would save nothing.
        #expect(half.model == .rgb && half.planes[0].width == 54)
        #expect(half.planes[0].extentWidth == 53.5)
        let wide = try decoder.decode(
            JPEG.fixture("sampling-2x1"), JPEG.request(size, target: PixelSize(width: 30, height: 22)))
        #expect(wide.model == .yCbCr(.bt601, fullRange: true))
        #expect(wide.planes[0].extentWidth == 53.5 && wide.planes[1].width < wide.planes[0].width)
        let quarter = try decoder.decode(source, JPEG.request(size, target: PixelSize(width: 15, height: 11)))
        #expect(quarter.planes[0].width == 27)
    }

    @Test(arguments: JPEG.baselineFixtures + JPEG.progressiveFixtures + ["cmyk"], [(60, 43), (30, 22), (100, 20)])
    func scalingRowByRowGivesTheSameSamples(name: String, side: (Int, Int)) throws {
        let target = PixelSize(width: side.0, height: side.1)
        let source = try JPEG.fixture(name)
        let info = try ImageInfo(reading: source, limits: .standard)
        var request = JPEG.request(info.size, target: target)
        let scale = [1, 2, 4].first { request.reduction * Double($0) / 8 >= LibJPEGDecoder.oversampling }
        let whole = try decoder.decode(source, eighths: scale ?? 8, isPlanar: false)
        request.allowsScaling = true
        let scaled = try decoder.decode(source, request)
        #expect(scaled.model == whole.model)
        for (a, b) in zip(scaled.planes, whole.planes) {
            #expect(JPEG.difference(a, try #require(Resampler.resample(b, to: target))) == 0)
        }
    }

    @Test func damageBelowTheLastRowThatIsNeededIsFound() throws {
        let bytes = try Fixture.bytes("JPEG/sampling-2x2.jpg")
        let source = ByteSource(bytes: Array(bytes.dropLast(40)), name: "cut")
        var request = JPEG.request(PixelSize(width: 107, height: 77), target: PixelSize(width: 60, height: 43))
        request.allowsScaling = true
        #expect(throws: ImageError.truncated(input: "cut")) { try decoder.decode(source, request) }
        request.options.allowsPartial = true
        #expect(try decoder.decode(source, request).isPartial)
        let token = CancellationToken()
        token.cancel()
        request.cancellation = token
        #expect(throws: ImageError.cancelled(input: "cut")) { try decoder.decode(source, request) }
    }

    @Test func readsWhatBlockMeansLeave() throws {
        for name in ["arithmetic", "progressive", "sampling-4x2-2x1-1x2"] {
            let image = try decoder.decode(JPEG.fixture(name), eighths: 8, isPlanar: false)
            #expect(image.planes[0].width == 107 && !image.isPartial)
        }
    }

    @Test(arguments: ["sampling-2x2", "progressive", "one-scan-a-component"])
    func truncatedFileThrowsOrGivesThePart(name: String) throws {
        let bytes = try Fixture.bytes("JPEG/\(name).jpg")
        let source = ByteSource(bytes: Array(bytes[..<(bytes.count * 3 / 4)]), name: name)
        #expect(throws: ImageError.truncated(input: name)) { try decoder.decode(source, eighths: 8, isPlanar: true) }
        let part = try decoder.decode(source, eighths: 8, isPlanar: true, allowsPartial: true)
        #expect(part.isPartial)
        // A progressive file has every row by then, and one with a scan for each component all of brightness.
        #expect(name == "sampling-2x2" ? (0.3...0.9).contains(part.filledHeight) : part.filledHeight == 1)
        let all = try decoder.decode(JPEG.fixture(name), eighths: 8, isPlanar: true)
        if name == "sampling-2x2" {
            #expect(JPEG.samples(part.planes[0]).prefix(1000) == JPEG.samples(all.planes[0]).prefix(1000))
        }
    }

    @Test(arguments: [[0, 0, 0], [0x12, 0xFF, 0, 0x34], Array("text".utf8), [UInt8](repeating: 0x55, count: 5_000)])
    func garbageBetweenSegmentsIsPassedOver(_ garbage: [UInt8]) throws {
        let file = try Fixture.bytes("JPEG/sampling-2x2.jpg")
        let parts = JPEG.segments(file)
        // Behind each part but the entropy-coded one, the first included.
        let dirty = Array(parts.dropLast().joined(separator: garbage)) + garbage + parts[parts.count - 1]
        #expect(ImageFormat.detect(dirty) == .jpeg)
        let decoder = ImageDecoder(isolation: .inProcess)
        for resizer in [ImageResizer.none, .fit(8), .fit(40)] {
            #expect(try decoder.decode(.bytes(dirty), at: resizer) == (try decoder.decode(.bytes(file), at: resizer)))
        }
    }

    @Test func bytesBehindTheStartOfAJPEGDoNotMakeOne() {
        #expect(ImageFormat.detect([0xFF, 0xD8] + [UInt8](repeating: 0x55, count: 100)) == nil)
    }

    @Test func missingEndMarkerIsNoTruncation() throws {
        for name in ["sampling-2x2", "progressive"] {
            let bytes = try Fixture.bytes("JPEG/\(name).jpg")
            let source = ByteSource(bytes: Array(bytes.dropLast(2)), name: name)
            #expect(try !decoder.decode(source, eighths: 8, isPlanar: true).isPartial)
        }
    }

    @Test func progressiveFileBeyondTheCoefficientLimitIsRefused() throws {
        var limits = ImageLimits.standard
        limits.maximumCoefficientBytes = 10_000
        let source = try JPEG.fixture("progressive")
        let error = JPEG.error { _ = try decoder.decode(source, eighths: 8, isPlanar: true, limits: limits) }
        guard case .limitExceeded(_, .memory, let actual, 10_000) = error, actual > 10_000 else {
            Issue.record("\(String(describing: error))")
            return
        }
        // A file in one scan needs none.
        _ = try decoder.decode(JPEG.fixture("sampling-2x2"), eighths: 8, isPlanar: true, limits: limits)
    }

    @Test func scansWithoutEndAreRefused() throws {
        let bytes = try Fixture.bytes("JPEG/gray-progressive.jpg")
        let last = try #require((0..<bytes.count).last { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA })
        let scan = bytes[last..<(bytes.count - 2)]
        let many = bytes.dropLast(2) + [[UInt8]](repeating: Array(scan), count: 300).joined() + [0xFF, 0xD9]
        let source = ByteSource(bytes: Array(many), name: "many")
        #expect(throws: ImageError.corrupt(input: "many", reason: "more than 200 scans")) {
            try decoder.decode(source, eighths: 8, isPlanar: true, allowsPartial: true)
        }
    }

    @Test(arguments: ["sampling-2x2", "progressive"])
    func cancelledTokenStopsTheDecode(name: String) throws {
        let token = CancellationToken()
        token.cancel()
        let source = try JPEG.fixture(name)
        #expect(throws: ImageError.cancelled(input: name)) {
            try decoder.decode(source, eighths: 8, isPlanar: true, cancellation: token)
        }
    }

    @Test func mutatedFilesNeverTrap() throws {
        var numbers = SeededGenerator(12)
        for name in JPEG.baselineFixtures + JPEG.progressiveFixtures + ["cmyk", "arithmetic"] {
            let bytes = try Fixture.bytes("JPEG/\(name).jpg")
            for round in 0..<80 {
                let source = ByteSource(bytes: JPEG.mutate(bytes, with: &numbers), name: name)
                let eighths = [1, 2, 4, 8][round % 4]
                var limits = ImageLimits.standard
                limits.maximumPixels = 4_000_000
                _ = try? decoder.decode(
                    source, eighths: eighths, isPlanar: round % 3 != 0, limits: limits, allowsPartial: true)
            }
        }
    }

    @Test(
        .enabled(if: Corpus.isAvailable, "needs the shared corpus"),
        arguments: ["libjpeg-turbo-bugs", "libjpeg-turbo-afl", "imagetestsuite-jpg", "truncated"])
    func hostileFilesGiveAPictureOrAnError(folder: String) throws {
        var limits = ImageLimits.standard
        limits.maximumPixels = 20_000_000
        limits.maximumCoefficientBytes = 64 << 20
        for path in Corpus.files(in: "hostile/\(folder)") {
            for eighths in [1, 8] {
                _ = try? decoder.decode(
                    ByteSource(.file(path)), eighths: eighths, isPlanar: true, limits: limits, allowsPartial: true)
            }
        }
    }

    /// A file the library reads without a complaint must not be called corrupt by the block means.
    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func blockMeansRefuseNothingTheLibraryAccepts() throws {
        for folder in ["imagetestsuite-jpg", "drewnoakes-fuzzing", "libjpeg-turbo-afl"] {
            for path in Corpus.files(in: "hostile/\(folder)") {
                let source = try ByteSource(.file(path))
                guard (try? decoder.decode(source, eighths: 1, isPlanar: true)) != nil else { continue }
                do {
                    _ = try BlockMeanDecoder().decode(source, at: .eighth)
                } catch {
                    if case .unsupported = error { continue }
                    Issue.record("\(path): \(error)")
                }
            }
        }
    }
}
#endif
