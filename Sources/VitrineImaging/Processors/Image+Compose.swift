extension Image {
    /// Draws `top` over this picture with its top left corner at (x, y), which may lie outside; what does not fit is
    /// left away.
    ///
    /// Neither may have straight alpha.
    ///
    /// - Parameter opacity: 0 (nothing) to 255 (all of `top`).
    mutating func compose(_ top: Image, x: Int, y: Int, opacity: UInt32 = 255) {
        let left = max(0, x), right = min(width, x + top.width)
        let first = max(0, y), last = min(height, y + top.height)
        guard left < right, first < last else { return }
        let stride = bytesPerRow
        top.withUnsafeBytes { source in
            withUnsafeMutableBytes { target in
                for row in first..<last {
                    let from = source.baseAddress! + (row - y) * top.bytesPerRow
                    let to = target.baseAddress! + row * stride
                    for column in left..<right {
                        let pixel = PixelMath.scale(PixelMath.load(from + (column &- x) &* 4), opacity)
                        let below = PixelMath.load(to + column &* 4)
                        PixelMath.store(PixelMath.over(pixel, below), to + column &* 4)
                    }
                }
            }
        }
    }
}
