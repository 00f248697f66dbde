import Testing
import VitrineImaging

struct ProcessorTests {
    private let red = PixelColor(red: 255, green: 0, blue: 0)
    private let numbers = TestImages.gray([[1, 2, 3], [4, 5, 6]])

    @Test func cropsTheRectangleThatIsInside() throws {
        let inside = try numbers.processed(by: [.crop(x: 1, y: 0, width: 2, height: 1)])
        #expect(TestImages.reds(inside) == [[2, 3]])
        let overlapping = try numbers.processed(by: [.crop(x: -1, y: 1, width: 3, height: .max)])
        #expect(TestImages.reds(overlapping) == [[4, 5]])
    }

    @Test(arguments: [(3, 0, 1, 1), (0, 0, 0, 1), (-5, 0, 5, 1), (0, .max, .max, .max), (.min, 0, 4, 4)])
    func refusesToCropNothing(x: Int, y: Int, width: Int, height: Int) {
        #expect(throws: ImageError.self) {
            try numbers.processed(by: [.crop(x: x, y: y, width: width, height: height)])
        }
    }

    @Test func readsRowsWithPadding() throws {
        let padded = TestImages.padded(TestImages.slopes(width: 9, height: 7, alpha: true), by: 12)
        let packed = TestImages.slopes(width: 9, height: 7, alpha: true)
        let processors: [ImageProcessor] = [
            .crop(x: 1, y: 1, width: 5, height: 5), .flip(.vertical), .rotate(degrees: 90), .rotate(degrees: 33),
            .grayscale, .blur(radius: 2), .sharpen(), .tint(.black, opacity: 0.5), .background(.white), .circle(),
            .roundCorners(3, border: ImageBorder(color: .black)), .pixelate(block: 2), .trim(),
            .watermark(packed, opacity: 0.5),
        ]
        for processor in processors {
            #expect(try processor.process(padded) == processor.process(packed), "\(processor)")
        }
    }

    @Test func flips() throws {
        #expect(TestImages.reds(try numbers.processed(by: [.flip(.horizontal)])) == [[3, 2, 1], [6, 5, 4]])
        #expect(TestImages.reds(try numbers.processed(by: [.flip(.vertical)])) == [[4, 5, 6], [1, 2, 3]])
    }

    @Test func turnsByRightAnglesWithoutLoss() throws {
        #expect(TestImages.reds(try numbers.processed(by: [.rotate(degrees: 90)])) == [[4, 1], [5, 2], [6, 3]])
        #expect(TestImages.reds(try numbers.processed(by: [.rotate(degrees: -180)])) == [[6, 5, 4], [3, 2, 1]])
        #expect(TestImages.reds(try numbers.processed(by: [.rotate(degrees: 630)])) == [[3, 6], [2, 5], [1, 4]])
        #expect(try numbers.processed(by: [.rotate(degrees: 720)]) == numbers)
    }

    @Test func turnsByAnyAngleIntoAGrowingCanvas() throws {
        let square = PixelImage(size: PixelSize(100), color: red)
        let turned = try square.processed(by: [.rotate(degrees: 45, background: .white)])
        #expect(turned.size == PixelSize(142))
        #expect(turned.alpha == .opaque)
        #expect(turned[0, 0] == .white)
        #expect(turned[71, 71] == red)
        #expect(turned[71, 2] == red)
        #expect(turned[20, 20] == .white)
        // The area of a picture does not change when it is turned.
        let clear = try square.processed(by: [.rotate(degrees: 30)])
        let area = TestImages.alphas(clear).joined().reduce(0) { $0 + Int($1) } / 255
        #expect(abs(area - 10_000) < 60)
    }

    @Test func turnsClockwiseAlsoByOddAngles() throws {
        var image = PixelImage(size: PixelSize(41), color: .black)
        image.withUnsafeMutableBytes { bytes in
            for y in 0..<5 { for x in 18..<23 { bytes[(y * 41 + x) * 4] = 255 } }
        }
        // The mark at the top must move to the right.
        let turned = try image.processed(by: [.rotate(degrees: 89.999)])
        #expect(turned[turned.width - 4, turned.height / 2].red == 255)
    }

    @Test func refusesResultsBeyondTheOutputSide() {
        let wide = PixelImage(size: PixelSize(width: 8_192, height: 1_200), color: red)
        let tooWide = ImageError.limitExceeded(
            input: "rotated image", limit: .outputSide, actual: 8_266, allowed: 8_192)
        #expect(throws: tooWide) {
            try wide.processed(by: [.rotate(degrees: 5)])
        }
    }

    @Test func graysByLuma() throws {
        let image = TestImages.image([
            [red, PixelColor(red: 0, green: 255, blue: 0), PixelColor(red: 0, green: 0, blue: 255), .white]
        ])
        #expect(TestImages.reds(try image.processed(by: [.grayscale])) == [[54, 182, 18, 255]])
    }

    @Test func tintsAsStencilAndByMultiplying() throws {
        let image = TestImages.image([[PixelColor(white: 100, alpha: 128), .clear]], alpha: .straight)
        let stencil = try image.processed(by: [.tint(red)])
        #expect(stencil.alpha == .premultiplied)
        #expect(stencil[0, 0] == PixelColor(red: 255, green: 0, blue: 0, alpha: 128))
        #expect(stencil[1, 0].alpha == 0)
        let gray = TestImages.gray([[255, 100]])
        let tinted = try gray.processed(by: [.tint(PixelColor(red: 255, green: 128, blue: 0), mode: .multiply)])
        #expect(tinted[0, 0] == PixelColor(red: 255, green: 128, blue: 0))
        #expect(tinted[1, 0] == PixelColor(red: 100, green: 50, blue: 0))
        let half = try gray.processed(by: [.tint(.black, opacity: 0.5)])
        #expect(TestImages.reds(half) == [[127, 50]])
    }

    @Test func putsColorBehind() throws {
        let image = TestImages.image([[PixelColor(red: 255, green: 0, blue: 0, alpha: 128), .clear]], alpha: .straight)
        let opaque = try image.processed(by: [.background(.white)])
        #expect(opaque.alpha == .opaque)
        #expect(opaque[0, 0] == PixelColor(red: 255, green: 127, blue: 127))
        #expect(opaque[1, 0] == .white)
        #expect(try image.processed(by: [.background(PixelColor(white: 0, alpha: 51))])[1, 0].alpha == 51)
        #expect(image.flattened(over: .clear)[1, 0] == .black)
        #expect(numbers.flattened(over: .white) == numbers)
    }

    @Test func pixelatesWithMeans() throws {
        let image = TestImages.gray([[0, 10, 50], [20, 30, 70]])
        #expect(TestImages.reds(try image.processed(by: [.pixelate(block: 2)])) == [[15, 15, 60], [15, 15, 60]])
        let faint = TestImages.image([[.white, .clear]], alpha: .straight)
        #expect(try faint.processed(by: [.pixelate(block: 2)])[1, 0] == PixelColor(white: 255, alpha: 128))
    }

    @Test func cutsAPartOutWhereTheGravitySays() throws {
        let image = TestImages.gray([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
        func part(_ width: Int, _ height: Int, _ gravity: Gravity) throws -> [[UInt8]] {
            TestImages.reds(try image.processed(by: [.crop(width: width, height: height, gravity: gravity)]))
        }
        #expect(try part(2, 1, .center) == [[6, 7]])
        #expect(try part(2, 2, .bottomRight) == [[7, 8], [11, 12]])
        #expect(try part(1, 9, .left) == [[1], [5], [9]])
        #expect(try part(2, 1, .focal(x: 1, y: 0)) == [[3, 4]])
        #expect(try image.processed(by: [.crop(width: 9, height: 9, gravity: .attention)]) == image)
        // The only detail of a plain picture is in the part that attention keeps.
        var plain = PixelImage(size: PixelSize(width: 400, height: 300), color: PixelColor(white: 40))
        plain.withUnsafeMutableBytes { bytes in
            for y in 200..<240 { for x in 300..<340 where (x + y) % 2 == 0 { bytes[y * 1600 + x * 4] = 255 } }
        }
        let kept = try plain.processed(by: [.crop(width: 60, height: 60, gravity: .attention)])
        #expect(kept.size == PixelSize(60))
        #expect(TestImages.reds(kept).joined().count { $0 == 255 } == 800)
    }

    @Test func trimsEdgesOfOneColor() throws {
        let image = TestImages.gray([[9, 9, 9, 9], [9, 9, 50, 9], [9, 11, 9, 9], [9, 9, 9, 9]])
        #expect(TestImages.reds(try image.processed(by: [.trim()])) == [[9, 50], [11, 9]])
        #expect(TestImages.reds(try image.processed(by: [.trim(tolerance: 2)])) == [[50]])
        #expect(try image.processed(by: [.trim(tolerance: 255)]) == image)
    }

    @Test func drawsHairlineBorderInside() throws {
        let image = try PixelImage(size: PixelSize(4), color: .white).processed(by: [.border(color: .black)])
        #expect(image.alpha == .opaque)
        #expect(TestImages.reds(image) == [[0, 0, 0, 0], [0, 255, 255, 0], [0, 255, 255, 0], [0, 0, 0, 0]])
        let broad = try PixelImage(size: PixelSize(5), color: .white).processed(by: [.border(width: 1.5, color: .black)])
        // A half covered ring; its corners are covered by three quarters.
        #expect(TestImages.reds(broad)[1] == [0, 64, 127, 64, 0])
        #expect(TestImages.reds(broad)[2] == [0, 127, 255, 127, 0])
        let full = try PixelImage(size: PixelSize(3), color: .white).processed(by: [.border(width: 9, color: .black)])
        #expect(TestImages.reds(full).joined().allSatisfy { $0 == 0 })
    }

    @Test func blursConstantsToThemselves() throws {
        for radius in [0.3, 1, 7.7, 500] {
            let image = PixelImage(size: PixelSize(width: 13, height: 9), color: PixelColor(red: 255, green: 3, blue: 128))
            #expect(try image.processed(by: [.blur(radius: radius)]) == image)
        }
    }

    @Test(arguments: [0.5, 1, 2.5, 6]) func blursLikeAGaussian(sigma: Double) throws {
        // A white line: every pixel of the result is one integral of the kernel.
        let side = 81
        var row = [UInt8](repeating: 0, count: side)
        row[40] = 255
        let line = TestImages.gray([[UInt8]](repeating: row, count: 5))
        let blurred = TestImages.reds(try line.processed(by: [.blur(radius: sigma)]))[2].map(Double.init)
        #expect(blurred == blurred.reversed())
        // Rounding hides the tails of broad kernels, hence the tolerance.
        let weight = blurred.reduce(0, +)
        let squares = zip(-40...40, blurred).map { Double($0 * $0) * $1 }
        let variance = squares.reduce(0, +) / weight
        #expect(abs(variance.squareRoot() - sigma) < 0.08 * sigma + 0.02)
        #expect(abs(weight - 255) < 12)
    }

    @Test func blurDoesNotLetInvisibleColorsOut() throws {
        let image = TestImages.image([[.white, PixelColor(red: 255, green: 0, blue: 0, alpha: 0)]], alpha: .straight)
        let blurred = try image.processed(by: [.blur(radius: 2)])
        #expect(blurred.alpha == .premultiplied)
        #expect(blurred[1, 0].red == 255 && blurred[1, 0].green == 255)
    }

    @Test func sharpensEdgesAndLeavesFlatParts() throws {
        let image = TestImages.gray([[UInt8]](repeating: [50, 50, 50, 50, 50, 150, 150, 150, 150, 150], count: 3))
        let sharp = TestImages.reds(try image.processed(by: [.sharpen(amount: 1, radius: 1)]))[1]
        #expect(sharp[0] == 50 && sharp[9] == 150)
        #expect(sharp[4] < 45 && sharp[5] > 155)
        #expect(try image.processed(by: [.sharpen(amount: 0)]) == image)
    }

    @Test func drawsWatermarkInPlace() throws {
        let base = PixelImage(size: PixelSize(4), color: .black)
        let mark = TestImages.gray([[100, 200]])
        #expect(TestImages.reds(try base.processed(by: [.watermark(mark)]))[3] == [0, 0, 100, 200])
        let middle = ImageProcessor.watermark(mark, at: .center, opacity: 0.5)
        #expect(TestImages.reds(try base.processed(by: [middle]))[1] == [0, 50, 100, 0])
        let scaled = ImageProcessor.watermark(mark, at: .top, scale: 1)
        #expect(TestImages.reds(try base.processed(by: [scaled]))[0] == [100, 125, 175, 200])
        let tiled = ImageProcessor.watermark(mark, at: .topLeft, margin: 1, isTiled: true)
        let rows: [[UInt8]] = [[0, 0, 0, 0], [0, 100, 200, 0], [0, 0, 0, 0], [0, 100, 200, 0]]
        #expect(TestImages.reds(try base.processed(by: [tiled])) == rows)
        let dense = ImageProcessor.watermark(mark, at: .center, isTiled: true)
        #expect(TestImages.reds(try base.processed(by: [dense])).allSatisfy { $0 == [200, 100, 200, 100] })
        let larger = ImageProcessor.watermark(PixelImage(size: PixelSize(9), color: .white), at: .center)
        #expect(try base.processed(by: [larger]) == PixelImage(size: PixelSize(4), color: .white))
        let focal = ImageProcessor.watermark(mark, at: .focal(x: 1, y: 0), margin: 1)
        #expect(TestImages.reds(try base.processed(by: [focal]))[1] == [0, 100, 200, 0])
        let odd = ImageProcessor.watermark(PixelImage(size: PixelSize(1), color: .white), at: .center, margin: 3)
        #expect(TestImages.reds(try base.processed(by: [odd]))[1] == [0, 255, 0, 0])
    }

    @Test(arguments: [
        ImageProcessor.blur(radius: .nan), .blur(radius: -1), .blur(radius: .infinity), .sharpen(amount: .nan),
        .sharpen(radius: 1e9), .roundCorners(-1), .roundCorners(.nan),
        .roundCorners(1, border: .init(width: .nan, color: .black)),
        .border(width: -3, color: .black), .rotate(degrees: .nan), .rotate(degrees: .infinity), .pixelate(block: 0),
        .pixelate(block: .min), .trim(tolerance: -1), .crop(width: 0, height: 5, gravity: .center),
        .tint(.black, opacity: 2), .tint(.black, opacity: .nan),
        .watermark(PixelImage(size: PixelSize(1)), scale: .nan),
        .watermark(PixelImage(size: PixelSize(1)), opacity: -1),
        .watermark(PixelImage(size: PixelSize(1)), margin: .max),
        .watermark(PixelImage(size: PixelSize(1)), scale: 0), .watermark(PixelImage(size: PixelSize(1)), at: .attention),
    ])
    func refusesParametersOutOfRange(processor: ImageProcessor) {
        let error = #expect(throws: ImageError.self) { try processor.process(numbers) }
        guard case .invalidRequest = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
