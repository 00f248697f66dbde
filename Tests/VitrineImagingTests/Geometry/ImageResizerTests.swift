import Testing
import VitrineImaging

struct ImageResizerTests {
    private func size(_ width: Int, _ height: Int) -> PixelSize { PixelSize(width: width, height: height) }

    @Test func examplesOfTheAncestorHold() throws {
        #expect(try ImageResizer.fill(width: 10, height: 10).outputSize(for: size(10, 1)).height == 10)
        #expect(try ImageResizer.fit(20).outputSize(for: size(10, 1)).height == 2)
        #expect(try ImageResizer.stretch(width: 30, height: 5).outputSize(for: size(1, 1)) == size(30, 5))
        #expect(try ImageResizer.fill(width: 30, height: 5).outputSize(for: size(1, 1)) == size(30, 30))
        #expect(try ImageResizer.fit(width: 30, height: 5).outputSize(for: size(1, 1)) == size(5, 5))
        #expect(try ImageResizer.none.outputSize(for: size(3, 4)) == size(3, 4))
    }

    @Test func sidesAreRoundedUpExactly() throws {
        #expect(try ImageResizer.fit(200).outputSize(for: size(6_000, 4_000)) == size(200, 134))
        #expect(try ImageResizer.fit(200).outputSize(for: size(4_000, 6_000)) == size(134, 200))
        #expect(try ImageResizer.fit(300).outputSize(for: size(900, 300)) == size(300, 100))
        #expect(try ImageResizer.fit(100).outputSize(for: size(65_535, 1)) == size(100, 1))
        #expect(try ImageResizer.fill(width: 100, height: 100).outputSize(for: size(301, 200)) == size(151, 100))
        for w in 1...40 {
            for h in 1...40 {
                let fit = try ImageResizer.fit(width: 17, height: 23).outputSize(for: size(w, h))
                #expect(fit.width <= 17 && fit.height <= 23 && (fit.width == 17 || fit.height == 23))
                let fill = try ImageResizer.fill(width: 17, height: 23).outputSize(for: size(w, h))
                #expect(fill.width >= 17 && fill.height >= 23 && (fill.width == 17 || fill.height == 23))
            }
        }
    }

    @Test func withoutUpscalingTheOriginalComesBack() throws {
        var resizer = ImageResizer.stretch(width: 20, height: 5)
        resizer.allowsUpscaling = false
        #expect(try resizer.outputSize(for: size(10, 10)) == size(10, 10))
        let image = PixelImage(size: size(10, 10), color: .white)
        #expect(try resizer.resize(image).storage === image.storage)
        resizer.size = size(10, 5)
        #expect(try resizer.resize(image).size == size(10, 5))
        var crop = ImageResizer.crop(width: 20, height: 5)
        crop.allowsUpscaling = false
        #expect(try crop.resize(image).storage === image.storage)
    }

    @Test func nothingToDoReturnsTheSameMemory() throws {
        let image = PixelImage(size: size(30, 20), color: PixelColor(red: 1, green: 2, blue: 3, alpha: 4))
        for resizer in [
            ImageResizer.none, .fit(width: 30, height: 20), .fit(width: 30, height: 99), .fill(width: 30, height: 3),
            .stretch(width: 30, height: 20), .crop(width: 30, height: 20), .limit(width: 0, height: 0),
            .limit(width: 30, height: 0),
        ] {
            #expect(try resizer.resize(image).storage === image.storage)
        }
    }

    @Test func limitOnlyShrinks() throws {
        #expect(try ImageResizer.limit(width: 100, height: 0).outputSize(for: size(400, 200)) == size(100, 50))
        #expect(try ImageResizer.limit(width: 0, height: 100).outputSize(for: size(400, 200)) == size(200, 100))
        #expect(try ImageResizer.limit(width: 100, height: 10).outputSize(for: size(400, 200)) == size(20, 10))
        #expect(try ImageResizer.limit(width: 1_000, height: 0).outputSize(for: size(400, 200)) == size(400, 200))
        #expect(try ImageResizer.limit(width: 0, height: 0).outputSize(for: size(400, 200)) == size(400, 200))
    }

    @Test func impossibleRequestsAreTypedErrors() {
        let source = size(10, 10)
        for resizer in [
            ImageResizer.fit(0), .fit(-3), .crop(width: 4, height: 0), .limit(width: -1, height: 0),
            .stretch(width: 0, height: 4),
        ] {
            #expect {
                try resizer.outputSize(for: source)
            } throws: { error in
                if case ImageError.invalidRequest = error { true } else { false }
            }
        }
        for resizer in [ImageResizer.fit(8_193), .stretch(width: .max, height: 1), .fill(width: 8_000, height: 8_000)] {
            #expect {
                try resizer.outputSize(for: size(20, 10))
            } throws: { error in
                if case ImageError.limitExceeded(_, .outputSide, _, 8_192) = error { true } else { false }
            }
        }
        #expect(throws: ImageError.self) { try ImageResizer.fit(5).outputSize(for: .zero) }
    }

    @Test func cropCutsWhereGravitySays() throws {
        // A ramp: red tells the column, green the row.
        let image = PixelImage(width: 100, height: 50, alpha: .opaque) { pixels in
            for i in 0..<5_000 {
                pixels[4 * i] = UInt8(i % 100)
                pixels[4 * i + 1] = UInt8(i / 100)
                pixels[4 * i + 2] = 0
                pixels[4 * i + 3] = 255
            }
        }
        for (gravity, x) in [
            (Gravity.left, 0), (.center, 25), (.right, 50), (.topRight, 50), (.focal(x: 0.4, y: 0), 15),
            (.focal(x: .nan, y: 9), 25),
        ] {
            let cut = try ImageResizer.crop(width: 50, height: 50, gravity: gravity).resize(image)
            #expect(cut.size == PixelSize(50) && cut[0, 0].red == UInt8(x) && cut[49, 49].red == UInt8(x + 49))
        }
        let small = try ImageResizer.crop(width: 10, height: 10, gravity: .bottomRight).resize(image)
        #expect(small.size == PixelSize(10) && small[9, 9].red > 95 && small[0, 0].red < 54)
        #expect(try ImageResizer.crop(width: 10, height: 10).targetSize(for: image.size) == size(20, 10))
        let tall = try ImageResizer.crop(width: 100, height: 10, gravity: .bottom).resize(image)
        #expect(tall[0, 0].green == 40)
    }

    @Test func attentionFindsTheSubject() throws {
        // Grey, with a checkered skin-coloured patch right of the middle.
        let image = PixelImage(width: 400, height: 200, alpha: .opaque) { pixels in
            for y in 0..<200 {
                for x in 0..<400 {
                    let inside = (280..<340).contains(x) && (60..<140).contains(y) && (x / 8 + y / 8) % 2 == 0
                    let color: [UInt8] = inside ? [220, 160, 130, 255] : [90, 90, 90, 255]
                    for c in 0..<4 { pixels[(y * 400 + x) * 4 + c] = color[c] }
                }
            }
        }
        let cut = try ImageResizer.crop(width: 100, height: 100, gravity: .attention).resize(image)
        var patch = 0
        for y in 0..<100 { for x in 0..<100 where cut[x, y].red > 180 { patch += 1 } }
        #expect(patch > 500)
        #expect(try ImageResizer.crop(width: 100, height: 100, gravity: .attention).resize(image) == cut)
        let middle = try ImageResizer.crop(width: 50, height: 50, gravity: .attention)
            .resize(PixelImage(size: size(100, 50), color: .white))
        #expect(middle == PixelImage(size: PixelSize(50), color: .white))
    }

    @Test func scalingWithAlphaHasNoFringe() throws {
        let image = PixelImage(width: 40, height: 40, alpha: .straight) { pixels in
            for i in 0..<1_600 {
                let visible = i % 40 < 20
                for (c, v) in (visible ? [0, 0, 0, 255] : [255, 255, 255, 0] as [UInt8]).enumerated() {
                    pixels[4 * i + c] = v
                }
            }
        }
        let small = try ImageResizer.fit(13).resize(image)
        #expect(small.alpha == .premultiplied)
        for x in 0..<13 { #expect(small[x, 6].red == 0) }
        #expect(small[0, 6].alpha == 255 && small[12, 6].alpha == 0)
    }
}
