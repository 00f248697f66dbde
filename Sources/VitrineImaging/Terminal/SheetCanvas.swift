/// An opaque picture that is being drawn on: rectangles, pictures and captions.
struct SheetCanvas {
    private(set) var image: Image

    init(size: PixelSize, color: Color) {
        image = Image(size: size, color: Color(red: color.red, green: color.green, blue: color.blue))
    }

    /// Fills a rectangle with rounded corners.
    mutating func fill(
        x: Int, y: Int, size: PixelSize, radius: Double = 0, color: Color, border: ImageBorder? = nil
    ) throws(ImageError) {
        let tile = try Image(size: size, color: color).processed(by: [.roundCorners(radius, border: border)])
        image.compose(tile.converted(to: .premultiplied), x: x, y: y)
    }

    /// Draws a picture; transparent parts show a checkerboard.
    mutating func draw(_ picture: Image, x: Int, y: Int) {
        guard picture.hasAlpha else {
            image.compose(picture, x: x, y: y)
            return
        }
        var board = SheetCanvas.checkerboard(picture.size)
        board.compose(picture.converted(to: .premultiplied), x: 0, y: 0)
        image.compose(board, x: x, y: y)
    }

    /// Draws text whose capitals begin at row `y`, each point of the font `scale` pixels wide and high.
    mutating func write(_ text: String, x: Int, y: Int, scale: Int, color: Color) {
        var left = x
        for character in text {
            let glyph = SheetCanvas.stencil(character, scale: scale, color: color)
            image.compose(glyph, x: left, y: y)
            left += BitmapFont.advance * scale
        }
    }

    /// The text cut to a width in pixels, with an ellipsis where something is missing.
    static func truncated(_ text: String, width: Int, scale: Int) -> String {
        let fitting = max(0, (width + scale) / (BitmapFont.advance * scale))
        return text.count <= fitting ? text : text.prefix(max(0, fitting - 1)) + "…"
    }

    private static func checkerboard(_ size: PixelSize) -> Image {
        let light = PixelMath.straight(Color(white: 255)), dark = PixelMath.straight(Color(white: 226))
        return Image(width: size.width, height: size.height, alpha: .opaque) { target in
            for y in 0..<size.height {
                for x in 0..<size.width {
                    let pixel = (x >> 3 ^ y >> 3) & 1 == 0 ? light : dark
                    PixelMath.store(pixel, target.baseAddress! + (y * size.width + x) * 4)
                }
            }
        }
    }

    /// A character as a picture, its steps softened: corners of a diagonal are filled as Scale2x does
    /// (A. Mazzoleni, scale2x.it), with half the colour.
    private static func stencil(_ character: Character, scale: Int, color: Color) -> Image {
        let rows = BitmapFont.rows(of: character)
        func point(_ x: Int, _ y: Int) -> Bool {
            rows.indices.contains(y) && x >= 0 && x < BitmapFont.width && rows[y] >> UInt8(4 - x) & 1 == 1
        }
        let ink = PixelMath.premultiplied(color), half = PixelMath.scale(ink, 110)
        let width = BitmapFont.width * scale, height = BitmapFont.height * scale
        return Image(width: width, height: height, alpha: .premultiplied) { target in
            for y in 0..<height {
                for x in 0..<width {
                    let column = x / scale, row = y / scale
                    // The neighbours on the side of the point this pixel is in.
                    let dx = 2 * (x % scale) + 1 < scale ? -1 : 2 * (x % scale) + 1 > scale ? 1 : 0
                    let dy = 2 * (y % scale) + 1 < scale ? -1 : 2 * (y % scale) + 1 > scale ? 1 : 0
                    let isDiagonal = dx != 0 && dy != 0 && point(column + dx, row) && point(column, row + dy)
                        && !point(column - dx, row) && !point(column, row - dy) && !point(column + dx, row + dy)
                    let pixel = point(column, row) ? ink : isDiagonal ? half : 0
                    PixelMath.store(pixel, target.baseAddress! + (y * width + x) * 4)
                }
            }
        }
    }
}
