import Testing
import VitrineCommand
import VitrineImaging

struct ContactSheetTests {
    private let red = PixelColor(red: 255, green: 0, blue: 0)

    @Test func showsEveryPictureInItsCell() throws {
        let items = (0..<5).map { ContactSheet.Item(PixelImage(size: PixelSize(1_000), color: red), title: "n\($0)") }
        let sheet = try ContactSheet(title: "Sheet").draw(items)
        // Three columns and two rows of cells of 296 × 278, 20 apart, within margins of 28 and below a heading of 56.
        #expect(sheet.size == PixelSize(width: 984, height: 688))
        #expect(sheet.alpha == .opaque)
        for index in 0..<6 {
            let x = 28 + index % 3 * 316 + 148, y = 84 + index / 3 * 298 + 116
            #expect((sheet[x, y] == red) == (index < 5))
        }
    }

    @Test func smallPicturesKeepTheirSizeAndShowTransparency() throws {
        let sheet = try ContactSheet(pictureSize: PixelSize(64)).draw([
            ContactSheet.Item(PixelImage(size: PixelSize(32)), title: "clear", detail: "32×32 PNG ✓")
        ])
        let shades = Set((0..<32).flatMap { y in (0..<32).map { sheet[28 + 16 + 16 + $0, 28 + 16 + 16 + y] } })
        #expect(shades == [.white, PixelColor(white: 226)])
    }

    @Test func captionsAreWritten() throws {
        let item = ContactSheet.Item(PixelImage(size: PixelSize(4), color: red), title: "A")
        let sheet = try ContactSheet(pictureSize: PixelSize(64)).draw([item])
        // The capital's cross bar: 5 points of 2 pixels, 3 points below the top.
        let y = 28 + 16 + 64 + 12 + 6, ink = PixelColor(red: 31, green: 36, blue: 48)
        #expect((0..<12).map { sheet[28 + 16 + $0, y] == ink } == [Bool](repeating: true, count: 10) + [false, false])
    }

    @Test func refusesWhatHasNoRoom() {
        #expect(throws: ImageError.self) { try ContactSheet().draw([]) }
        let item = ContactSheet.Item(PixelImage(size: PixelSize(4)), title: "")
        #expect(throws: ImageError.self) { try ContactSheet(pictureSize: .zero).draw([item]) }
        let many = [ContactSheet.Item](repeating: item, count: 40)
        #expect(throws: ImageError.self) { try ContactSheet(columns: 40).draw(many) }
    }
}
