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
            while at < text.count, SVGPrologue.isSpace(text[at]) { at += 1 }
            guard at < text.count, text[at] == UInt8(ascii: "<") else { break }
            let rest = text[(at + 1)...]
            if rest.starts(with: "!--".utf8) {
                guard let end = SVGPrologue.find("-->", in: text, from: at + 4) else { break scan }
                at = end
            } else if rest.starts(with: "?".utf8) {
                guard let end = SVGPrologue.find("?>", in: text, from: at + 2) else { break scan }
                at = end
            } else if rest.starts(with: "!DOCTYPE".utf8) {
                let name = text[(at + 9)...].drop { SVGPrologue.isSpace($0) }
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

    /// Whether an input is SVG, plain or gzipped under a name that ends in `.svg`.
    static func isSVG(_ reader: ByteReader) throws(ImageError) -> Bool {
        let count = min(reader.count, sniffedBytes)
        if isCompressed(try reader.bytes(0..<min(count, 512))) { return true }
        // Anything that is not text is out after one byte.
        var start = 0
        while start < min(count, 1024), isSpace(UInt8(try reader.u8(at: start))) { start += 1 }
        guard start < count, [0x3C, 0xEF, 0xFE, 0xFF].contains(try reader.u8(at: start)) else { return false }
        return SVGPrologue(try reader.bytes(0..<count)).isSVG
    }

    /// gzip (RFC 1952 §2.3) that names an SVG file; other gzip files may hold anything.
    static func isCompressed(_ bytes: [UInt8]) -> Bool {
        guard bytes.count > 14, bytes[0] == 0x1F, bytes[1] == 0x8B, bytes[2] == 8, bytes[3] & 0x0C == 0x08 else {
            return false
        }
        let name = bytes[10...].prefix { $0 != 0 }
        return name.count >= 4 && name.suffix(4).elementsEqual(".svg".utf8)
    }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || (9...13).contains(byte) }

    /// Where the bytes behind `pattern` stand.
    static func find(_ pattern: StaticString, in text: [UInt8], from start: Int) -> Int? {
        let length = pattern.utf8CodeUnitCount
        var at = max(0, start)
        while at <= text.count - length {
            if text[at] == pattern.utf8Start[0], (1..<length).allSatisfy({ text[at + $0] == pattern.utf8Start[$0] }) {
                return at + length
            }
            at += 1
        }
        return nil
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
        let name = text[start...].prefix { !isSpace($0) && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/") }
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
