import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrinePixels

/// Lays out images in a grid, with captions.
package struct ContactSheet: Sendable {
    /// One image of the sheet.
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

    /// The text below each image.
    package enum Captions: String, Sendable, CaseIterable {
        /// The title and the detail.
        case full
        /// The title alone.
        case name
        case none

        /// The height of the captions and of the space around them.
        fileprivate var height: Int {
            switch self {
            case .full: 62
            case .name: 42
            case .none: 16
            }
        }
    }

    /// Cells a row; nil (the default) for about as many as rows, at most 6.
    package var columns: Int?
    /// Width and height in pixels of the space for one image. Larger images are reduced, smaller ones centred.
    package var imageSize: PixelSize
    /// A heading above all cells; empty for none.
    package var title: String
    package var captions: Captions
    /// The helpers that draw the texts.
    package var textWorkers = TextWorkers.shared

    private static let margin = 28
    private static let gap = 20
    private static let padding = 16
    private static let headingHeight = 56
    /// A row of a caption.
    private static let rowHeight = 22
    private static let fontSize = 15.0
    private static let headingRow = 36
    private static let headingFontSize = 25.0
    private static let ink = PixelColor(red: 31, green: 36, blue: 48)
    private static let paleInk = PixelColor(red: 118, green: 126, blue: 142)

    package init(
        title: String = "", columns: Int? = nil, imageSize: PixelSize = PixelSize(width: 264, height: 200),
        captions: Captions = .full
    ) {
        self.title = title
        self.columns = columns
        self.imageSize = imageSize
        self.captions = captions
    }

    /// Whether it has texts, which only `vitrine-text` draws.
    package var hasText: Bool { captions != .none || !title.isEmpty }

    /// Returns the size of a sheet of so many images.
    ///
    /// - Throws: As ``draw(_:)``.
    package func size(count: Int) throws(ImageError) -> PixelSize {
        guard count > 0 else { throw .invalidRequest(reason: "a contact sheet needs an image") }
        try ProcessorCheck.value(count, in: 1...10_000, "images on a contact sheet")
        try ProcessorCheck.value(imageSize.width, in: 16...2_048, "image width on a contact sheet")
        try ProcessorCheck.value(imageSize.height, in: 16...2_048, "image height on a contact sheet")
        let across = columns(count: count)
        let down = (count + across - 1) / across
        let size = PixelSize(
            width: 2 * Self.margin + across * cell.width + (across - 1) * Self.gap,
            height: top + Self.margin + down * cell.height + (down - 1) * Self.gap)
        try ProcessorCheck.outputSide(size, "contact sheet")
        return size
    }

    private func columns(count: Int) -> Int {
        max(1, min(count, columns ?? min(6, Int(Double(count).squareRoot().rounded(.up)))))
    }

    /// The size of an image with its caption and the space around both.
    private var cell: PixelSize {
        PixelSize(width: imageSize.width + 2 * Self.padding, height: imageSize.height + Self.padding + captions.height)
    }

    /// The first row of cells.
    private var top: Int { Self.margin + (title.isEmpty ? 0 : Self.headingHeight) }

    /// Draws the sheet: an opaque image. Blocks.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` without items or for sizes out of range;
    ///   ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when the sheet would be larger than
    ///   ``ImageLimits/maximumOutputSide``; ``ImagePipelineError/helperMissing(_:source:)`` for texts without
    ///   `vitrine-text`.
    package func draw(_ items: [Item]) throws -> PixelImage {
        let size = try size(count: items.count)
        let (across, cell, top) = (columns(count: items.count), cell, top)
        var canvas = SheetCanvas(size: size, color: PixelColor(red: 243, green: 244, blue: 247))
        if !title.isEmpty {
            let room = PixelSize(width: size.width - 2 * Self.margin, height: Self.headingRow)
            let heading = TextLabels(
                size: room, fontSize: Self.headingFontSize, isBold: true, workers: textWorkers)
            for image in try heading.images(of: [title]) {
                canvas.write(image, x: Self.margin, y: Self.margin, color: Self.ink)
            }
        }
        let row = PixelSize(width: imageSize.width, height: Self.rowHeight)
        let labels = TextLabels(size: row, fontSize: Self.fontSize, workers: textWorkers)
        let titles = captions == .none ? [] : try labels.images(of: items.map(\.title))
        let details = captions == .full ? try labels.images(of: items.map(\.detail)) : []
        for (index, item) in items.enumerated() {
            let x = Self.margin + index % across * (cell.width + Self.gap)
            let y = top + index / across * (cell.height + Self.gap)
            try draw(item, x: x, y: y, cell: cell, on: &canvas)
            let caption = y + Self.padding + imageSize.height + 8
            if captions != .none { canvas.write(titles[index], x: x + Self.padding, y: caption, color: Self.ink) }
            if captions == .full {
                canvas.write(
                    details[index], x: x + Self.padding, y: caption + Self.rowHeight, color: Self.paleInk)
            }
        }
        return canvas.image
    }

    private func draw(
        _ item: Item, x: Int, y: Int, cell: PixelSize, on canvas: inout SheetCanvas
    ) throws(ImageError) {
        let shadow = PixelColor(red: 30, green: 40, blue: 70, alpha: 14)
        try canvas.fill(x: x, y: y + 2, size: cell, radius: 12, color: shadow)
        try canvas.fill(
            x: x, y: y, size: cell, radius: 12, color: .white,
            border: ImageBorder(color: PixelColor(red: 221, green: 225, blue: 232)))
        let image = AreaReduction.apply(to: item.image, size: fitted(item.image.size))
        canvas.draw(
            image, x: x + Self.padding + (imageSize.width - image.width) / 2,
            y: y + Self.padding + (imageSize.height - image.height) / 2)
    }

    /// Returns the size at which an image is shown: its own, or reduced to fit.
    private func fitted(_ size: PixelSize) -> PixelSize {
        let factor = min(
            1, Double(imageSize.width) / Double(size.width), Double(imageSize.height) / Double(size.height))
        return PixelSize(
            width: max(1, Int((Double(size.width) * factor).rounded())),
            height: max(1, Int((Double(size.height) * factor).rounded())))
    }
}

/// An opaque image that is being drawn on: rectangles, images and captions.
private struct SheetCanvas {
    private(set) var image: PixelImage
    /// Around images: seen on white ones alone.
    private static let borderColor = PixelColor(red: 0, green: 0, blue: 0, alpha: 36)

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

    /// Draws an image. An opaque one gets a border outside its pixels, as a white page would have no edge on the white
    /// cell; transparent parts show a checkerboard.
    mutating func draw(_ top: PixelImage, x: Int, y: Int) {
        guard top.hasAlpha else {
            let size = PixelSize(width: top.width + 2, height: top.height + 2)
            let frame = PixelImage(size: size, color: Self.borderColor).converted(to: .premultiplied)
            image.compose(frame, x: x - 1, y: y - 1)
            image.compose(top, x: x, y: y)
            return
        }
        var board = SheetCanvas.checkerboard(top.size)
        board.compose(top.converted(to: .premultiplied), x: 0, y: 0)
        image.compose(board, x: x, y: y)
    }

    /// Draws a text in a colour.
    ///
    /// - Parameter label: The text in black on white.
    mutating func write(_ label: PixelImage, x: Int, y: Int, color: PixelColor) {
        let ink = PixelMath.premultiplied(color)
        let text = PixelImage(width: label.width, height: label.height, alpha: .premultiplied) { target in
            label.withUnsafeBytes { source in
                for row in 0..<label.height {
                    for column in 0..<label.width {
                        // Green is the closest to the lightness of emoji, which have colours.
                        let green = source[row * label.bytesPerRow + column * PixelImage.bytesPerPixel + 1]
                        let pixel = PixelMath.scale(ink, UInt32(255 - green))
                        target.storeBytes(
                            of: pixel.littleEndian, toByteOffset: (row * label.width + column) * 4, as: UInt32.self)
                    }
                }
            }
        }
        image.compose(text, x: x, y: y)
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
}
