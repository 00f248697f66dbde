import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineHEIF

/// HEIC by this library's decoder, against libheif in `vitrine-worker`. Files are built by ``HEICSample``.
@Suite(.serialized) struct HEICDecoderTests {
    static let pool = WorkerFixture.pool(1)
    static let tiled = ImageDecoder(limits: .standard, isolation: .automatic, codecs: .standard, pool: pool)
    /// libheif alone.
    static let whole = ImageDecoder(
        limits: .standard, isolation: .inProcess, codecs: .standard(decoding: [Libheif()]), pool: pool)

    /// The decoder of libheif in the worker, which is asked after this library's.
    struct Libheif: ImageDecoding {
        let formats: Set<ImageFormat> = [.heic]

        func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
            try HEICDecoderTests.pool.decode(source, request, decoder: "VipsDecoder")
        }
    }

    static func request(
        _ source: ByteSource, _ target: PixelSize? = nil, region: PixelRect? = nil, preview: Bool = false,
        limits: ImageLimits = .standard
    ) throws -> DecodeRequest {
        var request = DecodeRequest(
            info: try ImageInfo(reading: source, limits: .standard), target: target,
            options: DecodeOptions(allowsEmbeddedPreview: preview),
            limits: limits)
        request.region = region
        return request
    }

    /// Decodes by tiles; throws where the decoder leaves a file to the next one.
    static func tiles(
        _ source: ByteSource, target: PixelSize? = nil, region: PixelRect? = nil, preview: Bool = false,
        threads: Int = 1
    ) throws -> DecodedImage {
        try HEICDecoder(cores: IdleCores(count: threads), minimumPixelsOfThread: 1).decode(
            source, request(source, target, region: region, preview: preview))
    }

    /// The samples of all planes.
    static func samples(_ image: DecodedImage) -> [[UInt8]] {
        image.planes.map { $0.storage.withUnsafeBytes { [UInt8]($0) } }
    }

    static func decibels(_ one: PixelImage, _ other: PixelImage) throws -> Double {
        try #require(one.size == other.size)
        var sum = 0.0
        one.withUnsafeBytes { a in
            other.withUnsafeBytes { b in
                for y in 0..<one.height {
                    for x in 0..<(4 * one.width) where x % 4 < 3 {
                        let d = Double(a[y * one.bytesPerRow + x]) - Double(b[y * other.bytesPerRow + x])
                        sum += d * d
                    }
                }
            }
        }
        return sum == 0 ? 99 : 10 * log10(255 * 255 / (sum / Double(3 * one.width * one.height)))
    }

    /// Compares the picture by tiles with libheif's picture, reduced afterwards.
    static func agreement(_ input: ImageInput, _ resizer: ImageResizer) throws -> Double {
        let source = try ByteSource(input)
        let info = try ImageInfo(reading: source, limits: .standard)
        // Not left to libheif.
        _ = try tiles(source, target: info.orientation.upright(try resizer.targetSize(for: info.size)))
        let reference = try resizer.resize(try whole.decode(input))
        return try decibels(try tiled.decode(input, at: resizer), reference)
    }

    // MARK: The same picture as libheif's

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"),
        arguments: ["heic/IMG_5195.heic", "heic/cheers.heic"], [200, 400, 640])
    func photosLookLikeLibheifs(name: String, side: Int) throws {
        let path = try #require(Corpus.file(name))
        #expect(try Self.agreement(.file(path), .fit(side)) >= 45)
    }

    static let turns: [[HEICSample.Property]] = [
        [], [HEICSample.rotation(1)], [HEICSample.rotation(2)], [HEICSample.rotation(3)], [HEICSample.mirror(0)],
        [HEICSample.mirror(1)], [HEICSample.rotation(1), HEICSample.mirror(0)],
        [HEICSample.rotation(3), HEICSample.mirror(1)],
        [HEICSample.cut(width: 100, height: 70, x: 11, y: -9)], [HEICSample.cut(width: 64, height: 111, x: -101)],
        [HEICSample.cut(width: 101, height: 71, x: 4, y: 8), HEICSample.rotation(1)],
        [HEICSample.cut(width: 90, height: 60, x: 17, y: -23), HEICSample.rotation(3), HEICSample.mirror(1)],
        [HEICSample.rotation(1), HEICSample.cut(width: 70, height: 100, x: 11, y: 1)],
        [HEICSample.rotation(2), HEICSample.cut(width: 70, height: 60, x: 39, y: 11)],
        [HEICSample.mirror(1), HEICSample.cut(width: 80, height: 50, x: -31, y: -5)],
    ]

    @Test(arguments: turns.indices)
    func cutsTurnsAndMirrorsInTheFilesOrder(index: Int) throws {
        var sample = try HEICSample()
        sample.properties = Self.turns[index]
        let input = ImageInput.bytes(sample.bytes)
        let info = try ImageInfo(of: input)
        let reference = try Self.whole.decode(input)
        #expect(info.size == reference.size)
        // Sizes that no block divides; the last columns and rows count.
        for divisor in [2, 3, 5] {
            let size = PixelSize(
                width: max(1, info.size.width / divisor), height: max(1, info.size.height / divisor))
            let resizer = ImageResizer(size: size, mode: .stretch)
            #expect(try Self.agreement(input, resizer) >= 38, "1/\(divisor)")
        }
        #expect(try Self.decibels(try Self.tiled.decode(input), reference) >= 36, "every pixel")
    }

    @Test(arguments: [(20, -23), (17, -20)])
    func cutsBetweenSamplesOfChromaAreLeftToLibheif(x: Int, y: Int) throws {
        var sample = try HEICSample()
        sample.properties = [HEICSample.cut(width: 90, height: 60, x: x, y: y)]
        let input = ImageInput.bytes(sample.bytes)
        #expect(throws: ImageError.self) { try Self.tiles(sample.source()) }
        let image = try Self.tiled.decode(input)
        #expect(image.size == PixelSize(width: 90, height: 60))
        #expect(try Self.decibels(image, Self.whole.decode(input)) == 99)
    }

    /// libheif itself does not cut the description of a picture whose cut has no pixels.
    @Test func ignoresImpossibleCuts() throws {
        for numbers in [[0, 1, 0, 1, 0, 1, 0, 1], [10, 0, 10, 0, 0, 0, 0, 0], [10, 1, 10, 1, 9_999, 1, 0, 1]] {
            var sample = try HEICSample()
            sample.properties = [
                ("clap", numbers.flatMap { [0, 0, UInt8($0 >> 8), UInt8($0 & 255)] })
            ]
            #expect(try ImageInfo(of: .bytes(sample.bytes)).size == sample.size)
        }
    }

    @Test func cutsDoNotHideThePixelsThatAreDecoded() throws {
        var sample = try HEICSample()
        sample.properties = [HEICSample.cut(width: 10, height: 10)]
        var limits = ImageLimits()
        // A grid is never in memory as a whole, and what exceeds its bound is not decoded by libheif either.
        (limits.maximumWholeImagePixels, limits.maximumPixels) = (165 * 111 - 1, 165 * 111 - 1)
        let decoder = ImageDecoder(
            limits: limits, isolation: .automatic, codecs: .standard, pool: Self.pool)
        #expect(throws: ImageError.self) { try decoder.decode(.bytes(sample.bytes), at: .fit(5)) }
        limits.maximumPixels += 1
        #expect(try ImageInfo(of: .bytes(sample.bytes), limits: limits).size == PixelSize(10))
    }

    @Test(arguments: [1, 2, 5, 6, 9], [true, false])
    func appliesTheMatrixAndRangeOfTheFile(matrix: Int, isFullRange: Bool) throws {
        for isTiles in [false, true] {
            var sample = try HEICSample()
            let colors = [HEICSample.colors(matrix: matrix, isFullRange: isFullRange)]
            if isTiles { sample.tileProperties = colors } else { sample.properties = colors }
            let image = try Self.tiles(sample.source(), target: PixelSize(width: 40, height: 27))
            let expected: DecodedImage.Matrix = matrix == 1 ? .bt709 : matrix == 9 ? .bt2020 : .bt601
            #expect(image.model == .yCbCr(expected, fullRange: isFullRange))
        }
        // libheif 1.15 takes the colours of a grid from its tiles.
        var single = try HEICSample()
        (single.type, single.columns, single.rows, single.size) = ("hvc1", 1, 1, PixelSize(64))
        single.properties = [HEICSample.colors(matrix: matrix, isFullRange: isFullRange)]
        #expect(try Self.agreement(.bytes(single.bytes), .fit(31)) >= 38)
    }

    @Test func keepsTheProfile() throws {
        var sample = try HEICSample()
        let profile = try #require(
            try ImageInfo(of: .bytes(Fixture.bytes("Info/profile.png"))).colorProfile)
        sample.properties = [("colr", Array("prof".utf8) + profile)]
        #expect(try Self.tiles(sample.source(), target: PixelSize(width: 40, height: 27)).colorProfile == profile)
    }

    @Test func singlePicturesAndGridsWithoutIdatAreRead() throws {
        var single = try HEICSample()
        (single.type, single.columns, single.rows, single.size) = ("hvc1", 1, 1, PixelSize(64))
        #expect(try Self.agreement(.bytes(single.bytes), .fit(31)) >= 38)
        var plain = try HEICSample()
        plain.isInline = false
        let target = PixelSize(width: 40, height: 27)
        #expect(
            try Self.tiles(plain.source(), target: target).firstPlane
                == Self.tiles(try HEICSample().source(), target: target).firstPlane)
    }

    @Test func averagesTheRemainderOfTheLastBlocks() throws {
        let image = try Self.tiles(try HEICSample().source(), target: PixelSize(width: 16, height: 10))
        // 165 / 16 / 2: blocks of 5 luma samples, of 2 chroma samples.
        #expect(image.planes.map(\.width) == [33, 42, 42] && image.planes.map(\.height) == [23, 28, 28])
        #expect(image.planes[0].extentWidth == 33 && image.planes[0].extentHeight == 22.2)
        #expect(image.planes[1].extentWidth == 41.25 && image.planes[1].extentHeight == 27.75)
        #expect(image.samplesAreMeans)
    }

    // MARK: Regions

    @Test func regionsHaveThePixelsOfTheWholePicture() throws {
        for properties in [[], [HEICSample.cut(width: 101, height: 71, x: 4, y: 8), HEICSample.rotation(1)]] {
            var sample = try HEICSample()
            sample.properties = properties
            let input = ImageInput.bytes(sample.bytes)
            let picture = try Self.tiled.decode(input)
            for region in [
                PixelRect(x: 0, y: 0, width: 20, height: 20), PixelRect(x: 41, y: 13, width: 25, height: 31),
                PixelRect(x: picture.width - 9, y: picture.height - 7, width: 9, height: 7),
            ] {
                let part = try Self.tiled.decode(input, options: DecodeOptions(region: region))
                let cut = try picture.processed(by: [
                    .crop(x: region.x, y: region.y, width: region.size.width, height: region.size.height)
                ])
                #expect(try Self.decibels(part, cut) >= 42, "\(region)")
            }
        }
    }

    @Test func regionsLeaveOtherTilesAlone() throws {
        var sample = try HEICSample()
        // The last tile's stream is noise: only who needs it sees that.
        sample.streams[5] = [UInt8](repeating: 0xFF, count: sample.streams[5].count)
        let source = sample.source()
        let part = try Self.tiles(source, region: PixelRect(x: 3, y: 5, width: 100, height: 50))
        #expect(part.region == PixelRect(x: 0, y: 0, width: 111, height: 63))
        #expect(throws: ImageError.self) { try Self.tiles(source) }
    }

    // MARK: Thumbnails in the file

    @Test func usesTheThumbnailWhenAsked() throws {
        let source = try WorkerFixture.source("thumbnail-turned.heic")
        let target = PixelSize(width: 20, height: 12)
        #expect(try Self.tiles(source, target: target, preview: true).planes[0].width == 48)
        #expect(try Self.tiles(source, target: target).planes[0].width == 48, "blocks of 2")
        #expect(try Self.tiles(source, target: PixelSize(width: 50, height: 30), preview: true).planes[0].width == 96)
    }

    @Test func leavesThumbnailsThatAreTurnedOtherwise() throws {
        let source = try WorkerFixture.source("thumbnail-unturned.heic")
        let target = PixelSize(width: 20, height: 12)
        #expect(try Self.tiles(source, target: target, preview: true).extent == PixelSize(width: 48, height: 32))
        #expect(try Self.tiles(source, target: target, preview: true).samplesAreMeans)
    }

    // MARK: What is left to libheif

    @Test(arguments: ["deep", "full-chroma", "alpha"])
    func leavesOtherVarietiesToLibheif(name: String) throws {
        let input = ImageInput.bytes(try Fixture.bytes("HEIC/\(name).heic"))
        #expect(throws: ImageError.self) { try Self.tiles(try ByteSource(input)) }
        let decoder = ImageDecoder(limits: .standard, isolation: .always, codecs: .standard, pool: Self.pool)
        let image = try decoder.decode(input)
        #expect(try Self.decibels(image, Self.whole.decode(input)) == 99)
        #expect(image.hasAlpha == (name == "alpha"))
    }

    static let oddities: [(String, @Sendable (inout HEICSample) -> Void)] = [
        ("alpha", { $0.auxiliary = "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha" }),
        ("4:2:2", { $0.configuration[16] = 0xFE }), ("grey", { $0.configuration[16] = 0xFC }),
        ("10 bit", { $0.configuration[17] = 0xFA }),
        ("chroma of 10 bit", { $0.configuration[18] = 0xFA }),
        ("identity matrix", { $0.properties = [HEICSample.colors(matrix: 0, isFullRange: true)] }),
        ("a turned tile", { $0.tileProperties = [HEICSample.rotation(1)] }),
        ("an unknown property", { $0.properties = [("iscl", [0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0, 2])] }),
        ("a tile that is missing", { $0.streams[2] = [] }), 
        (
            "one tile for all",
            {
                $0.sharesTile = true
                for index in 1..<6 { $0.streams[index] = [] }
            }
        ),
        ("superfluous tiles", { $0.size = PixelSize(width: 100, height: 100) }),
        ("missing tiles", { $0.size = PixelSize(width: 300, height: 100) }),
        ("a long configuration", { $0.configuration += [UInt8](repeating: 0, count: 20_000) }),
    ]

    @Test(arguments: oddities.indices)
    func refusesOddities(index: Int) throws {
        var sample = try HEICSample()
        Self.oddities[index].1(&sample)
        do {
            _ = try Self.tiles(sample.source(), target: PixelSize(20))
            Issue.record("\(Self.oddities[index].0) was decoded")
        } catch let error as ImageError {
            #expect(caseName(error) == "unsupported", "\(Self.oddities[index].0): \(error)")
        }
    }

    @Test func depthMapsAreNoAlpha() throws {
        var sample = try HEICSample()
        sample.auxiliary = "urn:mpeg:mpegB:cicp:systems:auxiliary:depth"
        _ = try Self.tiles(sample.source(), target: PixelSize(20))
    }

    /// Each change of one byte of a tile ends in a picture or an error: in a picture wherever libheif gives one.
    @Test func damagedTilesAreLeftToLibheif() throws {
        let sample = try HEICSample()
        let stream = sample.streams[4]
        var left = 0
        for place in [0, 1, 3, 4, 5, 6, 8, 20, 60, stream.count / 2, stream.count - 2] {
            var damaged = sample
            damaged.streams[4][place] ^= 0xFF
            let input = ImageInput.bytes(damaged.bytes)
            if (try? Self.tiles(try ByteSource(input), target: PixelSize(20))) == nil { left += 1 }
            let one = try? Self.tiled.decode(input, at: .fit(20)), other = try? Self.whole.decode(input, at: .fit(20))
            #expect(other == nil || one != nil, "libheif reads it, byte \(place)")
        }
        #expect(left > 0)
    }

    @Test func fileThatEndsEarlyIsLeftToLibheif() throws {
        let bytes = Array(try HEICSample().bytes.dropLast(300))
        #expect(throws: ImageError.self) {
            try Self.tiles(ByteSource(bytes: bytes, name: "cut"), target: PixelSize(20))
        }
        #expect(throws: ImageError.self) { try Self.tiled.decode(.bytes(bytes), at: .fit(20)) }
    }

    // MARK: This library's decoder

    /// The means of blocks of the picture that the tiles make, of all channels.
    private static func means(_ sample: HEICSample, _ area: PixelRect, factor: Int) throws -> [[UInt8]] {
        let decoder = try HEVCIntraDecoder(
            configuration: sample.configuration, maximumSide: 1_024, maximumPixels: 1 << 20, hasFilters: factor < 4)
        return try (0..<3).map { channel in
            let half = channel == 0 ? 1 : 2, side = max(1, factor / half)
            let tile = 64 / half
            let width = sample.columns * tile
            var picture = [UInt8](repeating: 0, count: width * sample.rows * tile)
            for (index, stream) in sample.streams.enumerated() {
                try stream.withUnsafeBufferPointer { bytes in
                    let plane = try decoder.decode(bytes)[channel]
                    for y in 0..<tile {
                        for x in 0..<tile {
                            let row = index / sample.columns * tile + y
                            picture[row * width + index % sample.columns * tile + x] =
                                plane.samples[y * plane.bytesPerRow + x]
                        }
                    }
                }
            }
            let columns = (area.x / half)..<((area.x + area.size.width + half - 1) / half)
            let rows = (area.y / half)..<((area.y + area.size.height + half - 1) / half)
            return stride(from: rows.lowerBound, to: rows.upperBound, by: side).flatMap { y in
                stride(from: columns.lowerBound, to: columns.upperBound, by: side).map { x in
                    var (sum, count) = (0, 0)
                    for row in y..<min(y + side, rows.upperBound) {
                        for column in x..<min(x + side, columns.upperBound) {
                            sum += Int(picture[row * width + column])
                            count += 1
                        }
                    }
                    return UInt8((sum + count / 2) / count)
                }
            }
        }
    }

    @Test(arguments: [1, 2, 3, 4, 5, 7, 8, 20], [1, 2, 4])
    func samplesAreTheMeansOfAllTiles(factor: Int, threads: Int) throws {
        var sample = try HEICSample()
        for area in [
            PixelRect(x: 0, y: 0, width: 165, height: 111), PixelRect(x: 0, y: 0, width: 100, height: 70),
            PixelRect(x: 66, y: 70, width: 99, height: 41),
        ] {
            // In halves of a pixel from the middle.
            let (right, down) = (2 * area.x + area.size.width - 165, 2 * area.y + area.size.height - 111)
            sample.properties = [
                HEICSample.cut(width: area.size.width, height: area.size.height, x: right, y: down)
            ]
            let source = sample.source()
            #expect(try ImageInfo(reading: source).storedSize == area.size)
            let target = PixelSize(
                width: max(1, area.size.width / (2 * factor)), height: max(1, area.size.height / (2 * factor)))
            let request = try Self.request(source, factor == 1 ? nil : target)
            let image = try Self.tiles(source, target: request.target, threads: threads)
            let side = request.blockSide(for: area.size)
            #expect(side >= factor)
            #expect(Self.samples(image) == (try Self.means(sample, area, factor: side)), "\(area)")
        }
    }

    @Test(arguments: [1, 2, 4])
    func columnsOfTilesAreAveragedInOrder(threads: Int) throws {
        var sample = try HEICSample()
        (sample.columns, sample.rows, sample.size) = (1, 6, PixelSize(width: 60, height: 371))
        let image = try Self.tiles(sample.source(), target: PixelSize(width: 6, height: 37), threads: threads)
        let area = PixelRect(x: 0, y: 0, width: 60, height: 371)
        #expect(Self.samples(image) == (try Self.means(sample, area, factor: 5)))
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"), arguments: [nil, 40, 600])
    func threadsGiveTheSameSamples(side: Int?) throws {
        let source = try ByteSource(.file(try #require(Corpus.file("heic/IMG_5195.heic"))))
        let size = try ImageInfo(reading: source).storedSize
        let target = side.map { PixelSize(width: $0, height: $0 * size.height / size.width) }
        let one = try Self.tiles(source, target: target)
        for threads in 2...5 {
            #expect(Self.samples(try Self.tiles(source, target: target, threads: threads)) == Self.samples(one))
        }
        let region = PixelRect(x: size.width / 3, y: size.height / 2 - 7, width: 700, height: 900)
        let part = try Self.tiles(source, target: target, region: region)
        #expect(Self.samples(try Self.tiles(source, target: target, region: region, threads: 3)) == Self.samples(part))
    }

    @Test func noHelperIsNeeded() throws {
        let missing = WorkerPool(location: .executable("/nowhere/vitrine-worker"))
        for isolation in [Isolation.automatic, .inProcess] {
            let decoder = ImageDecoder(limits: .standard, isolation: isolation, codecs: .standard, pool: missing)
            #expect(decoder.canDecode(.heic) && !decoder.canDecode(.tiff))
            #expect(try decoder.decode(.bytes(HEICSample().bytes), at: .fit(50)).width == 50)
            #expect(throws: ImageError.self) { try decoder.decode(.bytes(Fixture.bytes("HEIC/deep.heic"))) }
        }
    }

    @Test func isolatedDecodesGiveTheSame() throws {
        let decoder = ImageDecoder(limits: .standard, isolation: .always, codecs: .standard, pool: Self.pool)
        let input = ImageInput.bytes(try HEICSample().bytes)
        for resizer in [ImageResizer.none, .fit(50), .fit(12)] {
            let (one, other) = (try decoder.decode(input, at: resizer), try Self.tiled.decode(input, at: resizer))
            #expect(try Self.decibels(one, other) == 99)
        }
    }

    @Test func cancellationIsNotLeftToLibheif() throws {
        let source = try HEICSample().source()
        for target in [nil, PixelSize(8)] {
            var request = try Self.request(source, target)
            request.cancellation = CancellationToken()
            request.cancellation.cancel()
            #expect(throws: ImageError.cancelled(input: "sample")) { try HEICDecoder().decode(source, request) }
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func expiredDeadlineIsNotLeftToLibheif() throws {
        var limits = ImageLimits()
        limits.deadline = 0.001
        let path = try #require(Corpus.file("heic/IMG_5195.heic"))
        let decoder = ImageDecoder(limits: limits, isolation: .automatic, codecs: .standard, pool: Self.pool)
        #expect(throws: ImageError.timedOut(input: path)) { try decoder.decode(.file(path)) }
    }

    @Test func limitsHold() throws {
        let source = try HEICSample().source()
        var limits = ImageLimits()
        (limits.maximumWholeImagePixels, limits.maximumPixels) = (165 * 111 - 1, 165 * 111 - 1)
        #expect(throws: ImageError.self) { try HEICDecoder().decode(source, Self.request(source, limits: limits)) }
        // Asked in spite of the client's own check.
        #expect(throws: ImageError.self) { try Self.pool.decode(source, Self.request(source, limits: limits)) }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func processorsAreGivenBack() throws {
        let source = try ByteSource(.file(try #require(Corpus.file("heic/IMG_5195.heic"))))
        let cores = IdleCores(count: 4)
        for _ in 0..<3 { _ = try HEICDecoder(cores: cores).decode(source, Self.request(source, PixelSize(100))) }
        #expect(cores.claim(8) == 3)
    }

    @Test(.enabled(if: !Corpus.files(in: "hostile").isEmpty, "needs the hostile files"))
    func hostileFilesEndInAPictureOrATypedError() throws {
        var limits = ImageLimits()
        limits.deadline = 10
        let decoder = ImageDecoder(
            limits: limits, isolation: .automatic, codecs: .standard, pool: Self.pool)
        var pictures = 0
        for path in Corpus.files(in: "hostile") where path.hasSuffix(".heic") || path.hasSuffix(".heif") {
            do throws(ImageError) {
                _ = try decoder.decode(.file(path), at: .fit(200))
                pictures += 1
            } catch {
                #expect(error.input == path || error.input == nil)
            }
        }
        #expect(pictures > 0)
    }
}

extension DecodedImage {
    /// The extent of the first plane in whole samples.
    var extent: PixelSize { PixelSize(width: Int(planes[0].extentWidth), height: Int(planes[0].extentHeight)) }
}
