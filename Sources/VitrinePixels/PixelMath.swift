// The compiler inlines a function of another file only from a module, and only if it is public and inlinable. Debug
// builds compile VitrineImaging file by file, so its arithmetic on single pixels stands here. No product exports it.

/// Arithmetic on one pixel: red, green, blue and alpha, red in the lowest byte, as little-endian loads give it.
public enum PixelMath {
    /// Returns the pixel at `p`, in a byte order that does not depend on the machine.
    @inlinable @inline(__always)
    public static func load(_ p: UnsafeRawPointer) -> UInt32 { UInt32(littleEndian: p.loadUnaligned(as: UInt32.self)) }

    /// Stores a pixel at `p`.
    @inlinable @inline(__always)
    public static func store(_ pixel: UInt32, _ p: UnsafeMutableRawPointer) {
        p.storeBytes(of: pixel.littleEndian, as: UInt32.self)
    }

    /// Returns all four channels times `factor` / 255, rounded to nearest.
    ///
    /// Two channels at a time in one word; `(t + (t >> 8)) >> 8` with `t = a * b + 128` is exact division by 255
    /// (Blinn, "Three Wrongs Make a Right", IEEE CG&A 1995).
    @inlinable @inline(__always)
    public static func scale(_ pixel: UInt32, _ factor: UInt32) -> UInt32 {
        var even = (pixel & 0x00ff_00ff) &* factor &+ 0x0080_0080
        even = (even &+ ((even >> 8) & 0x00ff_00ff)) >> 8 & 0x00ff_00ff
        var odd = (pixel >> 8 & 0x00ff_00ff) &* factor &+ 0x0080_0080
        odd = (odd &+ ((odd >> 8) & 0x00ff_00ff)) & 0xff00_ff00
        return even | odd
    }

    /// Returns the colour channels times alpha.
    @inlinable @inline(__always)
    public static func premultiply(_ pixel: UInt32) -> UInt32 {
        let a = pixel >> 24
        return a == 255 ? pixel : scale(pixel | 0xff00_0000, a)
    }

    /// Returns the colour channels divided by alpha, rounded to nearest; transparent black stays so.
    @inlinable @inline(__always)
    public static func unpremultiply(_ pixel: UInt32) -> UInt32 {
        let a = pixel >> 24
        if a == 255 { return pixel }
        if a == 0 { return 0 }
        let half = a / 2
        let r = min(255, ((pixel & 255) &* 255 &+ half) / a)
        let g = min(255, ((pixel >> 8 & 255) &* 255 &+ half) / a)
        let b = min(255, ((pixel >> 16 & 255) &* 255 &+ half) / a)
        return a << 24 | b << 16 | g << 8 | r
    }

    /// Returns `top` over `bottom`, both premultiplied (Porter and Duff, "Compositing Digital Images", 1984).
    @inlinable @inline(__always)
    public static func over(_ top: UInt32, _ bottom: UInt32) -> UInt32 {
        // No channel can carry: each of `top` is at most its alpha, each scaled one of `bottom` at most the rest.
        top &+ scale(bottom, 255 &- (top >> 24))
    }
}

/// Multiplying single channels by alpha.
public enum AlphaMath {
    /// Returns `c * a / 255`, rounded, without a division; exact for all 65,536 pairs.
    @inlinable @inline(__always)
    public static func multiply(_ c: UInt32, _ a: UInt32) -> UInt32 {
        let t = c &* a &+ 128
        return (t &+ (t &>> 8)) &>> 8
    }
}
