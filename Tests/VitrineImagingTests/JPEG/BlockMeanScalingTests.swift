import CVitrinePixels
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineJPEG

/// JPEG in 4:2:2 that is decoded at one half and scaled row by row.
@Suite struct BlockMeanScalingTests {
    private let decoder = BlockMeanDecoder()
    private let size = PixelSize(width: 107, height: 77)

    private func request(_ size: PixelSize, _ target: PixelSize, allowsScaling: Bool = true) -> DecodeRequest {
        var request = JPEG.request(size, target: target)
        request.allowsScaling = allowsScaling
        return request
    }

    /// The mean difference from a reduction of every pixel that the library decodes.
    private func error(of plane: PixelPlane, _ source: ByteSource, _ target: PixelSize) throws -> Double {
        let whole = try LibJPEGDecoder().decode(source, eighths: 8, isPlanar: false).planes[0]
        let expected = JPEG.samples(try #require(Resampler.resample(whole, to: target)))
        let found = JPEG.samples(plane)
        try #require(found.count == expected.count)
        return zip(found, expected).reduce(0.0) { $0 + abs(Double($1.0) - Double($1.1)) } / Double(found.count)
    }

    /// What the library makes of one half.
    private func libraryPlane(_ source: ByteSource, _ request: DecodeRequest) throws -> PixelPlane {
        let half = try LibJPEGDecoder().decode(source, eighths: 4, isPlanar: false).planes[0]
        let target = try #require(request.target)
        return try #require(Resampler.resample(half, to: target))
    }

    @Test(arguments: [(33, 24), (30, 22), (25, 18), (19, 14), (30, 16)])
    func rowsAreScaledAsCloselyAsByTheLibrary(side: (Int, Int)) throws {
        let target = PixelSize(width: side.0, height: side.1)
        let source = try JPEG.fixture("sampling-2x1")
        let request = request(size, target)
        let image = try decoder.decode(source, request)
        #expect(image.model == .rgb && image.planes.count == 1 && !image.isPartial && !image.samplesAreMeans)
        #expect(image.planes[0].width == target.width && image.planes[0].height == target.height)
        let ours = try error(of: image.planes[0], source, target)
        let library = try error(of: try libraryPlane(source, request), source, target)
        #expect(ours <= library * 1.1 + 0.1, "\(ours), and \(library) of the library")
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func photosAreScaledAsCloselyAsByTheLibrary() throws {
        for name in ["nikon-d3100-14mp", "panasonic-lx7-mpo"] {
            let path = try #require(Corpus.files(in: "corpus/jpeg").first { $0.contains(name) })
            let source = try ByteSource(.file(path))
            let stored = try ImageInfo(reading: source).storedSize
            let target = PixelSize(width: 800, height: 800 * stored.height / stored.width)
            let request = request(stored, target)
            let ours = try error(of: try decoder.decode(source, request).planes[0], source, target)
            let library = try error(of: try libraryPlane(source, request), source, target)
            #expect(ours <= library, "\(name): \(ours), and \(library) of the library")
        }
    }

    @Test func allElseIsLeftToTheLibrary() throws {
        let target = PixelSize(width: 30, height: 22)
        let others = JPEG.baselineFixtures.filter { $0 != "sampling-2x1" } + JPEG.progressiveFixtures
        for name in others {
            let source = try JPEG.fixture(name)
            let stored = try ImageInfo(reading: source).storedSize
            let reason = JPEG.error { _ = try decoder.decode(source, request(stored, target)) }
            #expect(JPEG.isUnsupported(reason), "\(name): \(String(describing: reason))")
        }
        let source = try JPEG.fixture("sampling-2x1")
        for request in [
            request(size, target, allowsScaling: false), request(size, PixelSize(width: 36, height: 26)),
            request(size, PixelSize(width: 107, height: 20)),
        ] {
            #expect(JPEG.isUnsupported(JPEG.error { _ = try decoder.decode(source, request) }))
        }
    }

    @Test func damageIsLeftToTheLibrary() throws {
        let bytes = try Fixture.bytes("JPEG/sampling-2x1.jpg")
        let scan = try #require((0..<bytes.count).last { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA })
        for end in stride(from: scan + 14, to: bytes.count - 10, by: 97) {
            let source = ByteSource(bytes: Array(bytes[..<end]), name: "cut")
            let request = request(size, PixelSize(width: 30, height: 22))
            #expect(JPEG.isUnsupported(JPEG.error { _ = try decoder.decode(source, request) }), "\(end)")
        }
    }

    @Test func mutatedFilesNeverTrap() throws {
        var numbers = SeededGenerator(12)
        let bytes = try Fixture.bytes("JPEG/sampling-2x1.jpg")
        for _ in 0..<2_000 {
            let source = ByteSource(bytes: JPEG.mutate(bytes, with: &numbers), name: "mutated")
            let target = PixelSize(width: Int.random(in: 10...40, using: &numbers), height: 20)
            _ = try? decoder.decode(source, request(size, target))
        }
    }

    @Test(
        .enabled(if: Corpus.isAvailable, "needs the shared corpus"),
        arguments: ["libjpeg-turbo-bugs", "libjpeg-turbo-afl", "imagetestsuite-jpg", "truncated"])
    func hostileFilesGiveAPictureOrAnError(folder: String) throws {
        for path in Corpus.files(in: "hostile/\(folder)") {
            guard let source = try? ByteSource(.file(path)), let stored = try? ImageInfo(reading: source).storedSize
            else { continue }
            let target = PixelSize(width: max(1, stored.width / 4), height: max(1, stored.height / 4))
            _ = try? decoder.decode(source, request(stored, target))
        }
    }

    @Test func halvesAreTransformsOfFourPoints() {
        var numbers = SeededGenerator(4)
        func cosine(_ x: Int, _ k: Int) -> Double {
            k == 0 ? 0.125.squareRoot() : 0.5 * cos(Double((2 * x + 1) * k) * .pi / 8)
        }
        for _ in 0..<100 {
            var block = (0..<16).map { _ in Int16.random(in: -40...40, using: &numbers) }
            block[0] = Int16.random(in: -1100...1100, using: &numbers)
            var rows = [Int16](repeating: 0, count: 4 * 6)
            cpixels_transform_half(block, &rows, 12)
            for y in 0..<4 {
                for x in 0..<4 {
                    var sum = 0.0
                    for u in 0..<4 { for v in 0..<4 { sum += Double(block[4 * u + v]) * cosine(x, u) * cosine(y, v) } }
                    let level = min(127.996, max(-128, sum))
                    #expect(abs(Double(rows[6 * y + x]) / 256 - level) < 0.1)
                }
            }
        }
    }
}
