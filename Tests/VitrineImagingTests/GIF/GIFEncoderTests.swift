import Testing
import VitrineImaging
import VitrineRaster

struct GIFEncoderTests {
    private func decode(_ bytes: [UInt8], page: Int = 0) throws -> [UInt8] {
        let source = ByteSource(bytes: bytes, name: "encoded")
        let info = try ImageInfo(reading: source)
        return GIFSamples.rgba(
            try GIFDecoder().decode(source, DecodeRequest(info: info, target: nil, options: DecodeOptions(page: page))))
    }

    private func image(
        _ width: Int, _ height: Int, alpha: PixelImage.Alpha = .opaque, _ pixel: (Int, Int) -> [UInt8]
    ) -> PixelImage {
        PixelImage(width: width, height: height, alpha: alpha) { bytes in
            for y in 0..<height {
                for x in 0..<width { for (c, v) in pixel(x, y).enumerated() { bytes[(y * width + x) * 4 + c] = v } }
            }
        }
    }

    private func bytes(_ image: PixelImage) -> [UInt8] { image.withUnsafeBytes { Array($0) } }

    @Test func keepsFewColoursExactly() throws {
        // 255 colours and transparency, on enough noise to fill the code table many times.
        var state: UInt32 = 1
        let picture = image(211, 173, alpha: .straight) { _, _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            let n = UInt8(state >> 24)
            return n == 0 ? [0, 0, 0, 0] : [n, n ^ 0x55, 255 - n, 255]
        }
        let encoded = try GIFEncoder().encode(picture, quality: 1, options: EncodeOptions())
        #expect(try decode(encoded) == bytes(picture))
    }

    @Test(arguments: [1, 2, 3, 5, 17])
    func keepsPicturesOfEveryFewColours(_ colors: Int) throws {
        let picture = image(63, 9) { x, y in [UInt8((x * y) % colors), 7, 9, 255] }
        #expect(try decode(GIFEncoder().encode(picture, quality: 1, options: EncodeOptions())) == bytes(picture))
    }

    @Test(arguments: [true, false])
    func quantizesPhotographicColoursClosely(_ dithered: Bool) throws {
        let picture = image(160, 120) { x, y in
            [UInt8(x * 255 / 159), UInt8(y * 255 / 119), UInt8((x + y) * 255 / 278), 255]
        }
        let result = try decode(GIFEncoder(isDithered: dithered).encode(picture, quality: 1, options: EncodeOptions()))
        let original = bytes(picture)
        let squares = zip(result, original).reduce(0.0) {
            $0 + Double((Int($1.0) - Int($1.1)) * (Int($1.0) - Int($1.1)))
        }
        // Measured: 5.7 dithered, 4.5 plain.
        #expect((squares / Double(original.count * 3 / 4)).squareRoot() < 9)
        // Dithering keeps the means of neighbourhoods, which plain mapping does not promise.
        if dithered {
            for channel in 0..<3 {
                var sum = 0
                for at in stride(from: channel, to: result.count, by: 4) { sum += Int(result[at]) - Int(original[at]) }
                #expect(abs(Double(sum) / (160 * 120)) < 0.7)
            }
        }
    }

    @Test func animationsPlayBackFrameByFrame() throws {
        let frames = (0..<4).map { n in
            (
                image: image(40, 30) { x, y in
                    abs(x - 8 * n) + abs(y - 12) < 7 ? [200, UInt8(20 * n), 10, 255] : [3, 4, 5, 255]
                }, delay: 0.05 * Double(n + 1)
            )
        }
        let encoded = try GIFEncoder().encode(frames: frames, loopCount: 3)
        let info = try ImageInfo(of: .bytes(encoded))
        #expect(info.frameCount == 4 && info.loopCount == 3 && !info.hasAlpha)
        #expect(abs((info.duration ?? 0) - 0.5) < 0.0001)
        for (i, frame) in frames.enumerated() {
            #expect(try decode(encoded, page: i) == bytes(frame.image), "frame \(i)")
        }
    }

    @Test func transparentAnimationsPlayBackFrameByFrame() throws {
        let frames = (0..<4).map { n in
            (image: image(40, 30, alpha: .straight) { x, y in
                abs(x - 8 * n) + abs(y - 12) < 7 ? [200, UInt8(20 * n), 10, 255] : [0, 0, 0, 0]
            }, delay: 0.1)
        }
        let encoded = try GIFEncoder().encode(frames: frames, loopCount: 0)
        #expect(try ImageInfo(of: .bytes(encoded)).loopCount == 0)
        for (i, frame) in frames.enumerated() {
            #expect(try decode(encoded, page: i) == bytes(frame.image), "frame \(i)")
        }
    }

    @Test func refusesWhatGIFCannotHold() {
        #expect(throws: ImageError.self) { try GIFEncoder().encode(frames: [], loopCount: 0) }
        let frames = [(image: PixelImage(size: PixelSize(2)), delay: 0.1), (image: PixelImage(size: PixelSize(3)), delay: 0.1)]
        #expect(throws: ImageError.self) { try GIFEncoder().encode(frames: frames, loopCount: 0) }
        #expect(throws: ImageError.self) {
            try GIFEncoder().encode(
                PixelImage(size: PixelSize(width: 65_536, height: 1)), quality: 1, options: EncodeOptions())
        }
    }
}
