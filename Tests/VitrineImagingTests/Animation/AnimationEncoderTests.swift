import Testing
import VitrineCore
import VitrineImaging

struct AnimationEncoderTests {
    /// A square that moves over a gradient.
    private static func frame(_ index: Int, side: Int = 48, alpha: PixelImage.Alpha = .opaque) -> PixelImage {
        PixelImage(width: side, height: side, alpha: alpha) { pixels in
            for y in 0..<side {
                for x in 0..<side {
                    let isSquare = (6 * index..<6 * index + 12).contains(x) && (10..<22).contains(y)
                    let at = (y * side + x) * 4
                    pixels[at] = isSquare ? 230 : UInt8((40 + 2 * x) & 255)
                    pixels[at + 1] = isSquare ? 30 : UInt8((60 + 2 * y) & 255)
                    pixels[at + 2] = isSquare ? 40 : 120
                    pixels[at + 3] = alpha == .opaque || isSquare ? 255 : 128
                }
            }
        }
    }

    private static func meanDifference(_ one: PixelImage, _ other: PixelImage) -> Double {
        var sum = 0
        for y in 0..<one.height {
            for x in 0..<one.width {
                let (a, b) = (one[x, y], other[x, y])
                sum += abs(Int(a.red) - Int(b.red)) + abs(Int(a.green) - Int(b.green)) + abs(Int(a.blue) - Int(b.blue))
                sum += abs(Int(a.alpha) - Int(b.alpha))
            }
        }
        return Double(sum) / Double(4 * one.width * one.height)
    }

    private static func opened(_ bytes: [UInt8]) throws -> AnimatedImage {
        let decoder = ImageDecoder(
            limits: .standard, isolation: .inProcess, codecs: .standard, pool: WorkerFixture.pool(1))
        return try #require(
            try AnimatedImage(.bytes(bytes, name: "made"), at: .none, decoder: decoder))
    }

    @Test(arguments: [OutputFormat.webp(quality: 0.9), .avif(quality: 0.9)])
    func framesAreReadAsTheyWereWritten(_ format: OutputFormat) throws {
        for alpha in [PixelImage.Alpha.opaque, .straight] {
            let encoder = try AnimationEncoder(as: format, loopCount: 3, isOpaque: alpha == .opaque)
            for index in 0..<5 { try encoder.add(Self.frame(index, alpha: alpha), seconds: 0.1 + 0.05 * Double(index)) }
            let animation = try Self.opened(encoder.finish())
            #expect(animation.timing.frameCount == 5 && encoder.frameCount == 5)
            #expect(zip(animation.timing.durations, [0.1, 0.15, 0.2, 0.25, 0.3]).allSatisfy { abs($0 - $1) < 0.0015 })
            #expect(animation.info.hasAlpha == (alpha == .straight))
            if case .webp = format { #expect(animation.timing.loopCount == 3) }
            for index in 0..<5 {
                let image = try animation.decodeImage(at: index).converted(to: .straight)
                #expect(Self.meanDifference(image, Self.frame(index, alpha: alpha)) < 4, "frame \(index)")
            }
        }
    }

    @Test func equalFramesBecomeOne() throws {
        let encoder = try AnimationEncoder(as: .webp())
        for index in [0, 0, 0, 1, 1] { try encoder.add(Self.frame(index), seconds: 0.1) }
        let timing = try Self.opened(encoder.finish()).timing
        #expect(timing.durations == [0.3, 0.2] && timing.loopCount == 0)
    }

    @Test func framesStoreTheirChangeOnly() throws {
        let whole = try AnimationEncoder(as: .webp(quality: 0.8))
        let parts = try AnimationEncoder(as: .webp(quality: 0.8))
        for index in 0..<6 {
            try parts.add(Self.frame(index, side: 200), seconds: 0.1)
            // A change of two opposite corners makes the rectangle that of the picture.
            var changed = Self.frame(index, side: 200)
            changed.withUnsafeMutableBytes { pixels in
                pixels[0] = UInt8(index)
                pixels[4 * (200 * 200 - 1)] = UInt8(index)
            }
            try whole.add(changed, seconds: 0.1)
        }
        let (small, large) = (try parts.finish().count, try whole.finish().count)
        #expect(small < large * 2 / 3)
    }

    @Test func refusesWhatCannotBeWritten() throws {
        for format in [OutputFormat.gif, .png, .jpeg(), .jxl(), .automatic()] {
            #expect(throws: ImageError.self) { try AnimationEncoder(as: format) }
        }
        #expect(throws: ImageError.self) { try AnimationEncoder(as: .webp(quality: .nan)) }
        let empty = try AnimationEncoder(as: .webp())
        #expect(throws: ImageError.self) { try empty.finish() }
        let encoder = try AnimationEncoder(as: .webp())
        try encoder.add(Self.frame(0), seconds: 0.1)
        #expect(throws: ImageError.self) { try encoder.add(Self.frame(0, side: 20), seconds: 0.1) }
        _ = try encoder.finish()
        #expect(throws: ImageError.self) { try encoder.add(Self.frame(1), seconds: 0.1) }
        #expect(throws: ImageError.self) { try encoder.finish() }
        let wide = try AnimationEncoder(as: .webp())
        #expect(throws: ImageError.self) { try wide.add(PixelImage(size: PixelSize(width: 16_384, height: 1)), seconds: 1) }
    }

    @Test func translucentPixelsOfAnOpaqueAnimationGetAWhiteGround() throws {
        let encoder = try AnimationEncoder(as: .webp(quality: 1), isOpaque: true)
        try encoder.add(PixelImage(size: PixelSize(16)), seconds: 1)
        try encoder.add(PixelImage(size: PixelSize(16), color: .black), seconds: 1)
        let animation = try Self.opened(encoder.finish())
        let color = try animation.decodeImage(at: 0)[8, 8]
        #expect(color.red > 250 && color.green > 250 && color.alpha == 255)
    }
}
