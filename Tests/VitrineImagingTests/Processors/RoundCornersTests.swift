import Testing
import VitrineCompatibility
import VitrineImaging

struct RoundCornersTests {
    /// How much of a pixel lies in a rounded rectangle, by counting 64 × 64 points of it.
    private func counted(_ x: Int, _ y: Int, width: Double, height: Double, radius: Double) -> Double {
        var inside = 0
        for j in 0..<64 {
            for i in 0..<64 {
                let px = Double(x) + (Double(i) + 0.5) / 64, py = Double(y) + (Double(j) + 0.5) / 64
                let dx = max(0, radius - px, px - (width - radius)), dy = max(0, radius - py, py - (height - radius))
                if dx * dx + dy * dy <= radius * radius { inside += 1 }
            }
        }
        return Double(inside) / 4_096
    }

    @Test(arguments: [0.5, 1, 2.3, 4, 7.9, 8])
    func coverageIsTheAreaInside(radius: Double) throws {
        let image = PixelImage(size: PixelSize(width: 17, height: 16), color: .white)
        let alphas = TestImages.alphas(try image.processed(by: [.roundCorners(radius)]))
        for y in 0..<16 {
            for x in 0..<17 {
                let area = counted(x, y, width: 17, height: 16, radius: radius) * 255
                #expect(abs(Double(alphas[y][x]) - area) <= 1, "(\(x), \(y)) radius \(radius)")
            }
        }
    }

    @Test func circleIsCutFromTheMiddle() throws {
        let image = TestImages.image((0..<64).map { _ in (0..<100).map { PixelColor(white: UInt8($0)) } })
        let circle = try image.processed(by: [.circle()])
        #expect(circle.size == PixelSize(64))
        #expect(circle[32, 32] == PixelColor(white: 50))
        #expect(circle[0, 0].alpha == 0 && circle[32, 0].alpha > 250)
        let area = Double(TestImages.alphas(circle).joined().reduce(0) { $0 + Int($1) }) / 255
        #expect(abs(area - Double.pi * 32 * 32) < 2)
    }

    @Test func everyCornerHasItsRadius() throws {
        let image = PixelImage(size: PixelSize(20), color: .white)
        let alphas = TestImages.alphas(
            try image.processed(by: [.roundCorners(topLeft: 8, bottomRight: 4)]))
        #expect(alphas[0][0] == 0 && alphas[0][19] == 255 && alphas[19][0] == 255 && alphas[19][19] < 100)
        #expect(alphas[0][8] == 255 && alphas[0][6] < 255)
    }

    @Test func radiiThatDoNotFitShrink() throws {
        let image = PixelImage(size: PixelSize(width: 30, height: 10), color: .white)
        let pill = try image.processed(by: [.roundCorners(5)])
        #expect(try image.processed(by: [.roundCorners(60_000)]) == pill)
    }

    @Test func borderFollowsTheArc() throws {
        let red = PixelColor(red: 255, green: 0, blue: 0)
        let image = try PixelImage(size: PixelSize(40), color: .white).processed(by: [
            .roundCorners(20, border: ImageBorder(width: 3, color: red)), .background(.black),
        ])
        #expect(image[20, 1] == red)
        #expect(image[20, 4] == .white)
        // On the diagonal, 18.5 of 20 pixels from the centre.
        #expect(image[6, 6] == red)
        #expect(image[9, 9] == .white)
        #expect(image[0, 0] == .black)
    }

    @Test func translucentBorderKeepsTheOutline() throws {
        let image = PixelImage(size: PixelSize(16), color: .white)
        let plain = TestImages.alphas(try image.processed(by: [.roundCorners(8)]))
        let border = ImageBorder(width: 2.5, color: PixelColor(white: 0, alpha: 90))
        let lined = TestImages.alphas(try image.processed(by: [.roundCorners(8, border: border)]))
        for (a, b) in zip(plain.joined(), lined.joined()) { #expect(abs(Int(a) - Int(b)) <= 1) }
    }

    @Test func resultIsProperlyPremultiplied() throws {
        let image = TestImages.slopes(width: 31, height: 23, alpha: true)
        let border = ImageBorder(width: 1.3, color: PixelColor(red: 250, green: 10, blue: 90, alpha: 200))
        for processor: ImageProcessor in [
            .roundCorners(9.3, border: border), .blur(radius: 3), .rotate(degrees: 17), .tint(.white, opacity: 0.4),
            .sharpen(amount: 4), .background(PixelColor(white: 90, alpha: 80)), .pixelate(block: 4),
        ] {
            let result = try processor.process(image)
            #expect(result.alpha == .premultiplied)
            result.withUnsafeBytes { bytes in
                for i in stride(from: 0, to: bytes.count, by: 4) {
                    let a = bytes[i + 3]
                    #expect(bytes[i] <= a && bytes[i + 1] <= a && bytes[i + 2] <= a, "\(processor)")
                }
            }
        }
    }

    @Test func tileStretchesWithoutItsCorners() throws {
        let border = ImageBorder(color: PixelColor(white: 180))
        let tile = try StretchableImage(radius: 6, color: PixelColor(white: 230), border: border)
        #expect(tile.image.size == PixelSize(13))
        #expect(tile.capInset == 6)
        let size = PixelSize(width: 50, height: 31)
        let direct = try PixelImage(size: size, color: PixelColor(white: 230)).processed(by: [.roundCorners(6, border: border)])
        #expect(try tile.stretched(to: size) == direct)
        #expect(throws: ImageError.self) { try tile.stretched(to: PixelSize(11)) }
        let opaque = try StretchableImage(radius: 6, color: .white, background: .black)
        #expect(opaque.image.alpha == .opaque && opaque.image[0, 0] == .black)
        #expect(throws: ImageError.self) { try StretchableImage(radius: .nan, color: .white) }
        #expect(throws: ImageError.self) { try StretchableImage(size: PixelSize(3), radius: 6, color: .white) }
        #expect(throws: ImageError.self) { try StretchableImage(size: PixelSize(-3), radius: 0, color: .white) }
    }
}
