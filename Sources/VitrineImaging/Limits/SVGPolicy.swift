/// Finds references in SVG that would make a renderer read other files.
///
/// Source: SVG 2 §2.2 (processing modes; an image must not fetch), §16.1 (URL references); CSS Images 3 §2; CSS Syntax
/// 3 §4.3.7 (escapes); XML 1.0 §3.3.2 (default attributes), §4.2.2 (external entities); XInclude 1.1. Ambiguous markup
/// counts as a reference. Links (`<a>`) are not fetched and do not count. One pass, linear in the document.
package enum SVGPolicy {
    /// Bytes of an embedded `data:` image; larger ones count as external. 1 MB.
    static let maximumEmbeddedImageBytes = 1 << 20

    /// Returns the reason why the document must not be rendered; nil without external references.
    package static func containsExternalReference(_ document: [UInt8]) -> String? {
        var scan = SVGPolicyScan(SVGPrologue(document).text)
        return scan.reason()
    }

    /// Checks style text, or an attribute that may hold a `url()`, with and without its escapes.
    static func css(_ text: ArraySlice<UInt8>) -> String? {
        if let reason = plainCSS(text) { return reason }
        guard text.contains(UInt8(ascii: "\\")) else { return nil }
        return plainCSS(unescaped(text)[...])
    }

    private static func plainCSS(_ text: ArraySlice<UInt8>) -> String? {
        if contains(text, "@import") { return "an imported style sheet" }
        var rest = text
        while let open = rest.firstIndex(of: UInt8(ascii: "(")) {
            let name = rest[..<open].suffix(8)
            rest = rest[(open + 1)...]
            if ["url", "src", "image", "-set"].contains(where: { hasSuffix(name, $0) }) {
                let argument = rest.prefix { $0 != UInt8(ascii: ")") }
                let value = argument.drop {
                    SVGPrologue.isSpace($0) || $0 == UInt8(ascii: "'") || $0 == UInt8(ascii: "\"")
                }
                if !isInternal(value) { return "a url() of another file" }
            }
        }
        return nil
    }

    /// Returns CSS without its escapes: up to six hexadecimal digits and a space, or any other byte behind a backslash.
    private static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let next = rest.first else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(6).prefix { isHexadecimal($0) }
            if digits.isEmpty {
                rest = rest.dropFirst()
                if next != UInt8(ascii: "\n") { bytes.append(next) }
            } else {
                rest = rest.dropFirst(digits.count)
                if rest.starts(with: "\r\n".utf8) { rest = rest.dropFirst() }
                if let space = rest.first, SVGPrologue.isSpace(space) { rest = rest.dropFirst() }
                let number = UInt32(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0
                bytes += String(UnicodeScalar(number) ?? "\u{FFFD}").utf8
            }
        }
        return bytes
    }

    /// Returns whether a value is a fragment of the same document, a small embedded bitmap, or empty.
    static func isInternal(_ value: ArraySlice<UInt8>) -> Bool {
        let value = value.drop(while: SVGPrologue.isSpace)
        guard let first = value.first else { return true }
        if first == UInt8(ascii: "#") { return true }
        guard value.count <= maximumEmbeddedImageBytes else { return false }
        return ["data:image/png", "data:image/jpeg", "data:image/jpg", "data:image/gif", "data:image/webp"].contains {
            value.prefix($0.utf8.count).map(lowercase).elementsEqual($0.utf8)
        }
    }

    /// Returns whether ASCII `word`, which is in lower case, occurs in any case of letters.
    static func contains(_ text: ArraySlice<UInt8>, _ word: StaticString) -> Bool {
        let length = word.utf8CodeUnitCount
        guard text.count >= length else { return false }
        return text.withUnsafeBufferPointer { bytes in
            for start in 0...(bytes.count - length) where lowercase(bytes[start]) == word.utf8Start[0] {
                if (1..<length).allSatisfy({ lowercase(bytes[start + $0]) == word.utf8Start[$0] }) { return true }
            }
            return false
        }
    }

    static func lowercase(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 0x20 : byte }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (97...102).contains(lowercase(byte))
    }

    private static func hasSuffix(_ text: ArraySlice<UInt8>, _ word: String) -> Bool {
        text.suffix(word.utf8.count).map(lowercase).elementsEqual(word.utf8)
    }
}
