import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// HEIC by this library's decoder, against libavcodec in `vitrine-video`.
@Suite(.serialized) struct ReducedHEICDecoderTests {
    static func request(
        _ source: ByteSource, _ target: PixelSize?, region: PixelRect? = nil, preview: Bool = false
    ) throws -> DecodeRequest {
        var request = DecodeRequest(
            info: try ImageInfo(reading: source, limits: .standard), target: target, allowsEmbeddedPreview: preview)
        request.region = region
        return request
    }

    /// The samples of all planes.
    static func samples(_ image: DecodedImage) -> [[UInt8]] {
        image.planes.map { $0.storage.withUnsafeBytes { [UInt8]($0) } }
    }

    static func expectRefusal(
        _ source: ByteSource, _ request: DecodeRequest, threads: Int = 1, _ note: Comment? = nil
    ) {
        do {
            _ = try ReducedHEICDecoder(cores: IdleCores(count: threads)).decode(source, request)
            Issue.record(note ?? "decoded")
        } catch {
            #expect(caseName(error) == "unsupported", note)
        }
    }

    static func expectLibavcodecs(
        _ source: ByteSource, _ request: DecodeRequest, threads: Int = 1, _ note: Comment? = nil
    ) throws {
        let one = try ReducedHEICDecoder(cores: IdleCores(count: threads)).decode(source, request)
        let other = try TiledHEICDecoderTests.tilePool.decode(source, request, decoder: "HEVCTileDecoder")
        #expect(samples(one) == samples(other), note)
        #expect(one.planes.map(\.width) == other.planes.map(\.width), note)
        #expect(one.model == other.model && one.region == other.region && one.samplesAreMeans, note)
        #expect(one.planes.map(\.extentWidth) == other.planes.map(\.extentWidth), note)
        #expect(one.planes.map(\.extentHeight) == other.planes.map(\.extentHeight), note)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"),
        arguments: ["heic/IMG_5195.heic", "heic/cheers.heic"], [1, 2, 4])
    func photosHaveTheSamplesOfLibavcodec(name: String, threads: Int) throws {
        let source = try ByteSource(.file(try #require(Corpus.file(name))))
        let size = try ImageInfo(reading: source, limits: .standard).storedSize
        for divisor in [8, 11, 16, 40] {
            let target = PixelSize(width: size.width / divisor, height: size.height / divisor)
            try Self.expectLibavcodecs(source, try Self.request(source, target), threads: threads, "1/\(divisor)")
        }
        for region in [
            PixelRect(x: 0, y: 0, width: size.width / 2, height: size.height / 3),
            PixelRect(x: size.width / 3, y: size.height / 2 - 7, width: size.width / 2, height: size.height / 2),
        ] {
            let target = PixelSize(width: size.width / 9, height: size.height / 9)
            try Self.expectLibavcodecs(
                source, try Self.request(source, target, region: region), threads: threads, "\(region)")
        }
    }

    @Test(arguments: TiledHEICDecoderTests.turns.indices)
    func cutsHaveTheSamplesOfLibavcodec(index: Int) throws {
        var sample = try HEICSample()
        sample.properties = TiledHEICDecoderTests.turns[index]
        let source = sample.source()
        for target in [PixelSize(width: 8, height: 6), PixelSize(width: 5, height: 5), PixelSize(width: 1, height: 1)] {
            try Self.expectLibavcodecs(source, try Self.request(source, target), threads: 3, "\(target)")
        }
    }

    @Test func singlePicturesHaveTheSamplesOfLibavcodec() throws {
        var single = try HEICSample()
        (single.type, single.columns, single.rows, single.size) = ("hvc1", 1, 1, PixelSize(64))
        let source = single.source()
        try Self.expectLibavcodecs(source, try Self.request(source, PixelSize(7)), threads: 2)
        // One column of tiles.
        var column = try HEICSample()
        (column.columns, column.rows, column.size) = (1, 6, PixelSize(width: 60, height: 371))
        let tall = column.source()
        try Self.expectLibavcodecs(tall, try Self.request(tall, PixelSize(width: 5, height: 30)), threads: 4)
    }

    @Test func smallImagesNeedNoHelper() throws {
        let missing = WorkerPool(location: .executable("/nowhere/vitrine"))
        let decoder = ImageDecoder(
            limits: .standard, isolation: .automatic, registry: .standard, pool: missing, tilePool: missing)
        let image = try decoder.decode(.bytes(try HEICSample().bytes), at: .fit(16))
        #expect(try TiledHEICDecoderTests.decibels(image, TiledHEICDecoderTests.tiled.decode(
            .bytes(try HEICSample().bytes), at: .fit(16))) == 99)
        #expect(throws: ImageError.self) { try decoder.decode(.bytes(try HEICSample().bytes), at: .fit(80)) }
    }

    @Test func largerResultsAndOtherVarietiesAreLeftToTheNextDecoder() throws {
        let source = try HEICSample().source()
        for target in [nil, PixelSize(width: 21, height: 15), PixelSize(165)] {
            Self.expectRefusal(source, try Self.request(source, target), "\(String(describing: target))")
        }
        for name in ["deep", "full-chroma", "alpha"] {
            let source = ByteSource(bytes: try Fixture.bytes("HEIC/\(name).heic"), name: name)
            Self.expectRefusal(source, try Self.request(source, PixelSize(4)), "\(name)")
        }
    }

    @Test func theThumbnailOfTheFileIsUsedWhereItIsReduced() throws {
        let source = try WorkerFixture.source("thumbnail-turned.heic")
        let small = PixelSize(width: 6, height: 4)
        try Self.expectLibavcodecs(source, try Self.request(source, small, preview: true))
        let large = PixelSize(width: 20, height: 12)
        Self.expectRefusal(source, try Self.request(source, large, preview: true), "not the whole picture instead")
    }

    @Test func damagedTilesAreLeftToTheNextDecoder() throws {
        var sample = try HEICSample()
        for place in sample.streams[4].indices.dropFirst(60) { sample.streams[4][place] = 0 }
        let source = sample.source()
        for threads in [1, 3] { Self.expectRefusal(source, try Self.request(source, PixelSize(8)), threads: threads) }
        // A region without that tile.
        let part = PixelRect(x: 0, y: 0, width: 20, height: 20)
        let target = PixelSize(width: 20, height: 13)
        _ = try ReducedHEICDecoder().decode(source, Self.request(source, target, region: part))
    }

    @Test func cancellationEndsTheDecode() throws {
        let source = try HEICSample().source()
        var request = try Self.request(source, PixelSize(8))
        request.cancellation = CancellationToken()
        request.cancellation.cancel()
        #expect(throws: ImageError.cancelled(input: "sample")) { try ReducedHEICDecoder().decode(source, request) }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func processorsAreGivenBack() throws {
        let source = try ByteSource(.file(try #require(Corpus.file("heic/IMG_5195.heic"))))
        let cores = IdleCores(count: 4)
        for _ in 0..<3 { _ = try ReducedHEICDecoder(cores: cores).decode(source, Self.request(source, PixelSize(100))) }
        #expect(cores.claim(8) == 3)
    }
}
