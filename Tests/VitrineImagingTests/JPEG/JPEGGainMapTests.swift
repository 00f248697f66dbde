#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineJPEG

/// JPEG files with gain maps, made from a chart of twelve squares.
@Suite struct JPEGGainMapTests {
    private static let decoder = ImageDecoder(isolation: .inProcess)

    /// The light of each square in linear sRGB, of which 1 is reference white, and the power of two by which the map
    /// divides it.
    private static let squares: [(color: [Double], power: Double)] = [
        ([0.1, 0.1, 0.1], 0), ([0.5, 0.5, 0.5], 1), ([1, 1, 1], 1), ([2, 2, 2], 1),
        ([0.5, 0.5, 0.5], 0), ([0.8, 0.8, 0.8], 1), ([0.6, 0.3, 0.1], 0), ([0.6, 0.3, 0.1], 1),
        ([0.2, 0.5, 0.3], 1), ([0.2, 0.5, 0.3], 0), ([1.2, 0.9, 0.6], 1), ([0.3, 0.3, 0.3], 1),
    ]

    // MARK: Colours

    private static func level(_ light: Double) -> Double {
        let light = max(0, min(1, light))
        return 255 * (light <= 0.003_130_8 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055)
    }

    /// A level of PQ or HLG for each channel of a colour, in the primaries of BT.2020 (ITU-R BT.2087, BT.2100).
    private static func encoded(_ color: [Double], _ transfer: Int) -> [UInt8] {
        let matrix = [[0.6274, 0.3293, 0.0433], [0.0691, 0.9195, 0.0114], [0.0164, 0.0880, 0.8956]]
        let nits = matrix.map { 203 * zip($0, color).reduce(0) { $0 + $1.0 * $1.1 } }
        let luminance = zip([0.2627, 0.6780, 0.0593], nits).reduce(0) { $0 + $1.0 * $1.1 } / 1_000
        return nits.map { nits in
            let value: Double
            if transfer == 16 {
                let y = pow(nits / 10_000, 0.1593017578125)
                value = pow((0.8359375 + 18.8515625 * y) / (1 + 18.6875 * y), 78.84375)
            } else {
                let scene = nits / 1_000 * pow(luminance, 1 / 1.2 - 1)
                value = scene <= 1.0 / 12 ? sqrt(3 * scene) : 0.17883277 * log(12 * scene - 0.28466892) + 0.55991073
            }
            return UInt8((255 * value).rounded())
        }
    }

    // MARK: Files

    private static func big(_ value: Int, _ count: Int = 4) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }

    /// A JPEG file of 4 × 3 squares.
    private static func picture(side: Int, _ color: (Int) -> [UInt8]) throws -> [UInt8] {
        let image = PixelImage(width: 4 * side, height: 3 * side, alpha: .opaque) { pixels in
            for y in 0..<(3 * side) {
                for x in 0..<(4 * side) {
                    let color = color(y / side * 4 + x / side) + [255]
                    for c in 0..<4 { pixels[4 * (y * 4 * side + x) + c] = color[c] }
                }
            }
        }
        return try LibJPEGEncoder().encode(image, quality: 1, options: EncodeOptions())
    }

    private static func segment(_ marker: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [0xFF, marker] + big(payload.count + 2, 2) + payload
    }

    private static func profileSegment(_ profile: [UInt8]?) -> [UInt8] {
        guard let profile else { return [] }
        return segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + profile)
    }

    /// A file with segments behind its first one, which is JFIF's.
    private static func inserted(_ segments: [UInt8], into file: [UInt8]) -> [UInt8] {
        let end = 4 + Int(file[4]) << 8 + Int(file[5])
        return Array(file[..<end]) + segments + file[end...]
    }

    /// The metadata of a map whose numbers from 0 to 255 are powers from 0 to 1.
    private static func metadata(
        headrooms: [Int] = [2, 0], isInBase: Bool = true, sharesDenominator: Bool = false, version: UInt8 = 0
    ) -> [UInt8] {
        let flags: UInt8 = (isInBase ? 0x40 : 0) | (sharesDenominator ? 0x08 : 0)
        let numbers = (headrooms + [0, 1, 1, 0, 0]).flatMap { sharesDenominator ? big(3 * $0) : big($0) + big(1) }
        return Array("urn:iso:std:iso:ts:21496:-1\0".utf8) + [0, version, 0, 0, flags]
            + (sharesDenominator ? big(3) : []) + numbers
    }

    private static func map(_ metadata: [UInt8], profile: [UInt8]? = nil) throws -> [UInt8] {
        let file = try picture(side: 8) { [UInt8](repeating: UInt8(255 * squares[$0].power), count: 3) }
        return inserted(profileSegment(profile) + segment(0xE2, metadata), into: file)
    }

    /// A map whose metadata are in XMP, by attributes or by elements, of which some have a list of three numbers.
    private static func map(
        inXMP properties: [(name: String, value: String)], asElements: Bool = false, metadata: [UInt8] = []
    ) throws -> [UInt8] {
        let attributes = properties.map { " hdrgm:\($0.name)=\"\($0.value)\"" }.joined()
        let elements = properties.map { name, value in
            let items = value.split(separator: " ").map { "<rdf:li>\($0)</rdf:li>" }
            let list = items.count > 1 ? "\n<rdf:Seq>\n\(items.joined(separator: "\n"))\n</rdf:Seq>\n" : value
            return "<hdrgm:\(name)>\(list)</hdrgm:\(name)>"
        }
        let text = """
            <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="r"><rdf:Description xmlns:hdrgm="h"\
            \(asElements ? "" : attributes)>\(asElements ? elements.joined(separator: "\n") : "")\
            </rdf:Description></rdf:RDF></x:xmpmeta>
            """
        let xmp = segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0\(text)".utf8))
        let file = try picture(side: 8) { [UInt8](repeating: UInt8(255 * squares[$0].power), count: 3) }
        return inserted(xmp + (metadata.isEmpty ? [] : segment(0xE2, metadata)), into: file)
    }

    private static let properties = [
        ("Version", "1.0"), ("BaseRenditionIsHDR", "True"), ("GainMapMax", "1"), ("OffsetSDR", "0"), ("OffsetHDR", "0"),
        ("HDRCapacityMax", "2"),
    ]

    private enum Listing { case index, xmp }

    /// A picture, its profile, and a second picture behind it.
    private static func file(
        _ picture: [UInt8], profile: [UInt8]?, map: [UInt8], by listing: Listing = .index
    ) -> [UInt8] {
        let icc = profileSegment(profile)
        if listing == .xmp {
            let text = """
                <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="r"><rdf:Description xmlns:Container="c" \
                xmlns:Item="i"><Container:Directory><rdf:Seq>\
                <rdf:li><Container:Item Item:Semantic="Primary" Item:Mime="image/jpeg"/></rdf:li>\
                <rdf:li><Container:Item Item:Semantic="GainMap" Item:Mime="image/jpeg" \
                Item:Length="\(map.count)"/></rdf:li>\
                </rdf:Seq></Container:Directory></rdf:Description></rdf:RDF></x:xmpmeta>
                """
            let xmp = segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0\(text)".utf8))
            return inserted(icc + xmp, into: picture) + map
        }
        func index(_ first: Int, _ offset: Int) -> [UInt8] {
            let entries = big(0x03_0000) + big(first) + big(0) + big(0) + big(0) + big(map.count) + big(offset) + big(0)
            var payload: [UInt8] = Array("MPF\0MM\0*".utf8) + big(8) + big(3, 2)
            payload += big(0xB000, 2) + big(7, 2) + big(4) + Array("0100".utf8)
            payload += big(0xB001, 2) + big(4, 2) + big(1) + big(2)
            payload += big(0xB002, 2) + big(7, 2) + big(32) + big(50) + big(0)
            return segment(0xE2, payload + entries)
        }
        let count = inserted(icc + index(0, 0), into: picture).count
        // Offsets begin behind the name of the segment, which stands behind JFIF's.
        let base = 4 + Int(picture[4]) << 8 + Int(picture[5]) + 8
        return inserted(index(count, count - base) + icc, into: picture) + map
    }

    private static func code(_ transfer: Int) throws -> [UInt8] {
        try #require(CodePointProfile(primaries: 9, transfer: transfer)).bytes
    }

    private static func base(_ transfer: Int = 16) throws -> [UInt8] {
        try picture(side: 16) { encoded(squares[$0].color, transfer) }
    }

    // MARK: Tests

    private static func found(_ file: [UInt8], at size: ImageResizer = .none) throws -> [[UInt8]] {
        let image = try decoder.decode(.bytes(file, name: "gain.jpg"), at: size)
        return (0..<12).map { i in
            let (x, y) = ((2 * (i % 4) + 1) * image.width / 8, (2 * (i / 4) + 1) * image.height / 6)
            return image.withUnsafeBytes { bytes in (0..<3).map { bytes[y * image.bytesPerRow + 4 * x + $0] } }
        }
    }

    /// Eight bits of PQ are steps of 4 % of light, or about four levels.
    private func expectMapped(_ file: [UInt8], at size: ImageResizer = .none, tolerance: Double = 6) throws {
        for (levels, square) in zip(try Self.found(file, at: size), Self.squares) {
            for (level, light) in zip(levels, square.color) {
                let wanted = Self.level(light / pow(2, square.power))
                #expect(abs(Double(level) - wanted) <= tolerance, "\(square) is \(levels)")
            }
        }
    }

    @Test(arguments: [16, 18]) func pictureOfHighRangeIsShownByItsMap(_ transfer: Int) throws {
        let (base, profile) = (try Self.base(transfer), try Self.code(transfer))
        for metadata in [Self.metadata(), Self.metadata(sharesDenominator: true)] {
            for listing in [Listing.index, .xmp] {
                let file = Self.file(base, profile: profile, map: try Self.map(metadata), by: listing)
                try expectMapped(file)
                try expectMapped(file, at: .fit(16), tolerance: 9)
            }
        }
        // A map for the primaries of the other picture, which its profile names.
        let sRGB = try Fixture.bytes("render/srgb.icc")
        let other = try Self.map(Self.metadata(isInBase: false), profile: sRGB)
        try expectMapped(Self.file(base, profile: profile, map: other))
    }

    @Test func mapsThatDoNotLeadToStandardRangeAreIgnored() throws {
        let (base, profile) = (try Self.base(), try Self.code(16))
        let plain = try Self.found(Self.inserted(Self.profileSegment(profile), into: base))
        #expect(abs(Double(plain[1][0]) - Self.level(0.5)) <= 5, "the rule maps tones without a map")
        let p3 = try Fixture.bytes("render/p3.icc")
        var cut = try Self.map(Self.metadata())
        cut.removeLast(cut.count / 2)
        let others = [
            try Self.map(Self.metadata(headrooms: [0, 2])), try Self.map(Self.metadata(headrooms: [2, 2])),
            try Self.map(Self.metadata(version: 1)), try Self.map(Array(Self.metadata().dropLast(4))),
            try Self.map(Array(Self.metadata().prefix(28))), try Self.map(Self.metadata(isInBase: false), profile: p3),
            try Self.picture(side: 8) { _ in [255, 255, 255] }, cut, [0xFF, 0xD8, 0xFF, 0xD9],
        ]
        for other in others {
            #expect(try Self.found(Self.file(base, profile: profile, map: other)) == plain)
            #expect(try Self.found(Self.file(base, profile: profile, map: other, by: .xmp)) == plain)
        }
    }

    @Test func metadataInXMPLeadToTheSamePicture() throws {
        let (base, profile) = (try Self.base(), try Self.code(16))
        try expectMapped(Self.file(base, profile: profile, map: try Self.map(inXMP: Self.properties)))
        let lists = Self.properties.map { ($0.0, $0.0.hasPrefix("Offset") ? "0 0.0 0" : $0.1) }
        let map = try Self.map(inXMP: lists, asElements: true)
        try expectMapped(Self.file(base, profile: profile, map: map, by: .xmp))
        // Offsets of 1/64 where none are given.
        let few = Self.properties.filter { !$0.0.hasPrefix("Offset") }
        let shown = try Self.found(Self.file(base, profile: profile, map: try Self.map(inXMP: few)))
        for (levels, square) in zip(shown, Self.squares) {
            for (level, light) in zip(levels, square.color) {
                let wanted = Self.level((light + 1.0 / 64) / pow(2, square.power) - 1.0 / 64)
                #expect(abs(Double(level) - wanted) <= 6, "\(square) is \(levels)")
            }
        }
        // Those of ISO 21496-1 count for more.
        let contradicting = Self.properties.map { ($0.0, $0.0 == "GainMapMax" ? "3" : $0.1) }
        let both = try Self.map(inXMP: contradicting, metadata: Self.metadata())
        try expectMapped(Self.file(base, profile: profile, map: both))
    }

    @Test func metadataInXMPThatDoNotLeadToStandardRangeAreIgnored() throws {
        let (base, profile) = (try Self.base(), try Self.code(16))
        let plain = try Self.found(Self.inserted(Self.profileSegment(profile), into: base))
        let changes = [
            ("Version", "2.0"), ("BaseRenditionIsHDR", "False"), ("GainMapMax", "nan"), ("GainMapMax", "65"),
            ("GainMapMax", "-1"), ("HDRCapacityMax", "0"), ("OffsetSDR", "x"), ("GainMapMax", "1 1"),
        ]
        for (name, value) in changes {
            let properties = Self.properties.map { ($0.0, $0.0 == name ? value : $0.1) }
            for asElements in [false, true] {
                let map = try Self.map(inXMP: properties, asElements: asElements)
                #expect(try Self.found(Self.file(base, profile: profile, map: map)) == plain, "\(name) is \(value)")
            }
        }
        for name in ["Version", "BaseRenditionIsHDR", "GainMapMax", "HDRCapacityMax"] {
            let map = try Self.map(inXMP: Self.properties.filter { $0.0 != name })
            #expect(try Self.found(Self.file(base, profile: profile, map: map)) == plain, "without \(name)")
        }
    }

    /// The usual kind of such files, which every other reader shows without its map.
    @Test func pictureOfStandardRangeStaysAsItIs() throws {
        let base = try Self.picture(side: 16) { Self.squares[$0].color.map { UInt8(Self.level($0).rounded()) } }
        for profile in [nil, try Fixture.bytes("render/p3.icc")] {
            let plain = Self.inserted(Self.profileSegment(profile), into: base)
            for metadata in [Self.metadata(headrooms: [0, 2]), Self.metadata()] {
                let file = Self.file(base, profile: profile, map: try Self.map(metadata))
                for size in [ImageResizer.none, .fit(16)] {
                    #expect(
                        try Self.decoder.decode(.bytes(file, name: "x.jpg"), at: size).storageBytes
                            == Self.decoder.decode(.bytes(plain, name: "x.jpg"), at: size).storageBytes)
                }
            }
        }
    }
}

extension PixelImage {
    fileprivate var storageBytes: [UInt8] { withUnsafeBytes { Array($0) } }
}
#endif
