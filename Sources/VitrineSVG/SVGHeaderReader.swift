import VitrineImageCore

/// Reads the size an SVG document asks for: `width`, `height` and `viewBox` of its root element.
///
/// Source: SVG 2 §8.2, §8.6; CSS 2.2 §10.3.2 (300 × 150 for an image without any size) and CSS Values 4 §6.2 (units).
package enum SVGHeaderReader: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let start = try SVGFile.beginning(reader, count: 64 << 10)
        var prologue = SVGPrologue(start)
        if prologue.root == nil, start.count == 64 << 10 {
            prologue = SVGPrologue(try SVGFile.beginning(reader, count: limits.maximumDocumentBytes))
        }
        guard let root = prologue.root else { throw .truncated(input: reader.name) }
        let size = naturalSize(SVGTag(prologue.text, root))
        var header = ImageHeader(info: ImageInfo(format: .svg, storedSize: size))
        header.info.hasAlpha = true
        return header
    }

    /// The longer side of a drawing with a side below one pixel: the width of an image without any size.
    private static let defaultSide = 300.0
    /// Longer than any side that is drawn, and short enough for arithmetic on pixels.
    private static let largestSide = 1e9

    private static func naturalSize(_ tag: SVGTag) -> PixelSize {
        var size = size(tag)
        let (shorter, longer) = (min(size.width, size.height), max(size.width, size.height))
        if shorter < 1 {
            let scale = defaultSide / longer
            size = (size.width * scale, size.height * scale)
        }
        func side(_ value: Double) -> Int { Int(min(max(value.rounded(), 1), largestSide)) }
        return PixelSize(width: side(size.width), height: side(size.height))
    }

    /// Whether a size has sides below one pixel, or more than renderers count.
    static func isUnusual(_ size: (width: Double, height: Double)) -> Bool {
        min(size.width, size.height) < 1 || max(size.width, size.height) > 65_535
    }

    /// Width and height in CSS pixels, of at most 1e12.
    static func size(_ tag: SVGTag) -> (width: Double, height: Double) {
        let box = tag["viewBox"].flatMap(viewBox)
        let width = tag["width"].flatMap { length($0, whole: box?.width) }
        let height = tag["height"].flatMap { length($0, whole: box?.height) }
        switch (width, height, box) {
        case (let width?, let height?, _): return bounded(width, height)
        case (let width?, nil, let box?): return bounded(width, width * box.height / box.width)
        case (nil, let height?, let box?): return bounded(height * box.width / box.height, height)
        case (nil, nil, let box?): return bounded(box.width, box.height)
        default: return bounded(width ?? 300, height ?? 150)
        }
    }

    private static func bounded(_ width: Double, _ height: Double) -> (width: Double, height: Double) {
        func side(_ value: Double) -> Double { value.isFinite ? min(max(value, 1e-12), 1e12) : 1e12 }
        return (side(width), side(height))
    }

    private static func viewBox(_ text: String) -> (width: Double, height: Double)? {
        let numbers = text.split { $0 == "," || $0.isWhitespace }.prefix(5).map { Double($0) }
        guard numbers.count == 4, let width = numbers[2], let height = numbers[3], width > 0, height > 0,
            width.isFinite, height.isFinite
        else { return nil }
        return (width, height)
    }

    /// CSS pixels of a length; nil for one that is none, is not positive, or is a share of an unknown whole.
    static func length(_ text: String, whole: Double?) -> Double? {
        let text = text.prefix(64).filter { !$0.isWhitespace }
        var unit = text.drop { $0.isNumber || $0 == "." || $0 == "+" || $0 == "-" }
        // An exponent, unless the e begins em or ex.
        if let e = unit.first, e == "e" || e == "E", let next = unit.dropFirst().first,
            next.isNumber || "+-".contains(next)
        {
            unit = unit.dropFirst().drop { $0.isNumber || $0 == "+" || $0 == "-" }
        }
        guard let number = Double(text[..<unit.startIndex]), number > 0, number.isFinite else { return nil }
        switch unit.lowercased() {
        case "", "px": return number
        case "pt": return number * 96 / 72
        case "pc": return number * 16
        case "mm": return number * 96 / 25.4
        case "cm": return number * 96 / 2.54
        case "q": return number * 96 / 101.6
        case "in": return number * 96
        case "em", "rem": return number * 16
        case "ex", "ch": return number * 8
        case "%": return whole.map { $0 * number / 100 }
        default: return nil
        }
    }
}

/// Finds the root element of an SVG document, and only there: behind a byte-order mark, an XML declaration, comments,
/// processing instructions and a document type.
///
/// Source: W3C XML 1.0 §2.8; SVG 2 §5.1. UTF-8 and UTF-16 are read; other encodings work as far as they are ASCII.
struct SVGPrologue {
    /// Bytes looked at to tell SVG from other text.
    private static let sniffedBytes = 64 << 10

    /// The document as UTF-8.
    let text: [UInt8]
    /// The start tag of the root element, between its angle brackets; nil when it is not SVG or ends too early.
    let root: Range<Int>?
    /// Whether a document type already said SVG, or the root element has its name.
    let isSVG: Bool

    init(_ bytes: [UInt8]) {
        text = SVGPrologue.utf8(bytes)
        var at = text.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        var named = false
        var found: Range<Int>?
        scan: while true {
            while at < text.count, ByteText.isSpace(text[at]) { at += 1 }
            guard at < text.count, text[at] == UInt8(ascii: "<") else { break }
            let rest = text[(at + 1)...]
            if rest.starts(with: "!--".utf8) {
                guard let end = ByteText.find("-->", in: text, from: at + 4) else { break scan }
                at = end
            } else if rest.starts(with: "?".utf8) {
                guard let end = ByteText.find("?>", in: text, from: at + 2) else { break scan }
                at = end
            } else if rest.starts(with: "!DOCTYPE".utf8) {
                let name = text[(at + 9)...].drop { ByteText.isSpace($0) }
                named = name.starts(with: "svg".utf8)
                guard named, let end = SVGPrologue.doctypeEnd(text, from: at + 9) else { break scan }
                at = end
            } else {
                found = SVGPrologue.rootTag(text, from: at + 1)
                break scan
            }
        }
        root = found
        isSVG = named || found != nil
    }

    /// Whether an input is SVG, plain or compressed.
    static func isSVG(_ reader: ByteReader) throws(ImageError) -> Bool {
        // Anything that is not text is out after one byte.
        let first = try SVGFile.beginning(reader, count: 1_024).first { !ByteText.isSpace($0) }
        guard let first, [0x3C, 0xEF, 0xFE, 0xFF].contains(first) else { return false }
        return SVGPrologue(try SVGFile.beginning(reader, count: sniffedBytes)).isSVG
    }

    /// Behind the closing bracket of a document type, whose quotes and internal subset may hold brackets too.
    private static func doctypeEnd(_ text: [UInt8], from start: Int) -> Int? {
        var (depth, quote) = (0, UInt8(0))
        for at in start..<max(start, text.count) {
            let byte = text[at]
            if quote != 0 {
                if byte == quote { quote = 0 }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = byte
            case UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ">") where depth <= 0: return at + 1
            default: break
            }
        }
        return nil
    }

    /// The tag from `start` on, if its local name is `svg`.
    private static func rootTag(_ text: [UInt8], from start: Int) -> Range<Int>? {
        let name = text[start...].prefix { !ByteText.isSpace($0) && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/") }
        guard name.elementsEqual("svg".utf8) || (name.count < 64 && name.suffix(4).elementsEqual(":svg".utf8)) else {
            return nil
        }
        let end = SVGTag.end(text, from: name.endIndex) ?? text.count
        return start..<end
    }

    private static func utf8(_ bytes: [UInt8]) -> [UInt8] {
        let little = bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0x3C, 0])
        let big = bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0, 0x3C])
        guard little || big else { return bytes }
        var units: [UInt16] = []
        units.reserveCapacity(bytes.count / 2)
        for i in stride(from: 0, to: bytes.count & ~1, by: 2) {
            let (a, b) = (UInt16(bytes[i]), UInt16(bytes[i + 1]))
            let unit = little ? b << 8 | a : a << 8 | b
            // A byte-order mark further behind is a letter, and may stand between two others.
            if i > 0 || unit != 0xFEFF { units.append(unit) }
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }
}

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
                rest = rest.drop { ByteText.isSpace($0) || $0 == UInt8(ascii: "/") }
                guard !rest.isEmpty else { return nil }
                let name = rest.prefix { !ByteText.isSpace($0) && $0 != UInt8(ascii: "=") }
                rest = rest[name.endIndex...].drop(while: ByteText.isSpace)
                // A name without a value is not XML; go on behind it.
                guard rest.first == UInt8(ascii: "=") else { continue }
                rest = rest.dropFirst().drop(while: ByteText.isSpace)
                guard let quote = rest.first else { return nil }
                guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
                    let value = rest.prefix { !ByteText.isSpace($0) }
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
        name = tag.prefix { !ByteText.isSpace($0) && $0 != UInt8(ascii: "/") }
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
