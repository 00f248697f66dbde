import VitrineCore
import VitrineImaging
import VitrinePixels

/// Shows pictures in a terminal.
///
/// Sources: the kitty graphics protocol (sw.kovidgoyal.net/kitty/graphics-protocol), sixel as in the DEC VT330/VT340
/// Programmer Reference Manual, volume 2, chapter 14, and ECMA-48 §8.3.117 with the direct colours of ISO 8613-6.
package struct TerminalPicture: Sendable, Hashable {
    /// A way to draw.
    package enum Mode: String, Sendable, Hashable, CaseIterable {
        /// Pixels, by the kitty graphics protocol.
        case kitty
        /// Pixels in up to 256 colours. No environment variable tells whether a terminal supports it.
        case sixel
        /// Two pixels a character cell in 24-bit colour.
        case halfBlocks
        /// Two pixels a character cell in the 256 colours of xterm.
        case halfBlocks256
    }

    package var mode: Mode
    /// The colour behind transparent pixels. Default nil: the terminal's own background. Modes without alpha then leave
    /// out pixels less than half opaque.
    package var background: PixelColor?
    /// Identifies the picture for kitty: a later picture with the same number takes the place of the earlier one, and
    /// the cursor stays. Default nil: each picture stands alone.
    package var pictureID: Int?

    package init(mode: Mode, background: PixelColor? = nil) {
        self.mode = mode
        self.background = background
    }

    /// Returns the text that draws `image` at the cursor, with a new line at its end.
    ///
    /// Pixels are drawn one to one. For half blocks, scale the picture to the terminal's columns and twice its rows
    /// first.
    package func render(_ image: PixelImage) -> [UInt8] { render(image, codecs: .standard) }

    /// Does the same as ``render(_:)`` with other codecs. With an encoder for PNG, kitty gets PNG.
    package func render(_ image: PixelImage, codecs: Codecs) -> [UInt8] {
        let composed = background.map { image.composed(over: $0) } ?? image
        let straight = composed.converted(to: composed.hasAlpha ? .straight : .opaque)
        switch mode {
        case .kitty: return KittyGraphics.render(straight, id: pictureID, codecs: codecs)
        case .sixel: return Sixel.render(straight)
        case .halfBlocks: return HalfBlocks(hasDirectColor: true).render(straight)
        case .halfBlocks256: return HalfBlocks(hasDirectColor: false).render(straight)
        }
    }
}

extension TerminalPicture.Mode {
    /// Returns the best mode for the terminal of these environment variables; nil when it shows no pictures.
    ///
    /// Never ``TerminalPicture/Mode/sixel``. Multiplexers (tmux, screen) drop graphics, so they always get half blocks.
    package static func detected(environment: [String: String]) -> TerminalPicture.Mode? {
        func value(_ name: String) -> String { environment[name]?.lowercased() ?? "" }
        let term = value("TERM"), program = value("TERM_PROGRAM")
        guard !term.isEmpty, term != "dumb" else { return nil }
        let isMultiplexed = !value("TMUX").isEmpty || !value("STY").isEmpty || term.hasPrefix("tmux")
            || term.hasPrefix("screen")
        if !isMultiplexed {
            let speaksKitty = !value("KITTY_WINDOW_ID").isEmpty || term == "xterm-kitty" || term == "xterm-ghostty"
                || ["ghostty", "wezterm"].contains(program)
            if speaksKitty { return .kitty }
        }
        let hasDirectColor = ["truecolor", "24bit"].contains(value("COLORTERM")) || term.hasSuffix("-direct")
            || ["iterm.app", "vscode"].contains(program)
        return hasDirectColor ? .halfBlocks : .halfBlocks256
    }
}

/// Writes a picture in the kitty graphics protocol.
private enum KittyGraphics {
    /// Characters of payload in one escape sequence, as the protocol bounds them.
    private static let chunk = 4_096

    /// - Parameter image: Opaque or with straight alpha.
    static func render(_ image: PixelImage, id: Int?, codecs: Codecs) -> [UInt8] {
        let payload: [UInt8], format: String
        if let png = try? image.encoded(as: .png, options: EncodeOptions(), codecs: codecs) {
            payload = Base64.encode(png)
            format = "f=100"
        } else {
            payload = Base64.encode(rgba(image))
            format = "f=32,s=\(image.width),v=\(image.height)"
        }
        var text: [UInt8] = []
        text.reserveCapacity(payload.count + payload.count / chunk * 16 + 64)
        for start in stride(from: 0, to: payload.count, by: chunk) {
            let end = min(payload.count, start + chunk)
            // a=T: transmit and display. q=2: no answers, which would appear as typed text.
            // C=1: the cursor stays, for pictures that are replaced.
            let place = id.map { "i=\($0),p=1,C=1," } ?? ""
            let control = start == 0 ? "a=T,q=2,\(place)\(format)," : ""
            text += Array("\u{1b}_G\(control)m=\(end < payload.count ? 1 : 0);".utf8)
            text += payload[start..<end]
            text += Array("\u{1b}\\".utf8)
        }
        text.append(UInt8(ascii: "\n"))
        return text
    }

    private static func rgba(_ image: PixelImage) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(image.width * image.height * 4)
        image.withUnsafeBytes { source in
            for y in 0..<image.height {
                let start = y * image.bytesPerRow
                bytes.append(contentsOf: source[start..<(start + image.width * 4)])
            }
        }
        return bytes
    }
}

/// Base 64 with padding (RFC 4648 §4).
private enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let left = bytes.count - start
            let word = Int(bytes[start]) << 16 | (left > 1 ? Int(bytes[start + 1]) << 8 : 0)
                | (left > 2 ? Int(bytes[start + 2]) : 0)
            text.append(alphabet[word >> 18])
            text.append(alphabet[word >> 12 & 63])
            text.append(left > 1 ? alphabet[word >> 6 & 63] : UInt8(ascii: "="))
            text.append(left > 2 ? alphabet[word & 63] : UInt8(ascii: "="))
        }
        return text
    }
}

/// Writes a picture as characters whose upper and lower halves are pixels.
private struct HalfBlocks {
    /// Whether colours are 24-bit; else the nearest of xterm's 256.
    let hasDirectColor: Bool

    /// - Parameter image: Opaque or with straight alpha; pixels less than half opaque show the terminal's background.
    func render(_ image: PixelImage) -> [UInt8] {
        var text: [UInt8] = []
        for y in stride(from: 0, to: image.height, by: 2) {
            // The terminal's current colours, so that only changes are written. Nil is its own colour.
            var foreground: PixelColor?, background: PixelColor?
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

    /// Returns the character of a cell, its colour (nil: none needed) and the colour behind it.
    private func cell(_ top: PixelColor?, _ bottom: PixelColor?) -> (glyph: String, ink: PixelColor?, paper: PixelColor?) {
        switch (top, bottom) {
        case (nil, nil): (" ", nil, nil)
        case (nil, let bottom): ("▄", bottom, nil)
        case (let top, nil): ("▀", top, nil)
        case (let top, let bottom): top == bottom ? (" ", nil, bottom) : ("▀", top, bottom)
        }
    }

    private func visible(_ color: PixelColor) -> PixelColor? {
        color.alpha >= 128 ? PixelColor(red: color.red, green: color.green, blue: color.blue) : nil
    }

    private func code(_ color: PixelColor, base: Int) -> String {
        hasDirectColor
            ? "\(base);2;\(color.red);\(color.green);\(color.blue)" : "\(base);5;\(XTermColor.nearest(to: color))"
    }
}

/// The 256 colours of xterm: a cube of 6 × 6 × 6 from 16 and a ramp of 24 greys from 232 (xterm's `256colres.h`). The
/// first 16 differ between terminals and are not used.
private enum XTermColor {
    private static let levels = [0, 95, 135, 175, 215, 255]

    /// Returns the number of the closest colour.
    static func nearest(to color: PixelColor) -> Int {
        let rgb = [Int(color.red), Int(color.green), Int(color.blue)]
        let steps = rgb.map { value in levels.indices.min { abs(levels[$0] - value) < abs(levels[$1] - value) } ?? 0 }
        let cube = distance(rgb, steps.map { levels[$0] })
        let mean = rgb.reduce(0, +) / 3
        let gray = max(0, min(23, (mean - 3) / 10))
        if distance(rgb, [Int](repeating: 8 + gray * 10, count: 3)) < cube { return 232 + gray }
        return 16 + steps[0] * 36 + steps[1] * 6 + steps[2]
    }

    private static func distance(_ a: [Int], _ b: [Int]) -> Int {
        zip(a, b).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }
    }
}

/// Writes a picture as sixels: bands of six rows, one pass a colour.
private enum Sixel {
    /// - Parameter image: Opaque or with straight alpha; pixels less than half opaque are left out.
    static func render(_ image: PixelImage) -> [UInt8] {
        let palette = ColorPalette(ColorHistogram(image), count: 256)
        // P2 = 1: pixels that are not drawn stay unchanged. Then the raster: square pixels, width, height.
        var text = Array("\u{1b}P0;1;0q\"1;1;\(image.width);\(image.height)".utf8)
        for (index, entry) in palette.entries.enumerated() {
            // Sixel colours are percentages.
            let c = entry.color * (100 / 255)
            text += Array("#\(index);2;\(Int(c.x.rounded()));\(Int(c.y.rounded()));\(Int(c.z.rounded()))".utf8)
        }
        if !palette.entries.isEmpty {
            var matcher = NearestColor(palette.pixels)
            for top in stride(from: 0, to: image.height, by: 6) {
                band(image, top: top, matcher: &matcher, colors: palette.entries.count, text: &text)
                if top + 6 < image.height { text.append(UInt8(ascii: "-")) }
            }
        }
        return text + Array("\u{1b}\\\n".utf8)
    }

    private static func band(
        _ image: PixelImage, top: Int, matcher: inout NearestColor, colors: Int, text: inout [UInt8]
    ) {
        let width = image.width
        // For every colour that occurs, its bits in each column.
        var bits = [[UInt8]?](repeating: nil, count: colors)
        image.withUnsafeBytes { bytes in
            for row in 0..<min(6, image.height - top) {
                let line = bytes.baseAddress! + (top + row) * image.bytesPerRow
                for x in 0..<width {
                    let p = PixelMath.load(line + x * 4)
                    guard p >> 24 >= 128 else { continue }
                    let color = Int(
                        matcher.index(red: Int(p & 255), green: Int(p >> 8 & 255), blue: Int(p >> 16 & 255)))
                    if bits[color] == nil { bits[color] = [UInt8](repeating: 0, count: width) }
                    bits[color]?[x] |= 1 << UInt8(row)
                }
            }
        }
        var isFirst = true
        for (color, columns) in bits.enumerated() {
            guard let columns else { continue }
            if !isFirst { text.append(UInt8(ascii: "$")) }
            isFirst = false
            text += Array("#\(color)".utf8)
            appendRuns(columns, &text)
        }
    }

    private static func appendRuns(_ columns: [UInt8], _ text: inout [UInt8]) {
        // Blank columns at the end need not be written.
        let end = (columns.lastIndex { $0 != 0 } ?? -1) + 1
        var x = 0
        while x < end {
            var run = 1
            while x + run < end && columns[x + run] == columns[x] { run += 1 }
            let sixel = columns[x] + 63
            // A count takes three characters at least.
            if run > 3 {
                text += Array("!\(run)".utf8)
                text.append(sixel)
            } else {
                for _ in 0..<run { text.append(sixel) }
            }
            x += run
        }
    }
}
