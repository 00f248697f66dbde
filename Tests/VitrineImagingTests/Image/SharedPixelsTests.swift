import Testing
import VitrineImaging

/// Pixels whose memory others hold.
struct SharedPixelsTests {
    @Test func stayAsTheyAreWhenTheImageChanges() {
        var image = PixelImage(size: PixelSize(4), color: .white)
        let shared = image.sharedPixels
        let before = Array(shared.sharedBytes)
        #expect(before.count == shared.count && before == image.withUnsafeBytes { Array($0) })
        image.withUnsafeMutableBytes { bytes in bytes.copyBytes(from: [7, 7, 7, 7]) }
        #expect(Array(shared.sharedBytes) == before)
        #expect(image.sharedPixels !== shared)
        #expect(image.withUnsafeBytes { $0.contains(7) })
    }

    @Test func areTheImagesOwn() {
        let image = PixelImage(size: PixelSize(4), color: .black), copy = image
        #expect(image.sharedPixels === copy.sharedPixels)
    }
}
