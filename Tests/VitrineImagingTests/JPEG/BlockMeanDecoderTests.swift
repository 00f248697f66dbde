import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineJPEG

@Suite struct BlockMeanDecoderTests {
    private let decoder = BlockMeanDecoder()

    @Test(arguments: JPEG.baselineFixtures)
    func givesThePlanesAndExtentsOfEachSampling(name: String) throws {
        let image = try decoder.decode(JPEG.fixture(name), at: .eighth)
        #expect(!image.isPartial)
        for plane in image.planes {
            #expect(plane.extentWidth <= Double(plane.width) && plane.extentWidth > Double(plane.width) - 1)
            #expect(plane.extentHeight <= Double(plane.height) && plane.extentHeight > Double(plane.height) - 1)
        }
        let finest = try #require(image.planes.map(\.extentWidth).max())
        #expect(finest == 107 / 8.0)
    }

    @Test(arguments: ["sampling-2x1", "sampling-2x2"])
    func colorHasAsManySamplesAsBrightnessWhereItWouldHaveFewerThanTheResult(name: String) throws {
        for (width, height, isRefined) in [(7, 5, true), (6, 4, false), (14, 10, true), (13, 9, false)] {
            let target = PixelSize(width: width, height: height)
            let request = JPEG.request(PixelSize(width: 107, height: 77), target: target)
            let image = try decoder.decode(JPEG.fixture(name), request)
            let part = image.planes[1].extentWidth / image.planes[0].extentWidth
            #expect(part == (isRefined ? 1 : 0.5), "\(target): a reduction by \(request.reduction)")
        }
    }

    @Test func modelFollowsTheFile() throws {
        #expect(try decoder.decode(JPEG.fixture("gray"), at: .eighth).model == .gray)
        #expect(try decoder.decode(JPEG.fixture("sampling-2x2"), at: .eighth).model == .yCbCr(.bt601, fullRange: true))
        let rgb = try decoder.decode(JPEG.fixture("red-green-blue"), at: .eighth)
        #expect(rgb.model == .rgb && rgb.planes.count == 1 && rgb.planes[0].channels == 3)
    }

    @Test func aQuarterAveragesToTheEighth() throws {
        for name in JPEG.baselineFixtures {
            let eighth = try decoder.decode(JPEG.fixture(name), at: .eighth)
            let quarter = try decoder.decode(JPEG.fixture(name), at: .quarter)
            guard eighth.model != .rgb else { continue }
            for (e, q) in zip(eighth.planes, quarter.planes) {
                #expect(q.extentWidth == 2 * e.extentWidth)
                let (es, qs) = (JPEG.samples(e), JPEG.samples(q))
                for y in 0..<(q.height / 2) {
                    for x in 0..<(q.width / 2) {
                        let four = [(0, 0), (0, 1), (1, 0), (1, 1)].map { qs[(2 * y + $0.0) * q.width + 2 * x + $0.1] }
                        // Saturation pulls a mean away from its block's.
                        guard four.allSatisfy({ $0 > 0 && $0 < 255 }) else { continue }
                        let mean = four.reduce(0) { $0 + Int($1) } / 4
                        #expect(abs(mean - Int(es[y * e.width + x])) <= 1, "\(name) \(x) \(y)")
                    }
                }
            }
        }
    }

    @Test(arguments: ["progressive", "progressive-restart", "progressive-separate-dc"])
    func quarterOfAProgressiveFileIsNearThatOfTheSameCoefficientsInOneScan(name: String) throws {
        let own = try decoder.decode(JPEG.fixture(name), at: .quarter)
        let reference = try decoder.decode(JPEG.fixture("sampling-2x2"), at: .quarter)
        #expect(!own.isPartial)
        for (a, b) in zip(own.planes, reference.planes) {
            #expect(a.extentWidth == b.extentWidth && a.extentHeight == b.extentHeight)
            let differences = zip(JPEG.samples(a), JPEG.samples(b)).map { abs(Int($0) - Int($1)) }
            // Bits of later scans are missing: one of DC, two of luma's AC.
            #expect(differences.count == JPEG.samples(b).count)
            #expect((differences.max() ?? 256) <= 12)
            #expect(Double(differences.reduce(0, +)) / Double(differences.count) < 1.6)
        }
        if name == "progressive-separate-dc" {
            // Its first blue-difference scans lack nothing; DC and AC are rounded one after the other.
            #expect(JPEG.difference(own.planes[1], reference.planes[1]) <= 1)
        }
    }

    @Test(arguments: ["progressive", "progressive-restart", "progressive-separate-dc"])
    func coloursOfAProgressiveFileAreNotSmallerThanTheResult(name: String) throws {
        let size = PixelSize(width: 107, height: 77)
        let image = try decoder.decode(JPEG.fixture(name), JPEG.request(size, target: PixelSize(width: 8, height: 6)))
        let quarter = try decoder.decode(JPEG.fixture("sampling-2x2"), at: .quarter)
        #expect(image.planes[0].extentWidth == 107.0 / 8)
        for i in 1...2 {
            #expect(image.planes[i].extentWidth == image.planes[0].extentWidth)
            // Bits of later scans are missing.
            #expect(JPEG.difference(image.planes[i], quarter.planes[i]) <= 12)
        }
        // At half the result, an eighth of the colour suffices again.
        let small = try decoder.decode(JPEG.fixture(name), JPEG.request(size, target: PixelSize(width: 5, height: 4)))
        #expect(small.planes[1].extentWidth == 107.0 / 16)
        #if SystemCodecs
        let error = JPEG.error {
            _ = try decoder.decode(JPEG.fixture(name), JPEG.request(size, target: PixelSize(width: 15, height: 11)))
        }
        #expect(JPEG.isUnsupported(error), "the library has finer colour")
        #endif
    }

    @Test func quarterOfAProgressiveFileCutBehindItsMeansIsPartial() throws {
        let bytes = try Fixture.bytes("JPEG/progressive.jpg")
        let scans = (0..<bytes.count - 1).filter { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }
        let source = ByteSource(bytes: Array(bytes[..<(scans[1] + 30)]), name: "cut")
        #expect(throws: ImageError.truncated(input: "cut")) { try decoder.decode(source, at: .quarter) }
        let part = try decoder.decode(source, at: .quarter, allowsPartial: true)
        #expect(part.isPartial)
        #expect(try !decoder.decode(source, at: .eighth).isPartial)
    }

    @Test func asksForTheNextDecoderWhenTheResultWouldBeCoarse() throws {
        let size = PixelSize(width: 107, height: 77)
        let source = try JPEG.fixture("sampling-2x2")
        let reason = "block means are too coarse for this size"
        #expect(throws: ImageError.unsupported(input: "sampling-2x2", reason: reason)) {
            try decoder.decode(source, JPEG.request(size, target: PixelSize(width: 30, height: 30)))
        }
        let quarter = try decoder.decode(source, JPEG.request(size, target: PixelSize(width: 15, height: 11)))
        #expect(quarter.planes[0].width == 27)
        let eighth = try decoder.decode(source, JPEG.request(size, target: PixelSize(width: 8, height: 6)))
        #expect(eighth.planes[0].width == 14)
    }

    @Test(arguments: ["cmyk", "arithmetic"])
    func leavesWhatItCannotReadToOthers(name: String) throws {
        let source = try JPEG.fixture(name)
        #expect(JPEG.isUnsupported(JPEG.error { _ = try decoder.decode(source, at: .eighth) }))
    }

    @Test(arguments: [(0, 0xC3), (0, 0xC5), (2, 12)] as [(Int, UInt8)])
    func leavesLosslessHierarchicalAndDeepFilesToOthers(change: (Int, UInt8)) throws {
        var bytes = try Fixture.bytes("JPEG/gray.jpg")
        let frame = try #require((0..<bytes.count).first { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xC0 })
        bytes[frame + 1 + (change.0 == 0 ? 0 : 3)] = change.1
        let source = ByteSource(bytes: bytes, name: "changed")
        #expect(JPEG.isUnsupported(JPEG.error { _ = try decoder.decode(source, at: .eighth) }))
    }

    @Test func profileOfTheHeaderIsHandedOn() throws {
        var request = JPEG.request(PixelSize(width: 107, height: 77), target: PixelSize(4))
        request.info.colorProfile = [1, 2, 3]
        #expect(try decoder.decode(JPEG.fixture("gray"), request).colorProfile == [1, 2, 3])
    }

    @Test(arguments: JPEG.baselineFixtures + JPEG.progressiveFixtures)
    func truncatedFileThrowsOrGivesThePart(name: String) throws {
        let whole = try Fixture.bytes("JPEG/\(name).jpg")
        let scan = try #require((0..<whole.count).last { whole[$0] == 0xFF && whole[$0 + 1] == 0xDA })
        let first = try #require((0..<whole.count).first { whole[$0] == 0xFF && whole[$0 + 1] == 0xDA })
        let end = JPEG.progressiveFixtures.contains(name) ? first + 40 : scan + (whole.count - scan) * 3 / 4
        let source = ByteSource(bytes: Array(whole[..<end]), name: name)
        #expect(throws: ImageError.truncated(input: name)) { try decoder.decode(source, at: .eighth) }
        guard !JPEG.progressiveFixtures.contains(name) else { return }
        let part = try decoder.decode(source, at: .eighth, allowsPartial: true)
        #expect(part.isPartial)
        let all = try decoder.decode(JPEG.fixture(name), at: .eighth)
        #expect(JPEG.samples(part.planes[0]).prefix(20) == JPEG.samples(all.planes[0]).prefix(20))
        #expect(JPEG.samples(part.planes.last!).last == 128)
    }

    @Test func damagedIntervalDoesNotSpoilTheNext() throws {
        var bytes = try Fixture.bytes("JPEG/restart-row.jpg")
        let second = try #require((0..<bytes.count).first { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xD1 })
        for i in (second + 6)..<(second + 40) where bytes[i] != 0xFF && bytes[i - 1] != 0xFF { bytes[i] = 0xFE }
        let source = ByteSource(bytes: bytes, name: "damaged")
        let part = try decoder.decode(source, at: .eighth, allowsPartial: true)
        let all = try decoder.decode(JPEG.fixture("restart-row"), at: .eighth)
        #expect(JPEG.samples(part.planes[0]).suffix(14) == JPEG.samples(all.planes[0]).suffix(14))
    }

    @Test func emptyAndForeignBytesAreRefused() {
        #expect(throws: ImageError.empty(input: "e")) {
            try decoder.decode(ByteSource(bytes: [], name: "e"), at: .eighth)
        }
        #expect(throws: ImageError.corrupt(input: "p", reason: "no start of image")) {
            try decoder.decode(ByteSource(bytes: [0x89, 0x50, 0x4E, 0x47], name: "p"), at: .eighth)
        }
        #expect(throws: ImageError.truncated(input: "s")) {
            try decoder.decode(ByteSource(bytes: [0xFF, 0xD8], name: "s"), at: .eighth)
        }
    }

    @Test func pixelLimitHolds() throws {
        var limits = ImageLimits.standard
        limits.maximumPixels = 1000
        let source = try JPEG.fixture("gray")
        #expect(throws: ImageError.limitExceeded(input: "gray", limit: .pixels, actual: 107 * 77, allowed: 1000)) {
            try decoder.decode(source, at: .eighth, limits: limits)
        }
    }

    @Test func cancelledTokenStopsTheDecode() throws {
        let token = CancellationToken()
        token.cancel()
        let source = try JPEG.fixture("gray")
        #expect(throws: ImageError.cancelled(input: "gray")) {
            try decoder.decode(source, at: .eighth, cancellation: token)
        }
    }

    @Test func mutatedFilesNeverTrap() throws {
        var numbers = SeededGenerator(11)
        for name in JPEG.baselineFixtures + JPEG.progressiveFixtures {
            let bytes = try Fixture.bytes("JPEG/\(name).jpg")
            for round in 0..<150 {
                let source = ByteSource(bytes: JPEG.mutate(bytes, with: &numbers), name: name)
                let scale = round % 2 == 0 ? BlockMeanScale.eighth : .quarter
                _ = try? decoder.decode(source, at: scale, allowsPartial: round % 3 != 0)
            }
        }
    }

    @Test(
        .enabled(if: Corpus.isAvailable, "needs the shared corpus"),
        arguments: [
            "libjpeg-turbo-bugs", "libjpeg-turbo-afl", "imagetestsuite-jpg", "drewnoakes-fuzzing", "truncated", "bombs",
        ])
    func hostileFilesGiveAPictureOrAnError(folder: String) throws {
        for path in Corpus.files(in: "hostile/\(folder)") {
            for scale in [BlockMeanScale.eighth, .quarter] {
                _ = try? decoder.decode(ByteSource(.file(path)), at: scale, allowsPartial: true)
                _ = try? decoder.decode(ByteSource(.file(path)), at: scale)
            }
        }
    }
}
