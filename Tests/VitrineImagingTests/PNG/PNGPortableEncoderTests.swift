import TestSupport
import Testing
import VitrineImaging
import VitrinePNG

@Suite struct PNGPortableEncoderTests {
    @Test func givesBackEveryPixel() throws {
        var random = SeededGenerator(8)
        for (alpha, colors, type) in [
            (PixelImage.Alpha.opaque, 3, UInt8(2)), (.straight, 4, 6), (.opaque, 1, 0), (.straight, 2, 4), (.straight, 9, 3),
        ] {
            let pixels = (0..<(41 * 27)).flatMap { i -> [UInt8] in
                let v = UInt8(truncatingIfNeeded: i / 2 + Int(random.next() % 9))
                let a = UInt8(truncatingIfNeeded: random.next() % 200)
                return switch colors {
                case 1: [v, v, v, 255]
                case 2: [v, v, v, a]
                case 3: [v, v / 2, UInt8(truncatingIfNeeded: i), 255]
                case 4: [v, v / 2, UInt8(truncatingIfNeeded: i), a]
                default: [v % 9, 1, 2, 99]
                }
            }
            let image = PixelImage(width: 41, height: 27, alpha: alpha) { $0.copyBytes(from: pixels) }
            let file = try PNGEncoder().encode(image, quality: 1, options: EncodeOptions())
            #expect(file[25] == type)
            let channels = [0: [0], 2: [0, 1, 2], 4: [0, 3]][type] ?? [0, 1, 2, 3]
            let expected = stride(from: 0, to: pixels.count, by: 4).flatMap { i in channels.map { pixels[i + $0] } }
            #expect(PNGSupport.samples(try PNGSupport.decode(file)) == expected)
        }
    }

    @Test func writesMetadataOnlyWhenAsked() throws {
        let picture = PixelImage(size: PixelSize(1), color: .black)
        let metadata = ImageMetadata(exif: [73, 73, 42, 0, 8, 0, 0, 0], xmp: Array("<x:xmpmeta/>".utf8))
        let with = String(
            decoding: try PNGEncoder().encode(picture, quality: 1, options: EncodeOptions(metadata: metadata)),
            as: Unicode.ASCII.self)
        #expect(with.contains("sRGB") && with.contains("eXIf") && with.contains("XML:com.adobe.xmp"))
        let without = String(
            decoding: try PNGEncoder().encode(picture, quality: 1, options: EncodeOptions()), as: Unicode.ASCII.self)
        #expect(without.contains("sRGB") && !without.contains("eXIf") && !without.contains("iTXt"))
    }
}
