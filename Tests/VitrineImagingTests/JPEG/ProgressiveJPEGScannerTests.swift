import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineJPEG

@Suite struct ProgressiveJPEGScannerTests {
    /// All pictures of a file fed in pieces of `size` bytes, with the bytes at which each came.
    private func pictures(_ bytes: [UInt8], by size: Int) throws -> [(at: Int, image: DecodedImage)] {
        var scanner = ProgressiveJPEGScanner(name: "arriving")
        var result: [(Int, DecodedImage)] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            try scanner.append(Array(bytes[start..<min(start + size, bytes.count)]))
            if let image = try scanner.nextImage() { result.append((min(start + size, bytes.count), image)) }
        }
        #expect(scanner.isFinished)
        return result
    }

    @Test(arguments: JPEG.progressiveFixtures)
    func firstPictureIsTheMeansAndComesBeforeTheSecondScan(name: String) throws {
        let bytes = try Fixture.bytes("JPEG/\(name).jpg")
        let pictures = try pictures(bytes, by: 16)
        let first = try #require(pictures.first)
        #expect(first.at < bytes.count / 2)
        #expect(first.image.isPartial)
        let means = try BlockMeanDecoder().decode(JPEG.fixture(name), at: .eighth)
        #expect(JPEG.difference(first.image.planes[0], means.planes[0]) == 0)
    }

    #if SystemCodecs
    @Test func everyFurtherScanGivesABetterPicture() throws {
        let bytes = try Fixture.bytes("JPEG/progressive.jpg")
        let pictures = try pictures(bytes, by: 16)
        let scans = (0..<bytes.count - 1).count { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }
        // The last scan is whole only when the end of the file is there, and then the file is, too.
        #expect(pictures.count == scans - 1)
        let whole = try LibJPEGDecoder().decode(JPEG.fixture("progressive"), eighths: 8, isPlanar: false)
        let wanted = JPEG.samples(whole.planes[0])
        let errors = pictures.dropFirst().map { picture in
            zip(JPEG.samples(picture.image.planes[0]), wanted).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
        }
        let isFalling = zip(errors, errors.dropFirst()).allSatisfy { $0.0 > $0.1 }
        #expect(isFalling)
        let arePartial = pictures.allSatisfy(\.image.isPartial)
        #expect(arePartial)
    }

    @Test func hundredsOfScansDoNotGiveHundredsOfPictures() throws {
        let bytes = try Fixture.bytes("JPEG/gray-progressive.jpg")
        let last = try #require((0..<bytes.count - 1).last { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA })
        let scan = bytes[last..<(bytes.count - 2)]
        let many = bytes.dropLast(2) + [[UInt8]](repeating: Array(scan), count: 100).joined() + [0xFF, 0xD9]
        #expect(try pictures(Array(many), by: 64).count == 1 + ProgressiveJPEGScanner.maximumFinerPictures)
    }

    @Test func severalScansAtOnceGiveTheFirstAndTheBestPicture() throws {
        let bytes = try Fixture.bytes("JPEG/progressive.jpg")
        var scanner = ProgressiveJPEGScanner(name: "arriving")
        try scanner.append(Array(bytes[..<(bytes.count / 2)]))
        let pictures = try (0..<3).map { _ in try scanner.nextImage() }
        #expect(pictures.map { $0?.planes[0].width } == [14, 107, nil])
    }
    #endif

    @Test func otherFilesGiveTheirUpperPartInSteps() throws {
        let bytes = try Fixture.bytes("JPEG/optimized.jpg")
        let pictures = try pictures(bytes, by: 64)
        #expect(2...9 ~= pictures.count)
        let whole = JPEG.samples(try BlockMeanDecoder().decode(JPEG.fixture("optimized"), at: .quarter).planes[0])
        var lastEqual = 0
        var filled = 0.0
        for picture in pictures {
            #expect(picture.image.isPartial)
            #expect(picture.image.filledHeight > filled && picture.image.filledHeight < 1)
            filled = picture.image.filledHeight
            let samples = JPEG.samples(picture.image.planes[0])
            let equal = zip(samples, whole).prefix { $0 == $1 }.count
            #expect(equal > lastEqual)
            lastEqual = equal
        }
    }

    @Test func damageEndsThePreviewsWithoutAnError() throws {
        var numbers = SeededGenerator(13)
        for name in ["progressive", "optimized", "gray-progressive", "one-scan-a-component", "cmyk"] {
            let bytes = try Fixture.bytes("JPEG/\(name).jpg")
            for _ in 0..<40 {
                let damaged = JPEG.mutate(bytes, with: &numbers)
                var scanner = ProgressiveJPEGScanner(name: name)
                for start in stride(from: 0, to: damaged.count, by: 700) {
                    try scanner.append(Array(damaged[start..<min(start + 700, damaged.count)]))
                    _ = try scanner.nextImage()
                }
            }
        }
    }

    @Test func foreignBytesGiveNothing() throws {
        var scanner = ProgressiveJPEGScanner(name: "png")
        try scanner.append([0x89, 0x50, 0x4E, 0x47])
        let image = try scanner.nextImage()
        #expect(image.map(\.planes.count) == nil)
        #expect(scanner.isFinished)
    }

    @Test func inputLimitHolds() throws {
        var limits = ImageLimits.standard
        limits.maximumInputBytes = 100
        var scanner = ProgressiveJPEGScanner(name: "large", limits: limits)
        #expect(throws: ImageError.limitExceeded(input: "large", limit: .inputBytes, actual: 101, allowed: 100)) {
            try scanner.append([UInt8](repeating: 0xFF, count: 101))
        }
    }

    @Test func cancelledTokenStopsThePreviews() throws {
        let token = CancellationToken()
        var scanner = ProgressiveJPEGScanner(name: "arriving", cancellation: token)
        try scanner.append(Fixture.bytes("JPEG/progressive.jpg").dropLast(10))
        token.cancel()
        #expect(throws: ImageError.cancelled(input: "arriving")) { try scanner.nextImage() }
    }
}
