/// Finds what would make a renderer of SVG read anything but the document itself.
///
/// Source: SVG 2 §2.2 (processing modes; an image must not fetch), §16.1 (URL references); CSS Images 3 §2; XML 1.0
/// §4.2.2 (external entities); XInclude 1.1. In doubt the answer is yes: names hidden by entities or CSS escapes count
/// as external. Links (`<a>`) are not fetched and do not count. One pass, linear in the document.
package enum SVGPolicy {
    /// Bytes one embedded `data:` image may have; larger ones count as external. 1 MB.
    static let maximumEmbeddedImageBytes = 1 << 20

    /// Why the document must not be rendered; nil when it keeps to itself.
    package static func containsExternalReference(_ document: [UInt8]) -> String? {
        let text = SVGPrologue(document).text
        var at = 0
        var isStyle = false
        while let open = text[at...].firstIndex(of: UInt8(ascii: "<")) {
            if isStyle, let reason = css(text[at..<open]) { return reason }
            let rest = text[(open + 1)...]
            if rest.starts(with: "!--".utf8) {
                at = SVGPrologue.find("-->", in: text, from: open + 4) ?? text.count
            } else if rest.starts(with: "![CDATA[".utf8) {
                at = SVGPrologue.find("]]>", in: text, from: open + 9) ?? text.count
                if isStyle, let reason = css(text[open..<at]) { return reason }
            } else if rest.starts(with: "!".utf8) || rest.starts(with: "?".utf8) {
                let end = SVGTag.end(text, from: open + 1) ?? text.count
                if let reason = declaration(text, (open + 1)..<end) { return reason }
                at = min(end + 1, text.count)
                // Declarations inside of a document type follow one by one.
                if rest.starts(with: "!DOCTYPE".utf8), let subset = text[open..<end].firstIndex(of: UInt8(ascii: "[")) {
                    at = subset + 1
                }
            } else {
                let end = SVGTag.end(text, from: open + 1) ?? text.count
                let tag = SVGTag(text, (open + 1)..<end)
                if let reason = element(tag) { return reason }
                isStyle = local(tag.name).elementsEqual("style".utf8)
                at = min(end + 1, text.count)
            }
        }
        return nil
    }

    private static func local(_ name: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
    }

    private static func declaration(_ text: [UInt8], _ range: Range<Int>) -> String? {
        let body = text[range]
        if body.starts(with: "!ENTITY".utf8) {
            // The declared text stands between quotes; SYSTEM and PUBLIC stand outside of them.
            let name = body.prefix { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "'") }
            if contains(name, "SYSTEM") || contains(name, "PUBLIC") { return "an external entity" }
        }
        if body.starts(with: "?xml-stylesheet".utf8) {
            for attribute in SVGTag(text, range).attributes where attribute.name.elementsEqual("href".utf8) {
                if !isInternal(attribute.value) { return "an external style sheet" }
            }
        }
        return nil
    }

    private static func element(_ tag: SVGTag) -> String? {
        let isLink = local(tag.name).elementsEqual("a".utf8)
        for attribute in tag.attributes {
            if contains(attribute.value, "2001/XInclude") { return "XInclude" }
            let name = attribute.localName
            if attribute.name.elementsEqual("xml:base".utf8) { return "xml:base" }
            if name.elementsEqual("href".utf8) || name.elementsEqual("src".utf8) || name.elementsEqual("srcset".utf8) {
                if !isLink, !isInternal(attribute.value) { return "a reference to another file" }
            } else if let reason = css(attribute.value) {
                return reason
            }
        }
        return nil
    }

    /// Style text, or an attribute that may hold a `url()`.
    private static func css(_ text: ArraySlice<UInt8>) -> String? {
        if contains(text, "@import") { return "an imported style sheet" }
        var rest = text
        while let open = rest.firstIndex(of: UInt8(ascii: "(")) {
            let name = rest[..<open].suffix(8)
            let argument = rest[(open + 1)...]
            rest = argument
            // A backslash, or an entity, may spell url in disguise.
            if name.contains(UInt8(ascii: "\\")) || name.contains(UInt8(ascii: "&")) {
                return "an escaped function name"
            }
            if hasSuffix(name, "url") || hasSuffix(name, "src") || hasSuffix(name, "image") || hasSuffix(name, "-set") {
                if !isInternal(argument.prefix { $0 != UInt8(ascii: ")") }) { return "a url() of another file" }
            }
        }
        return nil
    }

    /// A fragment of the same document, a small embedded bitmap, or nothing at all.
    private static func isInternal(_ value: ArraySlice<UInt8>) -> Bool {
        var value = value.drop { SVGPrologue.isSpace($0) || $0 == UInt8(ascii: "'") || $0 == UInt8(ascii: "\"") }
        for quote in ["&quot;", "&apos;", "&#39;", "&#34;"] where value.starts(with: quote.utf8) {
            value = value.dropFirst(quote.utf8.count)
        }
        guard let first = value.first else { return true }
        if first == UInt8(ascii: "#") { return true }
        guard value.count <= maximumEmbeddedImageBytes else { return false }
        return ["data:image/png", "data:image/jpeg", "data:image/jpg", "data:image/gif", "data:image/webp"].contains {
            value.prefix($0.utf8.count).map { $0 | 0x20 }.elementsEqual($0.utf8.map { $0 | 0x20 })
        }
    }

    /// Whether ASCII `word` occurs, whatever the case of letters.
    private static func contains(_ text: ArraySlice<UInt8>, _ word: StaticString) -> Bool {
        let length = word.utf8CodeUnitCount
        guard text.count >= length else { return false }
        return text.withUnsafeBufferPointer { bytes in
            for start in 0...(bytes.count - length) where bytes[start] | 0x20 == word.utf8Start[0] | 0x20 {
                if (1..<length).allSatisfy({ bytes[start + $0] | 0x20 == word.utf8Start[$0] | 0x20 }) { return true }
            }
            return false
        }
    }

    private static func hasSuffix(_ text: ArraySlice<UInt8>, _ word: String) -> Bool {
        text.suffix(word.utf8.count).map { $0 | 0x20 }.elementsEqual(word.utf8.map { $0 | 0x20 })
    }
}
