#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A rectangle with circular corners that knows how much of each pixel it covers, exactly.
struct RoundedRectangle {
    /// The centre of a corner's circle, the way outwards from it, and its radius.
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

    /// The share of pixel (x, y) that is inside, 0…1.
    func coverage(x: Int, y: Int) -> Double {
        let x = Double(x), y = Double(y)
        let width = min(right, x + 1) - max(left, x), height = min(bottom, y + 1) - max(top, y)
        guard width > 0, height > 0 else { return 0 }
        let cut = Self.cut(corners.0, x, y) + Self.cut(corners.1, x, y) + Self.cut(corners.2, x, y)
            + Self.cut(corners.3, x, y)
        return max(0, min(1, width * height - cut))
    }

    /// How many pixels at the beginning and at the end of row `y` are wholly outside, or fewer.
    func clearColumns(y: Int, width: Int) -> (left: Int, right: Int) {
        let left = max(Self.clear(corners.0, y), Self.clear(corners.3, y), 0)
        let right = max(Self.clear(corners.1, y), Self.clear(corners.2, y), 0)
        return (min(left, width), min(right, width - min(left, width)))
    }

    /// The whole pixels between the side of the rectangle and the arc where it comes closest in row `y`.
    private static func clear(_ corner: Corner, _ y: Int) -> Int {
        let low = corner.down ? Double(y) - corner.y : corner.y - Double(y) - 1
        guard low > 0, low < corner.radius else { return 0 }
        return Int(corner.radius - (corner.radius * corner.radius - low * low).squareRoot())
    }

    /// The area of the pixel that lies in the square of a corner but outside its circle.
    @inline(__always)
    private static func cut(_ corner: Corner, _ x: Double, _ y: Double) -> Double {
        // Distances from the centre, growing outwards.
        let near = corner.right ? x - corner.x : corner.x - x - 1
        let low = corner.down ? y - corner.y : corner.y - y - 1
        guard near + 1 > 0, low + 1 > 0 else { return 0 }
        let r = corner.radius
        let u0 = max(0, near), u1 = min(r, near + 1), v0 = max(0, low), v1 = min(r, low + 1)
        guard u1 > u0, v1 > v0, u1 * u1 + v1 * v1 > r * r else { return 0 }
        let whole = (u1 - u0) * (v1 - v0)
        return u0 * u0 + v0 * v0 >= r * r ? whole : whole - inside(u0, u1, v0, v1, r)
    }

    /// The area common to [u0, u1] × [v0, v1] and the quarter disc of radius r around the origin.
    private static func inside(_ u0: Double, _ u1: Double, _ v0: Double, _ v1: Double, _ r: Double) -> Double {
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
