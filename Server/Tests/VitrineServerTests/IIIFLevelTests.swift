import Foundation
import NIOCore
import ServerTestSupport
import Testing
import VitrineCore
@_spi(JPEGRows) import VitrineImaging
@_spi(JPEGRows) import VitrineJPEG

import VitrineServer

/// Parts of pictures that are decoded without the rest, and the levels of pictures on disk.
@Suite struct IIIFLevelTests {
    private static let fixtures = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures/tiles").path(percentEncoded: false)

    private static func bytes(_ name: String) throws -> [UInt8] {
        let path = FileManager.default.fileExists(atPath: fixtures + "/" + name) ? fixtures : Samples.directory
        return [UInt8](try Data(contentsOf: URL(filePath: path + "/" + name)))
    }

    /// Soft colours with a checkerboard, as in the fixtures.
    private static func picture(_ width: Int, _ height: Int, alpha: Bool = false) -> PixelImage {
        PixelImage(width: width, height: height, alpha: alpha ? .straight : .opaque) { bytes in
            for y in 0..<height {
                for x in 0..<width {
                    let at = 4 * (y * width + x)
                    bytes[at] = UInt8(x * 255 / width)
                    bytes[at + 1] = UInt8(y * 255 / height)
                    bytes[at + 2] = UInt8(100 * ((x / 64 + y / 64) % 2) + 100)
                    bytes[at + 3] = alpha ? UInt8(55 + (x + y) % 200) : 255
                }
            }
        }
    }

    private static func difference(_ one: PixelImage, _ other: PixelImage) -> (most: Int, mean: Double) {
        guard one.size == other.size else { return (255, 255) }
        var most = 0, sum = 0
        one.withUnsafeBytes { a in
            other.withUnsafeBytes { b in
                for y in 0..<one.height {
                    for x in 0..<(4 * one.width) {
                        let apart = abs(Int(a[y * one.bytesPerRow + x]) - Int(b[y * other.bytesPerRow + x]))
                        most = max(most, apart)
                        sum += apart
                    }
                }
            }
        }
        return (most, Double(sum) / Double(4 * one.width * one.height))
    }

    private static func crop(_ image: PixelImage, _ x: Int, _ y: Int, _ width: Int, _ height: Int) throws -> PixelImage {
        try image.processed(by: [.crop(x: x, y: y, width: width, height: height)])
    }

    // MARK: Rows of JPEG

    /// A file of any rows has the pixels of the whole decode.
    @Test(arguments: ["lake.jpg", "lake-grey.jpg", "rows.jpg", "blocks.jpg", "wide-chroma.jpg", "grey.jpg"])
    func rowsOfJPEGAreThoseOfTheWhole(name: String) throws {
        let file = try Self.bytes(name)
        let whole = try ImageDecoder().decode(.bytes(file))
        let index = try #require(try JPEGRowIndex(of: .bytes(file)))
        #expect(index.size == whole.size)
        var sizes: [Int] = []
        for first in [0, 1, 17, 200, whole.height / 2, whole.height - 150, whole.height - 1] {
            let rows = first..<min(whole.height, first + 100)
            let part = try #require(try index.part(rows, of: .bytes(file)), "\(rows)")
            let image = try ImageDecoder().decode(.bytes(part.bytes))
            let shown = try Self.crop(image, 0, part.firstRow, whole.width, rows.count)
            let expected = try Self.crop(whole, 0, first, whole.width, rows.count)
            #expect(Self.difference(shown, expected).most == 0, "\(rows)")
            sizes.append(part.bytes.count)
            // As the server decodes them.
            var options = DecodeOptions()
            options.region = PixelRect(x: 0, y: part.firstRow, width: whole.width, height: rows.count)
            let region = try ImageDecoder().decode(.bytes(part.bytes), options: options)
            #expect(Self.difference(region, shown).most == 0, "\(rows)")
        }
        // A part of the data, not all of it.
        #expect(sizes.allSatisfy { 5 * $0 < 4 * file.count })
        #expect(try index.part(whole.height..<(whole.height + 10), of: .bytes(file)) == nil)
    }

    /// Metadata, of which the orientation would turn the part, stays behind.
    @Test func partsHaveNoMetadata() throws {
        let file = try Self.bytes("orientation-6.jpg")
        let index = try #require(try JPEGRowIndex(of: .bytes(file)))
        let part = try #require(try index.part(0..<8, of: .bytes(file)))
        #expect(try ImageInfo(of: .bytes(part.bytes)).orientation == .up)
    }

    @Test(arguments: ["lake-progressive.jpg", "lake-cmyk.jpg", "leaf.png"])
    func otherFilesHaveNoIndex(name: String) throws {
        let file = try Self.bytes(name)
        #expect(try JPEGRowIndex(of: .bytes(file)) == nil)
    }

    /// A file cut anywhere has no index, and one with changed bytes gives errors or other pixels, never more.
    @Test func damagedJPEGIsNoDanger() throws {
        let file = try Self.bytes("wide-chroma.jpg")
        let index = try #require(try JPEGRowIndex(of: .bytes(file)))
        for count in stride(from: 0, to: file.count - 2, by: 613) {
            let cut = Array(file[..<count])
            #expect(throws: (any Error).self) {
                if try JPEGRowIndex(of: .bytes(cut)) == nil { throw CancellationError() }
            }
            // The index of a file that was replaced since.
            for first in [0, 500, 990] {
                guard let part = try? index.part(first..<(first + 10), of: .bytes(cut)) else { continue }
                _ = try? ImageDecoder().decode(.bytes(part.bytes))
            }
        }
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var changed = file
            for _ in 0..<3 { changed[Int.random(in: 2..<file.count, using: &random)] = UInt8.random(in: 0...255) }
            guard let own = try? JPEGRowIndex(of: .bytes(changed)),
                let part = try? own.part(300..<340, of: .bytes(changed))
            else { continue }
            _ = try? ImageDecoder().decode(.bytes(part.bytes))
        }
    }

    @Test func aCancelledIndexEnds() throws {
        let token = CancellationToken()
        token.cancel()
        let file = try Self.bytes("rows.jpg")
        #expect(throws: ImageError.self) { try JPEGRowIndex(of: .bytes(file), cancellation: token) }
    }

    /// The picture of a survey has the means of the file's pixels, and its index the same rows.
    @Test(
        arguments: [("lake.jpg", 4), ("lake.jpg", 8), ("wide-chroma.jpg", 4), ("grey.jpg", 8)],
        [Isolation.always, .inProcess])
    func surveysHaveTheMeansOfThePicture(_ file: (name: String, factor: Int), isolation: Isolation) async throws {
        let (name, factor) = file
        let bytes = try Self.bytes(name)
        let whole = try ImageDecoder().decode(.bytes(bytes))
        let size = PixelSize(width: (whole.width + factor - 1) / factor, height: (whole.height + factor - 1) / factor)
        let survey = try await ImageDecoder(isolation: isolation).survey(.bytes(bytes), at: size)
        let (image, index) = (survey.image, try #require(survey.rowIndex.flatMap { JPEGRowIndex(bytes: $0) }))
        #expect(index.size == whole.size && image.size == size)
        let means = try Self.means(of: whole, factor)
        // The last column and row of the file may be a part of a mean.
        let inner = (whole.width / factor, whole.height / factor)
        let apart = Self.difference(
            try Self.crop(image, 0, 0, inner.0, inner.1), try Self.crop(means, 0, 0, inner.0, inner.1))
        #expect(apart.mean < 1.5, "\(apart)")
        let part = try #require(try index.part(200..<240, of: .bytes(bytes)))
        let other = try #require(try JPEGRowIndex(of: .bytes(bytes)))
        #expect(try #require(try other.part(200..<240, of: .bytes(bytes))).bytes == part.bytes)
    }

    private static func means(of image: PixelImage, _ factor: Int) throws -> PixelImage {
        let (width, height) = (image.width / factor, image.height / factor)
        return PixelImage(width: width, height: height, alpha: .opaque) { bytes in
            image.withUnsafeBytes { pixels in
                for y in 0..<height {
                    for x in 0..<width {
                        for channel in 0..<4 {
                            var sum = factor * factor / 2
                            for v in 0..<factor {
                                for u in 0..<factor {
                                    let row = (y * factor + v) * image.bytesPerRow
                                    sum += Int(pixels[row + 4 * (x * factor + u) + channel])
                                }
                            }
                            bytes[4 * (y * width + x) + channel] = UInt8(sum / (factor * factor))
                        }
                    }
                }
            }
        }
    }

    @Test(arguments: ["lake-progressive.jpg", "lake-cmyk.jpg"], [Isolation.always, .inProcess])
    func surveysOfOtherFilesHaveNoIndex(name: String, isolation: Isolation) async throws {
        let decoder = ImageDecoder(isolation: isolation)
        let survey = try await decoder.survey(.bytes(try Self.bytes(name)), at: PixelSize(width: 40, height: 30))
        #expect(survey.rowIndex == nil && survey.image.size == PixelSize(width: 40, height: 30))
        await #expect(throws: ImageError.self) { try await decoder.survey(.bytes([1, 2, 3]), at: PixelSize(1)) }
        let cut = Array(try Self.bytes("lake.jpg").prefix(20_000))
        await #expect(throws: ImageError.self) {
            try await decoder.survey(.bytes(cut), at: PixelSize(width: 40, height: 30))
        }
    }

    /// Decodes by regions agree with those of the whole, with means of 4, 16 and 64 pixels.
    @Test(arguments: [2, 4, 8]) func meansOfRegionsAreThoseOfTheWhole(factor: Int) throws {
        let file = try Self.bytes("lake.jpg")
        let whole = try ImageDecoder().decode(.bytes(file))
        let means = try Self.means(of: whole, factor)
        var options = DecodeOptions()
        options.acceptsMeans = true
        options.region = PixelRect(x: 0, y: 16 * factor, width: means.width * factor, height: 16 * factor)
        let size = PixelSize(width: means.width, height: 16)
        let image = try ImageDecoder().decode(
            .bytes(file), at: .stretch(width: size.width, height: size.height), options: options)
        #expect(Self.difference(image, try Self.crop(means, 0, 16, means.width, 16)).mean < 1.5)
    }

    // MARK: The renderer

    private static func fixture(
        _ files: [String: [UInt8]], _ change: (inout Renderer.Configuration) -> Void = { _ in }
    ) throws -> (RenderingFixture, String) {
        let root = NSTemporaryDirectory() + "vitrine-levels-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        for (name, bytes) in files { try Data(bytes).write(to: URL(filePath: root + "/" + name)) }
        let fixture = try RenderingFixture {
            $0.sources.localRoot = root
            change(&$0)
        }
        return (fixture, root)
    }

    private static func tile(_ fixture: RenderingFixture, _ path: String) async throws -> PixelImage {
        let url = try IIIFGrammar().parse("/3/\(path)/0/default.png")
        let rendering = try await fixture.renderer.image(for: url)
        return try ImageDecoder().decode(.bytes(Array(rendering.image.bytes.readableBytesView)))
    }

    /// Overwrites the content of a file in place, so that it looks unchanged.
    private static func ruin(_ path: String) throws {
        // Dates of Foundation are not exact.
        func touch(_ path: String, like other: String) throws {
            #expect(try ChildProcess.run("/usr/bin/touch", ["-r", other, path]).status == 0)
        }
        try touch(path + ".time", like: path)
        let file = try FileHandle(forUpdating: URL(filePath: path))
        let count = try file.seekToEnd()
        try file.seek(toOffset: 200)
        try file.write(contentsOf: Data(repeating: 0xAA, count: Int(count) - 200))
        try file.close()
        try touch(path, like: path + ".time")
    }

    /// All levels come from one decode: afterwards the file is not needed, until it is purged.
    @Test(arguments: ["opaque.png", "translucent.png", "soft.webp"])
    func levelsComeFromDisk(name: String) async throws {
        let picture = Self.picture(1_700, 1_300, alpha: name == "translucent.png")
        let bytes = try picture.encoded(as: name == "soft.webp" ? .webp(quality: 0.95) : .png)
        let (fixture, root) = try Self.fixture([name: bytes]) { $0.tileMemory = .megabytes(12) }
        let first = try await Self.tile(fixture, "\(name)/0,0,1700,1300/425,325")
        #expect(first.size == PixelSize(width: 425, height: 325))
        await fixture.renderer.whenTilesAreStored()
        let shown = try ImageDecoder().decode(.bytes(bytes))
        try Self.ruin(root + "/" + name)

        let deep = try await Self.tile(fixture, "\(name)/1024,1024,512,276/512,276")
        let apart = Self.difference(deep, try Self.crop(shown, 1_024, 1_024, 512, 276))
        #expect(name == "soft.webp" ? apart.mean < 3 : apart.most <= (name == "opaque.png" ? 0 : 1))
        let middle = try await Self.tile(fixture, "\(name)/0,0,1024,1024/512,512")
        let half = try ImageResizer.stretch(width: 850, height: 650).resize(shown)
        #expect(Self.difference(middle, try Self.crop(half, 0, 0, 512, 512)).mean < 3)

        _ = try await fixture.renderer.purge(source: "local:///\(name)")
        await #expect(throws: RequestError.self) {
            // Another band, which is not in memory.
            _ = try await Self.tile(fixture, "\(name)/0,512,512,512/512,512")
        }
    }

    /// The levels of one decode serve all tiles, also while they are on their way to the disk.
    @Test func levelsAreUsedWhileTheyAreStored() async throws {
        let picture = Self.picture(1_700, 1_300)
        let (fixture, root) = try Self.fixture(["a.png": try picture.encoded(as: .png)]) { $0.tileMemory = .megabytes(12) }
        _ = try await Self.tile(fixture, "a.png/0,0,1700,1300/425,325")
        // Another decode would fail.
        try Self.ruin(root + "/a.png")
        for (y, height) in [(0, 512), (512, 512), (1_024, 276)] {
            let tile = try await Self.tile(fixture, "a.png/512,\(y),512,\(height)/512,\(height)")
            #expect(Self.difference(tile, try Self.crop(picture, 512, y, 512, height)).most == 0)
        }
        await fixture.renderer.whenTilesAreStored()
        let last = try await Self.tile(fixture, "a.png/1024,1024,512,276/512,276")
        #expect(Self.difference(last, try Self.crop(picture, 1_024, 1_024, 512, 276)).most == 0)
    }

    /// Results that are smaller than the smallest level of a pyramid are made, also while it is being stored.
    @Test func smallerResultsThanAllLevelsAreMade() async throws {
        let picture = Self.picture(1_700, 1_300)
        let (fixture, _) = try Self.fixture(["a.png": try picture.encoded(as: .png)]) { $0.tileMemory = .megabytes(12) }
        _ = try await Self.tile(fixture, "a.png/0,0,512,512/512,512")
        for factor in [8, 16, 64] {
            let size = PixelSize(width: (1_700 + factor - 1) / factor, height: (1_300 + factor - 1) / factor)
            let small = try await Self.tile(fixture, "a.png/0,0,1700,1300/\(size.width),\(size.height)")
            #expect(small.size == size)
        }
    }

    /// The server isolates everything by default. Tiles are the same without.
    @Test(arguments: [Isolation.always, .automatic])
    func isolatedTilesAreThoseOfTheWorker(isolation: Isolation) async throws {
        let bytes = try Self.picture(1_700, 1_300).encoded(as: .jpeg(quality: 0.95))
        let shown = try ImageDecoder().decode(.bytes(bytes))
        let (fixture, _) = try Self.fixture(["a.jpg": bytes]) {
            $0.tileMemory = .megabytes(12)
            $0.isolation = isolation
        }
        let first = try await Self.tile(fixture, "a.jpg/0,0,1700,1300/425,325")
        let quarter = try ImageResizer.stretch(width: 425, height: 325).resize(shown)
        #expect(Self.difference(first, quarter).mean < 3)
        let deep = try await Self.tile(fixture, "a.jpg/1024,1024,512,276/512,276")
        #expect(Self.difference(deep, try Self.crop(shown, 1_024, 1_024, 512, 276)).most == 0)
    }

    /// A changed file has other levels.
    @Test func levelsOfAnOlderVersionAreNotShown() async throws {
        let (one, other) = (Self.picture(1_700, 1_300), Self.picture(1_700, 1_300).oriented(.down))
        let (fixture, root) = try Self.fixture(["a.png": try one.encoded(as: .png)])
        _ = try await Self.tile(fixture, "a.png/0,0,512,512/512,512")
        await fixture.renderer.whenTilesAreStored()
        try Data(try other.encoded(as: .png)).write(to: URL(filePath: root + "/a.png"), options: .atomic)
        fixture.clock.advance(by: .seconds(5))
        let tile = try await Self.tile(fixture, "a.png/1024,1024,512,276/512,276")
        #expect(Self.difference(tile, try Self.crop(other, 1_024, 1_024, 512, 276)).most == 0)
    }

    /// Without space on disk, everything works from the files.
    @Test func noLevelsWithoutDisk() async throws {
        let picture = Self.picture(1_700, 1_300)
        let (fixture, root) = try Self.fixture(["a.png": try picture.encoded(as: .png)]) { $0.resultDisk = 0 }
        _ = try await Self.tile(fixture, "a.png/0,0,1700,1300/425,325")
        await fixture.renderer.whenTilesAreStored()
        let tile = try await Self.tile(fixture, "a.png/1024,1024,512,276/512,276")
        #expect(Self.difference(tile, try Self.crop(picture, 1_024, 1_024, 512, 276)).most == 0)
        try Self.ruin(root + "/a.png")
        await #expect(throws: RequestError.self) { _ = try await Self.tile(fixture, "a.png/0,0,1024,1024/512,512") }
    }

    /// Tiles of a JPEG of many rows, with the least memory, in an order in which no band is next to the last.
    @Test func tilesOfATallJPEGShowIt() async throws {
        let picture = Self.picture(700, 6_000)
        let bytes = try picture.encoded(as: .jpeg(quality: 0.9))
        let shown = try ImageDecoder().decode(.bytes(bytes))
        let (fixture, _) = try Self.fixture(["a.jpg": bytes]) { $0.tileMemory = .megabytes(3) }
        for row in [10, 2, 7, 0, 11, 5] {
            let (y, height) = (512 * row, min(512, 6_000 - 512 * row))
            let tile = try await Self.tile(fixture, "a.jpg/512,\(y),188,\(height)/188,\(height)")
            #expect(Self.difference(tile, try Self.crop(shown, 512, y, 188, height)).most == 0, "\(row)")
        }
        let half = try ImageResizer.stretch(width: 350, height: 3_000).resize(shown)
        for row in [4, 1, 5] {
            let (y, height) = (1_024 * row, min(1_024, 6_000 - 1_024 * row))
            let tile = try await Self.tile(fixture, "a.jpg/0,\(y),700,\(height)/350,\(height / 2)")
            #expect(Self.difference(tile, try Self.crop(half, 0, y / 2, 350, height / 2)).mean < 2, "\(row)")
        }
    }

    /// A level that is wider than the memory of a band has several bands side by side.
    @Test func veryWidePicturesHaveTiles() async throws {
        let picture = Self.picture(5_000, 900)
        let bytes = try picture.encoded(as: .jpeg(quality: 0.9))
        let shown = try ImageDecoder().decode(.bytes(bytes))
        let (fixture, _) = try Self.fixture(["a.jpg": bytes]) { $0.tileMemory = .megabytes(10) }
        for (x, y) in [(0, 0), (2_048, 512), (4_608, 512), (4_608, 0), (1_536, 0)] {
            let (width, height) = (min(512, 5_000 - x), min(512, 900 - y))
            let tile = try await Self.tile(fixture, "a.jpg/\(x),\(y),\(width),\(height)/\(width),\(height)")
            #expect(Self.difference(tile, try Self.crop(shown, x, y, width, height)).most == 0, "\(x),\(y)")
        }
    }

    // MARK: TIFF and JPEG 2000

    private static let side = (width: 1_400, height: 1_100)

    @Test(arguments: ["tiles.tif", "levels.tif", "tiles.jp2"], [1, 2, 4])
    func partsOfTiledFilesShowThePicture(name: String, factor: Int) async throws {
        let picture = Self.picture(Self.side.width, Self.side.height)
        let (fixture, _) = try Self.fixture([name: try Self.bytes(name)])
        let level = try ImageResizer.stretch(width: Self.side.width / factor, height: Self.side.height / factor)
            .resize(picture)
        let step = 256 * factor
        for y in stride(from: 0, to: Self.side.height - step, by: step) {
            for x in stride(from: 0, to: Self.side.width - step, by: step) {
                let tile = try await Self.tile(fixture, "\(name)/\(x),\(y),\(step),\(step)/256,256")
                let expected = try Self.crop(level, x / factor, y / factor, 256, 256)
                #expect(Self.difference(tile, expected).mean < 4, "\(x),\(y)")
            }
        }
    }

    /// Regions of the decoder, which need not be tiles.
    @Test(arguments: ["tiles.tif", "levels.tif", "tiles.jp2"], [1, 2, 3])
    func regionsOfTiledFilesShowThePicture(name: String, factor: Int) async throws {
        let picture = Self.picture(Self.side.width, Self.side.height)
        for (x, y, width, height) in [(0, 0, 300, 200), (511, 300, 400, 301), (1_000, 900, 400, 200)] {
            var options = DecodeOptions()
            options.region = PixelRect(x: x, y: y, width: width, height: height)
            let size = PixelSize(width: width / factor, height: height / factor)
            let image = try await ImageDecoder(isolation: .always).image(
                from: .bytes(try Self.bytes(name)), at: .stretch(width: size.width, height: size.height),
                options: options)
            let expected = try ImageResizer.stretch(width: size.width, height: size.height)
                .resize(try Self.crop(picture, x, y, width, height))
            #expect(Self.difference(image, expected).mean < 4, "\(x),\(y)")
        }
    }

    /// The last tile of the file cannot be decoded. All others can, as they are decoded without it.
    @Test func tilesOfTIFFAreDecodedAlone() async throws {
        let (fixture, _) = try Self.fixture(["damaged.tif": try Self.bytes("damaged.tif")])
        let picture = Self.picture(Self.side.width, Self.side.height)
        let tile = try await Self.tile(fixture, "damaged.tif/256,256,256,256/256,256")
        #expect(Self.difference(tile, try Self.crop(picture, 256, 256, 256, 256)).most == 0)
        await #expect(throws: RequestError.self) {
            _ = try await Self.tile(fixture, "damaged.tif/1280,1024,120,76/120,76")
        }
    }
}
