import Foundation
import Testing
import VitrineImaging
import VitrinePipeline

/// Fonts that a document names and does not hold: the helper finds installed ones, although it is in its sandbox.
@Suite struct PDFFontTests {
    private static let fallback = "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf"

    /// The pixels of a page with one text, which is no white paper.
    private static func pixels(_ font: String, _ text: String) throws -> [UInt8] {
        var document = TinyPDF()
        document.resources = "/Font<</F \(font)>>"
        document.pages = [.init(content: "BT /F 40 Tf 10 40 Td \(text) Tj ET")]
        let image = try PDFFixture.input(document).page(1).blocking.image(RenderRequest(size: PixelSize(200)))
        let pixels = image.withUnsafeBytes { [UInt8]($0) }
        #expect(pixels.filter { $0 < 128 }.count > 100, "nothing of \(text) is drawn")
        return pixels
    }

    @Test(arguments: [
        "/Type1/BaseFont/Helvetica-Bold", "/Type1/BaseFont/Times-Italic", "/TrueType/BaseFont/Arial",
        "/TrueType/BaseFont/DejaVuSans", "/Type1/BaseFont/Palatino-Roman", "/Type1/BaseFont/ZapfDingbats",
    ])
    func lettersAreDrawn(font: String) throws {
        let font = "<</Type/Font/Subtype\(font)>>"
        #expect(try Self.pixels(font, "(abc)") != Self.pixels(font, "(xyz)"))
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: fallback), "needs a font with Japanese letters"),
        arguments: [
            ("Ryumin-Light", "90ms-RKSJ-H", "<82A082A2>", "<93FA967B>"),
            ("GothicBBB-Medium", "UniJIS-UCS2-H", "<30423044>", "<65E5672C>"),
        ])
    func japaneseLettersAreDrawn(name: String, encoding: String, one: String, other: String) throws {
        let font = """
            <</Type/Font/Subtype/Type0/BaseFont/\(name)/Encoding/\(encoding)/DescendantFonts[<</Type/Font
            /Subtype/CIDFontType0/BaseFont/\(name)/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 4>>
            /FontDescriptor<</Type/FontDescriptor/FontName/\(name)/Flags 6/FontBBox[0 -200 1000 900]/ItalicAngle 0
            /Ascent 800/Descent -200/CapHeight 700/StemV 80>> >>]>>
            """
        #expect(try Self.pixels(font, one) != Self.pixels(font, other))
    }
}
