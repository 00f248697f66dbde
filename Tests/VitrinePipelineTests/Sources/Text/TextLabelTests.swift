import Foundation
import TestSupport
import Testing
import VitrineHelperProtocol
import VitrineImaging
import VitrinePipeline

/// Lines of text, drawn by the helper beside the tests.
@Suite struct TextLabelTests {
    private static let size = PixelSize(width: 200, height: 22)

    private static func draw(_ texts: [String], bold: Bool = false) throws -> [PixelImage] {
        try TextLabels(size: size, fontSize: 15, isBold: bold, workers: TextHelper.workers).images(of: texts)
    }

    private static func draw(_ text: String) throws -> PixelImage { try #require(draw([text]).first) }

    @Test func eachTextIsAnImage() throws {
        let texts = (0..<150).map { "label \($0)" }
        let images = try Self.draw(texts)
        #expect(images.count == 150)
        #expect(images.allSatisfy { $0.size == Self.size && $0.alpha == .opaque })
        // In the order of the texts, whatever the requests were.
        for index in [0, 63, 64, 65, 127, 128, 149] { #expect(try images[index] == Self.draw(texts[index])) }
        #expect(images[63] != images[64])
        #expect(try Self.draw([String]()).isEmpty)
        #expect(try Self.draw("").inkedColumns == nil)
    }

    @Test func aShortTextBeginsAtItsSide() throws {
        let latin = try #require(try Self.draw("Straße").inkedColumns)
        #expect(latin.lowerBound <= 3 && latin.upperBound < 100)
        let hebrew = try #require(try Self.draw("שלום").inkedColumns)
        #expect(hebrew.upperBound >= 196 && hebrew.lowerBound > 100)
    }

    @Test func boldTextIsWider() throws {
        let plain = try #require(try Self.draw(["Thumbnails"]).first?.inkedColumns)
        let bold = try #require(try Self.draw(["Thumbnails"], bold: true).first?.inkedColumns)
        #expect(bold.count > plain.count)
    }

    /// The middle of a name is left out: both ends stay, whatever the script and its direction.
    @Test(arguments: [
        ("x", "jpeg", "tiff"), ("e\u{301}", "jpeg", "tiff"), ("Straße ", "png", "gif"), ("ש", "jpeg", "tiff"),
        ("本", "webp", "avif"),
    ])
    func aLongNameKeepsItsEnds(_ part: String, _ ending: String, _ other: String) throws {
        let half = String(repeating: part, count: 120)
        let name = try Self.draw("A\(half)B\(half).\(ending)")
        #expect(try name == Self.draw("A\(half)C\(half).\(ending)"))
        #expect(try name != Self.draw("A\(half)B\(half).\(other)"))
        #expect(try name != Self.draw("Q\(half)B\(half).\(ending)"))
        let columns = try #require(name.inkedColumns)
        #expect(columns.upperBound < 200)
    }

    /// A name of 255 bytes, as long as a file system allows, in characters of several code points.
    @Test func aNameOf255BytesIsShortenedBetweenCharacters() throws {
        let family = "👩‍👩‍👧"
        let stem = String(repeating: family, count: (255 - 4) / family.utf8.count)
        let name = try Self.draw(stem + ".jpg")
        #expect(name.inkedColumns != nil)
        #expect(try name != Self.draw(stem + ".png"))
    }

    @Test(arguments: [
        String(repeating: "x", count: 200_000), "e" + String(repeating: "\u{301}", count: 30_000),
        String(repeating: "\u{202E}", count: 10_000) + "x", "a\u{0}b", "line\nbreak\r\nand another\u{2028}one",
        "\u{FEFF}", String(repeating: "ﷺ", count: 500),
    ])
    func hostileTextStaysInItsRow(_ text: String) throws {
        let images = try Self.draw(["before", text, "behind"])
        #expect(images.count == 3)
        #expect(try images[0] == Self.draw("before"))
        #expect(try images[2] == Self.draw("behind"))
    }

    @Test func rowsWithoutRoomAreRefused() {
        for (width, height, font) in [
            (0, 22, 15.0), (200, 0, 15), (200, 22, 0), (200, 22, 23), (200, 22, .nan), (1 << 20, 22, 15),
        ] {
            let labels = TextLabels(
                size: PixelSize(width: width, height: height), fontSize: font, workers: TextHelper.workers)
            #expect(throws: ImagePipelineError.self, "\(width) \(height) \(font)") { try labels.images(of: ["a"]) }
        }
    }

    @Test func aMissingHelperIsNamed() {
        let none = WorkerPool(
            program: TextWorkers.program, location: .executable("/nonexistent/vitrine-text"), maximumWorkers: 1,
            memory: HelperMemory(total: 64 << 30))
        let error = #expect(throws: ImagePipelineError.self) {
            try TextLabels(size: Self.size, fontSize: 15, workers: none).images(of: ["a"])
        }
        #expect("\(String(describing: error))".contains("vitrine-text"))
    }
}

extension PixelImage {
    /// The first and the last column that are not white; nil for a white image.
    fileprivate var inkedColumns: ClosedRange<Int>? {
        let columns = (0..<width).filter { x in (0..<height).contains { self[x, $0].green < 160 } }
        guard let first = columns.first, let last = columns.last else { return nil }
        return first...last
    }
}
