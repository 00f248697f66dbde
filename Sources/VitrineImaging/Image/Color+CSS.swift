extension Color {
    /// A colour as CSS writes it; nil when `css` is not one.
    ///
    /// Understands `#rgb`, `#rgba`, `#rrggbb`, `#rrggbbaa`, `rgb()`, `rgba()`, `hsl()` and `hsla()` (with commas, or
    /// with spaces and a slash before alpha; percentages; `deg`, `grad`, `rad` and `turn`), the 148 colour names and
    /// `transparent`. Case and surrounding blanks do not matter; numbers beyond their range are clamped, as CSS asks.
    ///
    /// Source: W3C CSS Color Module Level 4, §5 (RGB notations), §6 (keywords), §7 (`hsl()`).
    public init?(css: String) {
        // Longer than any colour: foreign text is not worth reading further.
        guard css.utf8.count <= 128 else { return nil }
        let text = css.lowercased().trimmingBlanks()
        if text.hasPrefix("#") {
            self.init(hexadecimal: text.dropFirst())
        } else if text.hasSuffix(")"), let open = text.firstIndex(of: "(") {
            self.init(function: text[..<open], arguments: text[text.index(after: open)...].dropLast())
        } else if text == "transparent" {
            self = .clear
        } else if let rgb = Color.named[String(text)] {
            self.init(rgb: rgb)
        } else {
            return nil
        }
    }

    /// The colour as `#rrggbb`, or `#rrggbbaa` unless it is opaque; ``init(css:)`` reads it back exactly.
    public var cssString: String {
        let digits = Array("0123456789abcdef")
        let channels = alpha == 255 ? [red, green, blue] : [red, green, blue, alpha]
        return channels.reduce(into: "#") { text, channel in
            text.append(digits[Int(channel >> 4)])
            text.append(digits[Int(channel & 15)])
        }
    }

    private init(rgb: UInt32) {
        self.init(
            red: UInt8(truncatingIfNeeded: rgb >> 16), green: UInt8(truncatingIfNeeded: rgb >> 8),
            blue: UInt8(truncatingIfNeeded: rgb))
    }

    private init?(hexadecimal text: Substring) {
        let digits = text.compactMap { $0.isASCII ? $0.hexDigitValue : nil }
        guard digits.count == text.count else { return nil }
        switch digits.count {
        case 3, 4:
            let channels = digits.map { UInt8($0 * 17) } + [255]
            self.init(red: channels[0], green: channels[1], blue: channels[2], alpha: channels[3])
        case 6, 8:
            let bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
            let channels = bytes + [255]
            self.init(red: channels[0], green: channels[1], blue: channels[2], alpha: channels[3])
        default:
            return nil
        }
    }

    private init?(function name: Substring, arguments: Substring) {
        guard let parts = Color.split(arguments), parts.count == 3 || parts.count == 4 else { return nil }
        var alpha = 1.0
        if parts.count == 4 {
            guard let value = Color.number(parts[3], percentOf: 1) else { return nil }
            alpha = value
        }
        let channels: (Double, Double, Double)
        switch name {
        case "rgb", "rgba":
            guard let red = Color.number(parts[0], percentOf: 255), let green = Color.number(parts[1], percentOf: 255),
                let blue = Color.number(parts[2], percentOf: 255)
            else { return nil }
            channels = (red / 255, green / 255, blue / 255)
        case "hsl", "hsla":
            guard let hue = Color.degrees(parts[0]), let saturation = Color.number(parts[1], percentOf: 100),
                let lightness = Color.number(parts[2], percentOf: 100)
            else { return nil }
            channels = Color.rgb(hue: hue, saturation: saturation / 100, lightness: lightness / 100)
        default:
            return nil
        }
        self.init(
            red: Color.byte(channels.0), green: Color.byte(channels.1), blue: Color.byte(channels.2),
            alpha: Color.byte(alpha))
    }

    /// The arguments of a colour function: all commas, or blanks with a slash before the fourth.
    private static func split(_ text: Substring) -> [Substring]? {
        if text.contains(",") {
            guard !text.contains("/") else { return nil }
            return text.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingBlanks() }
        }
        let halves = text.split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count <= 2 else { return nil }
        let channels = halves[0].split(whereSeparator: \.isCSSBlank)
        guard channels.count == 3 else { return nil }
        return halves.count == 1 ? channels : channels + [halves[1].trimmingBlanks()]
    }

    /// A plain decimal number, or a percentage of `whole`.
    private static func number(_ text: Substring, percentOf whole: Double) -> Double? {
        if text.hasSuffix("%") { return decimal(text.dropLast()).map { $0 / 100 * whole } }
        return decimal(text)
    }

    private static func degrees(_ text: Substring) -> Double? {
        for (unit, scale) in [("deg", 1.0), ("grad", 0.9), ("rad", 180 / Double.pi), ("turn", 360.0)]
        where text.hasSuffix(unit) {
            return decimal(text.dropLast(unit.count)).map { $0 * scale }
        }
        return decimal(text)
    }

    private static func decimal(_ text: Substring) -> Double? {
        // Swift would also read "nan", "inf" and hexadecimal numbers, which CSS does not know.
        guard !text.isEmpty, text.allSatisfy({ $0.isASCII && ($0.isNumber || "+-.e".contains($0)) }), text.first != "e",
            let value = Double(text), value.isFinite
        else { return nil }
        return value
    }

    /// CSS Color 4 §7.1, the sample conversion, for one of the three channels at a time.
    private static func rgb(hue: Double, saturation: Double, lightness: Double) -> (Double, Double, Double) {
        let saturation = min(1, max(0, saturation)), lightness = min(1, max(0, lightness))
        var hue = hue.truncatingRemainder(dividingBy: 360)
        if hue < 0 { hue += 360 }
        func channel(_ n: Double) -> Double {
            let k = (n + hue / 30).truncatingRemainder(dividingBy: 12)
            return lightness - saturation * min(lightness, 1 - lightness) * max(-1, min(k - 3, 9 - k, 1))
        }
        return (channel(0), channel(8), channel(4))
    }

    private static func byte(_ unit: Double) -> UInt8 { UInt8(min(1, max(0, unit)) * 255 + 0.5) }
}

extension Character {
    /// White space as CSS Syntax §4.2 defines it.
    fileprivate var isCSSBlank: Bool {
        self == " " || self == "\t" || self == "\n" || self == "\r" || self == "\u{c}" || self == "\r\n"
    }
}

extension StringProtocol where SubSequence == Substring {
    fileprivate func trimmingBlanks() -> Substring {
        guard let first = firstIndex(where: { !$0.isCSSBlank }), let last = lastIndex(where: { !$0.isCSSBlank }) else {
            return self[endIndex...]
        }
        return self[first...last]
    }
}
