/// Reads the size an SVG document asks for: `width`, `height` and `viewBox` of its root element.
///
/// Source: SVG 2 §8.2, §8.6; CSS 2.2 §10.3.2 (300 × 150 for a picture without any size) and CSS Values 4 §6.2 (units).
package enum SVGHeaderReader: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let start = try reader.source.bytes(at: 0, count: 64 << 10)
        if SVGPrologue.isCompressed(start) {
            throw .unsupported(input: reader.name, reason: "compressed SVG; unpack it with gunzip first")
        }
        var prologue = SVGPrologue(start)
        if prologue.root == nil, reader.count > start.count {
            prologue = SVGPrologue(try reader.source.bytes(at: 0, count: limits.maximumDocumentBytes))
        }
        guard let root = prologue.root else { throw .truncated(input: reader.name) }
        let size = naturalSize(SVGTag(prologue.text, root))
        var header = ImageHeader(info: ImageInfo(format: .svg, storedSize: size))
        header.info.hasAlpha = true
        return header
    }

    private static func naturalSize(_ tag: SVGTag) -> PixelSize {
        let box = tag["viewBox"].flatMap(viewBox)
        let width = tag["width"].flatMap { length($0, whole: box?.width) }
        let height = tag["height"].flatMap { length($0, whole: box?.height) }
        switch (width, height, box) {
        case (let width?, let height?, _): return pixels(width, height)
        case (let width?, nil, let box?): return pixels(width, width * box.height / box.width)
        case (nil, let height?, let box?): return pixels(height * box.width / box.height, height)
        case (nil, nil, let box?): return pixels(box.width, box.height)
        default: return pixels(width ?? 300, height ?? 150)
        }
    }

    private static func pixels(_ width: Double, _ height: Double) -> PixelSize {
        func side(_ value: Double) -> Int { value.isFinite ? Int(min(max(value.rounded(), 1), 1e12)) : Int(1e12) }
        return PixelSize(width: side(width), height: side(height))
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
