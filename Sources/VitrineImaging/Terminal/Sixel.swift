/// Writes a picture as sixels: bands of six rows, one pass a colour.
enum Sixel {
    /// - Parameter image: Opaque or with straight alpha; pixels less than half opaque are left out.
    static func render(_ image: Image) -> [UInt8] {
        let palette = ColorPalette(ColorHistogram(image), count: 256)
        // P2 = 1: pixels that are not drawn keep what is there. Then the raster: square pixels, width, height.
        var text = Array("\u{1b}P0;1;0q\"1;1;\(image.width);\(image.height)".utf8)
        for (index, entry) in palette.entries.enumerated() {
            // Sixel colours are percentages.
            let c = entry.color * (100 / 255)
            text += Array("#\(index);2;\(Int(c.x.rounded()));\(Int(c.y.rounded()));\(Int(c.z.rounded()))".utf8)
        }
        if !palette.entries.isEmpty {
            var matcher = NearestColor(palette.pixels)
            for top in stride(from: 0, to: image.height, by: 6) {
                band(image, top, &matcher, palette.entries.count, &text)
                if top + 6 < image.height { text.append(UInt8(ascii: "-")) }
            }
        }
        return text + Array("\u{1b}\\\n".utf8)
    }

    private static func band(
        _ image: Image, _ top: Int, _ matcher: inout NearestColor, _ colors: Int, _ text: inout [UInt8]
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
                    let color = Int(matcher.index(Int(p & 255), Int(p >> 8 & 255), Int(p >> 16 & 255)))
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
