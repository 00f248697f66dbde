import Testing
import VitrineS3

struct XMLReaderTests {
    private func parse(_ text: String) throws -> XMLElement { try XMLReader.parse(Array(text.utf8)) }

    @Test("Elements, characters, entities, comments and CDATA are read")
    func documentsAreRead() throws {
        let root = try parse(
            """
             \n<?xml version="1.0" encoding="UTF-8"?>\n<!-- a > b --><a:List xmlns:a="x" b='>'>
            <Key>&lt;a&amp;b&#62;&#x41;&quot;&apos;ä</Key><Empty/><Empty />
            <Two>1<!-- - -->2<![CDATA[<&]]]></Two></a:List >\n
            """)
        #expect(root.name == "List")
        #expect(root.text(of: "Key") == "<a&b>A\"'ä")
        #expect(root.children.map(\.name) == ["Key", "Empty", "Empty", "Two"])
        #expect(root.text(of: "Two") == "12<&]")
        #expect(try XMLReader.parse([0xEF, 0xBB, 0xBF] + Array("<a>b</a>".utf8)).text == "b")
    }

    @Test(
        "Hostile and malformed documents are refused",
        arguments: [
            "", " ", "text", "<", "<a", "<a>", "<a></b>", "<a></a", "<a></a><b/>", "<a></a>x", "<a b></a>", "<a b=c/>",
            "<a b=\"c/>", "<a>&</a>", "<a>&nope;</a>", "<a>&#0;</a>", "<a>&#xD800;</a>", "<a>&#+65;</a>",
            "<a>&#x110000;</a>",
            "<a>&#99999999999;</a>", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "<a><!DOCTYPE b></a>",
            "<a><?b?></a>",
            "<a><!-- </a>", "<a><![CDATA[ </a>", "< a/>", "<a/ >", "<a:/>", "<a\u{0}/>",
            "<a><b></a></b>"
        ])
    func malformedDocumentsAreRefused(text: String) {
        #expect(throws: XMLReader.Problem.self) { try parse(text) }
    }

    @Test("Depth, elements and names are limited, and bytes that are not UTF-8 are refused")
    func documentsAreLimited() {
        let deep = String(repeating: "<a>", count: 100) + String(repeating: "</a>", count: 100)
        #expect(throws: XMLReader.Problem.self) { try parse(deep) }
        #expect(throws: XMLReader.Problem.self) { try parse("<a>" + String(repeating: "<b/>", count: 50_000) + "</a>") }
        let long = String(repeating: "n", count: 1_000)
        #expect(throws: XMLReader.Problem.self) { try parse("<\(long)></\(long)>") }
        #expect(throws: XMLReader.Problem.self) { try XMLReader.parse(Array("<a>".utf8) + [0xFF] + Array("</a>".utf8)) }
    }

    @Test("Changed documents are read or refused, and texts survive")
    func changedDocumentsDoNotTrap() throws {
        var random = SeededGenerator(state: 13)
        let sample = Array(
            """
            <?xml version="1.0"?><List xmlns="http://s3"><Contents><Key>a&amp;b</Key><Size>12</Size></Contents>\
            <!-- c --><IsTruncated>true</IsTruncated><Next><![CDATA[x]]></Next></List>
            """.utf8)
        let alphabet = Array("<>&;/!-[]\"'= a#x?:\u{0}é".utf8)
        var refused = 0
        for _ in 0..<20_000 {
            var bytes = sample
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let at = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[at] = alphabet.randomElement(using: &random) ?? 0
                case 1: bytes.remove(at: at)
                case 2: bytes.insert(alphabet.randomElement(using: &random) ?? 0, at: at)
                default: bytes.removeLast(min(bytes.count - 1, Int.random(in: 0..<40, using: &random)))
                }
            }
            if (try? XMLReader.parse(bytes)) == nil { refused += 1 }
        }
        #expect(refused > 5_000 && refused < 20_000)
        for _ in 0..<2_000 {
            let scalars = (0..<8).map { _ in Unicode.Scalar(UInt32.random(in: 1...0xFFFF, using: &random)) ?? "&" }
            let text = String(String.UnicodeScalarView(scalars))
            #expect(try parse("<a>" + XMLReader.escaped(text) + "</a>").text.utf8.elementsEqual(text.utf8))
        }
    }
}
