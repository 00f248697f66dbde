import TestSupport

/// HEIF files of one picture or a grid of HEVC, with the properties and references that a reader follows.
extension FuzzGenerators {
    static func heif(_ r: inout FuzzRandom) -> [UInt8] {
        let picture = hevcAnyPicture(&r)
        let coded = HEVCByteStream(picture.bytes)
        // Version 1, 4:2:0, 8 bits: what a reader looks at before it decodes (ISO/IEC 14496-15 §8.3.3).
        var configuration = coded.configuration
        configuration.replaceSubrange(0..<1, with: [1])
        configuration.replaceSubrange(16..<19, with: [0xFD, 0xF8, 0xF8])
        let (columns, rows) = r.flag() ? (1, 1) : (1 + r.below(3), 1 + r.below(3))
        let isGrid = columns * rows > 1 || r.chance(3)
        let tiles = isGrid ? columns * rows : 1
        let width = isGrid ? columns * picture.width - r.below(picture.width) : picture.width
        let height = isGrid ? rows * picture.height - r.below(picture.height) : picture.height
        let isWide = r.chance(4)
        let primary = isGrid ? tiles + 1 : 1
        let auxiliary = r.chance(4) ? primary + 1 : nil
        let lies = r.chance(6)
        func lie(_ n: Int) -> Int { lies && r.chance(12) ? (r.flag() ? r.size() : max(0, n + r.range(-9...9))) : n }
        func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
            big(lie(payload.count + 8), 4) + Array(type.utf8) + payload
        }
        func full(_ type: String, _ payload: [UInt8], version: Int = 0, flags: Int = 0) -> [UInt8] {
            box(type, big(version << 24 | flags, 4) + payload)
        }
        func id(_ n: Int) -> [UInt8] { big(n, isWide ? 4 : 2) }

        // Properties 1 and 2 are those of a tile, 3 and the following those of the picture.
        var properties = box("hvcC", configuration)
        properties += full("ispe", big(picture.width, 4) + big(picture.height, 4))
        properties += full("ispe", big(lie(width), 4) + big(lie(height), 4))
        var own = isGrid ? [3] : [1, 2]
        let extras: [[UInt8]] = [
            box("irot", [UInt8(r.below(4))]), box("imir", [UInt8(r.below(2))]),
            box(
                "clap",
                [1 + r.below(width), 1, 1 + r.below(height), 1, r.range(-9...9), 2, r.range(-9...9), 2]
                    .flatMap { big($0, 4) }),
            box("colr", Array("nclx".utf8) + big(1, 2) + big(13, 2) + big(r.below(10), 2) + [r.flag() ? 0x80 : 0]),
            box("colr", Array("prof".utf8) + r.bytes(r.below(200))), full("pixi", [3, 8, 8, 8]),
        ]
        for (index, extra) in extras.enumerated() {
            properties += extra
            if r.chance(3) { own.append(4 + index) }
        }
        properties += full("auxC", Array("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0".utf8))
        var associations: [(item: Int, properties: [Int])] = (1...tiles).map { ($0, [1, 2]) }
        if isGrid { associations.append((primary, own)) } else { associations[0].properties = own }
        if let auxiliary { associations.append((auxiliary, [1, 2, 4 + extras.count])) }
        let largeIndex = r.chance(4)
        var ipma = big(lie(associations.count), 4)
        for (item, properties) in associations {
            ipma += id(item) + [UInt8(properties.count)]
            ipma += properties.flatMap { largeIndex ? big(0x8000 | $0, 2) : [UInt8(0x80 | $0)] }
        }

        var entries: [[UInt8]] = (1...tiles).map {
            full("infe", id($0) + big(0, 2) + Array("hvc1\0".utf8), version: isWide ? 3 : 2)
        }
        if isGrid {
            entries.append(full("infe", id(primary) + big(0, 2) + Array("grid\0".utf8), version: isWide ? 3 : 2))
        }
        if let auxiliary {
            entries.append(full("infe", id(auxiliary) + big(0, 2) + Array("hvc1\0".utf8), version: isWide ? 3 : 2))
        }
        var references: [UInt8] = []
        if isGrid { references += box("dimg", id(primary) + big(lie(tiles), 2) + (1...tiles).flatMap { id($0) }) }
        if let auxiliary { references += box("auxl", id(auxiliary) + big(1, 2) + id(primary)) }

        let description: [UInt8] = [0, 0, UInt8(rows - 1), UInt8(columns - 1)] + big(width, 2) + big(height, 2)
        func locations(_ data: Int) -> [UInt8] {
            let all = Array(1...tiles) + (isGrid ? [primary] : []) + (auxiliary.map { [$0] } ?? [])
            var iloc: [UInt8] = [0x44, 0] + (isWide ? big(all.count, 4) : big(all.count, 2))
            for item in all {
                let isDescription = isGrid && item == primary
                iloc += id(item) + big(isDescription ? 1 : 0, 2) + big(0, 2) + big(1, 2)
                // Each has bytes of its own; readers refuse tiles that share them.
                let place = data + (item == auxiliary ? 0 : item - 1) * coded.stream.count
                iloc += big(isDescription ? 0 : place, 4)
                iloc += big(isDescription ? description.count : coded.stream.count, 4)
            }
            return iloc
        }
        // Where the pictures stand is known after everything in front of them is.
        let numbers = r
        func front(_ data: Int) -> [UInt8] {
            r = numbers
            let meta =
                full("hdlr", big(0, 4) + Array("pict".utf8) + [UInt8](repeating: 0, count: 13))
                + full("pitm", id(primary), version: isWide ? 1 : 0)
                + full(
                    "iinf", (isWide ? big(entries.count, 4) : big(entries.count, 2)) + entries.flatMap { $0 },
                    version: isWide ? 1 : 0)
                + full("iloc", locations(data), version: isWide ? 2 : 1)
                + (references.isEmpty ? [] : full("iref", references, version: isWide ? 1 : 0))
                + box(
                    "iprp",
                    box("ipco", properties) + full("ipma", ipma, version: isWide ? 1 : 0, flags: largeIndex ? 1 : 0))
                + box("idat", description)
            return box("ftyp", Array("heic\0\0\0\0mif1heic".utf8)) + full("meta", meta)
        }
        let head = front(front(0).count + 8)
        return head + box("mdat", (0..<tiles).flatMap { _ in coded.stream })
    }
}
