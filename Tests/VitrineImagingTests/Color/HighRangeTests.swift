import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// Pictures in PQ and HLG, shown in sRGB.
///
/// Fixtures: a chart of twelve squares of 16 pixels, made by `hdr/make.sh`.
@Suite(.serialized) struct HighRangeTests {
    private static let pool = WorkerFixture.pool(1)
    private static let decoder = ImageDecoder(
        limits: .standard, isolation: .automatic, codecs: .standard, pool: pool)

    /// The chart in linear sRGB, of which 1 is reference white.
    private static let chart: [[Double]] = [
        [0.1, 0.1, 0.1], [0.5, 0.5, 0.5], [1, 1, 1], [4.5, 4.5, 4.5],
        [0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5], [0.6, 0.3, 0.05],
        [4, 0.4, 0.1], [-0.25, 0.55, -0.03], [0.8, 1.1, 1.9], [0.61, -0.02, -0.01],
    ]

    // MARK: Colours

    private static func level(_ light: Double) -> Double {
        let light = max(0, min(1, light))
        return 255 * (light <= 0.003_130_8 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055)
    }

    private static func linear(_ level: UInt8) -> Double {
        let v = Double(level) / 255
        return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4)
    }

    /// Lightness, and the two differences of Oklab.
    private static func oklab(_ v: [Double]) -> (l: Double, a: Double, b: Double) {
        let l = cbrt(0.4122214708 * v[0] + 0.5363325363 * v[1] + 0.0514459929 * v[2])
        let m = cbrt(0.2119034982 * v[0] + 0.6806995451 * v[1] + 0.1073969566 * v[2])
        let s = cbrt(0.0883024619 * v[0] + 0.2817188376 * v[1] + 0.6299787005 * v[2])
        return (
            0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s
        )
    }

    /// Degrees between the hues of two colours.
    private static func turn(_ one: [Double], _ other: [Double]) -> Double {
        let (a, b) = (oklab(one), oklab(other))
        let turn = (atan2(a.b, a.a) - atan2(b.b, b.a)) * 180 / .pi
        return abs(turn.remainder(dividingBy: 360))
    }

    private static func pq(_ nits: Double) -> Double {
        let y = pow(max(0, nits) / 10_000, 0.1593017578125)
        return pow((0.8359375 + 18.8515625 * y) / (1 + 18.6875 * y), 78.84375)
    }

    /// PQ of linear sRGB in the primaries of BT.2020 (ITU-R BT.2087).
    private static func encoded(_ color: [Double], white: Double = 203) -> [Double] {
        [[0.6274, 0.3293, 0.0433], [0.0691, 0.9195, 0.0114], [0.0164, 0.0880, 0.8956]].map { row in
            pq(white * zip(row, color).reduce(0) { $0 + $1.0 * $1.1 })
        }
    }

    // MARK: Pictures

    private static func pixel(_ image: PixelImage, _ x: Int, _ y: Int) -> [UInt8] {
        image.withUnsafeBytes { bytes in (0..<3).map { bytes[y * image.bytesPerRow + 4 * x + $0] } }
    }

    /// The squares of the chart.
    private static func squares(_ image: PixelImage) -> [[UInt8]] {
        (0..<12).map { i in
            pixel(image, (2 * (i % 4) + 1) * image.width / 8, (2 * (i / 4) + 1) * image.height / 6)
        }
    }

    private func expectChart(_ image: PixelImage, _ name: String, tolerance: Double = 5) {
        for (found, color) in zip(Self.squares(image), Self.chart) {
            let shown = found.map(Self.linear)
            if (color.min() ?? 0) >= 0, (color.max() ?? 0) <= 1 {
                for (level, light) in zip(found, color) {
                    #expect(abs(Double(level) - Self.level(light)) <= tolerance, "\(name): \(color) is \(found)")
                }
            } else if color[0] == color[2] {
                #expect(found.allSatisfy { $0 >= 253 }, "\(name): \(color) is \(found)")
            } else {
                #expect(Self.turn(shown, color) < 8, "\(name): \(color) is \(found)")
                // Not clipped by channel: what is well outside lies on the border, not in a corner.
                let isFar = (color.min() ?? 0) < -0.02 || (color.max() ?? 0) > 1
                #expect(!isFar || Set(found).count == 3, "\(name): \(color) is \(found)")
                #expect(found.contains { $0 >= 254 } || found.contains { $0 <= 3 }, "\(name): \(color) is \(found)")
            }
        }
    }

    @Test(arguments: ["pq.avif", "hlg.avif", "pq.heic", "hlg.heic", "pq.jxl", "hlg.jxl"])
    func chartIsShownInEveryFormat(_ name: String) throws {
        let input = ImageInput.file(try Fixture.path("hdr/\(name)"))
        expectChart(try Self.decoder.decode(input), name)
        // Averaged in blocks of three by the decoder, and scaled.
        expectChart(try Self.decoder.decode(input, at: .fit(width: 16, height: 12)), "\(name) reduced", tolerance: 6)
        if name == "pq.avif" {
            let local = ImageDecoder(limits: .standard, isolation: .inProcess, codecs: .standard, pool: Self.pool)
            expectChart(try local.decode(input), "\(name) in process")
        }
    }

    /// The map divides the light of each square by a power of two, and is grey.
    @Test func gainMapOfABaseOfHighRangeIsUsed() throws {
        let powers = [0, 1, 2, 2.17, 1, 0, 0, 0.5, 2, 0, 1, 0]
        let file = try Fixture.bytes("hdr/gain.avif")
        for isolation in [Isolation.automatic, .inProcess] {
            let decoder = ImageDecoder(limits: .standard, isolation: isolation, codecs: .standard, pool: Self.pool)
            let found = Self.squares(try decoder.decode(.bytes(file, name: "gain")))
            for (i, color) in Self.chart.enumerated() where i != 9 && i != 11 {
                for (level, light) in zip(found[i], color) {
                    let wanted = Self.level(light / pow(2, powers[i]))
                    // Reference white loses one level, and saturated colours a little.
                    #expect(abs(Double(level) - wanted) <= 6, "\(color) is \(found[i])")
                }
            }
        }
        // Without the brand, or where the base is preferred, tones are mapped by rule.
        var plain = file
        let brand = try #require(plain.indices.first { plain[$0...].starts(with: "tmap".utf8) })
        plain[brand] = UInt8(ascii: "x")
        expectChart(try Self.decoder.decode(.bytes(plain, name: "no brand")), "no brand")
        var swapped = file
        let group = try #require(swapped.indices.first { swapped[$0...].starts(with: "altr".utf8) })
        (swapped[group + 19], swapped[group + 23]) = (swapped[group + 23], swapped[group + 19])
        expectChart(try Self.decoder.decode(.bytes(swapped, name: "base preferred")), "base preferred")
        // So they are where the map is damaged.
        for offset in [1, 6, 10] {
            var damaged = file
            let metadata = try #require(
                damaged.indices.first { damaged[$0...].starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 8, 0x7A]) })
            for i in 0..<4 { damaged[metadata + offset + i] = 0 }
            if offset == 1 { damaged[metadata + 2] = 9 }
            expectChart(try Self.decoder.decode(.bytes(damaged, name: "damaged \(offset)")), "damaged \(offset)")
        }
    }

    /// The picture of `hdr/pq.heic` or `hdr/hlg.heic`, which has 16 rows below the chart, with a map whose numbers are all
    /// one: it halves the light.
    private static func heicWithGain(
        version: UInt8 = 0, brand: String = "tmap", transfer: UInt8 = 16
    ) throws -> [UInt8] {
        let file = try Fixture.bytes(transfer == 16 ? "hdr/pq.heic" : "hdr/hlg.heic")
        func payload(_ type: String) throws -> [UInt8] {
            let name = try #require(file.indices.first { file[$0...].starts(with: type.utf8) })
            let count = file[(name - 4)..<name].reduce(0) { $0 << 8 | Int($1) }
            return Array(file[(name + 4)..<(name - 4 + count)])
        }
        let sample = try HEICSample()
        // Headrooms, and least, most, gamma and two offsets of one channel, as fractions.
        var metadata: [UInt8] = [version, 0, 0, 0, 0, 0x40]
        for numerator in [2, 0, 1, 1, 1, 0, 0] as [UInt8] { metadata += [0, 0, 0, numerator, 0, 0, 0, 1] }
        let items: [(type: String, data: [UInt8])] = [
            ("hvc1", try payload("mdat")), ("hvc1", sample.streams[0]), ("tmap", metadata),
        ]
        func big(_ value: Int, _ count: Int = 4) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
        }
        func box(_ type: String, _ payload: [UInt8]) -> [UInt8] { big(payload.count + 8) + Array(type.utf8) + payload }
        func full(_ type: String, version: UInt8 = 0, _ payload: [UInt8]) -> [UInt8] {
            box(type, [version, 0, 0, 0] + payload)
        }
        func colors(_ points: [UInt8]) -> [UInt8] {
            box("colr", Array("nclx".utf8) + points.flatMap { [0, $0] } + [0x80])
        }
        let properties = [
            box("hvcC", try payload("hvcC")),
            full("ispe", big(64) + big(64)), colors([9, transfer, 9]),
            box("hvcC", sample.configuration), full("ispe", big(64) + big(64)), colors([1, 13, 1]),
        ]
        let associations: [[UInt8]] = [[1, 2, 3], [4, 5], [2, 6]]
        var ipma = big(3)
        for (index, list) in associations.enumerated() { ipma += big(index + 1, 2) + [UInt8(list.count)] + list }
        var names: [UInt8] = []
        for (index, item) in items.enumerated() {
            let entry: [UInt8] = big(index + 1, 2) + [0, 0] + Array(item.type.utf8) + [0]
            names += full("infe", version: 2, entry)
        }
        func meta(_ start: Int) -> [UInt8] {
            var places: [UInt8] = [0x44, 0] + big(3, 2)
            var offset = start
            for (index, item) in items.enumerated() {
                places += big(index + 1, 2) + [0, 0, 0, 0, 0, 1]
                places += big(offset) + big(item.data.count)
                offset += item.data.count
            }
            let handler: [UInt8] = [0, 0, 0, 0] + Array("pict".utf8) + [UInt8](repeating: 0, count: 13)
            var content = full("hdlr", handler)
            content += full("pitm", big(1, 2)) + full("iinf", big(3, 2) + names)
            content += full("iref", box("dimg", [3, 2, 1, 2].flatMap { big($0, 2) }))
            content += box("iprp", box("ipco", properties.flatMap { $0 }) + full("ipma", ipma))
            content += box("grpl", full("altr", [9, 2, 3, 1].flatMap { big($0) }))
            return full("meta", content + full("iloc", version: 1, places))
        }
        let head = box("ftyp", Array("heic\0\0\0\0mif1heic\(brand)".utf8))
        return head + meta(head.count + meta(0).count + 8) + box("mdat", items.flatMap(\.data))
    }

    @Test(arguments: [16, 18] as [UInt8]) func gainMapOfHEICIsUsed(_ transfer: UInt8) throws {
        let file = ImageInput.bytes(try Self.heicWithGain(transfer: transfer), name: "gain.heic")
        func square(_ i: Int, of image: PixelImage) -> [UInt8] {
            Self.pixel(image, (2 * (i % 4) + 1) * image.width / 8, (2 * (i / 4) + 1) * image.height / 8)
        }
        for size in [ImageResizer.none, .fit(16)] {
            let image = try Self.decoder.decode(file, at: size)
            for (i, color) in Self.chart.enumerated() where ![3, 8, 9, 11].contains(i) {
                let found = square(i, of: image)
                for (level, light) in zip(found, color) {
                    #expect(abs(Double(level) - Self.level(light / 2)) <= 6, "\(color) is \(found)")
                }
            }
        }
        // Later versions, and files that do not name the brand, are shown by rule.
        for other in [try Self.heicWithGain(version: 1), try Self.heicWithGain(brand: "xmap")] {
            let image = try Self.decoder.decode(.bytes(other, name: "rule.heic"))
            for i in 0..<2 {
                let found = square(i, of: image)
                #expect(found.allSatisfy { abs(Double($0) - Self.level(Self.chart[i][0])) <= 5 }, "\(found)")
            }
        }
    }

    private static func png(_ colors: [[Double]], depth: Int = 16, extra: [UInt8]) -> [UInt8] {
        let row = colors.flatMap { color in
            color.flatMap { value -> [UInt8] in
                if depth == 8 { return [UInt8((value * 255).rounded())] }
                let word = Int((value * 65_535).rounded())
                return [UInt8(word >> 8), UInt8(word & 255)]
            }
        }
        return PNGSupport.signature + PNGSupport.header(colors.count, 1, type: 2, depth: UInt8(depth)) + extra
            + PNGSupport.chunk("IDAT", PNGSupport.stored([0] + row)) + PNGSupport.chunk("IEND", [])
    }

    private static func levels(_ png: [UInt8]) throws -> [[UInt8]] {
        let image = try decoder.decode(.bytes(png, name: "test"))
        return (0..<image.width).map { pixel(image, $0, 0) }
    }

    private static let codePoints = PNGSupport.chunk("cICP", [9, 16, 0, 1])

    @Test(arguments: [8, 16])
    func codePointsOfPNGGoBeforeEverythingElse(_ depth: Int) throws {
        let p3 = Array("p3\0\0".utf8) + PNGSupport.stored(try Fixture.bytes("render/p3.icc"))
        let others = PNGSupport.chunk("iCCP", p3) + PNGSupport.chunk("gAMA", PNGSupport.big(100_000))
        let colors = [[0.5, 0.5, 0.5], [1, 1, 1], [0.6, 0.3, 0.05]]
        for extra in [Self.codePoints, Self.codePoints + others, others + Self.codePoints] {
            let found = try Self.levels(Self.png(colors.map { Self.encoded($0) }, depth: depth, extra: extra))
            for (levels, color) in zip(found, colors) {
                for (level, light) in zip(levels, color) {
                    #expect(abs(Double(level) - Self.level(light)) <= 5, "\(color) is \(levels)")
                }
            }
        }
        // sRGB by code points is sRGB; what is not known does not count.
        let red = [[200.0 / 255, 100.0 / 255, 50.0 / 255]]
        let plain = PNGSupport.chunk("cICP", [1, 13, 0, 1]), unknown = PNGSupport.chunk("cICP", [99, 13, 0, 1])
        #expect(try Self.levels(Self.png(red, depth: 8, extra: plain + others)) == [[200, 100, 50]])
        let converted = try Self.levels(Self.png(red, depth: 8, extra: unknown + others))[0]
        #expect(zip(converted, [215, 93, 31]).allSatisfy { abs(Int($0) - $1) <= 1 }, "\(converted)")
    }

    /// The chunk's last byte says that black is 16 and white 235, of 255.
    @Test(arguments: [8, 16])
    func narrowRangeOfPNGIsStretched(_ depth: Int) throws {
        let steps = depth == 8 ? 1.0 : 256
        let peak = depth == 8 ? 255.0 : 65_535
        func narrow(_ value: Double) -> Double { (219 * steps * value + 16 * steps) / peak }
        let colors = [[0, 0, 0], [1, 1, 1], [0.5, 0.25, 0.75]]
        let plain = PNGSupport.chunk("cICP", [1, 13, 0, 0])
        let found = try Self.levels(Self.png(colors.map { $0.map(narrow) }, depth: depth, extra: plain))
        for (levels, color) in zip(found, colors) {
            #expect(zip(levels, color).allSatisfy { abs(Double($0) - 255 * $1) <= 1 }, "\(color) is \(levels)")
        }
        #expect(found[0] == [0, 0, 0] && found[1] == [255, 255, 255])
        // What is outside of the range is cut off, and the full range stays as it is.
        #expect(try Self.levels(Self.png([[0, 0.02, 1]], depth: depth, extra: plain)) == [[0, 0, 255]])
        let full = PNGSupport.chunk("cICP", [1, 13, 0, 1])
        #expect(try Self.levels(Self.png([[0, 0.2, 1]], depth: depth, extra: full)) == [[0, 51, 255]])
        let unknown = PNGSupport.chunk("cICP", [99, 13, 0, 0])
        #expect(try Self.levels(Self.png([[0, 0.2, 1]], depth: depth, extra: unknown)) == [[0, 51, 255]])
        // In PQ as well.
        let lights = [[0.5, 0.5, 0.5], [1, 1, 1], [0.6, 0.3, 0.05]]
        let bright = PNGSupport.chunk("cICP", [9, 16, 0, 0])
        let shown = try Self.levels(
            Self.png(lights.map { Self.encoded($0).map(narrow) }, depth: depth, extra: bright))
        for (levels, color) in zip(shown, lights) {
            for (level, light) in zip(levels, color) {
                #expect(abs(Double(level) - Self.level(light)) <= 6, "\(color) is \(levels)")
            }
        }
    }

    /// Alpha and the colours of a palette.
    @Test func narrowRangeIsThatOfColoursOnly() throws {
        let chunk = PNGSupport.chunk("cICP", [1, 13, 0, 0])
        let file = PNGSupport.file(2, 1, type: 6, [16, 235, 16, 128, 235, 16, 235, 255], extra: chunk)
        let image = try Self.decoder.decode(.bytes(file, name: "alpha"))
        #expect(image[0, 0].alpha == 128 && image[1, 0] == PixelColor(red: 255, green: 0, blue: 255))
        let palette = PNGSupport.chunk("PLTE", [16, 16, 16, 235, 235, 235])
        let indexed = PNGSupport.file(2, 1, type: 3, [0, 1], extra: chunk + palette)
        #expect(try Self.levels(indexed) == [[0, 0, 0], [255, 255, 255]])
    }

    @Test(arguments: ["pq", "hlg"])
    func colourSpaceOfTheStreamIsThatOfAPictureWithoutItsOwn(_ name: String) throws {
        var file = try Fixture.bytes("hdr/\(name).heic")
        let box = try #require(file.indices.first { file[$0...].starts(with: "colr".utf8) })
        file[box] = UInt8(ascii: "x")
        let info = try ImageInfo(of: .bytes(file))
        #expect(info.codedColors == CodedColors(primaries: 9, transfer: name == "pq" ? 16 : 18))
        expectChart(try Self.decoder.decode(.bytes(file, name: name)), name)
        // A configuration that ends early names none.
        let configuration = try #require(file.indices.first { file[$0...].starts(with: "hvcC".utf8) })
        for count in [0, 5, 200] {
            file[configuration + 4 + 22] = UInt8(count)
            let colors = try ImageInfo(of: .bytes(file)).codedColors
            #expect(count > 0 || colors == nil)
        }
        // Standard range is taken as sRGB, as before.
        #expect(try ImageInfo(of: .file(Samples.path("lake.heic"))).samplesProfile == nil)
    }

    @Test func grayPicturesHaveCodePointsToo() throws {
        let levels: [UInt8] = [0, 110, 148, 200]
        let file = PNGSupport.file(4, 1, type: 0, levels, extra: Self.codePoints)
        let found = try Self.levels(file)
        #expect(found[0] == [0, 0, 0] && found[2].allSatisfy { $0 >= 253 } && found[3] == [255, 255, 255])
        #expect(found[1].allSatisfy { abs(Int($0) - 130) <= 3 })
    }

    @Test func contentLightRaisesTheWhiteOfBrightPicturesOnly() throws {
        let colors = [203.0, 470].map { Self.encoded([1, 1, 1], white: $0) }
        func levels(_ maximum: Int, _ average: Int) throws -> [UInt8] {
            let light = PNGSupport.chunk("cLLI", PNGSupport.big(maximum * 10_000) + PNGSupport.big(average * 10_000))
            return try Self.levels(Self.png(colors, extra: Self.codePoints + light)).map { $0[1] }
        }
        let bright = try levels(470, 263)
        #expect(abs(Double(bright[0]) - Self.level(203.0 / 470)) <= 3 && bright[1] >= 253)
        for (maximum, average) in [(1_000, 100), (150, 140), (4_000, 20)] {
            #expect(try levels(maximum, average).allSatisfy { $0 >= 253 })
        }
        // Nobody's white is brighter than 1,000 cd/m².
        #expect(try levels(9_999, 9_000)[1] > 170)
    }

    /// A strip of 16-bit samples with a profile of PQ; libvips reads it in the worker.
    @Test func profilesOfPQAreShownLikeCodePoints() throws {
        let profile = try #require(CodePointProfile(primaries: 9, transfer: 16)).bytes
        let samples = Self.chart.flatMap { Self.encoded($0) }.flatMap { value in
            RasterPicture.little16(Int((max(0, min(1, value)) * 65_535).rounded()))
        }
        let file = Self.tiff(width: 4, height: 3, bits: 16, samples: samples, profile: profile)
        expectChart(try Self.decoder.decode(.bytes(file, name: "pq.tif")), "TIFF")
        // Without the tag of code points, the curve tells.
        var bare = profile
        let tag = try #require(bare.indices.first { bare[$0...].starts(with: "cicp".utf8) })
        bare[tag] = UInt8(ascii: "x")
        let other = Self.tiff(width: 4, height: 3, bits: 16, samples: samples, profile: bare)
        expectChart(try Self.decoder.decode(.bytes(other, name: "pq.tif")), "TIFF by its curve")
    }

    @Test func floatTIFFKeepsOneAtWhite() throws {
        let lights: [Float] = [0, 0.05, 0.18, 0.5, 1, 3]
        let samples = lights.flatMap { RasterPicture.floats([$0, $0, $0], isBig: false) }
        let file = Self.tiff(width: 6, height: 1, bits: 32, samples: samples, profile: nil)
        let image = try Self.decoder.decode(.bytes(file, name: "light.tif"))
        for (x, light) in lights.enumerated() {
            let found = Self.pixel(image, x, 0)
            #expect(found.allSatisfy { abs(Double($0) - Self.level(Double(light))) <= 2 }, "\(light) is \(found)")
        }
    }

    private static func tiff(
        width: Int, height: Int, bits: Int, samples: [UInt8], profile: [UInt8]?
    ) -> [UInt8] {
        var entries: [(tag: Int, type: Int, count: Int, value: Int)] = [
            (256, 4, 1, width), (257, 4, 1, height), (258, 3, 3, 8), (259, 3, 1, 1), (262, 3, 1, 2),
            (273, 4, 1, 16), (277, 3, 1, 3), (278, 4, 1, height), (279, 4, 1, samples.count), (284, 3, 1, 1),
        ]
        if bits == 32 { entries.append((339, 3, 1, 3)) }
        let table = 16 + samples.count
        if let profile {
            entries.append((34_675, 7, profile.count, table + 2 + 12 * (entries.count + 1) + 4))
        }
        var file = Array("II*\0".utf8) + RasterPicture.little32(table)
        // The bits of each sample need six bytes of their own.
        file += [UInt8(bits), 0, UInt8(bits), 0, UInt8(bits), 0, 0, 0] + samples
        file += RasterPicture.little16(entries.count)
        for entry in entries {
            file += RasterPicture.little16(entry.tag) + RasterPicture.little16(entry.type)
            file += RasterPicture.little32(entry.count) + RasterPicture.little32(entry.value)
        }
        return file + RasterPicture.little32(0) + (profile ?? [])
    }

    // MARK: The map

    private static func shown(_ colors: [[UInt8]], _ profile: CodePointProfile?) throws -> [[UInt8]] {
        let profile = try #require(profile.flatMap { ColorProfile($0.bytes) })
        var pixels = colors.flatMap { $0 + [255] as [UInt8] }
        pixels.withUnsafeMutableBufferPointer {
            profile.convertRGB($0.baseAddress!, count: colors.count, isPremultiplied: false)
        }
        return stride(from: 0, to: pixels.count, by: 4).map { Array(pixels[$0..<($0 + 3)]) }
    }

    @Test(arguments: [16, 18])
    func greyRisesToWhiteAndStaysGrey(_ transfer: Int) throws {
        for primaries in [1, 9, 12] {
            let ramp = try Self.shown(
                (0...255).map { [UInt8($0), UInt8($0), UInt8($0)] },
                CodePointProfile(primaries: primaries, transfer: transfer))
            #expect(zip(ramp, ramp.dropFirst()).allSatisfy { $0[1] <= $1[1] })
            #expect(ramp.allSatisfy { Int($0.max() ?? 0) - Int($0.min() ?? 0) <= 1 })
            #expect(ramp[0] == [0, 0, 0] && ramp[255] == [255, 255, 255])
            // Reference white is 58 % of PQ and 75 % of HLG.
            #expect(abs(Int(ramp[transfer == 16 ? 148 : 191][0]) - 255) <= 2)
        }
    }

    @Test func huesAreKeptThroughoutTheGamut() throws {
        let steps: [UInt8] = [0, 60, 90, 110, 130, 148, 165, 190, 255]
        let colors = steps.flatMap { r in steps.flatMap { g in steps.map { b in [r, g, b] } } }
        let found = try Self.shown(colors, CodePointProfile(primaries: 9, transfer: 16))
        // ITU-R BT.2087, annex 1, inverted.
        let matrix = [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]]
        func light(_ code: UInt8) -> Double {
            let root = pow(Double(code) / 255, 1 / 78.84375)
            return pow(max(0, root - 0.8359375) / (18.8515625 - 18.6875 * root), 1 / 0.1593017578125) * 10_000 / 203
        }
        for (color, levels) in zip(colors, found) {
            let wide = color.map(light)
            let source = matrix.map { row in zip(row, wide).reduce(0) { $0 + $1.0 * $1.1 } }
            let shown = Self.oklab(levels.map(Self.linear)), wanted = Self.oklab(source)
            #expect(shown.l <= wanted.l * 1.05 + 0.02, "\(color) is \(levels)")
            // The hues of dark and of almost grey levels are only as exact as the levels are.
            guard hypot(shown.a, shown.b) > 0.04, shown.l > 0.2 else { continue }
            #expect(Self.turn(levels.map(Self.linear), source) < 4, "\(color) is \(levels)")
        }
    }

    @Test func samplesOfTenBitsKeepSmoothRamps() throws {
        let profile = try #require(CodePointProfile(primaries: 9, transfer: 16).flatMap { ColorProfile($0.bytes) })
        // Luma of 64...940 at the middle of chroma, which is coarser.
        let luma = [[UInt16]](repeating: Array(64...940), count: 4).flatMap { $0 }
        let chroma = [UInt16](repeating: 512, count: 439 * 2)
        let plane = try luma.withUnsafeBytes { luma in
            try chroma.withUnsafeBytes { chroma in
                func part(_ bytes: UnsafeRawBufferPointer, _ width: Int, _ height: Int) throws -> DeepFrame.Plane {
                    DeepFrame.Plane(
                        samples: try #require(bytes.baseAddress), bytesPerRow: 2 * width,
                        size: PixelSize(width: width, height: height), block: (1, 1))
                }
                let planes = [try part(luma, 877, 4), try part(chroma, 439, 2), try part(chroma, 439, 2)]
                let frame = DeepFrame(planes: planes, matrix: .bt2020, isFullRange: false, depth: 10)
                return try #require(frame.shown(in: profile, CancellationToken()))
            }
        }
        let row = plane.storage.withUnsafeBytes { bytes in (0..<877).map { Int(bytes[3 * (877 * 2 + $0) + 1]) } }
        #expect(zip(row, row.dropFirst()).allSatisfy { (0...2).contains($1 - $0) })
        #expect(Set(row).count > 240, "8 bits give 150 levels")
    }

    @Test func damagedLightIsNoTrap() throws {
        let lights: [Float] = [.nan, .infinity, -.infinity, 1e38, -1e38, .leastNonzeroMagnitude, -0.0, 0x1p-140]
        var samples: [Float] = []
        for a in lights { for b in lights { samples += [a, b, 0.5] } }
        let file = Array("PF\n8 8\n-1.0\n".utf8) + RasterPicture.floats(samples, isBig: false)
        let image = try Self.decoder.decode(.bytes(file, name: "light.pfm"))
        #expect(image.size == PixelSize(8))
    }

    // MARK: The corpus

    @Test(
        .enabled(if: Corpus.isAvailable, "needs the shared corpus"),
        arguments: ["colors_hdr_p3.avif", "colors_hdr_rec2020.avif"])
    func scenesOfHighRangeLookLikeTheirStandardOnes(_ name: String) throws {
        func picture(_ name: String) throws -> PixelImage {
            try Self.decoder.decode(.file(try #require(Corpus.file("hdr/\(name)"))))
        }
        let (standard, high) = (try picture("colors_sdr_srgb.avif"), try picture(name))
        try #require(standard.size == high.size)
        #expect(Self.pixel(high, 100, 190).allSatisfy { $0 >= 253 })
        var sum = 0.0
        for y in 0..<high.height {
            for x in 0..<high.width {
                sum += ColorDifference.ciede2000(Self.pixel(high, x, y), Self.pixel(standard, x, y))
            }
        }
        #expect(sum / Double(high.size.pixelCount) < 3)
    }
}
