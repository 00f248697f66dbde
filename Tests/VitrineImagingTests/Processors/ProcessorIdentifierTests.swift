import Testing
import VitrineImaging

struct ProcessorIdentifierTests {
    private static let mark = TestImages.gray([[1, 2]])

    /// Identifiers are parts of keys on disk: changing one orphans what is stored under it.
    private static let known: [(ImageProcessor, String)] = [
        (.crop(x: 1, y: 2, width: 3, height: 4), "crop(1,2,3,4)"),
        (.trim(), "trim(0)"),
        (.roundCorners(12), "roundCorners(12.0,12.0,12.0,12.0)"),
        (.roundCorners(12, border: ImageBorder(color: .black)), "roundCorners(12.0,12.0,12.0,12.0,border:1.0,#000000)"),
        (.circle(), "circle()"),
        (.border(color: .white), "roundCorners(0.0,0.0,0.0,0.0,border:1.0,#ffffff)"),
        (.background(PixelColor(white: 1, alpha: 2)), "background(#01010102)"),
        (.blur(radius: 2.5), "blur(2.5)"),
        (.sharpen(), "sharpen(0.5,1.0)"),
        (.grayscale, "grayscale"),
        (.tint(.black), "tint(#000000,1.0,template)"),
        (.rotate(degrees: 90), "rotate(90.0,#00000000)"),
        (.flip(.vertical), "flip(vertical)"),
        (.pixelate(block: 8), "pixelate(8)"),
        (.custom(identifier: "née") { $0 }, "custom(4:née)"),
        (
            .watermark(mark),
            "watermark(c6eea79f63c0fb9a5185f59126bce686,bottomRight,own,1.0,0,false)"
        ),
    ]

    @Test func identifiersStayAsTheyAre() {
        for (processor, identifier) in Self.known { #expect(processor.identifier == identifier) }
    }

    @Test func everyParameterShows() {
        let variants: [ImageProcessor] = Self.known.map(\.0) + [
            .crop(width: 3, height: 4, gravity: .center), .crop(width: 3, height: 4, gravity: .attention),
            .trim(tolerance: 1), .roundCorners(topLeft: 12), .roundCorners(topRight: 12),
            .roundCorners(12, border: ImageBorder(color: .white)), .circle(border: ImageBorder(color: .black)),
            .tint(.black, opacity: 0.5),
            .tint(.black, mode: .multiply), .rotate(degrees: 90, background: .white), .flip(.horizontal),
            .sharpen(amount: 1), .sharpen(radius: 2), .custom(identifier: "grayscale") { $0 },
            .watermark(Self.mark, at: .top), .watermark(Self.mark, at: .focal(x: 0.1, y: 0.2)),
            .watermark(Self.mark, scale: 0.5), .watermark(Self.mark, opacity: 0.5), .watermark(Self.mark, margin: 5),
            .watermark(Self.mark, isTiled: true), .watermark(TestImages.gray([[1, 3]])),
            .watermark(TestImages.gray([[1], [2]])),
        ]
        #expect(Set(variants).count == variants.count)
    }

    @Test func textCannotImitateSeveralProcessors() {
        let honest: [ImageProcessor] = [.custom(identifier: "a") { $0 }, .custom(identifier: "b") { $0 }]
        let forged = ImageProcessor.custom(identifier: "a)custom(1:b") { $0 }
        #expect(honest.map(\.identifier).joined() != forged.identifier)
    }

    @Test func processorsApplyInOrder() throws {
        let image = TestImages.gray([[1, 2, 3]])
        let both: [ImageProcessor] = [.crop(x: 0, y: 0, width: 2, height: 1), .flip(.horizontal)]
        #expect(TestImages.reds(try image.processed(by: both)) == [[2, 1]])
        #expect(try image.processed(by: []) == image)
    }
}
