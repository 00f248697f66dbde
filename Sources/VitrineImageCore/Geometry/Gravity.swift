/// A place in an image: the part that a crop keeps, or the place of a watermark.
public enum Gravity: Hashable, Sendable {
    /// The middle.
    case center
    /// The middle of the upper edge.
    case top
    /// The middle of the lower edge.
    case bottom
    /// The middle of the left edge.
    case left
    /// The middle of the right edge.
    case right
    /// The upper left corner.
    case topLeft
    /// The upper right corner.
    case topRight
    /// The lower left corner.
    case bottomLeft
    /// The lower right corner.
    case bottomRight
    /// The part around a point, in fractions of width and height from the upper left corner.
    ///
    /// The point comes as near to the middle of the result as the edges allow. A number outside 0...1 counts as the
    /// nearest edge, and one that is not a number as the middle.
    case focal(x: Double, y: Double)
    /// The part with the most edges, skin tones and strong colours. Reads the pixels; deterministic.
    case attention

    /// The wanted middle of the window; nil where it depends on the pixels.
    var focus: (x: Double, y: Double)? {
        switch self {
        case .center: (0.5, 0.5)
        case .top: (0.5, 0)
        case .bottom: (0.5, 1)
        case .left: (0, 0.5)
        case .right: (1, 0.5)
        case .topLeft: (0, 0)
        case .topRight: (1, 0)
        case .bottomLeft: (0, 1)
        case .bottomRight: (1, 1)
        case .focal(let x, let y): (Self.unit(x), Self.unit(y))
        case .attention: nil
        }
    }

    /// ``focus``, and the middle where that depends on the pixels.
    package var anchor: (x: Double, y: Double) { focus ?? (0.5, 0.5) }

    private static func unit(_ value: Double) -> Double {
        value.isNaN ? 0.5 : max(0, min(1, value))
    }

    /// Returns the upper left corner of a part of `size` at this place, in fractions of the image.
    func corner(of size: PixelSize, in image: PixelImage) -> (x: Double, y: Double) {
        let (width, height) = (Double(size.width) / Double(image.width), Double(size.height) / Double(image.height))
        let corner: (x: Double, y: Double)
        if let focus {
            corner = (focus.x - width / 2, focus.y - height / 2)
        } else {
            corner = AttentionMap(image.forAttention).bestWindow(width: width, height: height)
        }
        return (max(0, min(1 - width, corner.x)), max(0, min(1 - height, corner.y)))
    }
}

extension PixelImage {
    /// The image reduced as far as ``AttentionMap`` needs it.
    var forAttention: PixelImage {
        let longest = 200
        guard size.longestSide > longest else { return converted(to: alpha == .straight ? .premultiplied : alpha) }
        let side = Double(longest) / Double(size.longestSide)
        return scaled(
            to: PixelSize(width: max(1, Int(Double(width) * side)), height: max(1, Int(Double(height) * side))),
            region: nil)
    }
}

/// Scores of the detail at each place of a small image, and the window with the highest score.
///
/// After the idea of libvips' `smartcrop`: edges, skin and saturation score. The skin rule is that of J. Kovač, P. Peer
/// and F. Solina, "Human Skin Colour Clustering for Face Detection", EUROCON 2003.
struct AttentionMap {
    let width: Int
    let height: Int
    /// Sums of all scores above and to the left, one row and column more than pixels.
    private let sums: [Int]

    /// Scores `image`. About 200 pixels on its longer side suffice: more do not improve the choice.
    init(_ image: PixelImage) {
        width = image.width
        height = image.height
        let (w, h) = (image.width, image.height)
        var luma = [Int32](repeating: 0, count: w * h)
        var score = [Int32](repeating: 0, count: w * h)
        image.withUnsafeBytes { bytes in
            for y in 0..<h {
                for x in 0..<w {
                    let p = y &* image.bytesPerRow &+ 4 &* x
                    let r = Int32(bytes[p]), g = Int32(bytes[p &+ 1]), b = Int32(bytes[p &+ 2])
                    luma[y &* w &+ x] = (77 &* r &+ 150 &* g &+ 29 &* b) &>> 8
                    score[y &* w &+ x] = Self.colorScore(r: r, g: g, b: b)
                }
            }
        }
        var sums = [Int](repeating: 0, count: (w + 1) * (h + 1))
        for y in 0..<h {
            var row = 0
            for x in 0..<w {
                let i = y &* w &+ x
                let left = luma[x > 0 ? i &- 1 : i], right = luma[x &+ 1 < w ? i &+ 1 : i]
                let above = luma[y > 0 ? i &- w : i], below = luma[y &+ 1 < h ? i &+ w : i]
                let edge = abs(4 &* luma[i] &- left &- right &- above &- below)
                row &+= Int(score[i] &+ 2 &* min(edge, 255))
                sums[(y &+ 1) &* (w &+ 1) &+ x &+ 1] = sums[y &* (w &+ 1) &+ x &+ 1] &+ row
            }
        }
        self.sums = sums
    }

    private static func colorScore(r: Int32, g: Int32, b: Int32) -> Int32 {
        let high = max(r, max(g, b)), low = min(r, min(g, b))
        let isSkin = r > 95 && g > 40 && b > 20 && high &- low > 15 && r &- g > 15 && r > b
        // The eye does not notice the saturation of very dark and very bright colours.
        let saturation = high > 40 && low < 230 ? (high &- low) / 3 : 0
        return saturation &+ (isSkin ? 96 : 0)
    }

    /// Returns the upper left corner of the window of this size with the highest score, in fractions of the image. Of
    /// equal windows the nearest to the middle wins.
    func bestWindow(width windowWidth: Double, height windowHeight: Double) -> (x: Double, y: Double) {
        let w = max(1, min(width, Int((windowWidth * Double(width)).rounded())))
        let h = max(1, min(height, Int((windowHeight * Double(height)).rounded())))
        var best = (score: -1, distance: Int.max, x: 0, y: 0)
        let stride = width + 1
        for y in 0...(height - h) {
            for x in 0...(width - w) {
                let score =
                    sums[(y + h) * stride + x + w] - sums[y * stride + x + w] - sums[(y + h) * stride + x]
                    + sums[y * stride + x]
                let distance = abs(2 * x - (width - w)) + abs(2 * y - (height - h))
                if score > best.score || (score == best.score && distance < best.distance) {
                    best = (score, distance, x, y)
                }
            }
        }
        return (Double(best.x) / Double(width), Double(best.y) / Double(height))
    }
}
