import Testing
import VitrineImaging

struct ImageConversionTests {
    /// Upright pictures of this 3 by 2 picture, row by row: a b c / d e f.
    @Test(arguments: [
        (Orientation.up, "abc/def"), (.upMirrored, "cba/fed"), (.down, "fed/cba"), (.downMirrored, "def/abc"),
        (.leftMirrored, "ad/be/cf"), (.right, "da/eb/fc"), (.rightMirrored, "fc/eb/da"), (.left, "cf/be/ad"),
    ])
    func everyOrientationIsTurnedUpright(orientation: Orientation, expected: String) {
        let image = PixelImage(width: 3, height: 2, alpha: .opaque) { pixels in
            for (i, letter) in "abcdef".utf8.enumerated() {
                for c in 0..<4 { pixels[4 * i + c] = c == 3 ? 255 : letter }
            }
        }
        let turned = image.oriented(orientation)
        let rows = (0..<turned.height).map { y in
            String(decoding: (0..<turned.width).map { turned[$0, y].red }, as: UTF8.self)
        }
        #expect(rows.joined(separator: "/") == expected)
    }

    @Test func turningLargePicturesCrossesTiles() {
        let image = PixelImage(width: 50, height: 37, alpha: .opaque) { pixels in
            for i in 0..<(50 * 37) {
                pixels[4 * i] = UInt8(i % 50)
                pixels[4 * i + 1] = UInt8(i / 50)
                pixels[4 * i + 2] = 0
                pixels[4 * i + 3] = 255
            }
        }
        let turned = image.oriented(.right)
        for y in 0..<50 {
            for x in 0..<37 { #expect(turned[x, y] == PixelColor(red: UInt8(y), green: UInt8(36 - x), blue: 0)) }
        }
        #expect(turned.oriented(.left) == image)
        #expect(image.oriented(.up).storage === image.storage)
    }

    @Test func alphaConversionsRoundToNearest() throws {
        let straight = try PixelImage(
            width: 2, height: 1, layout: .rgba8, alpha: .straight, bytes: [200, 100, 3, 128, 9, 9, 9, 0])
        let multiplied = straight.converted(to: .premultiplied)
        multiplied.withUnsafeBytes { #expect(Array($0) == [100, 50, 2, 128, 0, 0, 0, 0]) }
        let back = multiplied.converted(to: .straight)
        back.withUnsafeBytes { #expect(Array($0) == [199, 100, 4, 128, 0, 0, 0, 0]) }
        straight.converted(to: .opaque).withUnsafeBytes { #expect(Array($0) == [200, 100, 3, 255, 9, 9, 9, 255]) }
        #expect(straight.converted(to: .straight).storage === straight.storage)
    }

    @Test(arguments: [
        (PixelLayout.gray8, [7], PixelColor(white: 7)), (.grayAlpha8, [7, 80], PixelColor(white: 7, alpha: 80)),
        (.rgb8, [1, 2, 3], PixelColor(red: 1, green: 2, blue: 3)),
        (.rgba8, [1, 2, 3, 4], PixelColor(red: 1, green: 2, blue: 3, alpha: 4)),
        (.argb8, [4, 1, 2, 3], PixelColor(red: 1, green: 2, blue: 3, alpha: 4)),
        (.bgra8, [3, 2, 1, 4], PixelColor(red: 1, green: 2, blue: 3, alpha: 4)),
        (.rgbx8, [1, 2, 3, 99], PixelColor(red: 1, green: 2, blue: 3)),
        (.xrgb8, [99, 1, 2, 3], PixelColor(red: 1, green: 2, blue: 3)),
        (.rgba16LittleEndian, [0, 1, 0xFF, 0xFF, 0x80, 0, 0x81, 0], PixelColor(red: 1, green: 255, blue: 0, alpha: 1)),
        (.rgba16BigEndian, [1, 0, 0xFF, 0xFF, 0, 0x80, 0, 0x81], PixelColor(red: 1, green: 255, blue: 0, alpha: 1)),
    ] as [(PixelLayout, [UInt8], PixelColor)])
    func everyLayoutIsNormalised(layout: PixelLayout, pixel: [UInt8], color: PixelColor) throws {
        let row = pixel + pixel + [0xAA, 0xAA]
        let image = try PixelImage(
            width: 2, height: 2, bytesPerRow: row.count, layout: layout, alpha: .straight, bytes: row + row)
        #expect(image[0, 0] == color && image[1, 1] == color)
        #expect(image.hasAlpha == layout.hasAlpha)
    }

    @Test func sizesThatDoNotFitAreErrors() {
        func make(_ width: Int, _ height: Int, _ row: Int?, _ count: Int) throws {
            _ = try PixelImage(
                width: width, height: height, bytesPerRow: row, layout: .rgb8, alpha: .opaque,
                bytes: [UInt8](repeating: 0, count: count))
        }
        #expect(throws: Never.self) { try make(2, 2, 8, 14) }
        for (width, height, row, count) in [
            (2, 2, 8, 13), (0, 2, nil, 10), (2, -1, nil, 10), (2, 2, 5, 100), (.max, .max, nil, 10), (1, .max, nil, 10),
            (1, 1_000, .max, 10),
        ] as [(Int, Int, Int?, Int)] {
            #expect(throws: ImageError.self) { try make(width, height, row, count) }
        }
    }
}
