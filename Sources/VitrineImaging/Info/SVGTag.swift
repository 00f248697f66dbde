/// The attributes of one XML start tag, found without building a document.
struct SVGTag {
    /// A name and the raw value between the quotes, entities unresolved.
    struct Attribute {
        var name: ArraySlice<UInt8>
        var value: ArraySlice<UInt8>

        /// The name without its namespace prefix.
        var localName: ArraySlice<UInt8> {
            name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
        }
    }

    /// The element's name with its prefix.
    private(set) var name: ArraySlice<UInt8>
    private(set) var attributes: [Attribute] = []

    /// Reads the tag between its angle brackets. Attributes behind the first 256 are passed over.
    init(_ text: [UInt8], _ range: Range<Int>) {
        var at = range.lowerBound
        func skip(while condition: (UInt8) -> Bool) { while at < range.upperBound, condition(text[at]) { at += 1 } }
        skip { !SVGPrologue.isSpace($0) && $0 != UInt8(ascii: "/") }
        name = text[range.lowerBound..<at]
        while attributes.count < 256 {
            skip { SVGPrologue.isSpace($0) || $0 == UInt8(ascii: "/") }
            let start = at
            skip { !SVGPrologue.isSpace($0) && $0 != UInt8(ascii: "=") }
            let attribute = text[start..<at]
            skip(while: SVGPrologue.isSpace)
            guard at < range.upperBound, text[at] == UInt8(ascii: "=") else {
                // A name without a value is not XML; go on behind it.
                if at >= range.upperBound || attribute.isEmpty { return }
                continue
            }
            at += 1
            skip(while: SVGPrologue.isSpace)
            guard at < range.upperBound else { return }
            let quote = text[at]
            guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return }
            at += 1
            let valueStart = at
            skip { $0 != quote }
            attributes.append(Attribute(name: attribute, value: text[valueStart..<at]))
            at += 1
        }
    }

    /// The value of the first attribute with this full name.
    subscript(name: String) -> String? {
        attributes.first { $0.name.elementsEqual(name.utf8) }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// Where the `>` that closes a tag stands, outside of quotes; nil when the text ends before.
    static func end(_ text: [UInt8], from start: Int) -> Int? {
        var (at, quote) = (start, UInt8(0))
        while at < text.count {
            let byte = text[at]
            if quote != 0 {
                if byte == quote { quote = 0 }
            } else if byte == UInt8(ascii: ">") {
                return at
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            }
            at += 1
        }
        return nil
    }
}
