/// Conversion of Y′CbCr to R′G′B′ in 16.16 fixed point, rounded like libjpeg.
///
/// Source: ITU-T H.273 §8.3 (coefficients and ranges); ITU-T T.871 §7 (JFIF, BT.601 full range).
struct YCbCrConversion {
    private let luma: Int32
    private let lumaOffset: Int32
    private let crToRed: Int32
    private let cbToGreen: Int32
    private let crToGreen: Int32
    private let cbToBlue: Int32

    init(_ matrix: DecodedImage.Matrix, fullRange: Bool) {
        let (red, blue): (Double, Double) =
            switch matrix {
            case .bt601: (0.299, 0.114)
            case .bt709: (0.2126, 0.0722)
            case .bt2020: (0.2627, 0.0593)
            }
        let green = 1 - red - blue
        let chroma = fullRange ? 1.0 : 255.0 / 224
        func fixed(_ x: Double) -> Int32 { Int32((x * 65_536).rounded()) }
        luma = fullRange ? 65_536 : fixed(255.0 / 219)
        lumaOffset = fullRange ? 0 : 16
        crToRed = fixed(2 * (1 - red) * chroma)
        cbToBlue = fixed(2 * (1 - blue) * chroma)
        if matrix == .bt601 && fullRange {
            // JFIF prints five digits, and libjpeg calculates with them.
            cbToGreen = -fixed(0.34414)
            crToGreen = -fixed(0.71414)
        } else {
            cbToGreen = -fixed(2 * (1 - blue) * blue / green * chroma)
            crToGreen = -fixed(2 * (1 - red) * red / green * chroma)
        }
    }

    /// Converts `count` samples to red, green, blue, alpha. A nil `alpha` gives 255.
    func convert(
        y: UnsafePointer<UInt8>, cb: UnsafePointer<UInt8>, cr: UnsafePointer<UInt8>, alpha: UnsafePointer<UInt8>?,
        into pixels: UnsafeMutablePointer<UInt8>, count: Int
    ) {
        var i = 0
        while i &+ 8 <= count {
            let a = alpha.map { load($0 + i) } ?? SIMD8(repeating: 255)
            let result = convert(y: load(y + i), cb: load(cb + i), cr: load(cr + i), alpha: a)
            UnsafeMutableRawPointer(pixels + 4 &* i).storeBytes(of: result, as: SIMD8<Int32>.self)
            i &+= 8
        }
        while i < count {
            let a = Int32(alpha?[i] ?? 255)
            let result = convert(
                y: SIMD8(repeating: Int32(y[i])), cb: SIMD8(repeating: Int32(cb[i])),
                cr: SIMD8(repeating: Int32(cr[i])),
                alpha: SIMD8(repeating: a))
            UnsafeMutableRawPointer(pixels + 4 &* i).storeBytes(of: result[0], as: Int32.self)
            i &+= 1
        }
    }

    @inline(__always)
    private func load(_ p: UnsafePointer<UInt8>) -> SIMD8<Int32> {
        Lanes.widen(UnsafeRawPointer(p).loadUnaligned(as: SIMD8<UInt8>.self))
    }

    /// Returns pixels as little-endian words. The sum is rounded once; at full range luma is exact.
    @inline(__always)
    private func convert(
        y: SIMD8<Int32>, cb: SIMD8<Int32>, cr: SIMD8<Int32>, alpha: SIMD8<Int32>
    ) -> SIMD8<Int32> {
        let base = (y &- lumaOffset) &* luma &+ SIMD8(repeating: 32_768)
        let u = cb &- SIMD8(repeating: 128)
        let v = cr &- SIMD8(repeating: 128)
        let red = Lanes.clamp((base &+ v &* crToRed) &>> 16)
        let green = Lanes.clamp((base &+ u &* cbToGreen &+ v &* crToGreen) &>> 16)
        let blue = Lanes.clamp((base &+ u &* cbToBlue) &>> 16)
        let word = red | green &<< 8 | blue &<< 16 | alpha &<< 24
        return word
    }
}
