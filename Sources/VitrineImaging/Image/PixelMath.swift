/// Arithmetic on one pixel: red, green, blue and alpha, red in the lowest byte, as little-endian loads give it.
enum PixelMath {
    /// The pixel at `p`, in a byte order that does not depend on the machine.
    @inline(__always)
    static func load(_ p: UnsafeRawPointer) -> UInt32 { UInt32(littleEndian: p.loadUnaligned(as: UInt32.self)) }

    @inline(__always)
    static func store(_ pixel: UInt32, _ p: UnsafeMutableRawPointer) {
        p.storeBytes(of: pixel.littleEndian, as: UInt32.self)
    }

    /// All four channels times `factor` / 255, rounded to nearest.
    ///
    /// Two channels at a time in one word; `(t + (t >> 8)) >> 8` with `t = a * b + 128` is exact division by 255
    /// (Blinn, "Three Wrongs Make a Right", IEEE CG&A 1995).
    @inline(__always)
    static func scale(_ pixel: UInt32, _ factor: UInt32) -> UInt32 {
        var even = (pixel & 0x00ff_00ff) &* factor &+ 0x0080_0080
        even = (even &+ ((even >> 8) & 0x00ff_00ff)) >> 8 & 0x00ff_00ff
        var odd = (pixel >> 8 & 0x00ff_00ff) &* factor &+ 0x0080_0080
        odd = (odd &+ ((odd >> 8) & 0x00ff_00ff)) & 0xff00_ff00
        return even | odd
    }

    /// Colour channels times alpha.
    @inline(__always)
    static func premultiply(_ pixel: UInt32) -> UInt32 {
        let a = pixel >> 24
        return a == 255 ? pixel : scale(pixel | 0xff00_0000, a)
    }

    /// Colour channels divided by alpha, rounded to nearest; transparent black stays so.
    @inline(__always)
    static func unpremultiply(_ pixel: UInt32) -> UInt32 {
        let a = pixel >> 24
        if a == 255 { return pixel }
        if a == 0 { return 0 }
        let half = a / 2
        let r = min(255, ((pixel & 255) &* 255 &+ half) / a)
        let g = min(255, ((pixel >> 8 & 255) &* 255 &+ half) / a)
        let b = min(255, ((pixel >> 16 & 255) &* 255 &+ half) / a)
        return a << 24 | b << 16 | g << 8 | r
    }

    /// `top` over `bottom`, both premultiplied (Porter and Duff, "Compositing Digital Images", 1984).
    @inline(__always)
    static func over(_ top: UInt32, _ bottom: UInt32) -> UInt32 {
        // No channel can carry: each of `top` is at most its alpha, each scaled one of `bottom` at most the rest.
        top &+ scale(bottom, 255 &- (top >> 24))
    }

    /// A colour as a premultiplied pixel.
    static func premultiplied(_ color: Color) -> UInt32 { premultiply(straight(color)) }

    /// A colour as a pixel with straight alpha.
    static func straight(_ color: Color) -> UInt32 {
        UInt32(color.red) | UInt32(color.green) << 8 | UInt32(color.blue) << 16 | UInt32(color.alpha) << 24
    }
}

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

extension Image {
    /// The same picture with its alpha held in another way; the very same picture if nothing changes.
    ///
    /// Converting to ``Alpha/opaque`` drops alpha: colours are as if they had been opaque all along (those of
    /// invisible premultiplied pixels are black). Premultiplying and back loses at most the precision 8 bits have.
    public func converted(to alpha: Alpha) -> Image {
        if alpha == self.alpha { return self }
        let row = width * Image.bytesPerPixel
        return Image(width: width, height: height, alpha: alpha) { pixels in
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
}

extension Image {
    /// A new picture of the same size whose pixels are `body` of these, row by row.
    @inline(__always)
    func mapPixels(to alpha: Alpha, _ body: (UInt32) -> UInt32) -> Image {
        let width = width, height = height, stride = bytesPerRow
        return Image(width: width, height: height, alpha: alpha) { target in
            withUnsafeBytes { source in
                for y in 0..<height {
                    let from = source.baseAddress! + y &* stride
                    let to = target.baseAddress! + y &* width &* 4
                    var x = 0
                    while x < width &* 4 {
                        PixelMath.store(body(PixelMath.load(from + x)), to + x)
                        x &+= 4
                    }
                }
            }
        }
    }

    /// A new picture whose pixel (x, y) is the one `source` names: for moves that keep every pixel's value.
    @inline(__always)
    func moved(to size: PixelSize, _ source: (_ x: Int, _ y: Int) -> (x: Int, y: Int)) -> Image {
        let stride = bytesPerRow
        return Image(width: size.width, height: size.height, alpha: alpha) { target in
            withUnsafeBytes { bytes in
                let from = bytes.baseAddress!, to = target.baseAddress!
                // Tiles, so that a quarter turn touches few cache lines at a time.
                let tile = 32
                for top in Swift.stride(from: 0, to: size.height, by: tile) {
                    for left in Swift.stride(from: 0, to: size.width, by: tile) {
                        for y in top..<min(size.height, top &+ tile) {
                            for x in left..<min(size.width, left &+ tile) {
                                let p = source(x, y)
                                let pixel = PixelMath.load(from + (p.y &* stride &+ p.x &* 4))
                                PixelMath.store(pixel, to + (y &* size.width &+ x) &* 4)
                            }
                        }
                    }
                }
            }
        }
    }

    /// The part inside a rectangle that must lie within the picture.
    func cropped(x: Int, y: Int, width: Int, height: Int) -> Image {
        if x == 0, y == 0, width == self.width, height == self.height { return self }
        return Image(width: width, height: height, alpha: alpha) { target in
            withUnsafeBytes { source in
                for row in 0..<height {
                    let from = source.baseAddress! + ((y + row) * bytesPerRow + x * 4)
                    (target.baseAddress! + row * width * 4).copyMemory(from: from, byteCount: width * 4)
                }
            }
        }
    }
}
