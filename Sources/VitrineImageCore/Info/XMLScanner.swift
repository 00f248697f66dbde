/// A pull scanner for the tags, attributes and text of small XML documents.
///
/// It knows no entities but the five of XML and numbers, follows no reference and opens nothing. Declarations of a
/// document type are an error, since nothing that holds an image needs them. Names are compared without their prefix.
package struct XMLScanner {
    /// The findings of ``next()``.
    package enum Event: Sendable, Hashable {
        /// A start tag. An element without content has ``XMLScanner/isEmptyElement`` set, and no end.
        case start
        case end
        /// Text or a CDATA section, perhaps a part of the text between two tags.
        case text
    }

    /// Open elements.
    private static let maximumDepth = 256

    private let bytes: [UInt8]
    private let input: String
    /// Where the next markup begins.
    package private(set) var position = 0
    private var depth = 0
    /// The name of the element of ``Event/start`` and ``Event/end``, without its prefix.
    package private(set) var name: Range<Int> = 0..<0
    /// The text of ``Event/text``, as it stands in the document.
    package private(set) var text: Range<Int> = 0..<0
    /// Whether the element of ``Event/start`` has no content.
    package private(set) var isEmptyElement = false
    private var attributes: Range<Int> = 0..<0

    /// - Parameters:
    ///   - bytes: The document in UTF-8, in another superset of ASCII, or in UTF-16 with a mark of its byte order.
    ///   - input: The name of the input in errors.
    package init(_ bytes: [UInt8], input: String) {
        self.bytes = XMLScanner.utf8(bytes) ?? bytes
        self.input = input
        if self.bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    private static func utf8(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count >= 2, bytes[0] &+ bytes[1] == 0xFD, bytes[0] >= 0xFE else { return nil }
        let high = bytes[0] == 0xFE ? 0 : 1
        let units = stride(from: 2, to: bytes.count - 1, by: 2).map {
            UInt16(bytes[$0 + high]) << 8 | UInt16(bytes[$0 + 1 - high])
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }

    /// The next tag or text; nil at the end of the document, which may come early.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` for declarations of a document type and for more than 256 open
    ///   elements.
    package mutating func next() throws(ImageError) -> Event? {
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "<") else {
                let start = position
                position = index(of: UInt8(ascii: "<"), from: position) ?? bytes.count
                text = start..<position
                return .text
            }
            if matches("<!--") {
                position = end(of: "-->", from: position &+ 4)
            } else if matches("<![CDATA[") {
                let start = position + 9
                position = end(of: "]]>", from: start)
                text = start..<max(start, position - 3)
                return .text
            } else if matches("<?") {
                position = end(of: "?>", from: position &+ 2)
            } else if matches("<!") {
                let close = index(of: UInt8(ascii: ">"), from: position) ?? bytes.count
                if bytes[position..<close].contains(UInt8(ascii: "[")) {
                    throw .corrupt(input: input, reason: "a document in it declares entities or elements of its own")
                }
                position = min(close + 1, bytes.count)
            } else if matches("</") {
                let close = index(of: UInt8(ascii: ">"), from: position) ?? bytes.count
                name = localName(from: position + 2, to: close)
                position = min(close + 1, bytes.count)
                depth = max(0, depth - 1)
                return .end
            } else {
                return try startTag()
            }
        }
        return nil
    }

    private mutating func startTag() throws(ImageError) -> Event? {
        let start = position + 1
        var at = start
        var quote: UInt8 = 0
        while at < bytes.count {
            let byte = bytes[at]
            if quote != 0 {
                if byte == quote { quote = 0 }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            } else if byte == UInt8(ascii: ">") {
                break
            }
            at &+= 1
        }
        guard at < bytes.count else {
            position = bytes.count
            return nil
        }
        isEmptyElement = at > start && bytes[at - 1] == UInt8(ascii: "/")
        let close = isEmptyElement ? at - 1 : at
        name = localName(from: start, to: close)
        attributes = name.upperBound..<max(close, name.upperBound)
        position = at + 1
        if !isEmptyElement {
            depth += 1
            guard depth <= XMLScanner.maximumDepth else {
                throw .corrupt(input: input, reason: "a document in it has more than 256 open elements")
            }
        }
        return .start
    }

    /// Whether the element has this name, apart from its prefix.
    package func isNamed(_ expected: StaticString) -> Bool { equals(name, expected) }

    /// The value of an attribute of the last start tag, apart from the prefix of its name, with its entities replaced;
    /// nil if there is none. At most 4,096 bytes.
    package func attribute(_ expected: StaticString) -> String? {
        var at = attributes.lowerBound
        let end = attributes.upperBound
        while at < end {
            while at < end, XMLScanner.isSpace(bytes[at]) || bytes[at] == UInt8(ascii: "/") { at &+= 1 }
            let start = at
            while at < end, bytes[at] != UInt8(ascii: "="), !XMLScanner.isSpace(bytes[at]) { at &+= 1 }
            let name = localName(from: start, to: at)
            while at < end, XMLScanner.isSpace(bytes[at]) { at &+= 1 }
            guard at < end, bytes[at] == UInt8(ascii: "=") else {
                if at == start { return nil }
                continue
            }
            at &+= 1
            while at < end, XMLScanner.isSpace(bytes[at]) { at &+= 1 }
            guard at < end, bytes[at] == UInt8(ascii: "\"") || bytes[at] == UInt8(ascii: "'") else { return nil }
            let close = index(of: bytes[at], from: at &+ 1) ?? end
            if equals(name, expected) { return string((at &+ 1)..<min(max(close, at &+ 1), end)) }
            at = close &+ 1
        }
        return nil
    }

    /// A part of the document as text, with its entities replaced. At most 4,096 bytes.
    package func string(_ range: Range<Int>) -> String {
        let part = bytes[range.prefix(4_096)]
        guard part.contains(UInt8(ascii: "&")) else { return String(decoding: part, as: UTF8.self) }
        var result: [UInt8] = []
        var at = part.startIndex
        while at < part.endIndex {
            guard part[at] == UInt8(ascii: "&"),
                let end = part[at...].prefix(12).firstIndex(of: UInt8(ascii: ";")),
                let scalar = XMLScanner.scalar(part[(at + 1)..<end])
            else {
                result.append(part[at])
                at += 1
                continue
            }
            result += Array(String(Character(scalar)).utf8)
            at = end + 1
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func scalar(_ name: ArraySlice<UInt8>) -> Unicode.Scalar? {
        switch String(decoding: name, as: UTF8.self) {
        case "amp": return "&"
        case "lt": return "<"
        case "gt": return ">"
        case "quot": return "\""
        case "apos": return "'"
        case let text where text.hasPrefix("#x"):
            return UInt32(text.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init)
        case let text where text.hasPrefix("#"): return UInt32(text.dropFirst()).flatMap(Unicode.Scalar.init)
        default: return nil
        }
    }

    /// The bytes of a part of the document.
    package func raw(_ range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }

    // MARK: Bytes

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 || byte == 10 || byte == 13 }

    private func matches(_ expected: StaticString) -> Bool {
        let length = expected.utf8CodeUnitCount
        guard position <= bytes.count - length else { return false }
        for i in 0..<length where bytes[position + i] != expected.utf8Start[i] { return false }
        return true
    }

    private func equals(_ range: Range<Int>, _ expected: StaticString) -> Bool {
        guard range.count == expected.utf8CodeUnitCount else { return false }
        for (i, at) in range.enumerated() where bytes[at] != expected.utf8Start[i] { return false }
        return true
    }

    private func index(of byte: UInt8, from start: Int) -> Int? {
        var at = start
        while at < bytes.count {
            if bytes[at] == byte { return at }
            at &+= 1
        }
        return nil
    }

    /// The index behind `mark`, or the end of the document.
    private func end(of mark: StaticString, from start: Int) -> Int {
        let length = mark.utf8CodeUnitCount
        var at = start
        while at &+ length <= bytes.count {
            var i = 0
            while i < length, bytes[at &+ i] == mark.utf8Start[i] { i &+= 1 }
            if i == length { return at &+ length }
            at &+= 1
        }
        return bytes.count
    }

    /// The part behind the colon of the name that begins at `start`.
    private func localName(from start: Int, to end: Int) -> Range<Int> {
        var (at, first) = (min(start, end), min(start, end))
        while at < end, !XMLScanner.isSpace(bytes[at]), bytes[at] != UInt8(ascii: "/"), bytes[at] != UInt8(ascii: "=") {
            if bytes[at] == UInt8(ascii: ":") { first = at &+ 1 }
            at &+= 1
        }
        return first..<at
    }
}
