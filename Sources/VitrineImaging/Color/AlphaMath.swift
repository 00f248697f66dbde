/// Multiplying colours by alpha and back, rounded to the nearest level.
enum AlphaMath {
    /// `c * a / 255`, rounded, without a division; exact for all 65,536 pairs.
    @inline(__always)
    static func multiply(_ c: UInt32, _ a: UInt32) -> UInt32 {
        let t = c &* a &+ 128
        return (t &+ (t &>> 8)) &>> 8
    }

    /// Red, green, blue, alpha in place, from straight to premultiplied.
    static func premultiply(_ pixels: UnsafeMutablePointer<UInt8>, count: Int) {
        premultiply(UnsafeRawPointer(pixels), into: UnsafeMutableRawPointer(pixels), count: count)
    }

    /// Red, green, blue, alpha from straight in `source` to premultiplied in `target`, which may be the same memory.
    ///
    /// Four pixels at a time; red and blue in one vector of 16-bit lanes, green and (255 · alpha) in another.
    static func premultiply(_ source: UnsafeRawPointer, into target: UnsafeMutableRawPointer, count: Int) {
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

    /// Red, green, blue, alpha in place, from premultiplied to straight. A colour above its alpha counts as white;
    /// where alpha is 0 the colour is black.
    static func unpremultiply(_ pixels: UnsafeMutablePointer<UInt8>, count: Int) {
        let base = UnsafeMutableRawPointer(pixels)
        for i in 0..<count {
            let p = base + 4 &* i
            PixelMath.store(PixelMath.unpremultiply(PixelMath.load(p)), p)
        }
    }

    /// Scales colours above their alpha, which no premultiplied pixel can have, down to it: filters overshoot.
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
