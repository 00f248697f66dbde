import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// Formats of plain rows: each variety gives the pixels that were stored.
@Suite struct RasterDecoderTests {
    private let picture = RasterPicture()
    private let opaque = RasterPicture(hasAlpha: false)

    /// The upright picture as red, green, blue and straight alpha, with the orientation of the header applied.
    private func decode(_ file: [UInt8], _ format: ImageFormat, name: String = "test") throws -> [UInt8] {
        let info = try ImageInfo(of: .bytes(file, name: name))
        #expect(info.format == format)
        let source = ByteSource(bytes: file, name: name)
        let decoder = try #require(Codecs.standard.decoders(for: format).first)
        let decoded = try decoder.decode(source, DecodeRequest(info: info, target: nil))
        let plane = decoded.planes[0]
        #expect(plane.width == info.storedSize.width && plane.height == info.storedSize.height)
        let stored = plane.storage.withUnsafeBytes { Array($0) }
        let channels = plane.channels
        let rows = info.orientation == .downMirrored ? Array((0..<plane.height).reversed()) : Array(0..<plane.height)
        return rows.flatMap { y in
            (0..<plane.width).flatMap { x -> [UInt8] in
                let p = Array(stored[((y * plane.width + x) * channels)..<((y * plane.width + x + 1) * channels)])
                switch channels {
                case 1: return [p[0], p[0], p[0], 255]
                case 2: return [p[0], p[0], p[0], p[1]]
                case 3: return p + [255]
                default: return p
                }
            }
        }
    }

    private func isNear(_ a: [UInt8], _ b: [UInt8], _ tolerance: Int = 0) -> Bool {
        a.count == b.count && zip(a, b).allSatisfy { abs(Int($0) - Int($1)) <= tolerance }
    }

    // MARK: Netpbm

    @Test func everyNetpbmFormatGivesItsPixels() throws {
        let rgb = opaque.samples([0, 1, 2])
        let size = "\(opaque.width) \(opaque.height)"
        #expect(try decode(Array("P6 #a\n\(size)\n255\n".utf8) + rgb, .pnm) == opaque.pixels)
        let deep = RasterPicture.words(rgb)
        #expect(try decode(Array("P6\n\(size) 65535\n".utf8) + deep, .pnm) == opaque.pixels)
        let text = rgb.map(String.init).joined(separator: "\n")
        #expect(try decode(Array("P3\n\(size)\n# b\n255 \(text)".utf8), .pnm) == opaque.pixels)
        // Half the intensity: 0…127 stretched.
        let half = Array("P6\n\(size)\n127\n".utf8) + rgb.map { $0 / 2 }
        #expect(isNear(try decode(half, .pnm), opaque.pixels, 2))
        let gray = opaque.samples([1])
        let grays = RasterPicture.grays(gray)
        #expect(try decode(Array("P5\n\(size)\n255\n".utf8) + gray, .pnm) == grays)
        let grayText = gray.map(String.init).joined(separator: " ")
        #expect(try decode(Array("P2 \(size) 255 \(grayText)\n".utf8), .pnm) == grays)
        let bits = gray.map { $0 < 128 }  // black where true
        let expected = RasterPicture.grays(bits.map { $0 ? 0 : 255 })
        #expect(try decode(Array("P1\n\(size)\n\(bits.map { $0 ? "1" : "0" }.joined())".utf8), .pnm) == expected)
        var packed: [UInt8] = []
        for y in 0..<opaque.height {
            for start in stride(from: 0, to: opaque.width, by: 8) {
                var byte: UInt8 = 0
                for x in start..<(start + 8) {
                    let isSet = x < opaque.width && bits[y * opaque.width + x]
                    byte = byte << 1 | (isSet ? 1 : 0)
                }
                packed.append(byte)
            }
        }
        #expect(try decode(Array("P4\n\(size)\n".utf8) + packed, .pnm) == expected)
    }

    @Test func arbitraryMapsHaveAlpha() throws {
        func pam(_ depth: Int, _ type: String, _ data: [UInt8], maximum: Int = 255) -> [UInt8] {
            Array(
                """
                P7
                WIDTH \(picture.width)
                # a comment
                HEIGHT \(picture.height)
                DEPTH \(depth)
                MAXVAL \(maximum)
                TUPLTYPE \(type)
                ENDHDR

                """.utf8) + data
        }
        #expect(try decode(pam(4, "RGB_ALPHA", picture.pixels), .pnm) == picture.pixels)
        let two = picture.samples([0, 3])
        var expected: [UInt8] = []
        for i in stride(from: 0, to: two.count, by: 2) { expected += [two[i], two[i], two[i], two[i + 1]] }
        #expect(try decode(pam(2, "GRAYSCALE_ALPHA", two), .pnm) == expected)
        let wide = RasterPicture.words(picture.pixels)
        #expect(try decode(pam(4, "RGB_ALPHA", wide, maximum: 65_535), .pnm) == picture.pixels)
        #expect(try decode(pam(3, "RGB", opaque.samples([0, 1, 2])), .pnm) == opaque.pixels)
    }

    @Test func lightOfOneInFloatMapsIsWhite() throws {
        // Most pixels are middle grey, whatever the others are; one is two thousand times as bright, one is none.
        var lights = [Float](repeating: 0.18, count: 15)
        (lights[0], lights[1], lights[2], lights[3]) = (400, 0, .nan, 1)
        let data = RasterPicture.floats(lights, isBig: false)
        let pixels = try decode(Array("Pf\n5 3\n-1.0\n".utf8) + data, .pnm)
        // 0.18 encoded for sRGB is 117.6; the first row stored is the lowest.
        let bottom = Array(pixels[(2 * 20)...])
        #expect(bottom[0] == 255 && bottom[4] == 0 && bottom[8] == 0 && bottom[12] >= 253)
        #expect(pixels[0] == 118)
        let big = RasterPicture.floats(lights)
        #expect(try decode(Array("Pf\n5 3\n1\n".utf8) + big, .pnm) == pixels)
        let color = RasterPicture.floats([[Float]](repeating: [0.1, 0.2, 0.4], count: 15).flatMap { $0 })
        let first = try decode(Array("PF\n5 3\n1.0\n".utf8) + color, .pnm)
        #expect(Array(first[..<3]) == [89, 124, 170])
        // Brighter than white: the order of channels stays, and none is at an end but the brightest.
        let bright = RasterPicture.floats([[Float]](repeating: [0.5, 1, 2], count: 15).flatMap { $0 })
        let second = try decode(Array("PF\n5 3\n1.0\n".utf8) + bright, .pnm)
        #expect(second[0] > 100 && second[0] < second[1] && second[1] < 250 && second[2] >= 254)
    }

    // MARK: QOI, farbfeld

    @Test func quiteOKImagesOfEveryCode() throws {
        var file = Array("qoif".utf8) + RasterPicture.big32(5) + RasterPicture.big32(2) + [4, 0]
        file += [0xFE, 10, 20, 30]  // whole colour
        file.append(0x40 | 3 << 4 | 1 << 2 | 2)  // +1, −1, 0
        file += [0x80 | 40, 9 << 4 | 7]  // green +8, red +9, blue +7
        file.append(0xC0 | 1)  // twice more
        file += [0xFF, 1, 2, 3, 4]  // with alpha
        file.append(9)  // the first again: (10 · 3 + 20 · 5 + 30 · 7 + 255 · 11) mod 64
        file += [0xC0 | 2, 0, 0, 0, 0, 0, 0, 0, 1]
        let a: [UInt8] = [10, 20, 30, 255], b: [UInt8] = [11, 19, 30, 255], c: [UInt8] = [20, 27, 37, 255]
        let pixels: [[UInt8]] = [a, b, c, c, c, [1, 2, 3, 4], a, a, a, a]
        #expect(try decode(file, .qoi) == pixels.flatMap { $0 })
    }

    @Test func farbfeldHasSixteenBits() throws {
        let file =
            Array("farbfeld".utf8) + RasterPicture.big32(picture.width) + RasterPicture.big32(picture.height)
            + RasterPicture.words(picture.pixels)
        #expect(try decode(file, .farbfeld) == picture.pixels)
    }

    // MARK: TGA

    @Test func targaImagesOfEveryKindAndOrigin() throws {
        let bgra = picture.samples([2, 1, 0, 3]), bgr = opaque.samples([2, 1, 0])
        #expect(try decode(picture.tga(type: 2, depth: 32, descriptor: 0x28, data: bgra), .tga) == picture.pixels)
        #expect(try decode(opaque.tga(type: 2, depth: 24, descriptor: 0x20, data: bgr), .tga) == opaque.pixels)
        let lower = opaque.flipped.samples([2, 1, 0])
        #expect(try decode(opaque.tga(type: 2, depth: 24, descriptor: 0, data: lower), .tga) == opaque.pixels)
        // A run of 3 and the rest in literal packets, across the ends of rows.
        let flat = RasterPicture(width: 10, height: 3, hasAlpha: false)
        var pixels = flat.pixels
        for i in 8..<11 { pixels.replaceSubrange((4 * i)..<(4 * i + 4), with: [9, 8, 7, 255]) }
        func literal(_ range: Range<Int>) -> [UInt8] {
            range.reduce(into: [UInt8(range.count - 1)]) { $0 += pixels[(4 * $1)...].prefix(3).reversed() }
        }
        let packed = literal(0..<8) + [0x82, 7, 8, 9] + literal(11..<30)
        #expect(try decode(flat.tga(type: 10, depth: 24, descriptor: 0x20, data: packed), .tga) == pixels)
        let gray = opaque.samples([0])
        let grays = RasterPicture.grays(gray)
        #expect(try decode(opaque.tga(type: 3, depth: 8, descriptor: 0x20, data: gray), .tga) == grays)
        var words: [UInt8] = []
        for i in stride(from: 0, to: opaque.pixels.count, by: 4) {
            let parts = (0..<3).map { Int(opaque.pixels[i + $0]) / 8 }
            words += RasterPicture.little16(parts[0] * 1_024 + parts[1] * 32 + parts[2])
        }
        let five = opaque.tga(type: 2, depth: 16, descriptor: 0x20, data: words)
        #expect(isNear(try decode(five, .tga), opaque.pixels, 8))
        let map: [UInt8] = [1, 2, 3, 4, 5, 6]
        let indices = (0..<(opaque.width * opaque.height)).map { UInt8($0 % 2) }
        let mapped = opaque.tga(type: 1, depth: 8, descriptor: 0x20, map: map, mapDepth: 24, data: indices)
        var shown: [UInt8] = []
        for index in indices { shown += index == 0 ? [3, 2, 1, 255] : [6, 5, 4, 255] }
        #expect(try decode(mapped, .tga) == shown)
        // Mirrored: the header says so, and the picture is upright all the same.
        let mirrored = opaque.tga(type: 2, depth: 24, descriptor: 0x30, data: bgr)
        #expect(try ImageInfo(of: .bytes(mirrored)).orientation == .upMirrored)
    }

    @Test func targaIsKnownByItsFooterOrItsExtension() throws {
        let data = opaque.samples([2, 1, 0])
        let bare = opaque.tga(type: 2, depth: 24, descriptor: 0x20, data: data, footer: false)
        #expect(throws: ImageError.notAnImage(input: "test")) { try ImageInfo(of: .bytes(bare, name: "test")) }
        #expect(try decode(bare, .tga, name: "/a/b.TGA") == opaque.pixels)
        let noise = [UInt8](repeating: 0x20, count: 500)
        #expect(throws: ImageError.notAnImage(input: "x.tga")) { try ImageInfo(of: .bytes(noise, name: "x.tga")) }
    }

    // MARK: PCX, DDS

    @Test func pcxImagesOfEveryKind() throws {
        let (width, height) = (opaque.width, opaque.height)
        let line = 24
        /// Rows of planes of bytes, each filled up.
        func rows(_ planes: Int, _ sample: (Int, Int, Int) -> UInt8) -> [UInt8] {
            var data: [UInt8] = []
            for y in 0..<height {
                for plane in 0..<planes {
                    for x in 0..<width { data.append(sample(x, y, plane)) }
                    data += [UInt8](repeating: 0, count: line - width)
                }
            }
            return data
        }
        let colors = rows(3) { x, y, c in opaque.pixels[4 * (y * width + x) + c] }
        for isPacked in [true, false] {
            let file = opaque.pcx(bits: 8, planes: 3, line: line, data: colors, isPacked: isPacked)
            #expect(try decode(file, .pcx) == opaque.pixels)
        }
        let palette = (0..<768).map { UInt8(($0 * 37) % 256) }
        let indexed = rows(1) { x, y, _ in UInt8(x * y % 256) }
        func colored(_ palette: [UInt8], _ index: (Int, Int) -> Int) -> [UInt8] {
            var pixels: [UInt8] = []
            for i in 0..<(width * height) {
                let at = 3 * index(i % width, i / width)
                pixels += [palette[at], palette[at + 1], palette[at + 2], 255]
            }
            return pixels
        }
        let expected = colored(palette) { x, y in x * y % 256 }
        let paletted = opaque.pcx(bits: 8, planes: 1, line: line, data: indexed, palette: palette)
        #expect(try decode(paletted, .pcx) == expected)
        // Sixteen colours, four planes of bits.
        let sixteen = Array(palette.prefix(48))
        var planar: [UInt8] = []
        for y in 0..<height {
            for plane in 0..<4 {
                for byte in 0..<4 {
                    var bits = 0
                    for x in (8 * byte)..<(8 * byte + 8) { bits = bits * 2 + (((x + y) % 16) >> plane) % 2 }
                    planar.append(UInt8(bits))
                }
            }
        }
        let file = opaque.pcx(bits: 1, planes: 4, line: 4, data: planar, palette: sixteen)
        #expect(try decode(file, .pcx) == colored(sixteen) { x, y in (x + y) % 16 })
    }

    @Test func directDrawSurfaces() throws {
        let size = RasterPicture(width: 6, height: 5)
        let masks = [0xFF_0000, 0xFF00, 0xFF, 0xFF00_0000]
        let plain = size.dds(flags: 0x41, code: "", bits: 32, masks: masks, data: size.samples([2, 1, 0, 3]))
        #expect(try decode(plain, .dds) == size.pixels)
        let gray = size.dds(flags: 0x2_0000, code: "", bits: 8, masks: [255, 0, 0, 0], data: size.samples([0]))
        #expect(try decode(gray, .dds) == RasterPicture.grays(size.samples([0])))
        // Some writers put the mask into the highest byte of four, where an 8-bit pixel has none.
        let high = size.dds(
            flags: 0x2_0000, code: "", bits: 8, masks: [Int](repeating: 0xFF00_0000, count: 4), data: size.samples([0]))
        #expect(try decode(high, .dds) == RasterPicture.grays(size.samples([0])))
        // Alpha that no pixel has is none, and without a mask of its own grey is what alpha leaves.
        let opaque = size.dds(
            flags: 0x2_0001, code: "", bits: 8, masks: [0, 0, 0, 0xFF00_0000], data: size.samples([0]))
        #expect(try decode(opaque, .dds) == RasterPicture.grays(size.samples([0])))
        let both = size.dds(
            flags: 0x2_0001, code: "", bits: 16, masks: [0, 0, 0, 0xFF00], data: size.samples([0, 3]))
        let grays = (0..<30).flatMap { i in [0, 0, 0, 3].map { size.pixels[4 * i + $0] } }
        #expect(try decode(both, .dds) == grays)
        // Red and blue, and two thirds of each between them; every row the same four codes.
        let colors: [UInt8] = [0x00, 0xF8, 0x1F, 0x00] + [UInt8](repeating: 0b1110_0100, count: 4)
        let row: [[UInt8]] = [[255, 0, 0, 255], [0, 0, 255, 255], [170, 0, 85, 255], [85, 0, 170, 255]]
        func fourTimes(_ block: [UInt8]) -> [UInt8] { block + block + block + block }
        let blocks = fourTimes(colors)
        var expected: [UInt8] = []
        for i in 0..<30 { expected += row[i % 6 % 4] }
        #expect(try decode(size.dds(flags: 4, code: "DXT1", bits: 0, data: blocks), .dds) == expected)
        // Swapped ends: the third is the mean, the fourth transparent.
        let swapped: [UInt8] = [0x1F, 0x00, 0x00, 0xF8] + [UInt8](repeating: 0b1110_0100, count: 4)
        let other = try decode(
            size.dds(
                flags: 4, code: "DX10", bits: 0, data: fourTimes(swapped),
                dxgi: 71), .dds)
        #expect(Array(other[8..<16]) == [127, 0, 127, 255, 0, 0, 0, 0])
        let levels: [UInt8] = [200, 60, 0b1000_1000, 0b1100_0110, 0b1111_1010, 0, 0, 0]
        let interpolated = size.dds(
            flags: 4, code: "DXT5", bits: 0, data: fourTimes(levels + colors))
        let first = try decode(interpolated, .dds)
        // Codes 0, 1, 2, 3 of the first row: the ends, then sevenths between them.
        #expect([3, 7, 11, 15].map { first[$0] } == [200, 60, 180, 160])
        let explicit: [UInt8] = [0x10, 0xF2, 0, 0, 0, 0, 0, 0]
        let third = try decode(
            size.dds(
                flags: 4, code: "DXT3", bits: 0,
                data: fourTimes(explicit + colors)), .dds)
        #expect([3, 7, 11, 15].map { third[$0] } == [0, 17, 34, 255])
        let single = try decode(
            size.dds(
                flags: 4, code: "ATI1", bits: 0, data: fourTimes(levels)), .dds)
        #expect([0, 4, 8, 12].map { single[$0] } == [200, 60, 180, 160])
        #expect(throws: ImageError.self) {
            try decode(
                size.dds(
                    flags: 4, code: "DX10", bits: 0, data: [UInt8](repeating: 0, count: 240), dxgi: 10), .dds)
        }
    }

    // MARK: ICNS

    @Test func appleIconsOfPlanesAndMasks() throws {
        let icon = RasterPicture(width: 16, height: 16)
        func entry(_ type: String, _ data: [UInt8]) -> [UInt8] {
            Array(type.utf8) + RasterPicture.big32(data.count + 8) + data
        }
        func coded(_ channel: Int) -> [UInt8] {
            let plain = icon.samples([channel])
            return [127] + plain[..<128] + [127] + plain[128...]
        }
        func file(_ entries: [UInt8]) -> [UInt8] {
            Array("icns".utf8) + RasterPicture.big32(entries.count + 8) + entries
        }
        let masked = file(entry("is32", coded(0) + coded(1) + coded(2)) + entry("s8mk", icon.samples([3])))
        #expect(try decode(masked, .icns) == icon.pixels)
        let argb = file(entry("ic04", Array("ARGB".utf8) + coded(3) + coded(0) + coded(1) + coded(2)))
        #expect(try decode(argb, .icns) == icon.pixels)
        // A run of 130 and one of 126.
        let flat = file(entry("is32", [0xFF, 0, 0xFB, 0, 0xFF, 1, 0xFB, 1, 0xFF, 2, 0xFB, 2]))
        let flatPixels = [[UInt8]](repeating: [0, 1, 2, 255], count: 256).flatMap { $0 }
        #expect(try decode(flat, .icns) == flatPixels)
        #expect(throws: ImageError.self) { try ImageInfo(of: .bytes(file(entry("TOC ", [1, 2, 3])))) }
    }

    @Test func aSmallIconComesFromASmallEntry() throws {
        let path = Samples.path("leaf.icns")
        let info = try ImageInfo(of: .file(path))
        #expect(info.storedSize == PixelSize(64) && info.frameCount == 2)
        let decoder = try #require(Codecs.standard.decoders(for: .icns).first)
        let small = try decoder.decode(ByteSource(.file(path)), DecodeRequest(info: info, target: PixelSize(30)))
        #expect(small.planes[0].width == 32)
        let page = try decoder.decode(
            ByteSource(.file(path)), DecodeRequest(info: info, target: nil, options: DecodeOptions(page: 1)))
        #expect(page.planes[0].width == 32)
        #expect(throws: ImageError.self) {
            try decoder.decode(
                ByteSource(.file(path)), DecodeRequest(info: info, target: nil, options: DecodeOptions(page: 2)))
        }
    }

    // MARK: Radiance

    @Test func radianceRowsOfEveryCoding() throws {
        // Light of a quarter in half of the pixels, a half in others.
        let one: [UInt8] = [128, 128, 128, 127], two: [UInt8] = [128, 128, 128, 128]
        let head = Array("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n".utf8)
        let lines = [[UInt8]](repeating: one, count: 9) + [[UInt8]](repeating: two, count: 9)
        let plain = head + Array("-Y 2 +X 9\n".utf8) + lines.flatMap { $0 }
        let expected = try decode(plain, .hdr)
        #expect(Set(expected).count == 3)
        #expect(expected[0] == 137 && expected[4 * 9] == 188)
        let runs: [[UInt8]] = [one, [1, 1, 1, 8], two, [1, 1, 1, 3], two, [1, 1, 1, 4]]
        let old = head + Array("-Y 2 +X 9\n".utf8) + runs.flatMap { $0 }
        #expect(try decode(old, .hdr) == expected)
        func row(_ pixel: [UInt8]) -> [UInt8] {
            var bytes: [UInt8] = [2, 2, 0, 9]
            for value in pixel { bytes += [128 + 5, value, 4, value, value, value, value] }
            return bytes
        }
        #expect(try decode(head + Array("-Y 2 +X 9\n".utf8) + row(one) + row(two), .hdr) == expected)
        #expect(throws: ImageError.self) {
            try decode(head + Array("-Y 1 +X 9\n".utf8) + [2, 2, 0, 9, 128 + 10, 1] + row(one), .hdr)
        }
    }

    @Test func radianceLinesSayWhichWayUp() throws {
        let expected: [(String, Orientation)] = [
            ("-Y 2 +X 3", .up), ("-Y 2 -X 3", .upMirrored), ("+Y 2 -X 3", .down), ("+Y 2 +X 3", .downMirrored),
            ("+X 2 -Y 3", .leftMirrored), ("-X 2 -Y 3", .right), ("-X 2 +Y 3", .rightMirrored), ("+X 2 +Y 3", .left),
        ]
        // The pixel that is brightest is the last one stored. Where it belongs follows from the axes.
        let dim = [[UInt8]](repeating: [128, 128, 128, 129], count: 5).flatMap { $0 }
        let pixels = dim + [255, 255, 255, 140]
        for (line, orientation) in expected {
            let file = Array("#?RADIANCE\n\n\(line)\n".utf8) + pixels
            let info = try ImageInfo(of: .bytes(file))
            #expect(info.orientation == orientation, "\(line)")
            let image = try ImageDecoder(isolation: .inProcess).decode(.bytes(file))
            let words = line.split(separator: " ")
            func place(_ axis: Character) -> Int {
                let word = words.first { $0.last == axis } ?? ""
                let count = Int(words[(words.firstIndex(of: word) ?? 0) + 1]) ?? 0
                // X grows to the right, Y upwards.
                return (word.first == "+") == (axis == "X") ? count - 1 : 0
            }
            #expect(image[place("X"), place("Y")].red == 255, "\(line)")
        }
    }

    // MARK: FITS

    @Test func astronomicalImagesAreStretched() throws {
        func fits(_ cards: [String], _ data: [UInt8]) -> [UInt8] {
            func padded(_ text: String, _ count: Int) -> String {
                text + String(repeating: " ", count: count - text.utf8.count)
            }
            return Array(padded((cards + ["END"]).map { padded($0, 80) }.joined(), 2_880).utf8) + data
                + [UInt8](repeating: 0, count: 2_880 - data.count)
        }
        let values = [-100, 0, 100, 300]
        let cards = [
            "SIMPLE  =                    T", "BITPIX  = 16 / bits", "NAXIS   = 2", "NAXIS1  = 2", "NAXIS2  = 2",
        ]
        let words = [UInt8](values.map { RasterPicture.big16($0 & 0xFFFF) }.joined())
        let gray = try decode(fits(cards, words), .fits)
        // From −100 to 100 (the percentiles of four values are the first and the third), the first row lowest.
        #expect([0, 4, 8].map { gray[$0] } == [255, 255, 0] && (127...128).contains(gray[12]))
        let floats = RasterPicture.floats(values.map { Float($0) })
        let cards32 = cards.map { $0.replacingOccurrences(of: "BITPIX  = 16", with: "BITPIX  = -32") }
        #expect(try decode(fits(cards32, floats), .fits) == gray)
        let inverted = try decode(fits(cards + ["BSCALE  = -1.0", "BZERO   = 5"], words), .fits)
        #expect(inverted[4] < inverted[0])
        #expect(throws: ImageError.self) {
            try decode(fits(["SIMPLE  =                    T", "BITPIX  = 8", "NAXIS   = 0"], []), .fits)
        }
    }

    // MARK: All of them

    private static let samples = [
        "lake.psd", "lake.ppm", "lake.qoi", "lake.hdr", "lake.exr", "lake.fits", "lake.pcx", "leaf.tga", "leaf.dds",
        "leaf.ff", "leaf.icns",
    ]

    @Test(arguments: samples) func reductionsAreBlockMeans(_ name: String) throws {
        let source = try ByteSource(.file(Samples.path(name)))
        let info = try ImageInfo(reading: source)
        let decoder = try #require(Codecs.standard.decoders(for: info.format).first)
        let whole = try decoder.decode(source, DecodeRequest(info: info, target: nil))
        let size = PixelSize(width: info.storedSize.width / 7, height: info.storedSize.height / 7)
        let reduced = try decoder.decode(source, DecodeRequest(info: info, target: size))
        guard info.format != .icns else { return }  // it has a smaller image
        let plane = whole.planes[0]
        let bytes = plane.storage.withUnsafeBytes { Array($0) }
        let channels = plane.channels
        let hasAlpha = whole.alpha != .none
        let result = reduced.planes[0].storage.withUnsafeBytes { Array($0) }
        #expect(reduced.samplesAreMeans && reduced.planes[0].extentWidth == Double(plane.width) / 3)
        #expect(!hasAlpha || reduced.alpha == .premultiplied)
        for (x, y) in [(0, 0), (3, 5), (reduced.planes[0].width - 1, reduced.planes[0].height - 1)] {
            for c in 0..<channels {
                var (sum, count) = (0.0, 0.0)
                for py in (3 * y)..<min(3 * y + 3, plane.height) {
                    for px in (3 * x)..<min(3 * x + 3, plane.width) {
                        let at = (py * plane.width + px) * channels
                        let isColor = whole.alpha == .straight && c < channels - 1
                        sum += Double(bytes[at + c]) * (isColor ? Double(bytes[at + channels - 1]) / 255 : 1)
                        count += 1
                    }
                }
                let value = Double(result[(y * reduced.planes[0].width + x) * channels + c])
                #expect(abs(value - sum / count) <= 1.01, "\(name) \(x) \(y) \(c)")
            }
        }
    }

    @Test(arguments: samples) func limitsAndCancellationHold(_ name: String) throws {
        let source = try ByteSource(.file(Samples.path(name)))
        let info = try ImageInfo(reading: source)
        let decoder = try #require(Codecs.standard.decoders(for: info.format).first)
        var limits = ImageLimits.standard
        limits.maximumPixels = 100
        limits.maximumWholeImagePixels = 100
        #expect {
            try decoder.decode(source, DecodeRequest(info: info, target: nil, limits: limits))
        } throws: { error in
            if case .limitExceeded(_, .pixels, let actual, 100) = error as? ImageError { return actual >= 1_024 }
            return false
        }
        let token = CancellationToken()
        token.cancel()
        #expect(throws: ImageError.cancelled(input: source.name)) {
            try decoder.decode(source, DecodeRequest(info: info, target: nil, cancellation: token))
        }
        #expect(throws: ImageError.self) {
            try decoder.decode(ByteSource(bytes: [1, 2, 3], name: "short"), DecodeRequest(info: info, target: nil))
        }
    }

    @Test(arguments: samples) func filesCutOffKeepTheRowsTheyHave(_ name: String) throws {
        guard name != "leaf.icns" else { return }  // its large entry is a PNG
        let bytes = try Samples.bytes(name)
        let info = try ImageInfo(of: .file(Samples.path(name)))
        let decoder = try #require(Codecs.standard.decoders(for: info.format).first)
        let whole = try decoder.decode(ByteSource(bytes: bytes, name: name), DecodeRequest(info: info, target: nil))
        let cut = ByteSource(bytes: Array(bytes[..<(bytes.count * 2 / 3)]), name: name)
        #expect(throws: ImageError.truncated(input: name)) {
            try decoder.decode(cut, DecodeRequest(info: info, target: nil))
        }
        guard !["lake.psd", "lake.hdr", "lake.exr", "lake.fits", "lake.pcx"].contains(name) else {
            // Planes, palettes and exposures depend on what is missing: that there is a picture has to do.
            if let part = try? decoder.decode(
                cut, DecodeRequest(info: info, target: nil, options: DecodeOptions(allowsPartial: true)))
            {
                #expect(part.isPartial)
            }
            return
        }
        let part = try decoder.decode(
            cut, DecodeRequest(info: info, target: nil, options: DecodeOptions(allowsPartial: true)))
        #expect(part.isPartial)
        let (a, b) = (whole.planes[0], part.planes[0])
        let half = a.width * a.channels * (a.height / 3)
        func start(_ plane: PixelPlane) -> [UInt8] { plane.storage.withUnsafeBytes { Array($0.prefix(half)) } }
        #expect(start(a) == start(b))
    }

    @Test(arguments: samples) func mutatedFilesNeverTrap(_ name: String) throws {
        var noise = Noise(5)
        let bytes = try Samples.bytes(name)
        var limits = ImageLimits.standard
        limits.maximumPixels = 200_000
        var decoded = 0
        for i in 0..<300 {
            let file = noise.mutate(bytes)
            let source = ByteSource(bytes: file, name: name)
            guard let info = try? ImageInfo(reading: source), info.format.rawValue != "png" else { continue }
            let target = i % 2 == 0 ? nil : PixelSize(width: 1 + noise.next(below: 12), height: 5)
            let request = DecodeRequest(
                info: info, target: target, options: DecodeOptions(allowsPartial: i % 3 != 0), limits: limits)
            for decoder in Codecs.standard.decoders(for: info.format) {
                if (try? decoder.decode(source, request)) != nil { decoded += 1 }
            }
        }
        #expect(decoded > 10)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func hostileFilesEndInAnErrorOrAPicture() throws {
        let decoder = ImageDecoder(isolation: .inProcess)
        for path in Corpus.files(in: "hostile/pillow") + Corpus.files(in: "anything/hostile") {
            _ = try? decoder.decode(.file(path), at: .fit(64), options: DecodeOptions(allowsPartial: true))
        }
        for name in ["exr-datawindow.exr", "hdr-resolution.hdr", "pam-bomb.pam", "qoi-4Gpx.qoi"] {
            guard let path = Corpus.files(in: "anything/hostile").first(where: { $0.hasSuffix(name) }) else { continue }
            #expect(throws: ImageError.self, "\(name)") { try decoder.decode(.file(path)) }
        }
    }
}
