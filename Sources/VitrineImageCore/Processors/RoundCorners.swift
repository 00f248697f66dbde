#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The radius of each corner of an image, in pixels.
struct CornerRadii: Hashable, Sendable {
    /// The radius of the upper left corner.
    var topLeft: Double
    /// The radius of the upper right corner.
    var topRight: Double
    /// The radius of the lower right corner.
    var bottomRight: Double
    /// The radius of the lower left corner.
    var bottomLeft: Double

    /// Creates radii; corners that are not named stay square.
    init(topLeft: Double = 0, topRight: Double = 0, bottomRight: Double = 0, bottomLeft: Double = 0) {
        self.topLeft = topLeft
        self.topRight = topRight
        self.bottomRight = bottomRight
        self.bottomLeft = bottomLeft
    }

    /// Creates four equal radii.
    init(_ radius: Double) {
        self.init(topLeft: radius, topRight: radius, bottomRight: radius, bottomLeft: radius)
    }

    var all: [Double] { [topLeft, topRight, bottomRight, bottomLeft] }

    /// Returns the radii, reduced by one factor so that neighbours do not overlap on an image of this size.
    ///
    /// Source: W3C CSS Backgrounds and Borders Level 3, §4.5 (Overlapping Curves).
    func fitting(width: Double, height: Double) -> CornerRadii {
        let factor = min(
            1, width / (topLeft + topRight), width / (bottomLeft + bottomRight), height / (topLeft + bottomLeft),
            height / (topRight + bottomRight))
        // No radii at all divide by zero, which gives infinity, hence 1.
        return CornerRadii(
            topLeft: topLeft * factor, topRight: topRight * factor, bottomRight: bottomRight * factor,
            bottomLeft: bottomLeft * factor)
    }

    /// Returns the radii of the shape inset by `distance`.
    func inset(by distance: Double) -> CornerRadii {
        CornerRadii(
            topLeft: max(0, topLeft - distance), topRight: max(0, topRight - distance),
            bottomRight: max(0, bottomRight - distance), bottomLeft: max(0, bottomLeft - distance))
    }
}

/// A line along the inner edge of an image or a tile.
public struct ImageBorder: Hashable, Sendable {
    /// Width in pixels. A fraction gives a fainter innermost pixel.
    package var width: Double
    /// The colour of the line.
    package var color: PixelColor

    /// Creates a line; one pixel wide by default.
    ///
    /// - Parameters:
    ///   - width: In pixels. A fraction gives a fainter innermost pixel.
    ///   - color: The colour of the line.
    public init(width: Double = 1, color: PixelColor) {
        self.width = width
        self.color = color
    }
}

/// Rounds corners and draws a border along the edge.
struct RoundCornersProcessor: ImageProcessing {
    enum Shape {
        case radii(CornerRadii)
        case circle
    }

    let shape: Shape
    let border: ImageBorder?

    var identifier: String {
        let line = border.map { ",border:\($0.width),\($0.color.cssString)" } ?? ""
        switch shape {
        case .circle: return "circle(\(line))"
        case .radii(let radii): return "roundCorners(" + radii.all.map { "\($0)" }.joined(separator: ",") + line + ")"
        }
    }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        let largest = 65_535.0
        if let border { try ProcessorCheck.value(border.width, in: 0...largest, "border width") }
        var source = image
        let radii: CornerRadii
        switch shape {
        case .circle:
            let side = min(image.width, image.height)
            source = image.cropped(
                x: (image.width - side) / 2, y: (image.height - side) / 2, width: side, height: side)
            radii = CornerRadii(Double(side) / 2)
        case .radii(let wanted):
            for radius in wanted.all { try ProcessorCheck.value(radius, in: 0...largest, "corner radius") }
            radii = wanted.fitting(width: Double(image.width), height: Double(image.height))
        }
        let isRound = radii.all.contains { $0 > 0 }
        let line = border.flatMap { $0.width > 0 && $0.color.alpha > 0 ? $0 : nil }
        guard isRound || line != nil else { return source }
        var result = source.converted(to: isRound || source.hasAlpha ? .premultiplied : .opaque)
        RoundedEdge(size: result.size, radii: radii, border: line).apply(to: &result)
        return result
    }
}

/// The rounded outline and the border of an image of one size, ready to be drawn into it.
///
/// Only pixels near the edge are visited: the cost grows with the corners and the border, not with the image.
private struct RoundedEdge {
    private let size: PixelSize
    private let outer: RoundedRectangle
    private let inner: RoundedRectangle
    private let line: UInt32
    /// Columns and rows at each side that corners or the border can touch.
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
        func band(a: Double, b: Double, side: Int) -> Int {
            min(side, Int(min(Double(side), max(a, b, lineWidth)).rounded(.up)))
        }
        bands = (
            band(a: radii.topLeft, b: radii.bottomLeft, side: size.width),
            band(a: radii.topRight, b: radii.bottomRight, side: size.width),
            band(a: radii.topLeft, b: radii.topRight, side: size.height),
            band(a: radii.bottomLeft, b: radii.bottomRight, side: size.height)
        )
        lineBand = band(a: 0, b: 0, side: size.width)
    }

    /// Draws into `image`, which has this size and is premultiplied, or opaque when no corner is round.
    func apply(to image: inout PixelImage) {
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
            let mix = Mix(outer: outer.coverage(x: left, y: y), inner: inner.coverage(x: left, y: y), color: line)
            if !mix.keeps { for x in left..<right { mix.apply(row + x &* 4) } }
        }
        // The shape is convex: once a pixel is wholly inside, so are all up to the other side.
        let clear = outer.clearColumns(y: y, width: size.width)
        row.initializeMemory(as: UInt8.self, repeating: 0, count: clear.left &* 4)
        (row + (size.width - clear.right) &* 4).initializeMemory(as: UInt8.self, repeating: 0, count: clear.right &* 4)
        var x = clear.left
        while x < left, applyPixel(row, x: x, y: y) { x &+= 1 }
        x = size.width &- 1 &- clear.right
        while x >= right, applyPixel(row, x: x, y: y) { x &-= 1 }
    }

    /// Draws one pixel.
    ///
    /// - Returns: False for a pixel wholly inside, which does not change.
    @inline(__always)
    private func applyPixel(_ row: UnsafeMutableRawPointer, x: Int, y: Int) -> Bool {
        let outside = outer.coverage(x: x, y: y)
        let mix = Mix(outer: outside, inner: line == 0 ? outside : inner.coverage(x: x, y: y), color: line)
        if mix.keeps { return false }
        mix.apply(row + x &* 4)
        return true
    }

    /// The shares of image and line in a pixel.
    private struct Mix {
        let picture: UInt32
        let line: UInt32

        /// `outer` of the pixel is inside the outline and `inner` of it inside the line.
        init(outer: Double, inner: Double, color: UInt32) {
            line = PixelMath.scale(color, UInt32((max(0, outer - inner) * 255).rounded()))
            // The rest of the outline, so that both together never exceed it.
            picture = UInt32(max(0, Int((outer * 255).rounded()) - Int(line >> 24)))
        }

        var keeps: Bool { picture == 255 && line == 0 }

        @inline(__always)
        func apply(_ p: UnsafeMutableRawPointer) {
            PixelMath.store(PixelMath.scale(PixelMath.load(p), picture) &+ line, p)
        }
    }
}

/// A rectangle with circular corners that computes the exact share of each pixel it covers.
private struct RoundedRectangle {
    /// The centre of a corner's circle, its outward direction, and its radius.
    private struct Corner {
        let x: Double, y: Double, right: Bool, down: Bool, radius: Double
    }

    private let left: Double, top: Double, right: Double, bottom: Double
    private let corners: (Corner, Corner, Corner, Corner)

    /// The rectangle from (inset, inset) to (width − inset, height − inset). Radii are those of the outer edge and must
    /// fit; inner ones shrink by the inset.
    init(width: Double, height: Double, inset: Double = 0, radii: CornerRadii) {
        let radii = radii.inset(by: inset)
        left = inset
        top = inset
        right = max(inset, width - inset)
        bottom = max(inset, height - inset)
        let a = radii.topLeft, b = radii.topRight, c = radii.bottomRight, d = radii.bottomLeft
        corners = (
            Corner(x: left + a, y: top + a, right: false, down: false, radius: a),
            Corner(x: right - b, y: top + b, right: true, down: false, radius: b),
            Corner(x: right - c, y: bottom - c, right: true, down: true, radius: c),
            Corner(x: left + d, y: bottom - d, right: false, down: true, radius: d)
        )
    }

    /// Returns the share of pixel (x, y) that is inside, 0…1.
    func coverage(x: Int, y: Int) -> Double {
        let x = Double(x), y = Double(y)
        let width = min(right, x + 1) - max(left, x), height = min(bottom, y + 1) - max(top, y)
        guard width > 0, height > 0 else { return 0 }
        let cut = Self.cut(corners.0, x: x, y: y) + Self.cut(corners.1, x: x, y: y) + Self.cut(corners.2, x: x, y: y)
            + Self.cut(corners.3, x: x, y: y)
        return max(0, min(1, width * height - cut))
    }

    /// Returns numbers of pixels at the beginning and at the end of row `y` that are wholly outside.
    func clearColumns(y: Int, width: Int) -> (left: Int, right: Int) {
        let left = max(Self.clear(corners.0, y), Self.clear(corners.3, y), 0)
        let right = max(Self.clear(corners.1, y), Self.clear(corners.2, y), 0)
        return (min(left, width), min(right, width - min(left, width)))
    }

    /// The whole pixels between the side of the rectangle and the closest point of the arc in row `y`.
    private static func clear(_ corner: Corner, _ y: Int) -> Int {
        let low = corner.down ? Double(y) - corner.y : corner.y - Double(y) - 1
        guard low > 0, low < corner.radius else { return 0 }
        return Int(corner.radius - (corner.radius * corner.radius - low * low).squareRoot())
    }

    /// The area of the pixel that lies in the square of a corner but outside its circle.
    @inline(__always)
    private static func cut(_ corner: Corner, x: Double, y: Double) -> Double {
        // Distances from the centre, growing outwards.
        let near = corner.right ? x - corner.x : corner.x - x - 1
        let low = corner.down ? y - corner.y : corner.y - y - 1
        guard near + 1 > 0, low + 1 > 0 else { return 0 }
        let r = corner.radius
        let u0 = max(0, near), u1 = min(r, near + 1), v0 = max(0, low), v1 = min(r, low + 1)
        guard u1 > u0, v1 > v0, u1 * u1 + v1 * v1 > r * r else { return 0 }
        let whole = (u1 - u0) * (v1 - v0)
        return u0 * u0 + v0 * v0 >= r * r ? whole : whole - inside(u0: u0, u1: u1, v0: v0, v1: v1, r: r)
    }

    /// The area common to [u0, u1] × [v0, v1] and the quarter disc of radius r around the origin.
    private static func inside(u0: Double, u1: Double, v0: Double, v1: Double, r: Double) -> Double {
        // Left of `full` the arc is above the pixel, right of `none` below it.
        let full = max(0, r * r - v1 * v1).squareRoot(), none = max(0, r * r - v0 * v0).squareRoot()
        var area = max(0, min(u1, full) - u0) * (v1 - v0)
        let from = max(u0, full), to = min(u1, none)
        if to > from { area += underArc(to, r) - underArc(from, r) - v0 * (to - from) }
        return area
    }

    /// ∫₀ᵗ √(r² − u²) du.
    private static func underArc(_ t: Double, _ r: Double) -> Double {
        0.5 * (t * max(0, r * r - t * t).squareRoot() + r * r * asin(min(1, t / r)))
    }
}
