#if SystemCodecs
import TestSupport
import Testing
import VitrineImaging
import VitrineRaster

/// The rule for files that end early, the same for JPEG, PNG, WebP and GIF: “Files that end early” in Security.md.
@Suite struct TruncatedPictureTests {
    struct Kind: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: @Sendable () throws -> [UInt8]
        /// Bytes at the end that no pixel needs.
        let trailer: Int

        var testDescription: String { name }
    }

    private static let picture = PixelImage(width: 120, height: 90, alpha: .opaque) { pixels in
        for i in 0..<(120 * 90) {
            let (x, y) = (i % 120, i / 120)
            // Every row has something that cannot be predicted from the one above.
            let noise = UInt8(truncatingIfNeeded: ((x * 73 + y * 151) * (x + 3 * y + 7)) >> 3)
            pixels[4 * i] = UInt8(2 * x)
            pixels[4 * i + 1] = UInt8(2 * y + 20)
            pixels[4 * i + 2] = noise & 0xF0
            pixels[4 * i + 3] = 255
        }
    }

    static let kinds: [Kind] = [
        Kind(name: "JPEG", bytes: { try picture.encoded(as: .jpeg()) }, trailer: 2),
        Kind(name: "PNG", bytes: { try picture.encoded(as: .png) }, trailer: 12),
        Kind(name: "WebP", bytes: { try picture.encoded(as: .webp()) }, trailer: 0),
        Kind(
            name: "lossless WebP",
            bytes: {
                try LibWebPEncoder(lossless: true).encode(picture, quality: 1, options: EncodeOptions())
            }, trailer: 0),
        Kind(name: "GIF", bytes: { try picture.encoded(as: .gif) }, trailer: 2),
    ]

    @Test(arguments: kinds) func aFileWithoutAllPixelsIsAnError(kind: Kind) throws {
        let bytes = try kind.bytes()
        for share in [3, 5, 8] {
            let cut = ImageInput.bytes(Array(bytes.prefix(bytes.count * share / 9)), name: "cut")
            for size in [ImageResizer.none, .fit(60), .fit(9)] {
                #expect(throws: ImageError.truncated(input: "cut")) { try ImageDecoder().decode(cut, at: size) }
            }
        }
    }

    @Test(arguments: kinds) func whatNoPixelNeedsMayBeMissing(kind: Kind) throws {
        let bytes = try kind.bytes()
        let cut = Array(bytes.dropLast(kind.trailer))
        #expect(try ImageDecoder().decode(.bytes(cut)) == ImageDecoder().decode(.bytes(bytes)))
    }

    @Test(arguments: kinds) func thePartThatIsThereIsShownAndTheRestIsTransparent(kind: Kind) throws {
        let bytes = try kind.bytes()
        let options = DecodeOptions(allowsPartial: true)
        for size in [ImageResizer.none, .fit(60), .fit(10)] {
            // With the same options, by which a decoder may choose another way to a size.
            let whole = try ImageDecoder().decode(.bytes(bytes), at: size, options: options)
            let cut = ImageInput.bytes(Array(bytes.prefix(bytes.count * 6 / 9)), name: "cut")
            let part = try ImageDecoder().decode(cut, at: size, options: options)
            #expect(part.size == whole.size)
            let rows = (0..<part.height).prefix { y in (0..<part.width).allSatisfy { part[$0, y].alpha == 255 } }.count
            #expect(rows >= part.height / 5 && rows < part.height, "\(rows) of \(part.height)")
            // Under the last whole row there may be one that is there in part.
            for y in (rows + 1)..<max(rows + 1, part.height) {
                #expect((0..<part.width).allSatisfy { part[$0, y] == .clear }, "row \(y)")
            }
            for y in 0..<max(1, rows - 3) {
                let isEqual = (0..<part.width).allSatisfy {
                    abs(Int(part[$0, y].green) - Int(whole[$0, y].green)) <= 2
                }
                #expect(isEqual, "row \(y) of \(rows)")
            }
        }
        // A header alone gives no picture.
        let header = try #require((1..<bytes.count).first { (try? ImageInfo(of: .bytes(Array(bytes[..<$0])))) != nil })
        #expect(throws: ImageError.truncated(input: "cut")) {
            try ImageDecoder().decode(.bytes(Array(bytes[..<header]), name: "cut"), options: options)
        }
    }

    @Test(arguments: ["GIF/keep.gif", "PNG/animation.png", "WebP/animated.webp"])
    func laterFramesMayBeMissing(name: String) throws {
        let bytes = try Fixture.bytes(name)
        let cut = ImageInput.bytes(Array(bytes.dropLast(bytes.count / 4)), name: "cut")
        #expect(try ImageDecoder().decode(cut) == ImageDecoder().decode(.bytes(bytes)))
        var last = DecodeOptions()
        last.page = try ImageInfo(of: .bytes(bytes)).frameCount - 1
        #expect(throws: ImageError.self) { try ImageDecoder().decode(cut, options: last) }
    }
}
#endif
