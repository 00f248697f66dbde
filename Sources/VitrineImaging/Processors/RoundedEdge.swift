/// The rounded outline and the border of a picture of one size, ready to be drawn into it.
///
/// Only pixels near the edge are visited: the cost grows with the corners and the border, not with the picture.
struct RoundedEdge {
    private let size: PixelSize
    private let outer: RoundedRectangle
    private let inner: RoundedRectangle
    private let line: UInt32
    /// Columns and rows from each side that corners or border can touch.
    private let bands: (left: Int, right: Int, top: Int, bottom: Int)
    private let lineBand: Int

    /// - Parameter radii: Must fit the size; see ``CornerRadii/fitting(width:height:)``.
    init(size: PixelSize, radii: CornerRadii, border: ImageBorder?) {
        let width = Double(size.width), height = Double(size.height)
        let lineWidth = border?.width ?? 0
        self.size = size
        outer = RoundedRectangle(width: width, height: height, radii: radii)
        inner = RoundedRectangle(width: width, height: height, inset: lineWidth, radii: radii)
        line = border.map { PixelMath.premultiplied($0.color) } ?? 0
        func band(_ a: Double, _ b: Double, _ side: Int) -> Int {
            min(side, Int(min(Double(side), max(a, b, lineWidth)).rounded(.up)))
        }
        bands = (
            band(radii.topLeft, radii.bottomLeft, size.width), band(radii.topRight, radii.bottomRight, size.width),
            band(radii.topLeft, radii.topRight, size.height), band(radii.bottomLeft, radii.bottomRight, size.height)
        )
        lineBand = band(0, 0, size.width)
    }

    /// Draws into `image`, which has this size and is premultiplied, or opaque when no corner is round.
    func apply(to image: inout Image) {
        let stride = image.bytesPerRow
        image.withUnsafeMutableBytes { bytes in
            for y in 0..<size.height { apply(row: bytes.baseAddress! + y &* stride, y) }
        }
    }

    private func apply(row: UnsafeMutableRawPointer, _ y: Int) {
        let isMiddle = y >= bands.top && y < size.height - bands.bottom
        let left = isMiddle ? lineBand : bands.left
        let right = max(left, size.width - (isMiddle ? lineBand : bands.right))
        if !isMiddle && left < right && line != 0 {
            // Between the corners every pixel of a row is alike.
            let mix = Mix(outer.coverage(x: left, y: y), inner.coverage(x: left, y: y), line)
            if !mix.keeps { for x in left..<right { mix.apply(row + x &* 4) } }
        }
        // The shape is convex: once a pixel is wholly inside, so are all up to the other side.
        let clear = outer.clearColumns(y: y, width: size.width)
        row.initializeMemory(as: UInt8.self, repeating: 0, count: clear.left &* 4)
        (row + (size.width - clear.right) &* 4).initializeMemory(as: UInt8.self, repeating: 0, count: clear.right &* 4)
        var x = clear.left
        while x < left, applyPixel(row, x, y) { x &+= 1 }
        x = size.width &- 1 &- clear.right
        while x >= right, applyPixel(row, x, y) { x &-= 1 }
    }

    /// Draws one pixel; false when it is wholly inside, hence unchanged.
    @inline(__always)
    private func applyPixel(_ row: UnsafeMutableRawPointer, _ x: Int, _ y: Int) -> Bool {
        let outside = outer.coverage(x: x, y: y)
        let mix = Mix(outside, line == 0 ? outside : inner.coverage(x: x, y: y), line)
        if mix.keeps { return false }
        mix.apply(row + x &* 4)
        return true
    }

    /// How a pixel is composed of picture and line.
    private struct Mix {
        let picture: UInt32
        let line: UInt32

        /// `outer` of the pixel is inside the outline and `inner` of it inside the line.
        init(_ outer: Double, _ inner: Double, _ color: UInt32) {
            line = PixelMath.scale(color, UInt32((max(0, outer - inner) * 255).rounded()))
            // What the line leaves of the outline, so that both together can never exceed it.
            picture = UInt32(max(0, Int((outer * 255).rounded()) - Int(line >> 24)))
        }

        var keeps: Bool { picture == 255 && line == 0 }

        @inline(__always)
        func apply(_ p: UnsafeMutableRawPointer) {
            PixelMath.store(PixelMath.scale(PixelMath.load(p), picture) &+ line, p)
        }
    }
}
