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
