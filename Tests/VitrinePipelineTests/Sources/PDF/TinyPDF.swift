/// A PDF document written by hand: pages with any boxes and turns, and what they draw.
struct TinyPDF {
    struct Page {
        var mediaBox = "0 0 200 100"
        var cropBox: String?
        var rotation = 0
        var userUnit: Double?
        var content = ""
    }

    var pages: [Page] = []
    /// As the file writes it, in parentheses or angle brackets.
    var title: String?
    /// Numbered from 1, before those of the pages: what the pages' resources refer to.
    var objects: [String] = []
    /// The pages' resource dictionary.
    var resources = ""

    /// Four coloured rectangles that fill a rectangle of user space: red above left, green above right, blue below
    /// left, yellow below right.
    static func quadrants(x: Int, y: Int, width: Int, height: Int) -> String {
        let (w, h) = (width / 2, height / 2)
        return """
            1 0 0 rg \(x) \(y + h) \(w) \(h) re f 0 1 0 rg \(x + w) \(y + h) \(w) \(h) re f
            0 0 1 rg \(x) \(y) \(w) \(h) re f 1 1 0 rg \(x + w) \(y) \(w) \(h) re f
            """
    }

    static func stream(_ content: String, _ entries: String = "") -> String {
        "<<\(entries)/Length \(content.utf8.count)>> stream\n\(content)\nendstream"
    }

    /// Drawn 10¹² times: never done.
    static var endless: TinyPDF {
        var document = TinyPDF()
        let depth = 12
        for level in 1...depth {
            let content = level == depth ? "0 0 9 9 re f" : Array(repeating: "/X Do", count: 10).joined(separator: " ")
            let next = level == depth ? "" : "/Resources<</XObject<</X \(level + 1) 0 R>> >>"
            document.objects.append(
                stream(content, "/Type/XObject/Subtype/Form/BBox[0 0 200 100]\(next)"))
        }
        document.resources = "/XObject<</X 1 0 R>>"
        document.pages = [Page(content: "/X Do")]
        return document
    }

    /// Pages of one text each, for counting and for measuring.
    static func book(pages count: Int) -> TinyPDF {
        var document = TinyPDF()
        document.resources = "/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>> >>"
        document.pages = (1...count).map { Page(content: "BT /F 20 Tf 10 40 Td (Page \($0)) Tj ET") }
        return document
    }

    var bytes: [UInt8] {
        var bodies = objects
        let tree = bodies.count + 1
        let first = tree + 1
        let kids = pages.indices.map { "\(first + 2 * $0) 0 R" }.joined(separator: " ")
        bodies.append("<</Type/Pages/Count \(pages.count)/Kids[\(kids)]>>")
        for (index, page) in pages.enumerated() {
            var entries = "/Type/Page/Parent \(tree) 0 R/MediaBox[\(page.mediaBox)]/Rotate \(page.rotation)"
            if let cropBox = page.cropBox { entries += "/CropBox[\(cropBox)]" }
            if let userUnit = page.userUnit { entries += "/UserUnit \(userUnit)" }
            bodies.append("<<\(entries)/Resources<<\(resources)>>/Contents \(first + 2 * index + 1) 0 R>>")
            bodies.append(Self.stream(page.content))
        }
        bodies.append("<</Type/Catalog/Pages \(tree) 0 R>>")
        let catalog = bodies.count
        if let title { bodies.append("<</Title\(title)>>") }
        var file = "%PDF-1.7\n"
        var offsets: [Int] = []
        for (index, body) in bodies.enumerated() {
            offsets.append(file.utf8.count)
            file += "\(index + 1) 0 obj\n\(body)\nendobj\n"
        }
        let table = file.utf8.count
        file += "xref\n0 \(bodies.count + 1)\n0000000000 65535 f \n"
        for offset in offsets {
            let digits = String(offset)
            file += String(repeating: "0", count: 10 - digits.utf8.count) + digits + " 00000 n \n"
        }
        let info = title == nil ? "" : "/Info \(bodies.count) 0 R"
        file += "trailer\n<</Size \(bodies.count + 1)/Root \(catalog) 0 R\(info)>>\nstartxref\n\(table)\n%%EOF\n"
        return Array(file.utf8)
    }
}
