import VitrineImaging

/// How large a film is shown: with square pixels, and upright.
struct FrameShape: Equatable {
    /// Pixels as the codec has them.
    let stored: PixelSize
    /// The same with square pixels.
    let square: PixelSize
    let orientation: Orientation

    /// Shapes beyond this are mistakes of the file.
    private static let sharpest = 16

    /// - Parameter pixelShape: Width to height of a pixel (ITU-T H.273, 8.6); anything impossible is square.
    init(stored: PixelSize, pixelShape: (width: Int, height: Int), orientation: Orientation) {
        self.stored = PixelSize(width: max(1, stored.width), height: max(1, stored.height))
        self.orientation = orientation
        let (w, h) = pixelShape
        guard w > 0, h > 0, w != h, w / h < Self.sharpest, h / w < Self.sharpest else {
            square = self.stored
            return
        }
        let width = (Double(self.stored.width) * Double(w) / Double(h)).rounded()
        square = PixelSize(width: max(1, Int(width)), height: self.stored.height)
    }

    /// Pixels as shown.
    var upright: PixelSize { orientation.upright(square) }

    /// Pixels of a picture by `rule`, before it is turned upright.
    ///
    /// - Throws: As ``ImageResizer/targetSize(for:)``.
    func target(_ rule: ImageResizer) throws(ImageError) -> PixelSize {
        orientation.upright(try rule.targetSize(for: upright))
    }

    /// How many of `pixels`, of which the picture needs `target`, one mean may stand for: what remains is twice the
    /// target or more, for the final scaling to have something to filter.
    static func factor(_ pixels: Int, _ target: Int) -> Int { max(1, pixels / max(1, 2 * target)) }
}
