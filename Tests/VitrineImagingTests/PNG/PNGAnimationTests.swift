import Testing
import VitrineImaging

@Suite struct PNGAnimationTests {
    /// A 2x1 animation whose second frame blends one pixel over the first.
    private func blended(over under: [UInt8], _ pixel: [UInt8]) -> [UInt8] {
        func control(_ sequence: Int, _ width: Int, blend: UInt8) -> [UInt8] {
            PNGSupport.chunk(
                "fcTL",
                [sequence, width, 1, 0, 0].flatMap { PNGSupport.big($0) } + [0, 1, 0, 10, 0, blend])
        }
        return PNGSupport.signature + PNGSupport.header(2, 1, type: 6)
            + PNGSupport.chunk("acTL", PNGSupport.big(2) + PNGSupport.big(0)) + control(0, 2, blend: 0)
            + PNGSupport.chunk("IDAT", PNGSupport.stored([0] + under + [1, 2, 3, 255])) + control(1, 1, blend: 1)
            + PNGSupport.chunk("fdAT", PNGSupport.big(2) + PNGSupport.stored([0] + pixel))
            + PNGSupport.chunk("IEND", [])
    }

    @Test func blendsStraightAlpha() throws {
        let half = try PNGSupport.decode(blended(over: [0, 0, 0, 255], [255, 100, 0, 128]), page: 1)
        #expect(PNGSupport.samples(half) == [128, 50, 0, 255, 1, 2, 3, 255])
        let onClear = try PNGSupport.decode(blended(over: [9, 9, 9, 0], [255, 100, 0, 128]), page: 1)
        #expect(PNGSupport.samples(onClear) == [255, 100, 0, 128, 1, 2, 3, 255])
        let both = try PNGSupport.decode(blended(over: [200, 0, 0, 128], [0, 0, 100, 128]), page: 1)
        // a = 128 + 128 · 127 / 255 = 191.75; red = 200 · 63.75 / 191.75, blue = 100 · 128 / 191.75
        #expect(PNGSupport.samples(both).prefix(4) == [66, 0, 67, 192])
    }

    @Test func refusesFramesThatAreNotThere() throws {
        let file = try Fixture.bytes("PNG/animation.png")
        #expect(throws: ImageError.invalidRequest(reason: "page 7 does not exist")) {
            try PNGSupport.decode(file, page: 7)
        }
        var limits = ImageLimits()
        limits.maximumFrames = 3
        #expect(throws: ImageError.limitExceeded(input: "test", limit: .frames, actual: 4, allowed: 3)) {
            try PNGSupport.decode(file, page: 3, limits: limits)
        }
    }

    @Test func reducesComposedFrames() throws {
        let file = try Fixture.bytes("PNG/animation.png")
        let size = PixelSize(width: 16, height: 12)
        let image = try PNGSupport.decode(file, size: size, target: PixelSize(width: 4, height: 3), page: 2)
        #expect(image.alpha == .premultiplied && image.planes[0].width == 8 && image.planes[0].height == 6)
        let pixel = PNGSupport.samples(image)[((2 * 8 + 2) * 4)..<((2 * 8 + 2) * 4 + 4)]
        #expect(Array(pixel) == [1, 200, 3, 255])
    }

    @Test func hidesADefaultImageThatIsNoFrame() throws {
        let image = try PNGSupport.decode(Fixture.bytes("PNG/animation-hidden-default.png"))
        #expect(PNGSupport.samples(image).prefix(4) != [9, 8, 7, 255])
    }
}
