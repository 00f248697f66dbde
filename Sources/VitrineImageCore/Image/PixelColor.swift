/// An sRGB colour with straight alpha, 8 bits a channel.
public struct PixelColor: Hashable, Sendable {
    /// The level of red, 0…255.
    public var red: UInt8
    /// The level of green, 0…255.
    public var green: UInt8
    /// The level of blue, 0…255.
    public var blue: UInt8
    /// The opacity, from 0 (transparent) to 255 (opaque).
    public var alpha: UInt8

    /// Creates a colour from levels of 0…255; opaque by default.
    public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
        self.red = red
        self.green = green
        self.blue = blue
        self.alpha = alpha
    }

    /// Creates a grey; opaque by default.
    public init(white: UInt8, alpha: UInt8 = 255) {
        self.init(red: white, green: white, blue: white, alpha: alpha)
    }

    /// Opaque black.
    public static let black = PixelColor(white: 0)
    /// Opaque white.
    public static let white = PixelColor(white: 255)
    /// Transparent black.
    public static let clear = PixelColor(white: 0, alpha: 0)
}

extension PixelColor {
    /// Reads a colour in the notation of CSS; nil for other text.
    ///
    /// Reads `#rgb`, `#rgba`, `#rrggbb`, `#rrggbbaa`, `rgb()`, `rgba()`, `hsl()` and `hsla()` (with commas, or
    /// with spaces and a slash before alpha; percentages; `deg`, `grad`, `rad` and `turn`), the 148 colour names and
    /// `transparent`. Ignores case and surrounding blanks, and clamps numbers beyond their range, as CSS specifies.
    ///
    /// Source: W3C CSS Color Module Level 4, §5 (RGB notations), §6 (keywords), §7 (`hsl()`).
    public init?(css: String) {
        // Longer than any colour: untrusted text is not read further.
        guard css.utf8.count <= 128 else { return nil }
        let text = css.lowercased().trimmingBlanks()
        if text.hasPrefix("#") {
            self.init(hexadecimal: text.dropFirst())
        } else if text.hasSuffix(")"), let open = text.firstIndex(of: "(") {
            self.init(function: text[..<open], arguments: text[text.index(after: open)...].dropLast())
        } else if text == "transparent" {
            self = .clear
        } else if let rgb = PixelColor.named[String(text)] {
            self.init(rgb: rgb)
        } else {
            return nil
        }
    }

    /// The colour as `#rrggbb`, or `#rrggbbaa` unless it is opaque; ``init(css:)`` reads it back exactly.
    package var cssString: String {
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
        guard digits.count == text.count, [3, 4, 6, 8].contains(digits.count) else { return nil }
        // In the short form, one digit stands for two.
        let pairs = digits.count <= 4 ? digits.flatMap { [$0, $0] } : digits
        var channels: [UInt8] = []
        for i in stride(from: 0, to: pairs.count, by: 2) { channels.append(UInt8(pairs[i] << 4 | pairs[i + 1])) }
        if channels.count == 3 { channels.append(255) }
        self.init(red: channels[0], green: channels[1], blue: channels[2], alpha: channels[3])
    }

    private init?(function name: Substring, arguments: Substring) {
        guard let parts = PixelColor.split(arguments), parts.count == 3 || parts.count == 4 else { return nil }
        var alpha = 1.0
        if parts.count == 4 {
            guard let value = PixelColor.number(parts[3], percentOf: 1) else { return nil }
            alpha = value
        }
        let channels: (Double, Double, Double)
        switch name {
        case "rgb", "rgba":
            guard let red = PixelColor.number(parts[0], percentOf: 255), let green = PixelColor.number(parts[1], percentOf: 255),
                let blue = PixelColor.number(parts[2], percentOf: 255)
            else { return nil }
            channels = (red / 255, green / 255, blue / 255)
        case "hsl", "hsla":
            guard let hue = PixelColor.degrees(parts[0]), let saturation = PixelColor.number(parts[1], percentOf: 100),
                let lightness = PixelColor.number(parts[2], percentOf: 100)
            else { return nil }
            channels = PixelColor.rgb(hue: hue, saturation: saturation / 100, lightness: lightness / 100)
        default:
            return nil
        }
        self.init(
            red: PixelColor.byte(channels.0), green: PixelColor.byte(channels.1), blue: PixelColor.byte(channels.2),
            alpha: PixelColor.byte(alpha))
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
        // Swift would also read "nan", "inf" and hexadecimal numbers, which CSS does not have.
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

extension PixelColor {
    /// The 148 colour keywords, as `0xrrggbb`.
    ///
    /// Source: W3C CSS Color Module Level 4, §6.1 (Named Colors).
    package static let named: [String: UInt32] = [
        "aliceblue": 0xf0f8ff, "antiquewhite": 0xfaebd7, "aqua": 0x00ffff, "aquamarine": 0x7fffd4, "azure": 0xf0ffff,
        "beige": 0xf5f5dc, "bisque": 0xffe4c4, "black": 0x000000, "blanchedalmond": 0xffebcd, "blue": 0x0000ff,
        "blueviolet": 0x8a2be2, "brown": 0xa52a2a, "burlywood": 0xdeb887, "cadetblue": 0x5f9ea0,
        "chartreuse": 0x7fff00, "chocolate": 0xd2691e, "coral": 0xff7f50, "cornflowerblue": 0x6495ed,
        "cornsilk": 0xfff8dc, "crimson": 0xdc143c, "cyan": 0x00ffff, "darkblue": 0x00008b, "darkcyan": 0x008b8b,
        "darkgoldenrod": 0xb8860b, "darkgray": 0xa9a9a9, "darkgreen": 0x006400, "darkgrey": 0xa9a9a9,
        "darkkhaki": 0xbdb76b, "darkmagenta": 0x8b008b, "darkolivegreen": 0x556b2f, "darkorange": 0xff8c00,
        "darkorchid": 0x9932cc, "darkred": 0x8b0000, "darksalmon": 0xe9967a, "darkseagreen": 0x8fbc8f,
        "darkslateblue": 0x483d8b, "darkslategray": 0x2f4f4f, "darkslategrey": 0x2f4f4f, "darkturquoise": 0x00ced1,
        "darkviolet": 0x9400d3, "deeppink": 0xff1493, "deepskyblue": 0x00bfff, "dimgray": 0x696969,
        "dimgrey": 0x696969, "dodgerblue": 0x1e90ff, "firebrick": 0xb22222, "floralwhite": 0xfffaf0,
        "forestgreen": 0x228b22, "fuchsia": 0xff00ff, "gainsboro": 0xdcdcdc, "ghostwhite": 0xf8f8ff, "gold": 0xffd700,
        "goldenrod": 0xdaa520, "gray": 0x808080, "green": 0x008000, "greenyellow": 0xadff2f, "grey": 0x808080,
        "honeydew": 0xf0fff0, "hotpink": 0xff69b4, "indianred": 0xcd5c5c, "indigo": 0x4b0082, "ivory": 0xfffff0,
        "khaki": 0xf0e68c, "lavender": 0xe6e6fa, "lavenderblush": 0xfff0f5, "lawngreen": 0x7cfc00,
        "lemonchiffon": 0xfffacd, "lightblue": 0xadd8e6, "lightcoral": 0xf08080, "lightcyan": 0xe0ffff,
        "lightgoldenrodyellow": 0xfafad2, "lightgray": 0xd3d3d3, "lightgreen": 0x90ee90, "lightgrey": 0xd3d3d3,
        "lightpink": 0xffb6c1, "lightsalmon": 0xffa07a, "lightseagreen": 0x20b2aa, "lightskyblue": 0x87cefa,
        "lightslategray": 0x778899, "lightslategrey": 0x778899, "lightsteelblue": 0xb0c4de, "lightyellow": 0xffffe0,
        "lime": 0x00ff00, "limegreen": 0x32cd32, "linen": 0xfaf0e6, "magenta": 0xff00ff, "maroon": 0x800000,
        "mediumaquamarine": 0x66cdaa, "mediumblue": 0x0000cd, "mediumorchid": 0xba55d3, "mediumpurple": 0x9370db,
        "mediumseagreen": 0x3cb371, "mediumslateblue": 0x7b68ee, "mediumspringgreen": 0x00fa9a,
        "mediumturquoise": 0x48d1cc, "mediumvioletred": 0xc71585, "midnightblue": 0x191970, "mintcream": 0xf5fffa,
        "mistyrose": 0xffe4e1, "moccasin": 0xffe4b5, "navajowhite": 0xffdead, "navy": 0x000080, "oldlace": 0xfdf5e6,
        "olive": 0x808000, "olivedrab": 0x6b8e23, "orange": 0xffa500, "orangered": 0xff4500, "orchid": 0xda70d6,
        "palegoldenrod": 0xeee8aa, "palegreen": 0x98fb98, "paleturquoise": 0xafeeee, "palevioletred": 0xdb7093,
        "papayawhip": 0xffefd5, "peachpuff": 0xffdab9, "peru": 0xcd853f, "pink": 0xffc0cb, "plum": 0xdda0dd,
        "powderblue": 0xb0e0e6, "purple": 0x800080, "rebeccapurple": 0x663399, "red": 0xff0000, "rosybrown": 0xbc8f8f,
        "royalblue": 0x4169e1, "saddlebrown": 0x8b4513, "salmon": 0xfa8072, "sandybrown": 0xf4a460,
        "seagreen": 0x2e8b57, "seashell": 0xfff5ee, "sienna": 0xa0522d, "silver": 0xc0c0c0, "skyblue": 0x87ceeb,
        "slateblue": 0x6a5acd, "slategray": 0x708090, "slategrey": 0x708090, "snow": 0xfffafa,
        "springgreen": 0x00ff7f, "steelblue": 0x4682b4, "tan": 0xd2b48c, "teal": 0x008080, "thistle": 0xd8bfd8,
        "tomato": 0xff6347, "turquoise": 0x40e0d0, "violet": 0xee82ee, "wheat": 0xf5deb3, "white": 0xffffff,
        "whitesmoke": 0xf5f5f5, "yellow": 0xffff00, "yellowgreen": 0x9acd32,
    ]
}
