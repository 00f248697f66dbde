import Testing
import VitrineCore
import VitrineImaging

/// JPEG 2000 by OpenJPEG. Fixtures: `make-jp2.py`, four quadrants each, and two files of public projects.
@Suite(.serialized) struct JP2DecoderTests {
    private static let pool = WorkerFixture.pool(1)

    private static func image(
        _ name: String, at target: PixelSize? = nil, region: PixelRect? = nil
    ) throws -> DecodedImage {
        let source = try WorkerFixture.source(name)
        var request = DecodeRequest(info: try ImageInfo(reading: source, limits: .standard), target: target)
        request.region = region
        return try pool.decode(source, request)
    }

    @Test(arguments: [
        // Chroma of half the size; the same with channels in another order, the first of which is alpha; all components
        // of half the size; an image and tiles that begin inside of the canvas; colours in another order; high
        // throughput, wider than 512 pixels.
        "jp2-ycc.jp2", "jp2-ycc-alpha.jp2", "jp2-coarse.jp2", "jp2-offset.j2k", "jp2-swapped.jp2", "htj2k-wide.j2c",
    ])
    func showsWhateverTheComponentsAre(name: String) throws {
        for target in [nil, PixelSize(width: 24, height: 16)] {
            let image = try Self.image(name, at: target)
            #expect(image.model == .rgb && !image.isPartial)
            #expect(image.shows(DecodedImage.quadrants, tolerance: 2), "\(name) at \(String(describing: target))")
            #expect(
                abs(image.planes[0].extentWidth / image.planes[0].extentHeight - (name.hasPrefix("ht") ? 7.5 : 1.5))
                    < 0.01)
        }
    }

    @Test func takesAResolutionOfJPEG2000() throws {
        let image = try Self.pool.decode(
            WorkerFixture.source("quadrants.jp2"),
            WorkerFixture.request(.jp2, 96, 64, target: PixelSize(width: 24, height: 16)))
        #expect(image.planes[0].width == 48 && image.planes[0].height == 32)
        #expect(image.shows(DecodedImage.quadrants, tolerance: 2))
    }

    @Test func takesTheChannelThatTheFileCallsAlpha() throws {
        let image = try Self.image("jp2-ycc-alpha.jp2")
        #expect(image.alpha == .straight && image.planes[0].channels == 4)
        let alpha = stride(from: 3, to: image.firstPlane.count, by: 4).map { image.firstPlane[$0] }
        #expect(alpha[0] == 255 && alpha[95] == 255 && alpha[63 * 96] == 255 && alpha[63 * 96 + 95] == 0)
    }

    @Test func looksColorsUpInThePalette() throws {
        let image = try Self.image("jp2-palette.jp2")
        #expect(
            image.firstPlane == [
                255, 0, 0, 0, 255, 0, 0, 0, 255,
                0, 255, 255, 255, 0, 255, 255, 255, 0,
            ])
        // The worker is as sound as before.
        let next = try Self.pool.decode(
            WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        #expect(next.shows(DecodedImage.quadrants, tolerance: 0))
    }

    @Test(arguments: [nil, PixelSize(width: 80, height: 60)])
    func fillsTheTilesAtTheEdges(target: PixelSize?) throws {
        let image = try Self.image("jp2-edge-tiles.j2k", at: target)
        let plane = image.planes[0]
        var sums = [0, 0, 0]
        for (index, value) in image.firstPlane.enumerated() { sums[index % 3] += Int(value) }
        for (sum, mean) in zip(sums, [118.1, 117.7, 122.3]) {
            #expect(abs(Double(sum) / Double(plane.width * plane.height) - mean) < 1.5)
        }
    }

    @Test func decodesTheTilesOfAPartOnly() throws {
        let part = PixelRect(x: 60, y: 40, width: 20, height: 16)
        let image = try Self.image("jp2-offset.j2k", region: part)
        let shown = try #require(image.region)
        #expect(shown.x <= part.x && shown.y <= part.y && shown.x > 0 && shown.y > 0)
        #expect(shown.x + shown.size.width >= 80 && shown.y + shown.size.height >= 56)
        #expect(image.planes[0].width == shown.size.width && image.planes[0].height == shown.size.height)
        let whole = try Self.image("jp2-offset.j2k")
        for y in 0..<shown.size.height {
            let from = ((shown.y + y) * 96 + shown.x) * 3, count = shown.size.width * 3
            #expect(image.firstPlane[(y * count)..<((y + 1) * count)] == whole.firstPlane[from..<(from + count)])
        }
    }

    @Test func tellsWhatTheLibraryFoundWrong() throws {
        let whole = try Fixture.bytes("worker/jp2-edge-tiles.j2k")
        let cut = ByteSource(bytes: Array(whole.prefix(9_000)), name: "cut")
        var request = WorkerFixture.request(.jp2, 2_592, 1_944, target: PixelSize(width: 80, height: 60))
        #expect(throws: ImageError.truncated(input: "cut")) { try Self.pool.decode(cut, request) }
        request.options.allowsPartial = true
        let partial = try Self.pool.decode(cut, request)
        #expect(partial.isPartial)
        // Five components of decomposition in a picture without so many.
        var damaged = whole
        let style = try #require(damaged.indices.first { damaged[$0...].starts(with: [0xFF, 0x52]) })
        damaged[style + 9] = 40
        #expect(throws: ImageError.corrupt(input: "damaged", reason: "its jp2 data cannot be decoded")) {
            try Self.pool.decode(
                ByteSource(bytes: damaged, name: "damaged"), WorkerFixture.request(.jp2, 2_592, 1_944))
        }
    }

    @Test func boundsTheMemoryOfAPicture() throws {
        var limits = ImageLimits()
        limits.maximumWorkerMemory = 64 << 20
        limits.maximumWholeImagePixels = 5_038_847
        let source = try WorkerFixture.source("jp2-edge-tiles.j2k")
        #expect(
            throws: ImageError.limitExceeded(
                input: source.name, limit: .pixels, actual: 5_038_848, allowed: 5_038_847)
        ) {
            try Self.pool.decode(source, WorkerFixture.request(.jp2, 1, 1, limits: limits))
        }
    }
}
