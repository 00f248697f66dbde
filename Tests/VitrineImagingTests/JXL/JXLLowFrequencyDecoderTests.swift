import Foundation
import Testing
import VitrineCore
import VitrineImaging
import VitrineJXL

/// Low frequencies against every pixel as libjxl 0.7 decodes them in the worker.
///
/// Fixtures: 600 × 400, drawn by Pillow, written by `cjxl` 0.7: `d1` with its defaults, `d3-e3` by `-d 3 -e 3`, `e9`
/// by `-d 2 -e 9`, `container` by `--container=1`, `grey`, `alpha` by `-d 2`, `jpeg…` without loss from JPEG files of
/// quality 60 that are sampled 4:2:0 and so on (`jpeg-icc` with a profile), `lossless` (120 × 80) by `-d 0 -e 9`.
@Suite(.serialized) struct JXLLowFrequencyDecoderTests {
    private static let pool = WorkerFixture.pool(1)
    private static let size = PixelSize(width: 50, height: 33)

    private static func source(_ name: String) throws -> ByteSource {
        try ByteSource(.file(Fixture.path("JXL/\(name).jxl")))
    }

    private static func request(_ source: ByteSource, partial: Bool = false) throws -> DecodeRequest {
        DecodeRequest(
            info: try ImageInfo(reading: source), target: size, options: DecodeOptions(allowsPartial: partial))
    }

    private static func pixels(_ image: DecodedImage) throws -> [UInt8] {
        let result = try DecodedImageRenderer.image(
            from: image, size: size, region: nil, orientation: .up, cancellation: CancellationToken(), inputName: "")
        return result.withUnsafeBytes { [UInt8]($0) }
    }

    private static func decibels(_ a: [UInt8], _ b: [UInt8]) -> Double {
        let sum = zip(a, b).reduce(0.0) { $0 + pow(Double($1.0) - Double($1.1), 2) }
        return 10 * log10(255 * 255 / max(sum / Double(a.count), 1e-9))
    }

    @Test(arguments: ["d1", "d3-e3", "e9", "container", "grey", "jpeg420", "jpeg422", "jpeg444", "jpeg-icc"])
    func showsWhatEveryPixelWouldHaveShown(name: String) throws {
        let source = try Self.source(name)
        let request = try Self.request(source)
        let image = try JXLLowFrequencyDecoder().decode(source, request)
        #expect(image.planes[0].width == 75 && image.planes[0].height == 50)
        var full = request
        full.target = nil
        let reference = try Self.pool.decode(source, full, decoder: "LibJXLDecoder")
        #expect(reference.planes[0].width == 600)
        let difference = try Self.decibels(Self.pixels(image), Self.pixels(reference))
        // Saturated edges in chroma of half the resolution: a mean of 16 × 16 pixels is coarser than the target.
        #expect(difference > (image.model == .rgb || name == "jpeg444" ? 38 : 36), "\(name): \(difference) dB")
    }

    @Test(arguments: ["alpha", "lossless", "frames"])
    func leavesToTheWorkerWhatHasNoLowFrequenciesOfItsOwn(name: String) throws {
        let source = try Self.source(name)
        var request = try Self.request(source)
        request.target = PixelSize(5)
        #expect {
            try JXLLowFrequencyDecoder().decode(source, request)
        } throws: { ($0 as? ImageError).map { isSameCase($0, .unsupported(input: "", reason: "")) } ?? false }
        let image = try Self.pool.decode(source, request, decoder: "LibJXLDecoder")
        #expect(image.planes[0].width >= 5)
    }

    @Test func tellsATruncatedFileOrShowsWhatIsThere() throws {
        let bytes = try Fixture.bytes("JXL/d1.jxl")
        let source = try Self.source("d1")
        let cut = ByteSource(bytes: Array(bytes.dropLast(1_000)), name: "cut")
        #expect(throws: ImageError.truncated(input: "cut")) {
            try JXLLowFrequencyDecoder().decode(cut, Self.request(source))
        }
        let image = try JXLLowFrequencyDecoder().decode(cut, Self.request(source, partial: true))
        #expect(image.isPartial)
        let whole = try JXLLowFrequencyDecoder().decode(source, Self.request(source))
        #expect(!whole.isPartial && whole.firstPlane == image.firstPlane)
    }

    @Test(arguments: ["d1", "e9", "jpeg420", "jpeg-icc", "frames"])
    func survivesTruncationAndMutation(name: String) throws {
        let bytes = try Fixture.bytes("JXL/\(name).jxl")
        var request = try Self.request(Self.source(name), partial: true)
        request.target = PixelSize(width: 5, height: 3)
        var generator = SystemRandomNumberGenerator()
        var decoded = 0
        for round in 0..<600 {
            var copy = bytes
            if round < 200 {
                copy = Array(bytes.prefix(bytes.count * round / 200))
            } else {
                for _ in 0...(round % 4) {
                    // Headers and tables stand in front.
                    let reach = round % 2 == 0 ? min(400, bytes.count) : bytes.count
                    copy[Int.random(in: 0..<reach, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
                }
            }
            let source = ByteSource(bytes: copy, name: "mutated")
            if let info = try? ImageInfo(reading: source), info.storedSize.pixelCount < 4_000_000 {
                var mutated = request
                mutated.info = info
                if (try? JXLLowFrequencyDecoder().decode(source, mutated)) != nil { decoded += 1 }
            }
        }
        #expect(decoded > 0 || name == "frames")
    }

    @Test func countsTheFramesOfAnAnimation() throws {
        let info = try ImageInfo(reading: Self.source("frames"))
        #expect(info.frameCount == 5)
        #expect(info.duration.map { abs($0 - 1.5) < 1e-9 } == true)
        #expect(info.loopCount == 0)
        let still = try ImageInfo(reading: Self.source("d1"))
        #expect(still.frameCount == 1 && still.duration == nil && still.loopCount == nil)
    }
}
