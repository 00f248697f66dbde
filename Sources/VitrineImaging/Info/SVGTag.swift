/// The attributes of one XML start tag, found without building a document.
struct SVGTag {
    /// A name and the raw value between the quotes, entities unresolved.
    struct Attribute {
        var name: ArraySlice<UInt8>
        var value: ArraySlice<UInt8>

        /// The name without its namespace prefix.
        var localName: ArraySlice<UInt8> { SVGTag.local(name) }
    }

    /// All attributes of a tag in their order, found one by one as they are asked for.
    ///
    /// A value without quotes ends at the next space, and one without a closing quote at the end of the tag.
    struct Attributes: Sequence, IteratorProtocol {
        fileprivate var rest: ArraySlice<UInt8>

        mutating func next() -> Attribute? {
            while true {
                rest = rest.drop { SVGPrologue.isSpace($0) || $0 == UInt8(ascii: "/") }
                guard !rest.isEmpty else { return nil }
                let name = rest.prefix { !SVGPrologue.isSpace($0) && $0 != UInt8(ascii: "=") }
                rest = rest[name.endIndex...].drop(while: SVGPrologue.isSpace)
                // A name without a value is not XML; go on behind it.
                guard rest.first == UInt8(ascii: "=") else { continue }
                rest = rest.dropFirst().drop(while: SVGPrologue.isSpace)
                guard let quote = rest.first else { return nil }
                guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
                    let value = rest.prefix { !SVGPrologue.isSpace($0) }
                    rest = rest[value.endIndex...]
                    return Attribute(name: name, value: value)
                }
                let value = rest.dropFirst().prefix { $0 != quote }
                rest = rest[value.endIndex...].dropFirst()
                return Attribute(name: name, value: value)
            }
        }
    }

    /// The element's name with its prefix.
    let name: ArraySlice<UInt8>
    let attributes: Attributes

    /// Reads the tag between its angle brackets.
    init(_ text: [UInt8], _ range: Range<Int>) {
        let tag = text[range]
        name = tag.prefix { !SVGPrologue.isSpace($0) && $0 != UInt8(ascii: "/") }
        attributes = Attributes(rest: tag[name.endIndex...])
    }

    /// The value of the first of the first 256 attributes that has this full name.
    subscript(name: String) -> String? {
        attributes.prefix(256).first { $0.name.elementsEqual(name.utf8) }.map {
            String(decoding: $0.value, as: UTF8.self)
        }
    }

    /// A name without its namespace prefix.
    static func local(_ name: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
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
