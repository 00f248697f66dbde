import VitrineImaging

/// Writes an image in the 8 colours of ECMA-48 §8.3.117: each cell has one colour, a mixture of two, or two halves.
///
/// Pixels in 8 colours hide an image behind the noise of their errors. The characters that cover 25, 50 and 75 percent
/// of a cell (U+2591 to U+2593) mix about 80 colours.
enum ShadedCells {
    /// - Parameter image: Opaque or with straight alpha; pixels less than half opaque show the terminal's background.
    static func render(_ image: PixelImage) -> [UInt8] {
        let mixtures = ErrorDiffusion.reduced(means(image), sixteenths: distributedSixteenths) { wanted in
            Mixture.nearest(to: wanted).color
        }
        var text: [UInt8] = []
        for y in 0..<mixtures.height {
            // The terminal's current colours, so that only changes are written. Nil is its own colour.
            var foreground: BasicColor?, background: BasicColor?
            for x in 0..<mixtures.width {
                let cell = cell(mixtures[x, y], Halves(image, x: x, y: y * 2))
                var codes: [String] = []
                if let ink = cell.ink, ink != foreground {
                    codes.append("\(30 + ink.number)")
                    foreground = ink
                }
                if cell.paper != background {
                    codes.append(cell.paper.map { "\(40 + $0.number)" } ?? "49")
                    background = cell.paper
                }
                if !codes.isEmpty { text += Array("\u{1b}[\(codes.joined(separator: ";"))m".utf8) }
                text += Array(cell.glyph.utf8)
            }
            text += Array("\u{1b}[0m\n".utf8)
        }
        return text
    }

    /// The part of an error that is distributed. With all of it, even areas are restless; with half of it, they have
    /// another hue.
    private static let distributedSixteenths = 10

    /// Returns an image with the colour of each cell. Cells of two halves are transparent.
    private static func means(_ image: PixelImage) -> PixelImage {
        PixelImage(width: image.width, height: (image.height + 1) / 2, alpha: .straight) { target in
            var at = 0
            for y in stride(from: 0, to: image.height, by: 2) {
                for x in 0..<image.width {
                    let mean = Halves(image, x: x, y: y).mean
                    for channel in 0..<3 { target[at + channel] = mean.map { UInt8($0[channel]) } ?? 0 }
                    target[at + 3] = mean == nil ? 0 : 255
                    at += PixelImage.bytesPerPixel
                }
            }
        }
    }

    /// A character, its colour (nil: none needed), and the colour behind it.
    private struct Cell {
        var glyph: Character
        var ink: BasicColor?
        var paper: BasicColor?
    }

    /// Returns the cell of a mixture, or of two halves where that is transparent.
    private static func cell(_ mixture: PixelColor, _ halves: Halves) -> Cell {
        if mixture.alpha > 0, let found = Mixture.byColor[mixture] {
            return Cell(glyph: found.glyph, ink: found.glyph == " " ? nil : found.ink, paper: found.paper)
        }
        let top = halves.top.map(BasicColor.init(nearest:)), bottom = halves.bottom.map(BasicColor.init(nearest:))
        switch (top, bottom) {
        case (nil, nil): return Cell(glyph: " ", ink: nil, paper: nil)
        case (nil, let bottom): return Cell(glyph: "▄", ink: bottom, paper: nil)
        case (let top, nil): return Cell(glyph: "▀", ink: top, paper: nil)
        case (let top, let bottom):
            return top == bottom ? Cell(glyph: " ", paper: bottom) : Cell(glyph: "▀", ink: top, paper: bottom)
        }
    }
}

/// The two pixels of a cell; nil for one that is less than half opaque or beyond the image.
private struct Halves {
    let top: SIMD3<Int>?
    let bottom: SIMD3<Int>?

    init(_ image: PixelImage, x: Int, y: Int) {
        func visible(_ color: PixelColor) -> SIMD3<Int>? {
            color.alpha >= 128 ? SIMD3(Int(color.red), Int(color.green), Int(color.blue)) : nil
        }
        top = visible(image[x, y])
        bottom = y + 1 < image.height ? visible(image[x, y + 1]) : nil
    }

    /// The mean colour; nil if one half is invisible, or if there is an edge between them.
    var mean: SIMD3<Int>? {
        guard let top, let bottom, squaredDistance(top, bottom) < 20_000 else { return nil }
        return (top &+ bottom) / 2
    }
}

/// One of the 8 colours as xterm shows it: a bit each for red, green and blue.
private struct BasicColor: Hashable {
    let number: Int

    init(number: Int) { self.number = number }

    /// The closest colour: of the two values of each channel, as the colours are the corners of a cube.
    init(nearest color: SIMD3<Int>) {
        number = (color.x > 102 ? 1 : 0) + (color.y > 102 ? 2 : 0) + (color.z > 102 ? 4 : 0)
    }

    var rgb: SIMD3<Int> {
        number == 7 ? SIMD3(repeating: 229) : SIMD3(number & 1, number >> 1 & 1, number >> 2 & 1) &* 205
    }
}

/// A colour that a cell can have.
private struct Mixture {
    let ink: BasicColor
    let paper: BasicColor
    /// The quarters of the cell that the character covers.
    let quarters: Int

    var glyph: Character { [" ", "░", "▒", "▓"][quarters] }
    var rgb: SIMD3<Int> { (paper.rgb &* (4 - quarters) &+ ink.rgb &* quarters) / 4 }
    var color: PixelColor { PixelColor(red: UInt8(rgb.x), green: UInt8(rgb.y), blue: UInt8(rgb.z)) }
    /// How far the two colours are from each other. The pattern of distant ones is seen.
    private var contrast: Int { squaredDistance(ink.rgb, paper.rgb) }

    private static let all: [Mixture] = {
        var all: [Mixture] = []
        for number in 0..<8 {
            let paper = BasicColor(number: number)
            all.append(Mixture(ink: paper, paper: paper, quarters: 0))
            for other in number + 1..<8 {
                // Opposites mix to grays with coloured dots; black and white do that without.
                if other ^ number == 7, number != 0 { continue }
                for quarters in 1...3 {
                    all.append(Mixture(ink: BasicColor(number: other), paper: paper, quarters: quarters))
                }
            }
        }
        return all
    }()

    /// The mixtures by their colours; of those with one colour, that with the least contrast.
    static let byColor = Dictionary(all.map { ($0.color, $0) }) { $0.contrast <= $1.contrast ? $0 : $1 }

    private static let candidates = byColor.values.map { (rgb: $0.rgb, penalty: $0.contrast / 50, mixture: $0) }
        .sorted { ($0.rgb.x, $0.rgb.y, $0.rgb.z) < ($1.rgb.x, $1.rgb.y, $1.rgb.z) }

    /// Returns the closest one, or one that is hardly further and has less contrast.
    static func nearest(to color: SIMD3<Int>) -> Mixture {
        var best = candidates[0], least = Int.max
        for candidate in candidates {
            let cost = squaredDistance(candidate.rgb, color) + candidate.penalty
            if cost < least { (best, least) = (candidate, cost) }
        }
        return best.mixture
    }
}

private func squaredDistance(_ a: SIMD3<Int>, _ b: SIMD3<Int>) -> Int {
    let difference = a &- b
    return (difference &* difference).wrappedSum()
}
