#if SystemCodecs
import TestSupport
import Testing
import VitrineImaging
import VitrinePNG

@Suite struct PNGEncoderTests {
    private func image(_ width: Int, _ height: Int, _ alpha: PixelImage.Alpha, _ pixels: [UInt8]) -> PixelImage {
        PixelImage(width: width, height: height, alpha: alpha) { $0.copyBytes(from: pixels) }
    }

    private func encode(_ image: PixelImage, _ options: EncodeOptions = EncodeOptions()) throws -> [UInt8] {
        try LibPNGEncoder().encode(image, quality: 1, options: options)
    }

    private func noise(_ count: Int, alpha: UInt8?) -> [UInt8] {
        var random = SeededGenerator(5)
        return (0..<count).flatMap { _ in random.bytes(3) + [alpha ?? UInt8(truncatingIfNeeded: random.next())] }
    }

    @Test func givesBackEveryPixel() throws {
        for progressive in [false, true] {
            let options = EncodeOptions(isProgressive: progressive)
            let opaque = noise(37 * 21, alpha: 255)
            let file = try encode(image(37, 21, .opaque, opaque), options)
            #expect(file[25] == 2 && file[28] == (progressive ? 1 : 0))
            let rgb = opaque.indices.filter { $0 % 4 != 3 }.map { opaque[$0] }
            #expect(PNGSupport.samples(try PNGSupport.decode(file)) == rgb)

            let clear = noise(37 * 21, alpha: nil)
            let alphaFile = try encode(image(37, 21, .straight, clear), options)
            #expect(alphaFile[25] == 6)
            #expect(PNGSupport.samples(try PNGSupport.decode(alphaFile)) == clear)
        }
    }

    /// Patterns need the search for repeated bytes and no filter, photos a filter.
    @Test func compressesPatternsAndPhotosEachInTheirWay() throws {
        let side = 256, raw = 3 * side * side
        let tile = noise(16 * 16, alpha: 255)
        let pattern = (0..<side * side).flatMap { i -> ArraySlice<UInt8> in
            let place = ((i / side) % 16 * 16 + i % 16) * 4
            return tile[place..<place + 4]
        }
        let patternFile = try encode(image(side, side, .opaque, pattern))
        #expect(patternFile.count < raw / 20, "\(patternFile.count)")
        #expect(PNGSupport.samples(try PNGSupport.decode(patternFile)).count == raw)

        var random = SeededGenerator(6)
        let photo = (0..<side * side).flatMap { i -> [UInt8] in
            let (x, y) = (i % side, i / side)
            return [x / 2 + y / 3, x / 3 + y / 2, (x + y) / 4].map {
                UInt8($0 + Int.random(in: 0..<4, using: &random))
            } + [255]
        }
        let photoFile = try encode(image(side, side, .opaque, photo))
        #expect(photoFile.count < raw * 2 / 5, "\(photoFile.count)")
        let samples = photo.indices.filter { $0 % 4 != 3 }.map { photo[$0] }
        #expect(PNGSupport.samples(try PNGSupport.decode(photoFile)) == samples)
    }

    @Test func writesStraightAlphaFromPremultiplied() throws {
        let file = try encode(image(3, 1, .premultiplied, [100, 50, 0, 128, 0, 0, 0, 0, 7, 8, 9, 255]))
        #expect(PNGSupport.samples(try PNGSupport.decode(file)) == [199, 100, 0, 128, 0, 0, 0, 0, 7, 8, 9, 255])
    }

    @Test func writesGreyWhereAllIsGrey() throws {
        let file = try encode(image(2, 1, .opaque, [9, 9, 9, 0, 200, 200, 200, 0]))
        #expect(file[25] == 0)
        #expect(PNGSupport.samples(try PNGSupport.decode(file)) == [9, 200])
        let alpha = try encode(image(2, 1, .straight, [9, 9, 9, 1, 200, 200, 200, 255]))
        #expect(alpha[25] == 4)
        #expect(PNGSupport.samples(try PNGSupport.decode(alpha)) == [9, 1, 200, 255])
    }

    @Test(arguments: [2, 4, 16, 17, 256, 257])
    func writesAPaletteForFewColours(count: Int) throws {
        let pixels = (0..<600).flatMap { i -> [UInt8] in
            let c = i % count
            return [UInt8(c & 255), UInt8(c >> 8), 77, c % 5 == 0 ? 100 : 255]
        }
        let file = try encode(image(30, 20, .straight, pixels))
        #expect(file[25] == (count <= 256 ? 3 : 6))
        #expect(file[24] == (count <= 2 ? 1 : count <= 4 ? 2 : count <= 16 ? 4 : 8))
        #expect(PNGSupport.samples(try PNGSupport.decode(file)) == pixels)
    }

    @Test func writesMetadataOnlyWhenAsked() throws {
        let picture = image(1, 1, .opaque, [1, 2, 3, 255])
        let exif: [UInt8] = Array("II*\0".utf8) + [8, 0, 0, 0, 0, 0]
        let metadata = ImageMetadata(exif: exif, xmp: Array("<x:xmpmeta/>".utf8))
        let file = try encode(picture, EncodeOptions(metadata: metadata))
        let with = String(decoding: file, as: Unicode.ASCII.self)
        #expect(with.contains("sRGB") && with.contains("eXIf") && with.contains("<x:xmpmeta/>"))
        #expect(PNGSupport.samples(try PNGSupport.decode(file)) == [1, 2, 3])
        let without = String(decoding: try encode(picture), as: Unicode.ASCII.self)
        #expect(without.contains("sRGB") && !without.contains("eXIf") && !without.contains("iTXt"))
    }
}
#endif
