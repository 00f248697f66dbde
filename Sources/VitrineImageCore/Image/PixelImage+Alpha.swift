import VitrinePixels

/// The arithmetic of ``VitrinePixels``, for every file of this module.
package typealias PixelMath = VitrinePixels.PixelMath
package typealias AlphaMath = VitrinePixels.AlphaMath
typealias Lanes = VitrinePixels.Lanes

extension PixelImage {
    /// Returns the image with its alpha held in another way; the very same image if nothing changes.
    ///
    /// Converting to ``Alpha/opaque`` drops alpha. Colours are as if they had been opaque all along, and those of
    /// invisible premultiplied pixels are black. Premultiplying and back loses at most the precision of 8 bits.
    public func converted(to alpha: Alpha) -> PixelImage {
        if alpha == self.alpha { return self }
        let row = width * PixelImage.bytesPerPixel
        return PixelImage(width: width, height: height, alpha: alpha) { pixels in
            guard let target = pixels.bindMemory(to: UInt8.self).baseAddress else { return }
            storage.withUnsafeBytes { source in
                guard let source = source.bindMemory(to: UInt8.self).baseAddress else { return }
                for y in 0..<height {
                    let line = target + y * row
                    line.update(from: source + y * bytesPerRow, count: row)
                    if self.alpha == .premultiplied { AlphaMath.unpremultiply(line, count: width) }
                    if self.alpha == .straight && alpha == .premultiplied { AlphaMath.premultiply(line, count: width) }
                    if alpha == .opaque { for x in 0..<width { line[4 &* x &+ 3] = 255 } }
                }
            }
        }
    }

    /// Returns the image with `color` behind it, without any transparency; an opaque image as it is.
    ///
    /// Ignores the alpha of `color`. For encoders of formats without alpha.
    package func flattened(over color: PixelColor) -> PixelImage {
        composed(over: PixelColor(red: color.red, green: color.green, blue: color.blue))
    }

    /// Returns the image over a colour that may itself be translucent.
    package func composed(over color: PixelColor) -> PixelImage {
        if alpha == .opaque { return self }
        let background = PixelMath.premultiplied(color)
        let isStraight = alpha == .straight
        return mapRows(to: color.alpha == 255 ? .opaque : .premultiplied) { source, target, count in
            if isStraight {
                for x in 0..<count {
                    let pixel = PixelMath.premultiply(PixelMath.load(source + 4 &* x))
                    PixelMath.store(PixelMath.over(pixel, background), target + 4 &* x)
                }
            } else {
                for x in 0..<count {
                    PixelMath.store(PixelMath.over(PixelMath.load(source + 4 &* x), background), target + 4 &* x)
                }
            }
        }
    }

    /// Draws `top` over this image with its top left corner at (x, y). Parts outside the image are dropped.
    ///
    /// Neither may have straight alpha.
    ///
    /// - Parameter opacity: 0 (nothing) to 255 (all of `top`).
    package mutating func compose(_ top: PixelImage, x: Int, y: Int, opacity: UInt32 = 255) {
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

    /// Returns a new image of the same size, made row by row.
    ///
    /// - Parameter body: Writes as many pixels as its last argument says from its first to its second.
    func mapRows(
        to alpha: Alpha, _ body: (_ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ count: Int) -> Void
    ) -> PixelImage {
        PixelImage(width: width, height: height, alpha: alpha) { target in
            withUnsafeBytes { source in
                for y in 0..<height {
                    body(source.baseAddress! + y * bytesPerRow, target.baseAddress! + y * width * 4, width)
                }
            }
        }
    }
}

extension PixelMath {
    /// Returns a colour as a premultiplied pixel.
    package static func premultiplied(_ color: PixelColor) -> UInt32 { premultiply(straight(color)) }

    /// Returns a colour as a pixel with straight alpha.
    package static func straight(_ color: PixelColor) -> UInt32 {
        UInt32(color.red) | UInt32(color.green) << 8 | UInt32(color.blue) << 16 | UInt32(color.alpha) << 24
    }
}

// Rows of pixels.
extension AlphaMath {
    /// Converts red, green, blue, alpha in place, from straight to premultiplied.
    package static func premultiply(_ pixels: UnsafeMutablePointer<UInt8>, count: Int) {
        premultiply(UnsafeRawPointer(pixels), into: UnsafeMutableRawPointer(pixels), count: count)
    }

    /// Converts red, green, blue, alpha from straight in `source` to premultiplied in `target`, which may be the same
    /// memory.
    ///
    /// Four pixels at a time; red and blue in one vector of 16-bit lanes, green and (255 · alpha) in another.
    package static func premultiply(_ source: UnsafeRawPointer, into target: UnsafeMutableRawPointer, count: Int) {
        let low = SIMD4<UInt32>(repeating: 0xFF_00FF)
        var i = 0
        while i &+ 4 <= count {
            let v = (source + i &* 4).loadUnaligned(as: SIMD4<UInt32>.self)
            let a = v &>> 24
            let alpha = unsafeBitCast(a | a &<< 16, to: SIMD8<UInt16>.self)
            var redBlue = unsafeBitCast(v & low, to: SIMD8<UInt16>.self) &* alpha &+ 128
            var green = unsafeBitCast((v &>> 8) & 0xFF | 0xFF_0000, to: SIMD8<UInt16>.self) &* alpha &+ 128
            redBlue = (redBlue &+ redBlue &>> 8) &>> 8
            green = (green &+ green &>> 8) & 0xFF00
            let pixels = unsafeBitCast(redBlue, to: SIMD4<UInt32>.self) | unsafeBitCast(green, to: SIMD4<UInt32>.self)
            (target + i &* 4).storeBytes(of: pixels, as: SIMD4<UInt32>.self)
            i &+= 4
        }
        while i < count {
            PixelMath.store(PixelMath.premultiply(PixelMath.load(source + i &* 4)), target + i &* 4)
            i &+= 1
        }
    }

    /// Converts red, green, blue, alpha in place, from premultiplied to straight. A colour above its alpha counts as
    /// white; where alpha is 0 the colour is black.
    package static func unpremultiply(_ pixels: UnsafeMutablePointer<UInt8>, count: Int) {
        let base = UnsafeMutableRawPointer(pixels)
        for i in 0..<count {
            let p = base + 4 &* i
            PixelMath.store(PixelMath.unpremultiply(PixelMath.load(p)), p)
        }
    }

    /// Reduces colours above their alpha to it: no premultiplied pixel can have them, but filters overshoot.
    static func limit(_ pixels: UnsafeMutablePointer<UInt8>, count: Int) {
        for i in 0..<count {
            let p = pixels + 4 &* i
            let a = p[3]
            p[0] = min(p[0], a)
            p[1] = min(p[1], a)
            p[2] = min(p[2], a)
        }
    }
}

extension PixelImage {
    /// Whether every pixel is opaque, also where ``alpha`` allows others. Reads pixels only if ``alpha`` does.
    package var isFullyOpaque: Bool {
        if alpha == .opaque { return true }
        return withUnsafeBytes { bytes in
            for y in 0..<height {
                let row = bytes.baseAddress! + y &* bytesPerRow
                var all: UInt32 = 0xff00_0000
                for x in 0..<width { all &= PixelMath.load(row + x &* 4) }
                if all != 0xff00_0000 { return false }
            }
            return true
        }
    }
}
