import VitrineImageCore

/// Finds references in SVG that would make a renderer read other files, and takes them out.
///
/// Source: SVG 2 §2.2 (processing modes; an image must not fetch), §16.1 (URL references); CSS Images 3 §2; CSS Syntax
/// 3 §4.3.7 (escapes); XML 1.0 §3.3.2 (default attributes), §4.2.2 (external entities); XInclude 1.1. Ambiguous markup
/// counts as a reference. Links (`<a>`) are not fetched and do not count. One pass, linear in the document.
package enum SVGPolicy {
    /// Bytes of an embedded `data:` image; larger ones count as external. 1 MB.
    static let maximumEmbeddedImageBytes = 1 << 20

    /// A document that keeps to itself.
    package struct Drawing: Sendable {
        /// The document without its references to other files.
        package var bytes: [UInt8]
        /// The references that were left out, each kind once, such as ``SVGPolicy/otherFile``.
        package var leftOut: [String] = []
    }

    /// The name of a reference to a file.
    static let otherFile = "a reference to another file"

    /// Takes the references out of a document that would make a renderer read other files.
    ///
    /// Nothing else changes. A document that cannot be told to keep to itself is not drawn at all: one in an unknown
    /// encoding, with parameter entities, or with entities that hold markup or grow without end.
    ///
    /// - Parameters:
    ///   - document: The document, not compressed.
    ///   - input: The name of the document in errors.
    /// - Throws: ``ImageError/unsupported(input:reason:)``.
    package static func keepToItself(_ document: [UInt8], input: String) throws(ImageError) -> Drawing {
        var scan = SVGPolicyScan(SVGPrologue(document).text)
        if let reason = scan.refusal() { throw .unsupported(input: input, reason: reason) }
        guard !scan.references.isEmpty else { return Drawing(bytes: document) }
        let edited = scan.edited
        // What an edit reveals is not taken out, but refused.
        var check = SVGPolicyScan(edited)
        if let reason = check.refusal() ?? check.references.first { throw .unsupported(input: input, reason: reason) }
        return Drawing(bytes: edited, leftOut: scan.references)
    }

    /// Returns the first reference to another file, or the reason why it cannot be found; nil for a document without.
    package static func containsExternalReference(_ document: [UInt8]) -> String? {
        var scan = SVGPolicyScan(SVGPrologue(document).text)
        return scan.refusal() ?? scan.references.first
    }

    /// Returns the name for the value of an address that is not internal.
    static func reference(_ value: ArraySlice<UInt8>) -> String {
        let value = value.drop(while: ByteText.isSpace)
        let isEmbedded = value.prefix(5).map(lowercase).elementsEqual("data:".utf8)
        return isEmbedded ? "an embedded file other than an image of at most 1 MB" : otherFile
    }

    /// Finds, in style text as it is written, imports and functions whose address is not internal.
    ///
    /// - Returns: Their places, in order, and the text that can stand there instead. A function that is a whole value
    ///   becomes `none`, as an address that leads nowhere does (SVG 2 §13.2).
    static func externalParts(_ text: ArraySlice<UInt8>) -> [(range: Range<Int>, replacement: String)] {
        var found: [(range: Range<Int>, replacement: String)] = []
        var at = text.startIndex
        while at < text.endIndex {
            if text[at] == UInt8(ascii: "@"), hasPrefix(text[at...], "@import") {
                var end = end(of: text[at...]) { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "}") }
                // A semicolon left alone would spoil the rule behind it.
                if text[end...].first == UInt8(ascii: ";") { end += 1 }
                found.append((at..<end, ""))
                at = end
            } else if text[at] == UInt8(ascii: "("), isFetching(text[..<at].suffix(8)) {
                let argument = text[(at + 1)...].prefix { $0 != UInt8(ascii: ")") }
                let name = text[..<at].reversed().prefix { isNamed($0) }.count
                let end = min(end(of: text[(at + 1)...]) { $0 == UInt8(ascii: ")") } + 1, text.endIndex)
                if isInternal(unquoted(argument)) {
                    at += 1
                } else {
                    let next = text[end...].first { !ByteText.isSpace($0) }
                    let isWhole = next.map { ";}!".utf8.contains($0) } ?? true
                    found.append(((at - name)..<end, isWhole ? "none" : ""))
                    at = end
                }
            } else {
                at += 1
            }
        }
        return found
    }

    /// Where a byte that ends something stands, outside of quotes and of parentheses within; the end of `text` without.
    private static func end(of text: ArraySlice<UInt8>, _ isEnd: (UInt8) -> Bool) -> Int {
        var (depth, quote) = (0, UInt8(0))
        for (at, byte) in zip(text.indices, text) {
            if quote != 0 {
                if byte == quote { quote = 0 }
            } else if depth == 0, isEnd(byte) {
                return at
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            } else if byte == UInt8(ascii: "(") {
                depth += 1
            } else if byte == UInt8(ascii: ")") {
                depth = max(0, depth - 1)
            }
        }
        return text.endIndex
    }

    private static func isNamed(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (97...122).contains(lowercase(byte)) || byte == UInt8(ascii: "-")
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
            if isFetching(name) {
                let value = unquoted(rest.prefix { $0 != UInt8(ascii: ")") })
                if !isInternal(value) { return reference(value) }
            }
        }
        return nil
    }

    /// Whether the text before a parenthesis ends in the name of a function that fetches its argument.
    private static func isFetching(_ name: ArraySlice<UInt8>) -> Bool {
        ["url", "src", "image", "-set"].contains { hasSuffix(name, $0) }
    }

    private static func unquoted(_ argument: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        argument.drop { ByteText.isSpace($0) || $0 == UInt8(ascii: "'") || $0 == UInt8(ascii: "\"") }
    }

    private static func hasPrefix(_ text: ArraySlice<UInt8>, _ word: String) -> Bool {
        text.prefix(word.utf8.count).map(lowercase).elementsEqual(word.utf8)
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
                if let space = rest.first, ByteText.isSpace(space) { rest = rest.dropFirst() }
                let number = UInt32(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0
                bytes += String(UnicodeScalar(number) ?? "\u{FFFD}").utf8
            }
        }
        return bytes
    }

    /// Returns whether a value is a fragment of the same document, a small embedded bitmap, or empty.
    static func isInternal(_ value: ArraySlice<UInt8>) -> Bool {
        let value = value.drop(while: ByteText.isSpace)
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
