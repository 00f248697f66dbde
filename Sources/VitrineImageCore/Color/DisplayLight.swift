#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Maps linear light of any brightness and gamut to sRGB: the only tone map of stills and videos.
///
/// Light has the primaries of sRGB, and 1 is the white of the display. Other gamuts give negative numbers, and
/// highlights numbers above 1. Colours that sRGB can show stay as they are, except for the brightest percent of light. All
/// others are changed in Oklab (B. Ottosson, "A perceptual color space for image processing", 2020), where lines of
/// constant hue are straight, so that hues are kept:
///
/// 1. Lightness above the knee is rolled off towards white, which it never passes. Chroma is scaled alike, as a shorter
///    exposure would do.
/// 2. A colour that is still outside of sRGB moves towards a grey until it lies on the border. Which grey follows
///    Ottosson, "sRGB gamut clipping" (2021), "adaptive L0": bright colours give way in lightness as well as in
///    chroma, the more so the more saturated they are. Dark ones keep their lightness.
///
/// No channel is clipped by itself, which would turn orange highlights yellow and sky blue ones cyan.
enum DisplayLight {
    /// The luminance in cd/m² that becomes the white of the display: that of a diffuse white object in images of high
    /// dynamic range (ITU-R BT.2408-7, 2.2, "HDR Reference White").
    static let referenceWhite = 203.0

    /// The lightness from which highlights are rolled off: so near to 1 that reference white is still white in 8 bits.
    private static let knee: Float = 0.998
    /// Light of grey at the knee. No colour whose channels are all below is lighter.
    private static let plainLight: Float = knee * knee * knee
    /// How far saturated colours may give way in lightness, for Ottosson's alpha: his examples span 0.05 to 5.
    private static let adaptation: Float = 2
    /// Halvings of the way to the border. The error is below a hundredth of a level.
    private static let steps = 14
    /// Light above 1 that still rounds to it.
    private static let tolerance: Float = 0.000_1
    /// The negative part of a colour's brightest channel that is noise of coding, and cut off. Saturated colours lie on
    /// the border, which is hollow beside blue: a step beyond it would lead far.
    private static let noise: Float = 0.005
    /// More than a million cd/m²; keeps damaged numbers finite.
    private static let brightest: Float = 1e4

    /// Returns the light to show, each channel 0...1. Channels that are not numbers count as 0.
    @inline(__always)
    static func shown(_ light: SIMD4<Float>) -> SIMD4<Float> {
        // The fourth lane is 0. What is not a number fails both comparisons.
        if all((light .>= 0) .& (light .<= plainLight)) { return light }
        return mapped(light)
    }

    private static func mapped(_ light: SIMD4<Float>) -> SIMD4<Float> {
        var light = light.replacing(with: 0, where: .!(light .== light))
        light.clamp(lowerBound: SIMD4(repeating: -brightest), upperBound: SIMD4(repeating: brightest))
        var color = oklab(light)
        guard color.x > 0 else { return SIMD4() }
        if color.x > knee {
            let above = (color.x - knee) / (1 - knee)
            let lightness = knee + (1 - knee) * above / (1 + above)
            color *= lightness / color.x
        }
        light = linear(color)
        if isShown(light) { return light.clamped(lowerBound: SIMD4(), upperBound: SIMD4(repeating: 1)) }
        let gray = SIMD4(anchor(color), 0, 0, 0)
        let way = color - gray
        var (inside, outside): (Float, Float) = (0, 1)
        for _ in 0..<steps {
            let middle = (inside + outside) / 2
            if isShown(linear(gray + way * middle)) { inside = middle } else { outside = middle }
        }
        return linear(gray + way * inside).clamped(lowerBound: SIMD4(), upperBound: SIMD4(repeating: 1))
    }

    @inline(__always)
    private static func isShown(_ light: SIMD4<Float>) -> Bool {
        let most = light.max()
        return light.min() >= -noise * most && most <= 1 + tolerance
    }

    /// The lightness of the grey to move to: that of the colour itself for the darker half, which would glow otherwise.
    private static func anchor(_ color: SIMD4<Float>) -> Float {
        guard color.x > 0.5 else { return color.x }
        let chroma = (color.y * color.y + color.z * color.z).squareRoot()
        let distance = color.x - 0.5
        let reach = 0.5 + distance + adaptation * chroma
        let shift = reach - max(0, reach * reach - 2 * distance).squareRoot()
        return 0.5 * (1 + shift)
    }

    /// Lightness, green to red, blue to yellow.
    private static func oklab(_ v: SIMD4<Float>) -> SIMD4<Float> {
        let l = cbrtf(0.4122214708 * v.x + 0.5363325363 * v.y + 0.0514459929 * v.z)
        let m = cbrtf(0.2119034982 * v.x + 0.6806995451 * v.y + 0.1073969566 * v.z)
        let s = cbrtf(0.0883024619 * v.x + 0.2817188376 * v.y + 0.6299787005 * v.z)
        return SIMD4<Float>(0.2104542553, 1.9779984951, 0.0259040371, 0) * l
            + SIMD4<Float>(0.7936177850, -2.4285922050, 0.7827717662, 0) * m
            + SIMD4<Float>(-0.0040720468, 0.4505937099, -0.8086757660, 0) * s
    }

    @inline(__always)
    private static func linear(_ color: SIMD4<Float>) -> SIMD4<Float> {
        let root = SIMD4<Float>(1, 1, 1, 0) * color.x
            + SIMD4<Float>(0.3963377774, -0.1055613458, -0.0894841775, 0) * color.y
            + SIMD4<Float>(0.2158037573, -0.0638541728, -1.2914855480, 0) * color.z
        let cone = root * root * root
        return SIMD4<Float>(4.0767416621, -1.2684380046, -0.0041960863, 0) * cone.x
            + SIMD4<Float>(-3.3077115913, 2.6097574011, -0.7034186147, 0) * cone.y
            + SIMD4<Float>(0.2309699292, -0.3413193965, 1.7076147010, 0) * cone.z
    }
}

/// The light that a still image of high dynamic range states for itself: `clli` of HEIF, `cLLI` of PNG.
///
/// Source: CTA-861.3-A, annex P (MaxCLL and MaxFALL).
package struct ContentLight: Sendable, Hashable {
    /// The brightest pixel, in cd/m².
    package var maximum: Double
    /// The mean of all pixels, in cd/m².
    package var average: Double

    package init(maximum: Double, average: Double) {
        (self.maximum, self.average) = (maximum, average)
    }

    /// The brightest white that an image can ask for.
    private static let limit = 1_000.0

    /// The luminance to show as white.
    ///
    /// It is reference white, unless the mean exceeds half of that: such an image was not made with reference white
    /// for white paper, and everything bright in it would be white. Its white is taken as twice its mean then, and at
    /// most as its brightest pixel.
    var white: Double { max(DisplayLight.referenceWhite, min(2 * average, maximum, Self.limit)) }
}
