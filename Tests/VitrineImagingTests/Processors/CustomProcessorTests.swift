import Synchronization
import Testing
import VitrineImaging

struct CustomProcessorTests {
    private let image = PixelImage(size: PixelSize(4), color: .white)
    private let failure = ImageError.invalidRequest(reason: "not today")

    @Test func errorsReachTheCallerAndEndTheSequence() throws {
        let failure = failure
        let runs = Mutex(0)
        let failing = ImageProcessor.custom(identifier: "failing") { _ throws(ImageError) in throw failure }
        let counting = ImageProcessor.custom(identifier: "counting") { image throws(ImageError) in
            runs.withLock { $0 += 1 }
            return image
        }
        #expect(throws: failure) { try image.processed(by: [counting, failing, counting]) }
        #expect(throws: failure) { try image.processed(by: [failing, counting]) }
        #expect(runs.withLock { $0 } == 1)
    }

    /// An absurd result is an error before it is cached or shown.
    @Test func resultsBeyondTheOutputSideAreErrors() {
        let side = ImageLimits.standard.maximumOutputSide
        for size in [PixelSize(width: side + 1, height: 1), PixelSize(width: 1, height: side + 1)] {
            let absurd = ImageProcessor.custom(identifier: "absurd") { _ throws(ImageError) in PixelImage(size: size) }
            #expect(
                throws: ImageError.limitExceeded(
                    input: "custom(6:absurd)", limit: .outputSide, actual: side + 1, allowed: side)
            ) { try image.processed(by: [absurd]) }
        }
    }

    @Test func picturesLargerThanTheOutputSideKeepTheirSize() throws {
        let large = PixelImage(size: PixelSize(width: ImageLimits.standard.maximumOutputSide + 8, height: 1), color: .white)
        let same = ImageProcessor.custom(identifier: "same") { image throws(ImageError) in image }
        #expect(try large.processed(by: [same, .grayscale]).size == large.size)
    }

    @Test func ownTypesAreProcessors() throws {
        struct Cleared: ImageProcessing {
            let identifier = "cleared"
            func process(_ image: PixelImage) throws(ImageError) -> PixelImage { PixelImage(size: image.size) }
        }
        let result = try image.processed(by: [ImageProcessor(Cleared())])
        #expect(result == PixelImage(size: image.size))
        #expect(ImageProcessor(Cleared()) == ImageProcessor(Cleared()))
    }
}
