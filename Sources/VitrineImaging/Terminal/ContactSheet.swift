/// Lays out pictures in a grid with two lines of caption each, for looking at many results at once.
package struct ContactSheet: Sendable {
    /// One picture of the sheet.
    package struct Item: Sendable {
        package var image: Image
        /// First line of the caption, for example a file name.
        package var title: String
        /// Second line, for example `4000×3000 JPEG 12 ms`.
        package var detail: String

        package init(_ image: Image, title: String, detail: String = "") {
            self.image = image
            self.title = title
            self.detail = detail
        }
    }

    /// Cells a row; nil (the default) for about as many as rows, at most 6.
    package var columns: Int?
    /// Width and height in pixels of the room for one picture. Larger ones are reduced into it, smaller ones centred.
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
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for no items or sizes without room;
    ///   ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when the sheet would be larger than
    ///   ``ImageLimits/maximumOutputSide``.
    package func draw(_ items: [Item]) throws(ImageError) -> Image {
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

        var canvas = SheetCanvas(size: size, color: Color(red: 243, green: 244, blue: 247))
        let heading = SheetCanvas.truncated(title, width: size.width - 2 * Self.margin, scale: 3)
        canvas.write(heading, x: Self.margin, y: Self.margin, scale: 3, color: Color(red: 31, green: 36, blue: 48))
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
        try canvas.fill(x: x, y: y + 2, size: shadow, radius: 12, color: Color(red: 30, green: 40, blue: 70, alpha: 14))
        try canvas.fill(
            x: x, y: y, size: cell, radius: 12, color: .white,
            border: .hairline(Color(red: 221, green: 225, blue: 232)))
        let picture = AreaReduction.apply(to: item.image, size: fitted(item.image.size))
        canvas.draw(
            picture, x: x + Self.padding + (pictureSize.width - picture.width) / 2,
            y: y + Self.padding + (pictureSize.height - picture.height) / 2)
        let caption = y + Self.padding + pictureSize.height + 12
        let title = SheetCanvas.truncated(item.title, width: pictureSize.width, scale: 2)
        let detail = SheetCanvas.truncated(item.detail, width: pictureSize.width, scale: 2)
        canvas.write(title, x: x + Self.padding, y: caption, scale: 2, color: Color(red: 31, green: 36, blue: 48))
        canvas.write(
            detail, x: x + Self.padding, y: caption + 22, scale: 2, color: Color(red: 118, green: 126, blue: 142))
    }

    /// The size at which a picture is shown: its own, or reduced to fit.
    private func fitted(_ size: PixelSize) -> PixelSize {
        let factor = min(
            1, Double(pictureSize.width) / Double(size.width), Double(pictureSize.height) / Double(size.height))
        return PixelSize(
            width: max(1, Int((Double(size.width) * factor).rounded())),
            height: max(1, Int((Double(size.height) * factor).rounded())))
    }
}
