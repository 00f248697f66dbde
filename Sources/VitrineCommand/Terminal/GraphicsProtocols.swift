import VitrineImaging
import VitrinePixels

/// Writes an image in the kitty graphics protocol (sw.kovidgoyal.net/kitty/graphics-protocol).
enum KittyGraphics {
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
            // C=1: the cursor stays, for images that are replaced.
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

/// Writes an image as an inline image of iTerm2 (iterm2.com/documentation-images.html).
enum ITermImage {
    /// Returns nil without an encoder for PNG.
    static func render(_ image: PixelImage, codecs: Codecs) -> [UInt8]? {
        guard let png = try? image.encoded(as: .png, options: EncodeOptions(), codecs: codecs) else { return nil }
        let head = "\u{1b}]1337;File=inline=1;size=\(png.count);width=\(image.width)px;height=\(image.height)px:"
        return Array(head.utf8) + Base64.encode(png) + [0x07, UInt8(ascii: "\n")]
    }
}

/// Writes an image as sixels: bands of six rows, one pass a colour.
///
/// Source: DEC VT330/VT340 Programmer Reference Manual, volume 2, chapter 14.
enum Sixel {
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
