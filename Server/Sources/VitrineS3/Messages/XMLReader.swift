/// An element of an XML document.
package struct XMLElement: Sendable, Equatable {
    /// The name without a prefix.
    package var name: String
    /// The characters directly inside the element.
    package var text = ""
    package var children: [XMLElement] = []

    /// Returns the first child with a name.
    package subscript(name: String) -> XMLElement? { children.first { $0.name == name } }

    /// Returns the text of the first child with a name.
    package func text(of name: String) -> String? { self[name]?.text }
}

/// Parses the XML of S3 servers.
///
/// A small subset: elements, characters, comments, CDATA, the five named entities and numbered ones. Documents with a
/// document type are refused, so entities cannot be declared. Depth, elements and bytes are limited.
package struct XMLReader {
    /// The reason why a document is refused.
    package struct Problem: Error {
        package let reason: String
    }

    private static let deepest = 16
    private static let mostElements = 40_000
    private static let longestName = 128

    private let bytes: ArraySlice<UInt8>
    private var at: Int
    private var count = 0

    private init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        at = bytes.startIndex
    }

    /// Returns the outermost element of a document in UTF-8.
    package static func parse(_ bytes: [UInt8]) throws(Problem) -> XMLElement {
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        var reader = XMLReader(bytes[start...])
        return try reader.document()
    }

    private mutating func document() throws(Problem) -> XMLElement {
        // Servers send blanks to keep the connection open while they work.
        skipBlanks()
        if skip("<?xml") { try skip(past: "?>") }
        try skipBetween()
        guard skip("<") else { throw Problem(reason: "there is no element") }
        // The open elements, outermost first.
        var open: [XMLElement] = []
        var (element, isEmpty) = try startTag()
        if isEmpty { return try end(element) }
        while true {
            try characters(into: &element)
            if skip("</") {
                guard try name() == element.name else { throw Problem(reason: "an element is not closed") }
                skipBlanks()
                guard skip(">") else { throw Problem(reason: "an end tag is not closed") }
                guard var parent = open.popLast() else { return try end(element) }
                parent.children.append(element)
                element = parent
            } else if skip("<!--") {
                try skip(past: "-->")
            } else if skip("<![CDATA[") {
                let start = at
                try skip(past: "]]>")
                element.text += try text(bytes[start..<(at - 3)])
            } else if skip("<") {
                let (child, isEmpty) = try startTag()
                if isEmpty {
                    element.children.append(child)
                } else {
                    guard open.count < Self.deepest else { throw Problem(reason: "it is nested too deeply") }
                    open.append(element)
                    element = child
                }
            } else {
                throw Problem(reason: "it ends early")
            }
        }
    }

    private mutating func end(_ element: XMLElement) throws(Problem) -> XMLElement {
        try skipBetween()
        guard at == bytes.endIndex else { throw Problem(reason: "there is more than one element") }
        return element
    }

    /// Skips blanks and comments outside the elements.
    private mutating func skipBetween() throws(Problem) {
        while true {
            skipBlanks()
            guard skip("<!--") else { return }
            try skip(past: "-->")
        }
    }

    /// Reads a start tag behind its `<`. Attributes are skipped.
    private mutating func startTag() throws(Problem) -> (XMLElement, isEmpty: Bool) {
        count += 1
        guard count <= Self.mostElements else { throw Problem(reason: "it has too many elements") }
        let element = XMLElement(name: try name())
        while true {
            let hadBlank = skipBlanks()
            if skip(">") { return (element, false) }
            if skip("/>") { return (element, true) }
            guard hadBlank else { throw Problem(reason: "a tag is malformed") }
            _ = try name()
            skipBlanks()
            guard skip("=") else { throw Problem(reason: "an attribute has no value") }
            skipBlanks()
            if skip("\"") {
                try skip(past: "\"")
            } else if skip("'") {
                try skip(past: "'")
            } else {
                throw Problem(reason: "an attribute has no quotes")
            }
        }
    }

    private mutating func name() throws(Problem) -> String {
        let start = at
        var local = at
        while at < bytes.endIndex {
            let byte = bytes[at]
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                0x80...:
                break
            case UInt8(ascii: ":"): local = at + 1
            default:
                guard local < at, at - start <= Self.longestName else { throw Problem(reason: "a name is malformed") }
                return try text(bytes[local..<at])
            }
            at += 1
        }
        throw Problem(reason: "it ends in a tag")
    }

    private mutating func characters(into element: inout XMLElement) throws(Problem) {
        while at < bytes.endIndex, bytes[at] != UInt8(ascii: "<") {
            if bytes[at] == UInt8(ascii: "&") {
                element.text.unicodeScalars.append(try entity())
                continue
            }
            let end = bytes[at...].firstIndex { $0 == UInt8(ascii: "<") || $0 == UInt8(ascii: "&") } ?? bytes.endIndex
            element.text += try text(bytes[at..<end])
            at = end
        }
    }

    private mutating func entity() throws(Problem) -> Unicode.Scalar {
        let limit = bytes[at...].prefix(12)
        guard let end = limit.firstIndex(of: UInt8(ascii: ";")) else { throw Problem(reason: "an entity is malformed") }
        let name = try text(bytes[(at + 1)..<end])
        at = end + 1
        switch name {
        case "lt": return "<"
        case "gt": return ">"
        case "amp": return "&"
        case "quot": return "\""
        case "apos": return "'"
        default:
            let isHexadecimal = name.hasPrefix("#x")
            let digits = name.dropFirst(isHexadecimal ? 2 : 1)
            guard name.hasPrefix("#"),
                digits.utf8.first.map({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }) ?? false,
                let number = UInt32(digits, radix: isHexadecimal ? 16 : 10), number > 0,
                let scalar = Unicode.Scalar(number)
            else { throw Problem(reason: "it has an unknown entity") }
            return scalar
        }
    }

    private func text(_ bytes: ArraySlice<UInt8>) throws(Problem) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw Problem(reason: "it is not UTF-8") }
        return text
    }

    private mutating func skip(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard bytes.endIndex - at >= count else { return false }
        for index in 0..<count where bytes[at + index] != text.utf8Start[index] { return false }
        at += count
        return true
    }

    private mutating func skip(past text: StaticString) throws(Problem) {
        while at < bytes.endIndex {
            if skip(text) { return }
            at += 1
        }
        throw Problem(reason: "it ends early")
    }

    @discardableResult
    private mutating func skipBlanks() -> Bool {
        let start = at
        while at < bytes.endIndex, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[at]) { at += 1 }
        return at > start
    }

    /// Returns a text in which the characters of markup are entities.
    package static func escaped(_ text: String) -> String {
        // By bytes: a mark behind a character belongs to it for texts, but not for XML.
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"): bytes += Array("&amp;".utf8)
            case UInt8(ascii: "<"): bytes += Array("&lt;".utf8)
            case UInt8(ascii: ">"): bytes += Array("&gt;".utf8)
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
