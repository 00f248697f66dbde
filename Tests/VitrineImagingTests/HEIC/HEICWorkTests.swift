import Testing
import VitrineCore
import VitrineImaging
import VitrineHEIF

/// The work that the boxes of HEIF make is linear in their bytes: 16,384 tiles that are one item, with 131,000
/// properties, once took 29 seconds.
///
/// The deadlines count processor time, many times of what these files need.
@Suite struct HEICWorkTests {
    /// Boxes of a file whose picture is a grid of one tile many times. Its parts are the quadratic ones.
    private struct Sample {
        var tiles = 16_384
        /// Entries of 255 properties for the tile, the picture, and the auxiliary picture.
        var entries = (tile: 0, picture: 0, auxiliary: 0)
        /// The properties of these entries, behind the two sizes.
        var property: [UInt8] = Sample.box("pasp", [0, 0, 0, 1, 0, 0, 0, 1])
        /// References of a type from an item to another one.
        var references: (type: String, from: Int, to: Int, count: Int)?

        static func big(_ value: Int, _ bytes: Int = 2) -> [UInt8] {
            (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }

        static func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
            big(payload.count + 8, 4) + Array(type.utf8) + payload
        }

        static func full(_ type: String, version: UInt8 = 0, _ payload: [UInt8]) -> [UInt8] {
            box(type, [version, 0, 0, 0] + payload)
        }

        var source: ByteSource {
            let side = 7_000
            let columns = 128, rows = tiles / 128
            func item(_ id: Int, _ type: String) -> [UInt8] {
                Self.full("infe", version: 2, Self.big(id) + [0, 0] + Array(type.utf8) + [0])
            }
            func place(_ id: Int, _ offset: Int) -> [UInt8] {
                Self.big(id) + [0, 1, 0, 0, 0, 1] + Self.big(offset, 4) + Self.big(8, 4)
            }
            let sizes = Self.full("ispe", Self.big(side, 4) + Self.big(side, 4))
                + Self.full("ispe", Self.big(64, 4) + Self.big(64, 4))
            var associations: [[UInt8]] = [[0, 1, 1, 1], [0, 2, 1, 2]]
            for (id, count) in [(1, entries.picture), (2, entries.tile), (3, entries.auxiliary)] {
                let entry = Self.big(id) + [255] + [UInt8](repeating: 3, count: 255)
                associations += Array(repeating: entry, count: count)
            }
            var iref = Self.box("dimg", Self.big(1) + Self.big(tiles) + (0..<tiles).flatMap { _ in Self.big(2) })
            if let references {
                let one = Self.box(references.type, Self.big(references.from) + [0, 1] + Self.big(references.to))
                iref += Array(repeating: one, count: references.count).flatMap { $0 }
            }
            let ipma = Self.full("ipma", Self.big(associations.count, 4) + associations.flatMap { $0 })
            let grid = [0, 0, UInt8(rows - 1), UInt8(columns - 1)] + Self.big(side) + Self.big(side)
            let meta = Self.full("pitm", Self.big(1))
                + Self.full("iinf", Self.big(3) + item(1, "grid") + item(2, "hvc1") + item(3, "hvc1"))
                + Self.full("iloc", version: 1, [0x44, 0] + Self.big(3) + place(1, 0) + place(2, 8) + place(3, 8))
                + Self.full("iref", iref)
                + Self.box("iprp", Self.box("ipco", sizes + property) + ipma)
                + Self.box("idat", grid + [UInt8](repeating: 0, count: 8))
            let bytes = Self.box("ftyp", Array("heic\0\0\0\0heicmif1".utf8)) + Self.full("meta", meta)
            return ByteSource(bytes: bytes, name: "boxes")
        }
    }

    /// Reads the header, and decodes by the tiles, within two seconds of processor time each.
    private func outcome(_ sample: Sample) throws -> ImageError {
        var limits = ImageLimits()
        limits.deadline = 2
        let decoder = ImageDecoder(
            limits: limits, isolation: .inProcess, codecs: .standard(decoding: [HEICDecoder()]), pool: .shared)
        let input = ImageInput.bytes(try sample.source.allBytes(), name: "boxes")
        #expect(try ImageInfo(of: input, limits: limits).storedSize == PixelSize(7_000))
        return try #require(throws: ImageError.self) { try decoder.decode(input, at: .fit(200)) }
    }

    @Test func tilesTimesPropertiesAreLinear() throws {
        #expect(try outcome(Sample(entries: (514, 0, 0))).caseName == "unsupported")
    }

    @Test func propertiesOfThePictureAreLinear() throws {
        #expect(try outcome(Sample(entries: (0, 514, 0))).caseName == "unsupported")
    }

    @Test func tilesTimesAuxiliaryPicturesAreLinear() throws {
        var sample = Sample(tiles: 12_288, entries: (0, 0, 514))
        sample.references = ("auxl", 3, 2, 4_000)
        #expect(try outcome(sample).caseName == "unsupported")
    }

    @Test func aProfileIsNotCopiedForEachAssociation() throws {
        var sample = Sample(tiles: 128, entries: (100, 400, 0))
        // Three megabytes that are no profile, so that the next association is looked at as well.
        sample.property = Sample.box("colr", Array("prof".utf8) + [UInt8](repeating: 7, count: 3 << 20))
        #expect(try outcome(sample).caseName == "unsupported")
    }

    @Test func laterEntriesOfAnItemDoNotCount() throws {
        // ISO/IEC 23008-12 §9.3.1 allows one for each item.
        var sample = Sample(tiles: 128, entries: (0, 1, 0))
        sample.property = Sample.box("irot", [1])
        #expect(try ImageInfo(reading: sample.source).orientation == .up)
    }
}
