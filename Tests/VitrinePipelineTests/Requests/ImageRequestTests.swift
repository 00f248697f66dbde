import Testing
import VitrineImaging
import VitrinePipeline

struct ImageRequestTests {
    private func pixels(_ resizer: ImageResizer, scale: Double) -> PixelSize {
        ImageRequest(.file("a.jpg"), resizing: resizer, scale: scale).pixelSize
    }

    @Test func scaleIsFactoredIn() {
        #expect(pixels(.fit(100), scale: 2.5) == PixelSize(250))
        #expect(pixels(.crop(width: 3, height: 7), scale: 1.5) == PixelSize(width: 5, height: 11))
    }

    /// The product of two doubles is often a little more than the whole number that is meant.
    @Test(arguments: [
        (100, 1.1, 110), (10, 1.1, 11), (50, 1.1, 55), (25, 2.2, 55), (100, 2.2, 220), (100, 1.25, 125), (3, 1.4, 5),
        (33, 1.5, 50), (100, 1.000_01, 101), (1, 1e-9, 1),
    ])
    func scaledSizesAreWholeWhereTheyAreMeantToBe(side: Int, scale: Double, expected: Int) {
        #expect(pixels(.crop(width: side, height: side), scale: scale) == PixelSize(expected))
        #expect(pixels(.limit(width: side, height: side), scale: scale) == PixelSize(expected))
    }

    @Test(arguments: [0, -2, Double.nan, .infinity])
    func impossibleScalesAreRefused(scale: Double) async throws {
        let image = PixelImage(size: PixelSize(10), color: .white)
        let request = ImageRequest(.image(image, identity: "white"), resizing: .fit(5), scale: scale)
        await #expect(throws: ImagePipelineError.self) { try await ImagePipeline().image(for: request) }
    }
}
