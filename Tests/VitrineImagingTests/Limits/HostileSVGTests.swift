import TestSupport
import Testing
import VitrineImaging
import VitrineSVG

/// SVG documents that are cut off, or that hide a reference to another file from a scanner of plain text.
struct HostileSVGTests {
    private static let namespaces =
        "xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' width='100' height='100'"

    private static func svg(_ body: String, prologue: String = "", attributes: String = "") -> [UInt8] {
        Array("\(prologue)<svg \(namespaces) \(attributes)>\(body)</svg>".utf8)
    }

    private static func utf16(_ text: String) -> [UInt8] {
        text.utf16.reduce(into: []) { $0 += [UInt8(truncatingIfNeeded: $1), UInt8(truncatingIfNeeded: $1 >> 8)] }
    }

    private static func spread(_ bytes: [UInt8], before: Int = 0, behind: Int) -> [UInt8] {
        let (zeros, others) = ([UInt8](repeating: 0, count: before), [UInt8](repeating: 0, count: behind))
        return bytes.reduce(into: []) { $0 += zeros + [$1] + others }
    }

    private static let documents: [[UInt8]] = [
        Array("<svg a=\"".utf8), Array("<svg a='b' c='d".utf8), Array("<svg:svg a = 'b'/ c/>".utf8),
        svg(
            "<image xlink:href='data:image/png;base64,AAAA'/><a href=\"x\">&amp;</a>"
                + "<style>a{fill:u\\72 l(#b)}</style>"),
        svg(
            "<style><![CDATA[ a { b: url(\"#a\") } ]]></style><text style='&s;'>&#65;&x;</text><!-- - -->",
            prologue: """
                \u{FEFF}<?xml version='1.0' encoding='utf-8'?><?xml-stylesheet href='#a'?>
                <!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd' [
                <!ENTITY s "fill:#FFF"><!ATTLIST svg a CDATA #FIXED "b"> <!-- ' --> ]>
                """),
    ]

    @Test func documentsCutOffAnywhereAreReadOrRefused() {
        var read = 0
        for document in Self.documents {
            for bytes in [document, Self.spread(document, behind: 1)] {
                for count in 0...bytes.count {
                    let prefix = Array(bytes[..<count])
                    _ = try? SVGPolicy.keepToItself(prefix, input: "prefix")
                    read += (try? ImageInfo(of: .bytes(prefix)))?.format == .svg ? 1 : 0
                }
            }
        }
        #expect(read > 0)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func documentsOfTheCorpusCutOffAnywhereAreReadOrRefused() throws {
        for path in Corpus.files(in: "hostile/svg") + Corpus.files(in: "corpus/svg") {
            let bytes = try ByteSource(.file(path)).allBytes()
            for count in 0..<min(bytes.count, 600) {
                let prefix = Array(bytes[..<count])
                _ = SVGPolicy.containsExternalReference(prefix)
                _ = try? ImageInfo(of: .bytes(prefix))
            }
        }
    }

    @Test(arguments: [
        // Attributes behind many others, and elements of every name.
        "<image \((0..<300).map { "a\($0)='1'" }.joined(separator: " ")) xlink:href='a.png'/>",
        "<image a=b href='a.png'/>", "<feImage q:href='a.png'/>", "<object data='a.svg'/>", "<video poster='a.png'/>",
        "<x HREF='a.png'/>", "<image xlink:href=\"'#a'\"/>", "<color-profile href='a.icc'/>",
        "<image href='#a' xlink:href='file:///a.png'/>", "<a src='a.png'/>",
        // What animations set.
        "<image><set attributeName='href' to='a.png'/></image>",
        "<animate attributeName='xlink:href' values='#a;b.png'/>",
        // Character references and escapes.
        "<rect fill='&#117;&#x72;&#0000000000000000108;(a.png)'/>", "<rect fill='url&#40;a.png)'/>",
        "<rect fill='ur&#\(String(repeating: "0", count: 300))108;(a.png)'/>",
        "<rect style='fill:\\000075\\000072\\00006c(a.png)'/>", "<rect style='fill:u&#92;72 l(a.png)'/>",
        "<image href='&#x66;ile:///a'/>", "<rect style='fill:url(&quot;a.png&quot;)'/>",
        "<style>@\\69mport 'a.css';</style>", "<style>@&#105;mport 'a.css';</style>",
        "<style>@imp<!-- -->ort 'a.css';</style>", "<style><![CDATA[@im]]><![CDATA[port 'a.css';]]></style>",
        "<style><g/>@import 'a.css';</style>", "<style><style></style>@import 'a.css';</style>",
        "<x:style>a{b:u\\\nrl(a)} @import 'a'</x:style>", "<style>a { b: image-set('a.png' 1x) }</style>",
        "<style>@import 'a.css';", "<g xmlns:q='http://www.w3.org/2003/XInclude'/>",
        // A processing instruction and a section with quotes that hide what follows.
        "<?x \" ?><image href='a.png'/><?x \" ?>", "<![CDATA[ \" ]]><image href='a.png'/><![CDATA[ \" ]]>",
        "<?x > ?><image href='a.png'/>",
    ])
    func findsHiddenReferences(_ body: String) {
        for document in [Self.svg(body), Self.utf16("<svg>\(body)")] {
            #expect(SVGPolicy.containsExternalReference(document) != nil)
            #expect(Self.isTakenOutOrRefused(document))
        }
    }

    @Test(arguments: [
        ("<!ENTITY a \"<image href='a.png'/>\">", "&a;"), ("<!ENTITY a \"&#60;image href='a.png'/>\">", "&a;"),
        ("<!ENTITY a 'fill:url(a.png)'>", "<g style='&a;'/>"), ("<!ENTITY a 'ur'>", "<g style='fill:&a;l(a.png)'/>"),
        ("<!ENTITY a 'r'><!ENTITY b 'u&a;'>", "<g style='fill:&b;l(a.png)'/>"),
        ("<!ENTITY a 'file:///a.png'>", "<image href='&a;'/>"), ("<!ENTITY a '@import'>", "<style>&a; 'b';</style>"),
        ("<!ENTITY a 'file:'>", "<image href='#&b;'/><image href='&a;///b'/>"),
        ("<!ENTITY a SYSTEM 'file:///a'>", ""), ("<!ENTITY a PUBLIC 'b' 'c'>", ""),
        ("<!ENTITY % a SYSTEM 'file:///a'> %a;", ""), ("<!ENTITY % a '&#60;!ENTITY b SYSTEM \"c\">'> %a;", "&b;"),
        ("<!ATTLIST image href CDATA 'a.png'>", "<image/>"),
        ("<!ATTLIST g style CDATA #FIXED 'fill:url(a.png)'>", "<g/>"),
        ("<!ATTLIST g xml:base CDATA 'http://a/'>", "<g/>"),
        ("<!-- \" --><!ENTITY a SYSTEM 'file:///a'><!-- \" -->", "&a;"),
    ])
    func findsReferencesInDocumentTypes(_ subset: String, _ body: String) {
        let document = Self.svg(body, prologue: "<!DOCTYPE svg [\(subset)]>")
        #expect(SVGPolicy.containsExternalReference(document) != nil)
        #expect(Self.isTakenOutOrRefused(document))
    }

    @Test(arguments: [
        "<!DOCTYPE svg SYSTEM 'file:///a.dtd'>", "<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' '../svg11.dtd'>",
        "<?xml version='1.0'?><?xml-stylesheet type='text/css' href='&#97;.css'?>",
        "<?xml-stylesheet x='\"' href='a'?>",
        "<?xml version='1.0' encoding='UTF-7'?>", "<?xml version='1.0' encoding='cp037'?>",
        "<?xml version=\"1.0\" encoding = \"ISO-2022-JP\"?>", "<!DOCTYPE svg [ ]><!DOCTYPE svg [ ]>",
    ])
    func findsReferencesBeforeTheRoot(_ prologue: String) {
        #expect(SVGPolicy.containsExternalReference(Self.svg("", prologue: prologue)) != nil)
        #expect(Self.isTakenOutOrRefused(Self.svg("", prologue: prologue)))
    }

    private static func isTakenOutOrRefused(_ document: [UInt8]) -> Bool {
        guard let rest = try? SVGPolicy.keepToItself(document, input: "drawing") else { return true }
        return !rest.leftOut.isEmpty && SVGPolicy.containsExternalReference(rest.bytes) == nil
    }

    @Test func refusesEncodingsItCannotRead() {
        let body = Self.svg("<image href='a.png'/>")
        #expect(SVGPolicy.containsExternalReference([0xFF, 0xFE, 0, 0] + Self.spread(body, behind: 3)) != nil)
        #expect(SVGPolicy.containsExternalReference(Self.spread(body, before: 3, behind: 0)) != nil)
        #expect(SVGPolicy.containsExternalReference(Self.spread(body, behind: 3)) != nil)
    }

    @Test func aByteOrderMarkInsideHidesNothing() {
        let text = "<svg><![CDATA[ ]]\u{FEFF}> <!-- ]]> <image href='a.png'/> <![CDATA[ --> ]]></svg>"
        #expect(SVGPolicy.containsExternalReference(Self.utf16("\u{FEFF}" + text)) != nil)
        #expect(SVGPolicy.containsExternalReference(Array(text.utf8)) != nil)
    }

    @Test func entitiesThatGrowEndEarly() {
        let names = (0..<12).map { UInt8(ascii: "a") + $0 }.map { String(UnicodeScalar($0)) }
        let subset =
            "<!ENTITY a 'aaaaaaaaaa'>"
            + zip(names.dropFirst(), names).map {
                "<!ENTITY \($0) '\(String(repeating: "&\($1);", count: 10))'>"
            }.joined()
        let prologue = "<!DOCTYPE svg [\(subset)<!ENTITY z '&z;'>]>"
        for name in ["l", "z"] {
            let document = Self.svg("<g style='&\(name);'/>", prologue: prologue)
            #expect(SVGPolicy.containsExternalReference(document) != nil)
        }
    }

    @Test func leavesDocumentsOfEditorsAlone() {
        let illustrator = """
            <?xml version="1.0" encoding="iso-8859-1"?><!-- Generator: don't -->
            <!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd" [
            <!ENTITY ns_svg "http://www.w3.org/2000/svg"><!ENTITY st0 "fill:#FFFFFF;filter:url(#a)">
            <!ENTITY systems "x">
            <!ATTLIST svg xmlns:xlink CDATA #FIXED "http://www.w3.org/1999/xlink" a:b CDATA #IMPLIED>]>
            """
        #expect(
            SVGPolicy.containsExternalReference(
                Self.svg(
                    """
                    <style/><style>@font-face{font-family:"\\5B8B\\4F53"} .a{content:"\\201C";fill:url(&quot;#b&quot;)}</style>
                    <style><![CDATA[ a > b { fill: url('#a') } ]]></style><text style="&st0;">url(a.png) &systems; &amp;</text>
                    <a xlink:href="https://example.com/?a=1&amp;b=2"><rect transform="rotate(1)"/></a>
                    <animate attributeName="x" to="5"/><set attributeName="xlink:href" to="#b"/><?xpacket begin='"'?>
                    """, prologue: illustrator, attributes: "xmlns:q='&ns_svg;' enable-background='new 0 0 1 1'"))
                == nil)
    }
}
