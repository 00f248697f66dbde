import Testing
import VitrineCore
import VitrineImaging
import VitrineRaster

struct BMPDecoderTests {
    private let size = PixelSize(width: 23, height: 17)

    private func request(
        target: PixelSize? = nil, page: Int = 0, allowsPartial: Bool = false, limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) -> DecodeRequest {
        DecodeRequest(
            info: ImageInfo(format: .bmp, storedSize: size), target: target,
            options: DecodeOptions(page: page, allowsPartial: allowsPartial),
            limits: limits, cancellation: cancellation)
    }

    private func decode(_ bytes: [UInt8], _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try BMPDecoder().decode(ByteSource(bytes: bytes, name: "test"), request)
    }

    @Test(arguments: [
        ("indexed1", "rgb"), ("indexed4", "rgb"), ("indexed8", "rgb"), ("os2-core", "rgb"), ("rgb24", "rgb"),
        ("topdown24", "rgb"), ("rgb32", "rgb"), ("rgb555", "rgb"), ("rgb565", "rgb"), ("rle4", "rgb"),
        ("rle8", "rgb"), ("v3-alpha", "rgba"), ("v4-alpha", "rgba"), ("v5-alpha", "rgba"),
    ])
    func everyVarietyEqualsTheReference(name: String, kind: String) throws {
        let image = try decode(Fixture.bytes("BMP/\(name).bmp"), request())
        let plane = try #require(image.planes.first)
        #expect(image.alpha == (kind == "rgba" ? .straight : .none))
        let pixels = plane.storage.withUnsafeBytes { Array($0) }
        let reference = try Fixture.bytes("BMP/\(name).\(kind)")
        // 5 and 6 bits stretch to 8 by rounding here, by repeating bits there: 1 apart at most.
        let tolerance = name == "rgb555" || name == "rgb565" ? 1 : 0
        #expect(pixels.count == reference.count)
        #expect(zip(pixels, reference).allSatisfy { abs(Int($0) - Int($1)) <= tolerance })
    }

    @Test(arguments: ["rgb24", "topdown24", "rle8"]) func reductionAveragesBlocksFromTheTop(name: String) throws {
        let image = try decode(Fixture.bytes("BMP/\(name).bmp"), request(target: PixelSize(width: 5, height: 4)))
        let reference = try Fixture.bytes("BMP/\(name).rgb")
        var reducer = BoxReducer(width: 23, height: 17, channels: 3, factor: 2)
        reference.withUnsafeBufferPointer { reducer.add(rows: $0.baseAddress!, count: 17, bytesPerRow: 69) }
        let expected = reducer.finish().storage.withUnsafeBytes { Array($0) }
        #expect(image.planes[0].storage.withUnsafeBytes { Array($0) } == expected)
        #expect(image.planes[0].extentHeight == 8.5)
    }

    @Test func truncatedFilesKeepTheRowsTheyHave() throws {
        let cut = Array(try Fixture.bytes("BMP/rgb24.bmp").dropLast(72 * 4))
        #expect(throws: ImageError.truncated(input: "test")) { try decode(cut, request()) }
        let image = try decode(cut, request(allowsPartial: true))
        #expect(image.isPartial)
        let reference = try Fixture.bytes("BMP/rgb24.rgb")
        // The file begins with the bottom row, so the top is missing.
        #expect(
            image.planes[0].storage.withUnsafeBytes { Array($0.dropFirst(69 * 4)) } == Array(reference[(69 * 4)...]))
        let half = Array(try Fixture.bytes("BMP/rle8.bmp").dropLast(100))
        #expect(throws: ImageError.truncated(input: "test")) { try decode(half, request()) }
        #expect(try decode(half, request(allowsPartial: true)).isPartial)
    }

    @Test func limitsAndCancellationHold() throws {
        let bytes = try Fixture.bytes("BMP/rgb24.bmp")
        var limits = ImageLimits.standard
        limits.maximumPixels = 100
        #expect(throws: ImageError.limitExceeded(input: "test", limit: .pixels, actual: 391, allowed: 100)) {
            try decode(bytes, request(limits: limits))
        }
        let token = CancellationToken()
        token.cancel()
        #expect(throws: ImageError.cancelled(input: "test")) { try decode(bytes, request(cancellation: token)) }
        #expect(throws: ImageError.notAnImage(input: "test")) { try decode([1, 2, 3], request()) }
    }

    @Test func mutatedFilesNeverTrap() throws {
        var noise = Noise(3)
        var limits = ImageLimits.standard
        limits.maximumPixels = 200_000
        var decoded = 0
        for name in ["indexed1", "indexed8", "os2-core", "rgb24", "rgb565", "rle4", "rle8", "v4-alpha"] {
            let bytes = try Fixture.bytes("BMP/\(name).bmp")
            for i in 0..<800 {
                let target = i % 2 == 0 ? nil : PixelSize(width: 1 + noise.next(below: 12), height: 5)
                let r = request(target: target, allowsPartial: i % 3 != 0, limits: limits)
                if (try? decode(noise.mutate(bytes), r)) != nil { decoded += 1 }
            }
        }
        #expect(decoded > 1_000)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func hostileFilesEndInAnErrorOrAPicture() throws {
        for path in Corpus.files(in: "hostile/pillow") + Corpus.files(in: "hostile/truncated") {
            for decoder in [BMPDecoder() as any ImageDecoding, ICODecoder(pictures: Codecs([.bmp]))] {
                _ = try? decoder.decode(ByteSource(.file(path)), request(target: PixelSize(8), allowsPartial: true))
            }
        }
        let bad = try #require(Corpus.files(in: "hostile/pillow").first { $0.hasSuffix("b_badplanes.bmp") })
        #expect(try BMPDecoder().decode(ByteSource(.file(bad)), request()).planes[0].width == 127)
    }
}
