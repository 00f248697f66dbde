import VitrineCore
import VitrineImaging
import VitrinePixels

/// Lays out pictures in a grid with two lines of caption each.
package struct ContactSheet: Sendable {
    /// One picture of the sheet.
    package struct Item: Sendable {
        package var image: PixelImage
        /// First line of the caption, for example a file name.
        package var title: String
        /// Second line, for example `4000×3000 JPEG 12 ms`.
        package var detail: String

        package init(_ image: PixelImage, title: String, detail: String = "") {
            self.image = image
            self.title = title
            self.detail = detail
        }
    }

    /// Cells a row; nil (the default) for about as many as rows, at most 6.
    package var columns: Int?
    /// Width and height in pixels of the space for one picture. Larger pictures are reduced, smaller ones centred.
    package var pictureSize: PixelSize
    /// A heading above all cells.
    package var title: String

    private static let margin = 28
    private static let gap = 20
    private static let padding = 16
    private static let captionHeight = 62
    private static let headingHeight = 56

    package init(title: String = "", columns: Int? = nil, pictureSize: PixelSize = PixelSize(width: 264, height: 200)) {
        self.title = title
        self.columns = columns
        self.pictureSize = pictureSize
    }

    /// Draws the sheet: an opaque picture.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` without items or for sizes out of range;
    ///   ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when the sheet would be larger than
    ///   ``ImageLimits/maximumOutputSide``.
    package func draw(_ items: [Item]) throws(ImageError) -> PixelImage {
        guard !items.isEmpty else { throw .invalidRequest(reason: "a contact sheet needs a picture") }
        try ProcessorCheck.value(items.count, in: 1...10_000, "pictures on a contact sheet")
        try ProcessorCheck.value(pictureSize.width, in: 16...2_048, "picture width on a contact sheet")
        try ProcessorCheck.value(pictureSize.height, in: 16...2_048, "picture height on a contact sheet")
        let across = max(1, min(items.count, columns ?? min(6, Int(Double(items.count).squareRoot().rounded(.up)))))
        let down = (items.count + across - 1) / across
        let cell = PixelSize(
            width: pictureSize.width + 2 * Self.padding,
            height: pictureSize.height + Self.padding + Self.captionHeight)
        let top = Self.margin + (title.isEmpty ? 0 : Self.headingHeight)
        let size = PixelSize(
            width: 2 * Self.margin + across * cell.width + (across - 1) * Self.gap,
            height: top + Self.margin + down * cell.height + (down - 1) * Self.gap)
        try ProcessorCheck.outputSide(size, "contact sheet")

        var canvas = SheetCanvas(size: size, color: PixelColor(red: 243, green: 244, blue: 247))
        let heading = SheetCanvas.truncated(title, width: size.width - 2 * Self.margin, scale: 3)
        canvas.write(heading, x: Self.margin, y: Self.margin, scale: 3, color: PixelColor(red: 31, green: 36, blue: 48))
        for (index, item) in items.enumerated() {
            let x = Self.margin + index % across * (cell.width + Self.gap)
            let y = top + index / across * (cell.height + Self.gap)
            try draw(item, x: x, y: y, cell: cell, on: &canvas)
        }
        return canvas.image
    }

    private func draw(
        _ item: Item, x: Int, y: Int, cell: PixelSize, on canvas: inout SheetCanvas
    ) throws(ImageError) {
        let shadow = PixelSize(width: cell.width, height: cell.height)
        try canvas.fill(x: x, y: y + 2, size: shadow, radius: 12, color: PixelColor(red: 30, green: 40, blue: 70, alpha: 14))
        try canvas.fill(
            x: x, y: y, size: cell, radius: 12, color: .white,
            border: ImageBorder(color: PixelColor(red: 221, green: 225, blue: 232)))
        let picture = AreaReduction.apply(to: item.image, size: fitted(item.image.size))
        canvas.draw(
            picture, x: x + Self.padding + (pictureSize.width - picture.width) / 2,
            y: y + Self.padding + (pictureSize.height - picture.height) / 2)
        let caption = y + Self.padding + pictureSize.height + 12
        let title = SheetCanvas.truncated(item.title, width: pictureSize.width, scale: 2)
        let detail = SheetCanvas.truncated(item.detail, width: pictureSize.width, scale: 2)
        canvas.write(title, x: x + Self.padding, y: caption, scale: 2, color: PixelColor(red: 31, green: 36, blue: 48))
        canvas.write(
            detail, x: x + Self.padding, y: caption + 22, scale: 2, color: PixelColor(red: 118, green: 126, blue: 142))
    }

    /// Returns the size at which a picture is shown: its own, or reduced to fit.
    private func fitted(_ size: PixelSize) -> PixelSize {
        let factor = min(
            1, Double(pictureSize.width) / Double(size.width), Double(pictureSize.height) / Double(size.height))
        return PixelSize(
            width: max(1, Int((Double(size.width) * factor).rounded())),
            height: max(1, Int((Double(size.height) * factor).rounded())))
    }
}

/// An opaque picture that is being drawn on: rectangles, pictures and captions.
private struct SheetCanvas {
    private(set) var image: PixelImage

    init(size: PixelSize, color: PixelColor) {
        image = PixelImage(size: size, color: PixelColor(red: color.red, green: color.green, blue: color.blue))
    }

    /// Fills a rectangle with rounded corners.
    mutating func fill(
        x: Int, y: Int, size: PixelSize, radius: Double = 0, color: PixelColor, border: ImageBorder? = nil
    ) throws(ImageError) {
        let tile = try PixelImage(size: size, color: color).processed(by: [.roundCorners(radius, border: border)])
        image.compose(tile.converted(to: .premultiplied), x: x, y: y)
    }

    /// Draws a picture; transparent parts show a checkerboard.
    mutating func draw(_ picture: PixelImage, x: Int, y: Int) {
        guard picture.hasAlpha else {
            image.compose(picture, x: x, y: y)
            return
        }
        var board = SheetCanvas.checkerboard(picture.size)
        board.compose(picture.converted(to: .premultiplied), x: 0, y: 0)
        image.compose(board, x: x, y: y)
    }

    /// Draws text whose capitals begin at row `y`, each point of the font `scale` pixels wide and high.
    mutating func write(_ text: String, x: Int, y: Int, scale: Int, color: PixelColor) {
        var left = x
        for character in text {
            let glyph = SheetCanvas.stencil(character, scale: scale, color: color)
            image.compose(glyph, x: left, y: y)
            left += BitmapFont.advance * scale
        }
    }

    /// Returns the text cut to a width in pixels, with an ellipsis for the missing part.
    static func truncated(_ text: String, width: Int, scale: Int) -> String {
        let fitting = max(0, (width + scale) / (BitmapFont.advance * scale))
        return text.count <= fitting ? text : text.prefix(max(0, fitting - 1)) + "…"
    }

    private static func checkerboard(_ size: PixelSize) -> PixelImage {
        let light = PixelMath.straight(PixelColor(white: 255)), dark = PixelMath.straight(PixelColor(white: 226))
        return PixelImage(width: size.width, height: size.height, alpha: .opaque) { target in
            for y in 0..<size.height {
                for x in 0..<size.width {
                    let pixel = (x >> 3 ^ y >> 3) & 1 == 0 ? light : dark
                    PixelMath.store(pixel, target.baseAddress! + (y * size.width + x) * 4)
                }
            }
        }
    }

    /// Returns a character as a picture with softened steps: like Scale2x (A. Mazzoleni, scale2x.it), it fills corners
    /// of a diagonal with half the colour.
    private static func stencil(_ character: Character, scale: Int, color: PixelColor) -> PixelImage {
        let rows = BitmapFont.rows(of: character)
        func point(_ x: Int, _ y: Int) -> Bool {
            rows.indices.contains(y) && x >= 0 && x < BitmapFont.width && rows[y] >> UInt8(4 - x) & 1 == 1
        }
        let ink = PixelMath.premultiplied(color), half = PixelMath.scale(ink, 110)
        let width = BitmapFont.width * scale, height = BitmapFont.height * scale
        return PixelImage(width: width, height: height, alpha: .premultiplied) { target in
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

/// A small font for captions: ASCII, 5 pixels wide and 9 high, of which 7 stand above the base line.
///
/// Drawn for this project.
private enum BitmapFont {
    static let width = 5
    static let height = 9
    /// From one character to the next.
    static let advance = 6

    /// Returns the rows of a character from the top, the leftmost pixel in bit 4; a question mark for unknown ones.
    static func rows(of character: Character) -> [UInt8] { glyphs[character] ?? glyphs["?"] ?? [] }

    /// Each character followed by its rows as digits of base 32 (`0`–`9`, `a`–`v`); rows left out at the end are blank.
    private static let source = """
        !4444404 "aa #aavavaa $4fke5u4 %op248j3 &cik8lid '44 (2488842 )8422248 *04lel4 +044v44 ,00000cc48
        -000v .00000cc /01248g 0ehjlphe 14c4444e 2eh1248v 3v2421he 426aiv22 5vgu11he 668guhhe 7v124888 8ehhehhe
        9ehhf12c :0cc00cc ;0cc00cc48 <248g842 =00v0v >8421248 ?eh12404 @eh1dlle Aehhvhhh Buhhuhhu Cehggghe Dsihhhis
        Evgguggv Fvgguggg Gehgnhhf Hhhhvhhh Ie44444e J72222ic Khikokih Lggggggv Mhrllhhh Nhhpljhh Oehhhhhe Puhhuggg
        Qehhhlid Ruhhukih Sfgge11u Tv444444 Uhhhhhhe Vhhhhha4 Whhhllla Xhha4ahh Yhhha444 Zv1248gv [e88888e \\0g8421
        ]e22222e ^4ah _0000000v `84 a00e1fhf bggmphhu c00egghe d11djhhf e00ehvge f698s888 g00fhhhf1e hggmphhh i40c444e
        j2062222ic kggikoki lc44444e m00qllll n00mphhh o00ehhhe p00uhhhugg q00fhhhf11 r00mpggg s00fge1u t88s8896
        u00hhhjd v00hhha4 w00hllla x00ha4ah y00hhhhf1e z00v248v {2448442 |4444444 }8442448 ~008l2 ×00ha4ah ·000cc
        …000000l
        """

    private static let glyphs: [Character: [UInt8]] = {
        var glyphs: [Character: [UInt8]] = [" ": [UInt8](repeating: 0, count: height)]
        for word in source.split(whereSeparator: \.isWhitespace) where word.count > 1 {
            guard let character = word.first else { continue }
            let rows = word.dropFirst().compactMap { UInt8(String($0), radix: 32) }
            glyphs[character] = rows + [UInt8](repeating: 0, count: max(0, height - rows.count))
        }
        return glyphs
    }()
}
