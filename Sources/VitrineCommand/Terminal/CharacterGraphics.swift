import VitrineImaging

/// Writes an image as characters whose upper and lower halves are pixels.
///
/// Source: ECMA-48 §8.3.117, with the direct colours of ISO 8613-6.
struct HalfBlocks {
    /// The colours of the terminal.
    enum Depth {
        /// 24 bits.
        case direct
        /// Those of xterm.
        case colors256
    }

    let depth: Depth

    /// - Parameter image: Opaque or with straight alpha; pixels less than half opaque show the terminal's background.
    func render(_ original: PixelImage) -> [UInt8] {
        let image =
            switch depth {
            case .direct: original
            case .colors256: ErrorDiffusion.reduced(original, nearest: XTermColor.nearestColor)
            }
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
        switch depth {
        case .direct: "\(base);2;\(color.red);\(color.green);\(color.blue)"
        case .colors256: "\(base);5;\(XTermColor.number(of: color))"
        }
    }
}

/// The 256 colours of xterm: a cube of 6 × 6 × 6 from 16 and a ramp of 24 greys from 232 (xterm's `256colres.h`). The
/// first 16 differ between terminals and are not used.
private enum XTermColor {
    private static let levels = [0, 95, 135, 175, 215, 255]

    /// Returns the closest colour.
    static func nearestColor(to rgb: SIMD3<Int>) -> PixelColor {
        let number = number(of: rgb)
        guard number < 232 else { return PixelColor(white: UInt8(8 + (number - 232) * 10)) }
        let cube = number - 16
        return PixelColor(
            red: UInt8(levels[cube / 36]), green: UInt8(levels[cube / 6 % 6]), blue: UInt8(levels[cube % 6]))
    }

    static func number(of color: PixelColor) -> Int {
        number(of: SIMD3(Int(color.red), Int(color.green), Int(color.blue)))
    }

    /// Returns the number of the closest colour.
    private static func number(of rgb: SIMD3<Int>) -> Int {
        func step(_ value: Int) -> Int {
            levels.indices.min { abs(levels[$0] - value) < abs(levels[$1] - value) } ?? 0
        }
        let steps = SIMD3(step(rgb.x), step(rgb.y), step(rgb.z))
        let cube = distance(rgb, SIMD3(levels[steps.x], levels[steps.y], levels[steps.z]))
        let gray = max(0, min(23, (rgb.wrappedSum() / 3 - 3) / 10))
        if distance(rgb, SIMD3(repeating: 8 + gray * 10)) < cube { return 232 + gray }
        return 16 + steps.x * 36 + steps.y * 6 + steps.z
    }

    private static func distance(_ a: SIMD3<Int>, _ b: SIMD3<Int>) -> Int {
        let difference = a &- b
        return (difference &* difference).wrappedSum()
    }
}

/// Writes an image as characters that cover more of their cell the lighter the pixels are, for dark terminals.
enum TextImage {
    /// By the part of a cell that is covered.
    private static let ramp = Array(" .:-=+*#%@".utf8)

    /// - Parameter image: Opaque or with straight alpha; pixels less than half opaque are blanks.
    static func render(_ image: PixelImage) -> [UInt8] {
        let last = ramp.count - 1
        func level(_ light: Int) -> Int { max(0, min(last, (light * last + 127) / 255)) }
        let cells = PixelImage(width: image.width, height: (image.height + 1) / 2, alpha: .straight) { target in
            var at = 0
            for y in stride(from: 0, to: image.height, by: 2) {
                for x in 0..<image.width {
                    let (top, bottom) = (image[x, y], image[x, min(y + 1, image.height - 1)])
                    let light = UInt8((light(top) + light(bottom)) / 2)
                    let alpha = UInt8((Int(top.alpha) + Int(bottom.alpha)) / 2)
                    for byte in [light, light, light, alpha] {
                        target[at] = byte
                        at += 1
                    }
                }
            }
        }
        let reduced = ErrorDiffusion.reduced(cells) { PixelColor(white: UInt8(level($0.x) * 255 / last)) }
        var text: [UInt8] = []
        for y in 0..<reduced.height {
            for x in 0..<reduced.width {
                let color = reduced[x, y]
                text.append(color.alpha < 128 ? ramp[0] : ramp[level(Int(color.red))])
            }
            text.append(UInt8(ascii: "\n"))
        }
        return text
    }

    /// The luma of a colour (ITU-R BT.709), from 0 to 255.
    private static func light(_ color: PixelColor) -> Int {
        (Int(color.red) * 2126 + Int(color.green) * 7152 + Int(color.blue) * 722) / 10_000
    }
}

/// Reduces the colours of an image so that areas keep their mean.
///
/// Each pixel gets the nearest colour, and its error, or a part of it, is distributed to those that follow, in rows of
/// alternating direction. Source: R. W. Floyd, L. Steinberg, An Adaptive Algorithm for Spatial Greyscale, Proceedings
/// of the SID 17 (1976).
enum ErrorDiffusion {
    /// Returns the image in other colours, with its alpha. Pixels less than half opaque neither give nor take errors.
    ///
    /// - Parameters:
    ///   - image: Opaque or with straight alpha.
    ///   - sixteenths: The part of each error that is distributed. Default 16: all.
    ///   - nearest: Returns the colour in the place of another one.
    static func reduced(
        _ image: PixelImage, sixteenths: Int = 16, nearest: (SIMD3<Int>) -> PixelColor
    ) -> PixelImage {
        let (width, height) = (image.width, image.height)
        return PixelImage(width: width, height: height, alpha: image.hasAlpha ? .straight : .opaque) { target in
            // Errors in 256ths, with a column on each side that is never read.
            var here = [SIMD3<Int>](repeating: .zero, count: width + 2)
            var below = here
            for y in 0..<height {
                let step = y % 2 == 0 ? 1 : -1
                for index in 0..<width {
                    let x = step > 0 ? index : width - 1 - index
                    var color = image[x, y]
                    let alpha = color.alpha
                    if alpha >= 128 {
                        let wanted = SIMD3(Int(color.red), Int(color.green), Int(color.blue)) &+ here[x + 1] / 256
                        let bounded = pointwiseMax(pointwiseMin(wanted, SIMD3(repeating: 255)), .zero)
                        color = nearest(bounded)
                        let error =
                            (bounded &- SIMD3(Int(color.red), Int(color.green), Int(color.blue))) &* sixteenths
                        here[x + 1 + step] &+= error &* 7
                        below[x + 1 - step] &+= error &* 3
                        below[x + 1] &+= error &* 5
                        below[x + 1 + step] &+= error
                    }
                    let at = (y * width + x) * PixelImage.bytesPerPixel
                    (target[at], target[at + 1], target[at + 2], target[at + 3]) = (
                        color.red, color.green, color.blue, alpha
                    )
                }
                here = below
                for index in below.indices { below[index] = .zero }
            }
        }
    }
}
