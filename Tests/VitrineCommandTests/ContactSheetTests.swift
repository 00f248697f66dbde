import TestSupport
import Testing
import VitrineCommand
import VitrineImaging
import VitrinePipeline

struct ContactSheetTests {
    private let red = PixelColor(red: 255, green: 0, blue: 0)
    private let ink = PixelColor(red: 31, green: 36, blue: 48)

    /// The helper beside the tests.
    private static let workers = WorkerPool(
        program: TextWorkers.program,
        location: .executable(Tool.executable.deletingLastPathComponent().appending(path: "vitrine-text").path),
        maximumWorkers: 1, memory: HelperMemory(total: 64 << 30))

    /// A sheet of images of 64 pixels, whose texts the helper beside the tests draws.
    private func sheet(_ captions: ContactSheet.Captions = .full, title: String = "") -> ContactSheet {
        var sheet = ContactSheet(title: title, imageSize: PixelSize(64), captions: captions)
        sheet.textWorkers = Self.workers
        return sheet
    }

    @Test func showsEveryImageInItsCell() throws {
        let items = (0..<5).map { ContactSheet.Item(PixelImage(size: PixelSize(1_000), color: red), title: "n\($0)") }
        var sheet = ContactSheet(title: "Sheet")
        sheet.textWorkers = Self.workers
        let drawn = try sheet.draw(items)
        // Three columns and two rows of cells of 296 × 278, 20 apart, within margins of 28 and below a heading of 56.
        #expect(drawn.size == PixelSize(width: 984, height: 688))
        #expect(drawn.alpha == .opaque)
        for index in 0..<6 {
            let x = 28 + index % 3 * 316 + 148, y = 84 + index / 3 * 298 + 116
            #expect((drawn[x, y] == red) == (index < 5))
        }
    }

    @Test func smallImagesKeepTheirSizeAndShowTransparency() throws {
        let drawn = try sheet(.none).draw([ContactSheet.Item(PixelImage(size: PixelSize(32)), title: "clear")])
        let shades = Set((0..<32).flatMap { y in (0..<32).map { drawn[28 + 16 + 16 + $0, 28 + 16 + 16 + y] } })
        #expect(shades == [.white, PixelColor(white: 226)])
    }

    @Test func aWhitePageHasABorder() throws {
        let page = PixelImage(size: PixelSize(64), color: .white)
        let drawn = try sheet(.none).draw([ContactSheet.Item(page, title: "page.pdf")])
        let left = 28 + 16
        #expect(drawn[left, left] == .white)
        #expect(drawn[left - 2, left + 30] == .white)
        for (x, y) in [(left - 1, left + 30), (left + 64, left + 30), (left + 30, left - 1), (left + 30, left + 64)] {
            #expect(drawn[x, y].green < 230, "\(x), \(y)")
        }
    }

    @Test func captionsTakeAsMuchSpaceAsTheyNeed() throws {
        let item = ContactSheet.Item(PixelImage(size: PixelSize(4), color: red), title: "A", detail: "4×4 png")
        #expect(try sheet(.full).draw([item]).size == PixelSize(width: 152, height: 198))
        #expect(try sheet(.name).draw([item]).size == PixelSize(width: 152, height: 178))
        #expect(try sheet(.none).draw([item]).size == PixelSize(width: 152, height: 152))
    }

    @Test func captionsAreWrittenBelowTheirImages() throws {
        let item = ContactSheet.Item(PixelImage(size: PixelSize(4), color: red), title: "HHHH", detail: "iiii")
        let full = try sheet(.full).draw([item])
        // The rows of the title and of the detail begin 8 pixels below the image, and are 22 pixels high.
        let title = 28 + 16 + 64 + 8
        #expect(inked(full, rows: title..<title + 22) > 20)
        #expect(inked(full, rows: title + 22..<title + 44) > 5)
        let name = try sheet(.name).draw([item])
        #expect(inked(name, rows: title..<title + 22) == inked(full, rows: title..<title + 22))
    }

    @Test func everyScriptIsWritten() throws {
        func caption(_ name: String) throws -> PixelImage {
            try sheet(.name).draw([ContactSheet.Item(PixelImage(size: PixelSize(4), color: red), title: name)])
        }
        let names = ["Übersicht", "Ubersicht", "Ж", "Ω", "é", "e", "שלום", "?"]
        let drawn = try names.map(caption)
        for (index, image) in drawn.enumerated() {
            for other in drawn[..<index] { #expect(image != other, "\(names[index])") }
        }
        // Composed and decomposed letters look alike.
        #expect(try caption("e\u{301}") == caption("é"))
    }

    @Test func withoutTheHelperOnlySheetsWithoutTextAreDrawn() throws {
        let none = WorkerPool(
            program: TextWorkers.program, location: .executable("/nonexistent/vitrine-text"), maximumWorkers: 1,
            memory: HelperMemory(total: 64 << 30))
        let item = ContactSheet.Item(PixelImage(size: PixelSize(4), color: red), title: "A")
        var sheet = ContactSheet(imageSize: PixelSize(64), captions: .none)
        sheet.textWorkers = none
        #expect(!sheet.hasText)
        _ = try sheet.draw([item])
        sheet.title = "Title"
        #expect(sheet.hasText)
        #expect(throws: ImagePipelineError.self) { try sheet.draw([item]) }
        (sheet.title, sheet.captions) = ("", .name)
        #expect(throws: ImagePipelineError.self) { try sheet.draw([item]) }
    }

    @Test func refusesWhatHasNoRoom() {
        #expect(throws: ImageError.self) { try ContactSheet(captions: .none).draw([]) }
        let item = ContactSheet.Item(PixelImage(size: PixelSize(4)), title: "")
        #expect(throws: ImageError.self) { try ContactSheet(imageSize: .zero, captions: .none).draw([item]) }
        let many = [ContactSheet.Item](repeating: item, count: 40)
        #expect(throws: ImageError.self) { try ContactSheet(columns: 40, captions: .none).draw(many) }
    }

    @Test func theSizeOfASheetIsKnownBeforeItIsDrawn() throws {
        let items = [ContactSheet.Item](
            repeating: ContactSheet.Item(PixelImage(size: PixelSize(4), color: red), title: "a"), count: 7)
        for captions in ContactSheet.Captions.allCases {
            let sheet = sheet(captions, title: "Title")
            #expect(try sheet.draw(items).size == sheet.size(count: 7))
        }
        #expect(throws: ImageError.self) { try ContactSheet().size(count: 20_000) }
    }

    /// The pixels in rows of a sheet that are about as dark as text.
    private func inked(_ image: PixelImage, rows: Range<Int>) -> Int {
        rows.reduce(0) { count, y in count + (44..<108).count { image[$0, y].green < 215 } }
    }
}
