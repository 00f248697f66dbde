import Testing
import VitrineCore
import VitrineImaging
import VitrineSVG

/// What is drawn of documents that refer to other files, are compressed, or have an unusual size.
@Suite(.serialized) struct SVGDrawingTests {
    private static let decoder = ImageDecoder(
        limits: .standard, isolation: .automatic, codecs: .standard, pool: WorkerFixture.pool(1))
    private static let red = PixelColor(red: 255, green: 0, blue: 0)
    private static let blue = PixelColor(red: 0, green: 0, blue: 255)
    private static let halves = """
        <rect width="40" height="20" fill="red"/><rect x="40" width="40" height="20" fill="blue"/>
        """

    private static func svg(
        _ body: String, _ prologue: String = "", size: String = "width='80' height='20'"
    ) -> [UInt8] {
        let namespaces = "xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'"
        return Array("\(prologue)<svg \(namespaces) \(size)>\(body)</svg>".utf8)
    }

    private static func drawing(_ bytes: [UInt8]) throws -> SVGDrawing {
        try SVGDrawing(ByteSource(bytes: bytes, name: "drawing"), .standard)
    }

    private static func image(_ bytes: [UInt8], at resizer: ImageResizer = .none) throws -> PixelImage {
        try decoder.decode(.bytes(bytes, name: "drawing"), at: resizer)
    }

    @Test(arguments: [
        ("<style>@import url('https://fonts.example/css?family=A');</style>", ""),
        ("<style>@import 'a.css'; .a { fill: green }</style>", ""),
        ("<style>@imp<!-- -->ort 'a.css';</style>", ""), ("<style>@\\69mport 'a.css';</style>", ""),
        ("<style><![CDATA[@import 'a.css';]]></style>", ""),
        ("<image xlink:href='photo.jpg' width='5' height='5'/>", ""), ("<image href=\"http://a/b.png\"/>", ""),
        ("<use href='other.svg#a'/>", ""), ("<feImage q:href='a.png' xmlns:q='urn:q'/>", ""),
        ("<g xml:base='http://a/'/>", ""), ("<g filter='url(a.svg#b)'/>", ""),
        ("<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='a.svg'/>", ""),
        ("<image><set attributeName='href' to='a.png'/></image>", ""),
        ("<text>&x;</text>", "<!DOCTYPE svg [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"),
        ("<g/>", "<!DOCTYPE svg SYSTEM 'file:///a.dtd'>"), ("<g/>", "<?xml-stylesheet href='a.css'?>"),
        ("<g/>", "<!DOCTYPE svg [<!ATTLIST g style CDATA #FIXED 'fill:url(a.png)'>]>"),
    ])
    func drawsTheRestOfADocumentThatRefersToAnotherFile(body: String, prologue: String) throws {
        let document = Self.svg(body + Self.halves, prologue)
        let drawing = try Self.drawing(document)
        // XInclude and the address in it are two kinds.
        #expect((1...2).contains(drawing.leftOut.count) && drawing.bytes.count == document.count)
        #expect(SVGPolicy.containsExternalReference(drawing.bytes) == nil)
        let image = try Self.image(document)
        #expect(image.size == PixelSize(width: 80, height: 20))
        #expect(image[10, 10] == Self.red && image[70, 10] == Self.blue)
        // The same in UTF-16, which is drawn in UTF-8.
        let text = String(decoding: document, as: UTF8.self)
        let declared = "\u{FEFF}<?xml version='1.0' encoding='UTF-16'?>" + text
        let wide = declared.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
        #expect(try Self.image(wide)[70, 10] == Self.blue)
    }

    @Test func keepsTheStylesAroundWhatItLeavesOut() throws {
        let style = """
            <style>@import "a.css"; .a { fill: red; cursor: url(a.cur), auto } .b { fill: url( 'a.svg#b' ) blue }
            @font-face { font-family: x; src: url(x.woff) format("woff"), local("x") } .c { fill: url(#d) }</style>
            """
        let image = try Self.image(
            Self.svg(
                style + """
                    <linearGradient id="d"><stop stop-color="#0f0"/></linearGradient>
                    <rect class="a" width="20" height="20"/><rect class="b" x="20" width="20" height="20"/>
                    <rect class="c" x="40" width="20" height="20"/>
                    <rect fill="url(a.svg#x)" stroke="url(a.svg#y) red" stroke-width="9" x="60" width="20" height="20"/>
                    """))
        #expect(image[10, 10] == Self.red && image[30, 10] == Self.blue)
        #expect(image[50, 10] == PixelColor(red: 0, green: 255, blue: 0))
        // An address that leads nowhere is no paint, and gives way to what stands behind it.
        #expect(image[71, 10].alpha == 0 && image[62, 10] == Self.red)
    }

    @Test func namesEachKindOfReferenceOnce() throws {
        let body = "<image href='a.png'/><image href='b.png'/><style>@import 'a'</style><g xml:base='c'/>"
        #expect(
            try Self.drawing(Self.svg(body)).leftOut == [
                "a reference to another file", "an imported style sheet", "xml:base",
            ])
        let embedded = "<image href='data:image/svg+xml;base64,AA'/>"
        #expect(
            try Self.drawing(Self.svg(embedded)).leftOut == ["an embedded file other than an image of at most 1 MB"])
        #expect(try Self.drawing(Self.svg(Self.halves)).leftOut == [])
    }

    @Test(arguments: [
        "<!DOCTYPE svg [<!ENTITY % a SYSTEM 'file:///a'> %a;]>", "<!DOCTYPE svg [ ]><!DOCTYPE svg [ ]>",
        "<!DOCTYPE svg [<!ENTITY a \"<image href='a.png'/>\">]>", "<?xml version='1.0' encoding='UTF-7'?>",
    ])
    func refusesWhatCannotBeChecked(prologue: String) throws {
        #expect {
            try Self.image(Self.svg(Self.halves, prologue))
        } throws: { ($0 as? ImageError).map { isSameCase($0, .unsupported(input: "", reason: "")) } ?? false }
    }

    @Test(arguments: [0, 4, 8, 16, 2, 30])
    func drawsCompressedDocuments(flags: UInt8) throws {
        let document = Self.svg(Self.halves, size: "width='40mm' height='10mm' viewBox='0 0 80 20'")
        let bytes = Self.compressed(document, flags: flags)
        let info = try ImageInfo(of: .bytes(bytes))
        #expect(info.format == .svg && info.storedSize == PixelSize(width: 151, height: 38))
        let image = try Self.image(bytes, at: .fit(80))
        #expect(image[10, 10] == Self.red && image[70, 10] == Self.blue)
        // What is compressed but no drawing is none.
        #expect(throws: ImageError.notAnImage(input: "data")) {
            try ImageInfo(of: .bytes(Self.compressed(Array("<html></html>".utf8), flags: flags)))
        }
    }

    @Test func boundsAndChecksWhatIsCompressed() throws {
        let document = Self.svg(Self.halves + String(repeating: " ", count: 6 << 20))
        #expect {
            try Self.image(Self.compressed(document, flags: 0))
        } throws: {
            guard case .limitExceeded(_, limit: .documentBytes, _, _)? = $0 as? ImageError else { return false }
            return true
        }
        var damaged = Self.compressed(Self.svg(Self.halves), flags: 0)
        damaged[damaged.count - 6] ^= 1
        #expect {
            try Self.image(damaged)
        } throws: { ($0 as? ImageError).map { isSameCase($0, .corrupt(input: "", reason: "")) } ?? false }
        let cut = Array(Self.compressed(Self.svg(Self.halves), flags: 0).dropLast(60))
        #expect(throws: ImageError.self) { try Self.image(cut) }
    }

    @Test(arguments: [
        ("width='1000000' height='250000' viewBox='0 0 80 20'", PixelSize(width: 1_000_000, height: 250_000)),
        ("width='40000000' height='10000000' viewBox='0 0 80 20'", PixelSize(width: 40_000_000, height: 10_000_000)),
        ("width='4e9' height='1e9' viewBox='0 0 80 20'", PixelSize(width: 1_000_000_000, height: 1_000_000_000)),
        ("width='0.4' height='0.1' viewBox='0 0 80 20'", PixelSize(width: 300, height: 75)),
        ("width='1e-7' height='0.25e-7' viewBox='0 0 80 20'", PixelSize(width: 300, height: 75)),
    ])
    func drawsAtAnySizeWhateverTheOwnSizeIs(size: String, natural: PixelSize) throws {
        let document = Self.svg(Self.halves, size: size)
        #expect(try ImageInfo(of: .bytes(document)).storedSize == natural)
        let image = try Self.image(document, at: ImageResizer(size: PixelSize(width: 80, height: 20), mode: .stretch))
        #expect(image[10, 10] == Self.red && image[70, 10] == Self.blue)
        if natural.longestSide > ImageLimits.standard.maximumOutputSide {
            #expect(
                throws: ImageError.limitExceeded(
                    input: "drawing", limit: .outputSide, actual: natural.longestSide, allowed: 8_192)
            ) { try Self.image(document) }
        } else {
            #expect(try Self.image(document).size == natural)
        }
    }

    @Test func drawsADocumentWithoutAViewBoxWhole() throws {
        let rectangles = """
            <rect width="500000" height="250000" fill="red"/>
            <rect x="500000" width="500000" height="250000" fill="blue"/>
            """
        let image = try Self.image(
            Self.svg(rectangles, size: "width='1000000' height='250000'"), at: .fit(80))
        #expect(image.size == PixelSize(width: 80, height: 20))
        #expect(image[10, 10] == Self.red && image[70, 10] == Self.blue)
    }

    /// A larger drawing, of which both sides are whole pixels, is not made if that one would break the limit.
    @Test func edgesAreOpaqueAsFarAsTheLimitOfPixelsAllows() throws {
        let document = Self.svg("<rect width='64' height='97' fill='red'/>", size: "width='64' height='97'")
        let size = PixelSize(width: 100, height: 151)
        let opaque = try Self.image(document, at: ImageResizer(size: size, mode: .stretch))
        #expect(opaque.size == size && opaque[0, 75] == Self.red && opaque[99, 75] == Self.red)
        #expect(opaque[50, 0] == Self.red && opaque[50, 150] == Self.red)
        var decoder = Self.decoder
        decoder.limits.maximumWholeImagePixels = 16_000
        let limited = try decoder.decode(.bytes(document, name: "drawing"), at: ImageResizer(size: size, mode: .stretch))
        #expect(limited.size == size && limited[50, 75] == Self.red)
    }

    /// gzip (RFC 1952) with stored blocks, and with the optional fields that `flags` has.
    private static func compressed(_ bytes: [UInt8], flags: UInt8) -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
        var file: [UInt8] = [0x1F, 0x8B, 8, flags, 0, 0, 0, 0, 0, 255]
        if flags & 4 != 0 { file += [3, 0, 1, 2, 3] }
        if flags & 8 != 0 { file += Array("a.svg\0".utf8) }
        if flags & 16 != 0 { file += Array("made by hand\0".utf8) }
        if flags & 2 != 0 { file += [0, 0] }
        var rest = bytes[...]
        repeat {
            let block = rest.prefix(0xFFFF)
            rest = rest.dropFirst(block.count)
            file += [rest.isEmpty ? 1 : 0] + number(block.count, 2) + number(~block.count & 0xFFFF, 2) + block
        } while !rest.isEmpty
        return file + number(Int(CRC32.checksum(bytes)), 4) + number(bytes.count, 4)
    }
}
