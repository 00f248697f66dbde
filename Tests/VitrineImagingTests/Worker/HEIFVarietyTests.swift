import Testing
import VitrineCore
import VitrineImaging
import VitrineHEIF

/// Pictures that one of the libraries shows wrong: another one shows them right, or they are refused.
@Suite(.serialized) struct HEIFVarietyTests {
    static let pool = WorkerFixture.pool(1)
    static let decoder = ImageDecoder(limits: .standard, isolation: .automatic, codecs: .standard, pool: pool)

    /// The grid of five strips, which names them in reverse, and the same with the strips in the order of the file.
    @Test func tilesStandInTheOrderOfTheGrid() async throws {
        let reversed = try Fixture.bytes("AVIF/libavif/sofa_grid1x5_420_reversed_dimg_order.avif")
        #expect(try !HEIFContainer(ByteReader(ByteSource(bytes: reversed, name: "reversed"))).listsTilesInOrder)
        var listed = reversed
        let name = try #require(listed.indices.first { listed[$0...].starts(with: "dimg".utf8) })
        // From, count, then two bytes for each tile.
        let tiles = (name + 8)..<(name + 18)
        try #require(listed[name + 7] == 5)
        let ids = stride(from: tiles.lowerBound, to: tiles.upperBound, by: 2).map { Array(listed[$0..<($0 + 2)]) }
        listed.replaceSubrange(tiles, with: ids.reversed().joined())
        let one = try await Self.decoder.image(from: .bytes(reversed, name: "reversed"))
        let other = try await Self.decoder.image(from: .bytes(listed, name: "listed"))
        #expect(one.size == PixelSize(width: 1_024, height: 770) && one.size == other.size)
        var largest = 0
        for strip in 0..<5 {
            for y in stride(from: 20, to: 134, by: 19) {
                for x in stride(from: 4, to: 1_024, by: 31) {
                    let (a, b) = (one[x, strip * 154 + y], other[x, (4 - strip) * 154 + y])
                    largest = max(largest, abs(Int(a.red) - Int(b.red)), abs(Int(a.green) - Int(b.green)))
                }
            }
        }
        // One is libavif's, the other may be libheif's, which interpolates colour another way.
        #expect(largest <= 24)
    }

    @Test func tilesWithAlphaAreShownOrRefused() async throws {
        let bytes = try Fixture.bytes("AVIF/libavif/color_grid_alpha_nogrid.avif")
        let source = ByteSource(bytes: bytes, name: "tiles")
        let info = try ImageInfo(reading: source)
        #expect(info.hasAlpha)
        do {
            let image = try await Self.decoder.image(from: .bytes(bytes, name: "tiles"))
            #expect((0..<image.height).contains { image[40, $0].alpha < 255 })
        } catch let error as ImageError {
            guard case .unsupported = error else {
                Issue.record("\(error)")
                return
            }
        }
        // Libheif would leave out alpha.
        #expect(throws: ImageError.self) {
            try Self.pool.decode(source, DecodeRequest(info: info, target: nil), decoder: "VipsDecoder")
        }
    }

    @Test func greyProfileOfHEICIsApplied() async throws {
        let image = try await Self.decoder.image(from: .file(Fixture.path("HEIC/gray-linear-icc.heic")))
        for (i, level) in [0, 99, 137, 165, 188, 208, 229, 255].enumerated() {
            let pixel = image[min(255, 16 + 32 * i), 16]
            #expect(abs(Int(pixel.green) - level) <= 3 && pixel.red == pixel.blue, "field \(i): \(pixel)")
        }
    }
}
