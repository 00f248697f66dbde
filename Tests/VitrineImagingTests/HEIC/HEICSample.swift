import Testing
import VitrineImaging
import VitrineHEIF

/// A HEIF file built box by box around coded pictures: a grid of the fixtures' tiles of HEVC, or one picture.
struct HEICSample {
    typealias Property = (type: String, payload: [UInt8])

    var columns = 3
    var rows = 2
    /// The size of the picture, which cuts the last column and row of tiles.
    var size = PixelSize(width: 165, height: 111)
    /// Properties of the picture, behind `ispe`.
    var properties: [Property] = []
    /// Properties of each tile, behind `hvcC` and `ispe`.
    var tileProperties: [Property] = []
    /// Whether the description of the grid stands in `idat`.
    var isInline = true
    var configuration: [UInt8]
    var streams: [[UInt8]]
    /// The type of the picture's item.
    var type = "grid"
    /// The type of coded items, of their configuration, and of the file.
    var codec = (item: "hvc1", configuration: "hvcC", brand: "heic")
    /// The type of an auxiliary picture, which is the first tile; nil for none.
    var auxiliary: String?
    /// Whether all tiles are one and the same item.
    var sharesTile = false

    /// The grid of the six tiles `Fixtures/HEIC/tile-*.heic`.
    init() throws {
        var configuration: [UInt8] = []
        streams = try (0..<6).map { number in
            let source = ByteSource(bytes: try Fixture.bytes("HEIC/tile-\(number).heic"), name: "tile")
            let tiles = try HEICTiles(HEIFContainer(ByteReader(source)), limits: .standard)
            configuration = try source.bytes(at: tiles.configuration.lowerBound, count: tiles.configuration.count)
            return try source.bytes(at: tiles.streams[0].lowerBound, count: tiles.streams[0].count)
        }
        self.configuration = configuration
    }

    /// One AV1 picture with 8 bits and 4:2:0: `Fixtures/AVIF/420.avif`.
    static func avif() throws -> HEICSample {
        var sample = try HEICSample()
        let file = try Fixture.bytes("AVIF/420.avif")
        func box(_ type: String) throws -> [UInt8] {
            let name = try #require(file.indices.first { file[$0...].starts(with: type.utf8) })
            let count = file[(name - 4)..<name].reduce(0) { $0 << 8 | Int($1) }
            return Array(file[(name + 4)..<(name - 4 + count)])
        }
        sample.codec = ("av01", "av1C", "avif")
        sample.type = "av01"
        (sample.columns, sample.rows, sample.size) = (1, 1, PixelSize(width: 75, height: 53))
        sample.configuration = try box("av1C")
        sample.streams = [try box("mdat")]
        return sample
    }

    static func rotation(_ quarters: UInt8) -> Property { ("irot", [quarters]) }
    static func mirror(_ axis: UInt8) -> Property { ("imir", [axis]) }

    /// A clean aperture, with offsets in halves of a pixel.
    static func cut(width: Int, height: Int, x: Int = 0, y: Int = 0) -> Property {
        ("clap", [width, 1, height, 1, x, 2, y, 2].flatMap(big))
    }

    static func colors(matrix: Int, isFullRange: Bool) -> Property {
        ("colr", Array("nclx".utf8) + [0, 1, 0, 13, 0, UInt8(matrix), isFullRange ? 0x80 : 0])
    }

    private static func big(_ value: Int) -> [UInt8] {
        let bits = UInt32(truncatingIfNeeded: value)
        return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: bits >> $0) }
    }

    private static func big16(_ value: Int) -> [UInt8] { Array(big(value).suffix(2)) }

    private static func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
        big(payload.count + 8) + Array(type.utf8) + payload
    }

    private static func full(_ type: String, version: UInt8 = 0, flags: UInt8 = 0, _ payload: [UInt8]) -> [UInt8] {
        box(type, [version, 0, 0, flags] + payload)
    }

    /// The file.
    var bytes: [UInt8] {
        let count = columns * rows
        let picture = type == "grid" ? count + 1 : 1
        var grid: [UInt8] = [0, 0, UInt8(rows - 1), UInt8(columns - 1)]
        grid += Self.big16(size.width) + Self.big16(size.height)
        var items: [(type: String, data: [UInt8])] = []
        for index in 0..<count { items.append((codec.item, streams[index % streams.count])) }
        if type == "grid" { items.append(("grid", grid)) }
        if auxiliary != nil { items.append((codec.item, streams[0])) }

        var properties: [[UInt8]] = [
            Self.box(codec.configuration, configuration), Self.full("ispe", Self.big(64) + Self.big(64)),
            Self.full("ispe", Self.big(size.width) + Self.big(size.height)),
        ]
        func numbers(_ list: [Property]) -> [UInt8] {
            list.map {
                properties.append(Self.box($0.type, $0.payload))
                // Changes of the shape are essential to a picture (ISO/IEC 23000-22, 7.3.9): libavif 1.0 insists on it.
                return UInt8(properties.count) | (["clap", "irot", "imir"].contains($0.type) ? 0x80 : 0)
            }
        }
        let (own, ofTiles) = (numbers(self.properties), numbers(tileProperties))
        var associations: [[UInt8]] = items.indices.map { index -> [UInt8] in
            guard index + 1 == picture else { return [1, 2] + ofTiles }
            return type == "grid" ? [3] + own : [1, 3] + own
        }
        if let auxiliary {
            properties.append(Self.full("auxC", Array(auxiliary.utf8) + [0]))
            associations[items.count - 1].append(UInt8(properties.count))
        }
        var ipma = Self.big(items.count)
        for (index, list) in associations.enumerated() { ipma += Self.big16(index + 1) + [UInt8(list.count)] + list }
        let iprp = Self.box("iprp", Self.box("ipco", properties.flatMap { $0 }) + Self.full("ipma", ipma))

        let infe: [UInt8] = items.indices.flatMap { index -> [UInt8] in
            let entry: [UInt8] = Self.big16(index + 1) + [0, 0] + Array(items[index].type.utf8) + [0]
            return Self.full("infe", version: 2, flags: index + 1 == picture ? 0 : 1, entry)
        }
        var references: [UInt8] = []
        if type == "grid" {
            let tiles: [UInt8] = (0..<count).flatMap { Self.big16(sharesTile ? 1 : $0 + 1) }
            references += Self.box("dimg", Self.big16(picture) + Self.big16(count) + tiles)
        }
        if auxiliary != nil {
            references += Self.box("auxl", Self.big16(items.count) + Self.big16(1) + Self.big16(picture))
        }
        func locations(_ start: Int) -> [UInt8] {
            var offset = start
            var places: [UInt8] = [0x44, 0] + Self.big16(items.count)
            for index in items.indices {
                let inline = items[index].type == "grid" && isInline
                places += Self.big16(index + 1)
                places += [0, inline ? 1 : 0, 0, 0, 0, 1]
                places += Self.big(inline ? 0 : offset)
                places += Self.big(items[index].data.count)
                if !inline { offset += items[index].data.count }
            }
            return Self.full("iloc", version: 1, places)
        }
        func meta(_ start: Int) -> [UInt8] {
            let handler: [UInt8] = [0, 0, 0, 0] + Array("pict".utf8) + [UInt8](repeating: 0, count: 13)
            var content = Self.full("hdlr", handler)
            content += Self.full("pitm", Self.big16(picture))
            content += Self.full("iinf", Self.big16(items.count) + infe)
            if !references.isEmpty { content += Self.full("iref", references) }
            content += iprp
            if isInline { content += Self.box("idat", grid) }
            return Self.full("meta", content + locations(start))
        }
        let head = Self.box("ftyp", Array("\(codec.brand)\0\0\0\0mif1\(codec.brand)".utf8))
        let start = head.count + meta(0).count + 8
        let data: [UInt8] = items.flatMap { $0.type == "grid" && isInline ? [] : $0.data }
        return head + meta(start) + Self.box("mdat", data)
    }

    /// The file as a source.
    func source(_ name: String = "sample") -> ByteSource { ByteSource(bytes: bytes, name: name) }
}
