/// The turn that makes stored pixels upright, with the values of EXIF tag 0x0112.
///
/// Source: CIPA DC-008 (Exif 2.32) §4.6.4, Orientation.
public enum Orientation: Int, Sendable, Hashable, CaseIterable {
    /// Stored upright.
    case up = 1
    /// Mirrored horizontally.
    case upMirrored = 2
    /// Turned by 180°.
    case down = 3
    /// Mirrored vertically.
    case downMirrored = 4
    /// Mirrored along the diagonal from the upper left corner.
    case leftMirrored = 5
    /// Upright after a clockwise turn by 90°.
    case right = 6
    /// Mirrored along the diagonal from the upper right corner.
    case rightMirrored = 7
    /// Upright after a counterclockwise turn by 90°.
    case left = 8

    /// Whether the turn exchanges width and height.
    package var swapsAxes: Bool { rawValue >= 5 }

    /// Returns the upright size of pixels stored with `size`, or the stored size of upright ones.
    package func upright(_ size: PixelSize) -> PixelSize { swapsAxes ? size.transposed : size }
}

extension Orientation {
    /// Returns the place of a part of the upright image, of `size` pixels, in the stored one.
    package func stored(_ rect: PixelRect, of size: PixelSize) -> PixelRect {
        let (x, y, w, h) = (rect.x, rect.y, rect.size.width, rect.size.height)
        let (right, bottom) = (size.width - x - w, size.height - y - h)
        return switch self {
        case .up: rect
        case .upMirrored: PixelRect(x: right, y: y, width: w, height: h)
        case .down: PixelRect(x: right, y: bottom, width: w, height: h)
        case .downMirrored: PixelRect(x: x, y: bottom, width: w, height: h)
        case .leftMirrored: PixelRect(x: y, y: x, width: h, height: w)
        case .right: PixelRect(x: y, y: right, width: h, height: w)
        case .rightMirrored: PixelRect(x: bottom, y: right, width: h, height: w)
        case .left: PixelRect(x: bottom, y: x, width: h, height: w)
        }
    }

    /// Returns the place of a part of the upright image in the stored one.
    package func stored(_ rect: UnitRect) -> UnitRect {
        let (x, y, w, h) = (rect.x, rect.y, rect.width, rect.height)
        let (right, bottom) = (1 - x - w, 1 - y - h)
        return switch self {
        case .up: rect
        case .upMirrored: UnitRect(x: right, y: y, width: w, height: h)
        case .down: UnitRect(x: right, y: bottom, width: w, height: h)
        case .downMirrored: UnitRect(x: x, y: bottom, width: w, height: h)
        case .leftMirrored: UnitRect(x: y, y: x, width: h, height: w)
        case .right: UnitRect(x: y, y: right, width: h, height: w)
        case .rightMirrored: UnitRect(x: bottom, y: right, width: h, height: w)
        case .left: UnitRect(x: bottom, y: x, width: h, height: w)
        }
    }
}

extension PixelImage {
    /// Returns the image turned upright; with ``Orientation/up`` the very same image.
    public func oriented(_ orientation: Orientation) -> PixelImage {
        guard orientation != .up else { return self }
        let size = orientation.upright(self.size)
        let storage = PixelStorage(zeroedByteCount: size.width * size.height * PixelImage.bytesPerPixel)
        withUnsafeBytes { source in
            guard let source = source.baseAddress, let target = storage.bytes.baseAddress else { return }
            let map = OrientationMap(orientation, stored: self.size)
            map.copy(from: source, bytesPerRow: bytesPerRow, into: target)
        }
        return PixelImage(
            width: size.width, height: size.height, bytesPerRow: size.width * PixelImage.bytesPerPixel, alpha: alpha,
            storage: storage)
    }
}

/// The source of each pixel of an upright image: `start + x * right + y * down` in pixels of the stored one.
private struct OrientationMap {
    let width: Int
    let height: Int
    /// Column and row of the stored pixel that becomes the upper left one.
    let startX: Int
    let startY: Int
    /// One step to the right, or down, in the upright image, in coordinates of the stored one.
    let right: (x: Int, y: Int)
    let down: (x: Int, y: Int)

    init(_ orientation: Orientation, stored: PixelSize) {
        let upright = orientation.upright(stored)
        width = upright.width
        height = upright.height
        let flipsX: Bool
        let flipsY: Bool
        switch orientation {
        case .up, .leftMirrored: (flipsX, flipsY) = (false, false)
        case .upMirrored, .left: (flipsX, flipsY) = (true, false)
        case .down, .rightMirrored: (flipsX, flipsY) = (true, true)
        case .downMirrored, .right: (flipsX, flipsY) = (false, true)
        }
        startX = flipsX ? stored.width - 1 : 0
        startY = flipsY ? stored.height - 1 : 0
        let x = flipsX ? -1 : 1
        let y = flipsY ? -1 : 1
        right = orientation.swapsAxes ? (0, y) : (x, 0)
        down = orientation.swapsAxes ? (x, 0) : (0, y)
    }

    /// Copies in tiles of 16 by 16 pixels, so that rows read down a column stay in the cache.
    func copy(from source: UnsafeRawPointer, bytesPerRow: Int, into target: UnsafeMutableRawPointer) {
        let stepX = right.x &* 4 &+ right.y &* bytesPerRow
        let stepY = down.x &* 4 &+ down.y &* bytesPerRow
        let origin = source + (startY &* bytesPerRow &+ startX &* 4)
        let tile = 16
        var top = 0
        while top < height {
            let bottom = min(top &+ tile, height)
            var left = 0
            while left < width {
                let end = min(left &+ tile, width)
                var y = top
                while y < bottom {
                    var from = origin + (y &* stepY &+ left &* stepX)
                    var to = target + (y &* width &+ left) &* 4
                    for _ in left..<end {
                        to.storeBytes(of: from.loadUnaligned(as: UInt32.self), as: UInt32.self)
                        from += stepX
                        to += 4
                    }
                    y &+= 1
                }
                left = end
            }
            top = bottom
        }
    }
}
