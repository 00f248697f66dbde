import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineJPEG

/// Decodes of one picture on several threads.
@Suite struct BlockMeanPieceTests {
    private let alone = BlockMeanDecoder(cores: IdleCores(count: 1))
    private let together = BlockMeanDecoder(cores: IdleCores(count: 4), minimumPieceBytes: 128, minimumBlockBytes: 0)

    /// Compares what one thread and several threads make of a file: samples, or the error.
    private func compare(_ bytes: [UInt8], _ name: String) {
        let source = ByteSource(bytes: bytes, name: name)
        var limits = ImageLimits.standard
        limits.maximumPixels = 30_000_000
        guard let info = try? ImageInfo(reading: source, limits: limits) else { return }
        for divisor in [7, 16, 30] {
            let size = info.storedSize
            let target = PixelSize(width: max(1, size.width / divisor), height: max(1, size.height / divisor))
            let request = JPEG.request(size, target: target, allowsPartial: divisor == 16, limits: limits)
            let expected = Result { try alone.decode(source, request) }
            let found = Result { try together.decode(source, request) }
            switch (expected, found) {
            case (.success(let a), .success(let b)):
                #expect(a.isPartial == b.isPartial && a.model == b.model && a.planes.count == b.planes.count)
                for (a, b) in zip(a.planes, b.planes) { #expect(JPEG.samples(a) == JPEG.samples(b), "\(name)") }
            case (.failure(let a as ImageError), .failure(let b as ImageError)):
                #expect(a == b, "\(name)")
            default:
                Issue.record("\(name): \(expected), but \(found)")
            }
        }
    }

    @Test(arguments: JPEG.baselineFixtures + JPEG.progressiveFixtures)
    func severalThreadsGiveTheSameSamples(name: String) throws {
        compare(try Fixture.bytes("JPEG/\(name).jpg"), name)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func severalThreadsGiveTheSameSamplesOfPhotos() throws {
        for path in Corpus.files(in: "corpus/jpeg") + Corpus.files(in: "corpus/exif-orientation") {
            compare(try ByteSource(.file(path)).allBytes(), path)
        }
    }

    @Test(
        .enabled(if: Corpus.isAvailable, "needs the shared corpus"),
        arguments: ["libjpeg-turbo-bugs", "imagetestsuite-jpg", "drewnoakes-fuzzing", "truncated"])
    func severalThreadsJudgeHostileFilesAlike(folder: String) throws {
        for path in Corpus.files(in: "hostile/\(folder)") {
            compare(try ByteSource(.file(path)).allBytes(), path)
        }
    }

    @Test func severalThreadsJudgeMutatedFilesAlike() throws {
        var numbers = SeededGenerator(23)
        for name in JPEG.baselineFixtures {
            let bytes = try Fixture.bytes("JPEG/\(name).jpg")
            for _ in 0..<40 { compare(JPEG.mutate(bytes, with: &numbers), name) }
        }
    }

    @Test func cancelledTokenStopsAllThreads() throws {
        let token = CancellationToken()
        token.cancel()
        let request = JPEG.request(
            PixelSize(width: 107, height: 77), target: PixelSize(width: 6, height: 4), cancellation: token)
        #expect(throws: ImageError.cancelled(input: "restart-row")) {
            try together.decode(JPEG.fixture("restart-row"), request)
        }
    }

    @Test func colourOfHalfTheSizeGetsAsManySamplesAsBrightness() throws {
        let source = try JPEG.fixture("sampling-2x2")
        let request = JPEG.request(PixelSize(width: 107, height: 77), target: PixelSize(width: 15, height: 11))
        let image = try alone.decode(source, request)
        let means = try alone.decode(source, at: .eighth)
        for (fine, coarse) in zip(image.planes, means.planes).dropFirst() {
            #expect(fine.extentWidth == 4 * coarse.extentWidth && fine.width == image.planes[0].width)
            let (fines, coarses) = (JPEG.samples(fine), JPEG.samples(coarse))
            for y in 0..<(fine.height / 4) {
                for x in 0..<(fine.width / 4) {
                    let block = (0..<16).map { fines[(4 * y + $0 / 4) * fine.width + 4 * x + $0 % 4] }
                    guard block.allSatisfy({ $0 > 0 && $0 < 255 }) else { continue }
                    let mean = block.reduce(0) { $0 + Int($1) } / 16
                    #expect(abs(mean - Int(coarses[y * coarse.width + x])) <= 1)
                }
            }
        }
    }
}

@Suite struct IdleCoresTests {
    @Test func onlyIdleProcessorsAreClaimed() throws {
        let cores = IdleCores(count: 4)
        try cores.counting { () throws(ImageError) in
            #expect(cores.claim(8) == 3)
            #expect(cores.claim(1) == 0)
            cores.release(3)
            try cores.counting { () throws(ImageError) in
                #expect(cores.claim(8) == 2)
                cores.release(2)
            }
            #expect(cores.claim(1) == 1)
            cores.release(1)
        }
    }

    @Test func decodesOnAllProcessorsClaimNone() throws {
        let cores = IdleCores(count: 2)
        try cores.counting { () throws(ImageError) in
            try cores.counting { () throws(ImageError) in #expect(cores.claim(4) == 0) }
        }
        cores.limit(to: 1)
        #expect(cores.claim(4) == 0)
    }
}
