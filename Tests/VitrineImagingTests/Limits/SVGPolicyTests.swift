import Testing
import VitrineImaging
import VitrineSVG

struct SVGPolicyTests {
    private func svg(_ body: String, prologue: String = "") -> [UInt8] {
        Array(
            "\(prologue)<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>\(body)</svg>"
                .utf8)
    }

    @Test(arguments: [
        "<image href='file:///etc/passwd'/>", "<image xlink:href=\"http://example.com/a.png\"/>",
        "<use href='other.svg#a'/>", "<rect style='fill:url(http://example.com/a#b)'/>", "<rect fill='url(x.svg#y)'/>",
        "<style>@import 'a.css';</style>", "<style><![CDATA[ a { background: url(\"a.png\") } ]]></style>",
        "<style>a { background: u\\72l(a.png) }</style>", "<image href='&evil;'/>",
        "<g xml:base='http://example.com/'/>",
        "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='#a'/>",
        "<image href='data:image/svg+xml;base64,AA'/>",
        "<foreignObject><iframe src='http://example.com'/></foreignObject>",
        "<IMAGE HREF='a.png'/><image\nhref\n=\n'a.png'/>",
    ])
    func findsWhatLeavesTheDocument(_ body: String) {
        #expect(SVGPolicy.containsExternalReference(svg(body)) != nil)
        let rest = try? SVGPolicy.keepToItself(svg(body), input: "drawing")
        #expect(rest?.leftOut.isEmpty == false)
        #expect(rest.map { SVGPolicy.containsExternalReference($0.bytes) } == .some(nil))
    }

    @Test(arguments: [
        "<use href='#a'/>", "<rect fill='url(#g)' style=\"fill:url('#g')\"/>",
        "<image href='data:image/png;base64,AAAA'/>",
        "<a href='https://example.com'><rect/></a>", "<style>a{fill:url(#b)} /* ok */</style>",
        "<g transform='translate(1,2)'/>",
        "<!-- <image href='a.png'/> -->", "<text>see url(http://example.com)</text>",
    ])
    func leavesInnocentDocumentsAlone(_ body: String) {
        #expect(SVGPolicy.containsExternalReference(svg(body)) == nil)
    }

    @Test func findsExternalEntitiesButNotThePublicDocumentType() {
        let dtd = "<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd'"
        #expect(SVGPolicy.containsExternalReference(svg("", prologue: dtd + ">")) == nil)
        #expect(SVGPolicy.containsExternalReference(svg("", prologue: dtd + " [<!ENTITY ns 'http://x'>]>")) == nil)
        #expect(
            SVGPolicy.containsExternalReference(
                svg("&x;", prologue: dtd + " [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>")) != nil)
        #expect(SVGPolicy.containsExternalReference(svg("", prologue: "<?xml-stylesheet href='a.css'?>")) != nil)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func judgesTheCorpusAndTheBombs() throws {
        let bombs = Corpus.files(in: "hostile/bombs").filter { $0.hasSuffix(".svg") }
        for path in bombs {
            let reason = SVGPolicy.containsExternalReference(try ByteSource(.file(path)).allBytes())
            #expect((reason != nil) == (path.contains("xxe") || path.contains("file-include")), "\(path)")
        }
        for path in Corpus.files(in: "corpus/svg") where !path.contains("struct-image") {
            #expect(SVGPolicy.containsExternalReference(try ByteSource(.file(path)).allBytes()) == nil, "\(path)")
        }
        for path in Corpus.files(in: "hostile/svg") {
            _ = SVGPolicy.containsExternalReference(try ByteSource(.file(path)).allBytes())
        }
    }

    @Test(arguments: [
        ("width='120' height='80'", 120, 80), ("width='1in' height='2.54cm'", 96, 96),
        ("width='72pt' height='10mm'", 96, 38),
        ("width='2em' height='6pc'", 32, 96), ("width='100%' height='50%' viewBox='0 0 40 20'", 40, 10),
        ("viewBox='0,0,64,48'", 64, 48), ("width='128' viewBox='0 0 64 48'", 128, 96), ("", 300, 150),
        ("width='1e2' height='-5' viewBox='0 0 10 10'", 100, 100), ("width='nonsense' height='&#48;'", 300, 150),
    ])
    func sizesDocuments(_ attributes: String, _ width: Int, _ height: Int) throws {
        let text =
            "\u{FEFF}<?xml version='1.0'?>\n<!-- > <svg> -->\n<!DOCTYPE svg [<!ENTITY a '>'>]><svg:svg \(attributes)/>"
        let size = PixelSize(width: width, height: height)
        #expect(try ImageInfo(of: .bytes(Array(text.utf8))).storedSize == size)
        let utf16 = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
        let info = try ImageInfo(of: .bytes(utf16))
        #expect(info.format == .svg && info.storedSize == size)
    }
}
