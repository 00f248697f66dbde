/// Writes a picture as characters whose upper and lower halves are pixels.
struct HalfBlocks {
    /// Whether colours are 24-bit; else the nearest of xterm's 256.
    let hasDirectColor: Bool

    /// - Parameter image: Opaque or with straight alpha; pixels less than half opaque show the terminal's background.
    func render(_ image: Image) -> [UInt8] {
        var text: [UInt8] = []
        for y in stride(from: 0, to: image.height, by: 2) {
            // What the terminal is set to, so that only changes are written. Nil is its own colour.
            var foreground: Color?, background: Color?
            for x in 0..<image.width {
                let top = visible(image[x, y])
                let bottom = y + 1 < image.height ? visible(image[x, y + 1]) : nil
                let (glyph, ink, paper) = cell(top, bottom)
                var codes: [String] = []
                if let ink, ink != foreground {
                    codes.append(code(ink, base: 38))
                    foreground = ink
                }
                if paper != background {
                    codes.append(paper.map { code($0, base: 48) } ?? "49")
                    background = paper
                }
                if !codes.isEmpty { text += Array("\u{1b}[\(codes.joined(separator: ";"))m".utf8) }
                text += Array(glyph.utf8)
            }
            text += Array("\u{1b}[0m\n".utf8)
        }
        return text
    }

    /// The character of a cell, the colour it is drawn in (nil: none is needed) and the one behind it.
    private func cell(_ top: Color?, _ bottom: Color?) -> (glyph: String, ink: Color?, paper: Color?) {
        switch (top, bottom) {
        case (nil, nil): (" ", nil, nil)
        case (nil, let bottom): ("▄", bottom, nil)
        case (let top, nil): ("▀", top, nil)
        case (let top, let bottom): top == bottom ? (" ", nil, bottom) : ("▀", top, bottom)
        }
    }

    private func visible(_ color: Color) -> Color? {
        color.alpha >= 128 ? Color(red: color.red, green: color.green, blue: color.blue) : nil
    }

    private func code(_ color: Color, base: Int) -> String {
        hasDirectColor
            ? "\(base);2;\(color.red);\(color.green);\(color.blue)" : "\(base);5;\(XTermColor.nearest(to: color))"
    }
}
