import Testing
import VitrineCore
import VitrineImaging

/// Thumbnails of HEIC files in place of the picture. Fixtures: `heif-enc -b 8 -q 80 -t 48 -o t.heic quadrants.png`
/// (96 × 64 with a thumbnail of 48 × 32), then `turn-heif.py t.heic thumbnail-turned.heic 1 3` (irot for both), and
/// `turn-heif.py t.heic thumbnail-unturned.heic 1` (for the picture alone).
@Suite struct HEIFThumbnailTests {
    static let pool = WorkerFixture.pool(1)

    /// The width tells which it is: the picture comes in blocks of 2 or more pixels, the thumbnail as it is.
    static func width(
        _ source: ByteSource, target: PixelSize?, orientation: Orientation = .right, page: Int = 0, allowed: Bool = true
    ) throws -> Int {
        let image = try pool.decode(
            source,
            WorkerFixture.request(
                .heic, 96, 64, target: target, orientation: orientation, page: page, allowsEmbeddedPreview: allowed),
            decoder: "VipsDecoder")
        #expect(image.planes[0].extentWidth > image.planes[0].extentHeight, "as stored")
        #expect(image.shows(DecodedImage.quadrants, tolerance: 16))
        return image.planes[0].width
    }

    @Test func isUsedAsStoredWhenItIsLargeEnough() throws {
        let source = try WorkerFixture.source("thumbnail-turned.heic")
        #expect(try Self.width(source, target: PixelSize(width: 18, height: 12)) == 48)
        #expect(try Self.width(source, target: PixelSize(width: 48, height: 32)) == 48)
    }

    @Test func isNeverUsedUnasked() throws {
        let source = try WorkerFixture.source("thumbnail-turned.heic")
        #expect(try Self.width(source, target: PixelSize(width: 18, height: 12), allowed: false) == 32)
    }

    @Test func isLeftWhenItIsTooSmall() throws {
        let source = try WorkerFixture.source("thumbnail-turned.heic")
        #expect(try Self.width(source, target: nil) == 96)
        for size in [PixelSize(width: 49, height: 32), PixelSize(width: 48, height: 33)] {
            #expect(try Self.width(source, target: size) == 96)
        }
    }

    @Test func isLeftWhenItIsNotTurnedLikeThePicture() throws {
        var bytes = try Fixture.bytes("worker/thumbnail-unturned.heic")
        let small = PixelSize(width: 18, height: 12)
        #expect(try Self.width(ByteSource(bytes: bytes, name: "quarter"), target: small) == 32)
        // By half a turn the shapes agree: only the properties tell.
        let irot = try #require(bytes.indices.dropLast(4).first { bytes[$0..<($0 + 4)].elementsEqual("irot".utf8) })
        bytes[irot + 4] = 2
        let half = ByteSource(bytes: bytes, name: "half")
        #expect(try Self.width(half, target: small, orientation: .down) == 32)
    }

    @Test func givesWayToThePictureWhenItIsDamaged() throws {
        var bytes = try Fixture.bytes("worker/thumbnail-turned.heic")
        // The thumbnail's stream is the last in the file; it begins with a length.
        for index in bytes.indices.suffix(391) { bytes[index] = 0xFF }
        let source = ByteSource(bytes: bytes, name: "damaged")
        #expect(try Self.width(source, target: PixelSize(width: 18, height: 12)) == 32)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func looksLikeThePictureItStandsFor() throws {
        let input = ImageInput.file(try #require(Corpus.file("heic/cheers.heic")))
        let decoder = ImageDecoder(limits: .standard, isolation: .always, codecs: .standard, pool: Self.pool)
        func pixels(_ preview: Bool, _ side: Int) throws -> [UInt8] {
            let image = try decoder.decode(
                input, at: .fit(side), options: DecodeOptions(allowsEmbeddedPreview: preview))
            return image.withUnsafeBytes { [UInt8]($0) }
        }
        let (main, preview) = (try pixels(false, 120), try pixels(true, 120))
        try #require(main.count == preview.count)
        let difference = zip(main, preview).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
        #expect(difference > 0)
        #expect(Double(difference) / Double(main.count) < 12)
        #expect(try pixels(false, 300) == pixels(true, 300), "it is 240 pixels wide")
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func isThePictureWhereThereIsNone() throws {
        let source = try ByteSource(.file(try #require(Corpus.file("heic/IMG_5195.heic"))))
        let info = try ImageInfo(reading: source, limits: .standard)
        let target = PixelSize(width: 93, height: 120)
        let images = try [false, true].map {
            try Self.pool.decode(
                source, DecodeRequest(info: info, target: target, options: DecodeOptions(allowsEmbeddedPreview: $0)))
        }
        #expect(images[0].firstPlane == images[1].firstPlane)
    }
}
