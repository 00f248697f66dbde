import Testing
import VitrineImaging

struct ImageColorTests {
    @Test func meanIsWeightedByAlpha() {
        let image = TestImages.image([[PixelColor(red: 200, green: 10, blue: 0), .clear]], alpha: .straight)
        #expect(image.averageColor == PixelColor(red: 200, green: 10, blue: 0, alpha: 128))
        #expect(TestImages.gray([[0, 255, 255], [0, 255, 255]]).averageColor == PixelColor(white: 170))
        #expect(PixelImage(size: PixelSize(3)).averageColor == .clear)
        #expect(TestImages.padded(TestImages.gray([[9, 9]]), by: 8).averageColor == PixelColor(white: 9))
    }

    @Test func dominantColorsComeByHowCommonTheyAre() {
        let blue = PixelColor(red: 20, green: 40, blue: 200), red = PixelColor(red: 230, green: 10, blue: 10)
        let rows = (0..<20).map { y in (0..<20).map { x in y < 12 ? blue : x < 12 ? red : PixelColor.white } }
        #expect(TestImages.image(rows).dominantColors(count: 3) == [blue, red, .white])
        #expect(TestImages.image(rows).dominantColors(count: 9) == [blue, red, .white])
        #expect(TestImages.image(rows).dominantColors(count: 1).count == 1)
        #expect(PixelImage(size: PixelSize(4)).dominantColors() == [])
    }

    @Test func dominantColorsOfSlopesAreFewAndSpread() {
        let colors = TestImages.slopes(width: 300, height: 200).dominantColors(count: 8)
        #expect(Set(colors).count == 8)
    }
}
