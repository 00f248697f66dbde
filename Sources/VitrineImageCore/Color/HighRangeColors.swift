#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Colours of high dynamic range as they are encoded, by PQ or HLG, ready to be shown in sRGB by ``DisplayLight``.
///
/// Source: ITU-R BT.2100-2, tables 4 and 5.
package struct HighRangeColors: Sendable {
    /// A transfer function; raw values are code points of ITU-T H.273, table 3.
    package enum Transfer: Int, Sendable {
        case perceptual = 16
        case hybridLog = 18
    }

    private let transfer: Transfer
    /// Linear sRGB of full red, green and blue.
    private let columns: (red: SIMD4<Float>, green: SIMD4<Float>, blue: SIMD4<Float>)
    /// From the light of the curve to that of the display, of which 1 is white.
    private let scale: Float

    /// - Parameters:
    ///   - transfer: The encoding.
    ///   - colorants: XYZ of red, green and blue relative to D50.
    ///   - light: The light that the image states for itself.
    init(_ transfer: Transfer, colorants: [SIMD4<Float>], light: ContentLight? = nil) {
        self.transfer = transfer
        let linear = colorants.map { SRGB.columns.x * $0.x + SRGB.columns.y * $0.y + SRGB.columns.z * $0.z }
        columns = (linear[0], linear[1], linear[2])
        let white = light?.white ?? DisplayLight.referenceWhite
        scale = Float((transfer == .perceptual ? 10_000 : Self.nominalPeak) / white)
    }

    // MARK: Light

    /// The light that an encoded colour shows, each channel 0...1 of linear sRGB.
    ///
    /// - Parameter encoded: Red, green and blue of 0...1.
    @inline(__always)
    func shown(_ encoded: SIMD4<Float>) -> SIMD4<Float> {
        let light = decoded(encoded)
        return shown(red: light.x, green: light.y, blue: light.z)
    }

    /// The light of the curve for an encoded colour, in its own primaries.
    @inline(__always)
    private func decoded(_ encoded: SIMD4<Float>) -> SIMD4<Float> {
        curve.withUnsafeBufferPointer { curve in
            @inline(__always) func light(_ v: Float) -> Float {
                let position = (v > 0 ? min(v, 1) : 0) * Float(Self.steps)
                let i = min(Int(position), Self.steps - 1)
                return curve[i] + (curve[i + 1] - curve[i]) * (position - Float(i))
            }
            return SIMD4(light(encoded.x), light(encoded.y), light(encoded.z), 0)
        }
    }

    /// The levels of sRGB for an encoded colour, by the map of its maker, at a place in fractions of the image.
    func levels(_ encoded: SIMD4<Float>, through gain: GainSamples, x: Float, y: Float) -> SIMD4<UInt8> {
        func toSRGB(_ light: SIMD4<Float>) -> SIMD4<Float> {
            columns.red * light.x + columns.green * light.y + columns.blue * light.z
        }
        var light = decoded(encoded)
        // Maps count from reference white, whatever the image states for its own.
        if transfer == .perceptual {
            light *= Float(10_000 / DisplayLight.referenceWhite)
        } else {
            let color = toSRGB(light)
            light *= Float(Self.nominalPeak / DisplayLight.referenceWhite)
                * displayGain(ToneMap.luminance(r: color.x, g: color.y, b: color.z))
        }
        if !gain.isInBase { light = toSRGB(light) }
        light = gain.applied(to: light, x: x, y: y)
        if gain.isInBase { light = toSRGB(light) }
        return Self.levels(DisplayLight.shown(light))
    }

    /// The levels of sRGB for an encoded colour of 0...1.
    @inline(__always)
    package func levels(_ encoded: SIMD4<Float>) -> SIMD4<UInt8> {
        Self.levels(shown(encoded))
    }

    @inline(__always)
    private static func levels(_ light: SIMD4<Float>) -> SIMD4<UInt8> {
        let index = SIMD4<Int32>(light * 65_535 + 0.5)
        return SRGB.encoded.withUnsafeBufferPointer {
            SIMD4($0[Int(index.x)], $0[Int(index.y)], $0[Int(index.z)], 255)
        }
    }

    @inline(__always)
    private func shown(red: Float, green: Float, blue: Float) -> SIMD4<Float> {
        var light = columns.red * red + columns.green * green + columns.blue * blue
        if transfer == .hybridLog {
            light *= scale * displayGain(ToneMap.luminance(r: light.x, g: light.y, b: light.z))
        } else {
            light *= scale
        }
        return DisplayLight.shown(light)
    }

    /// The factor by which a display of HLG shows the light of a scene. Its gamma works on luminance, so that colours keep
    /// their hues (BT.2100 table 5, OOTF).
    @inline(__always)
    private func displayGain(_ luminance: Float) -> Float {
        luminance > 0 ? powf(luminance, Self.displayGamma - 1) : 0
    }

    /// Converts red, green, blue and alpha in place, and keeps alpha. Colours are not multiplied by it.
    func convert(_ pixels: UnsafeMutablePointer<UInt8>, count: Int) {
        let step = Self.steps / 255
        curve.withUnsafeBufferPointer { curve in
            SRGB.encoded.withUnsafeBufferPointer { encoded in
                var last: UInt32 = 0
                var result = SIMD4<Int32>()
                for i in 0..<count {
                    let p = pixels + 4 &* i
                    // Images have many neighbours of one colour.
                    let color = UInt32(p[0]) | UInt32(p[1]) &<< 8 | UInt32(p[2]) &<< 16
                    if i == 0 || color != last {
                        let light = shown(
                            red: curve[Int(p[0]) &* step], green: curve[Int(p[1]) &* step],
                            blue: curve[Int(p[2]) &* step])
                        result = SIMD4<Int32>(light * 65_535 + 0.5)
                        last = color
                    }
                    p[0] = encoded[Int(result.x)]
                    p[1] = encoded[Int(result.y)]
                    p[2] = encoded[Int(result.z)]
                }
            }
        }
    }

    /// The sRGB level of every grey level.
    var grayLevels: [UInt8] {
        (0..<256).map { levels(SIMD4(1, 1, 1, 0) * (Float($0) / 255)).y }
    }

    // MARK: Curves

    /// The brightness and the gamma of the display that HLG is made for (BT.2100 table 5).
    private static let nominalPeak = 1_000.0
    private static let displayGamma: Float = 1.2
    /// Steps of the tables of curves: a multiple of 255, so that bytes need no interpolation.
    private static let steps = 255 * 16

    private var curve: [Float] { transfer == .perceptual ? Self.perceptual : Self.hybridLog }
    private static let perceptual = (0...steps).map { Float(light(Double($0) / Double(steps), .perceptual)) }
    private static let hybridLog = (0...steps).map { Float(light(Double($0) / Double(steps), .hybridLog)) }

    /// Light of an encoded value, both 0...1: of 10,000 cd/m² for PQ, of the brightest of the scene for HLG.
    static func light(_ value: Double, _ transfer: Transfer) -> Double {
        switch transfer {
        case .perceptual:
            let root = pow(value, 1 / 78.84375)
            return pow(max(0, root - 0.8359375) / (18.8515625 - 18.6875 * root), 1 / 0.1593017578125)
        case .hybridLog:
            return value <= 0.5 ? value * value / 3 : (exp((value - 0.55991073) / 0.17883277) + 0.28466892) / 12
        }
    }
}

extension HighRangeColors {
    /// Reads a profile of PQ or HLG; nil for any other.
    ///
    /// Three signs tell such profiles: the tag `cicp` (ICC.1:2022 §9.2.17), the shape of their curves, and, for
    /// profiles of tables, their name. The last is how PNG had PQ before `cICP` (W3C, "Using the ITU BT.2100 PQ EOTF
    /// with the PNG Format", 2017). Their tables for displays of standard range are not used.
    init?(_ reader: ICCReader) {
        let coded = reader.codePoints
        var transfer = coded.flatMap { Transfer(rawValue: $0.transfer) }
        if coded == nil || coded?.transfer == 2 {
            transfer = Self.transfer(ofCurve: reader) ?? Self.transfer(ofName: reader)
        }
        guard let transfer else { return nil }
        let space = coded.flatMap { CodePointProfile.Primaries(codePoint: $0.primaries) }
        let colorants = space.map(\.columns) ?? reader.colorants ?? CodePointProfile.Primaries.bt2020.columns
        self.init(transfer, colorants: colorants, light: reader.contentLight)
    }

    /// A curve that agrees with PQ or HLG within a twentieth where no other curve does.
    private static func transfer(ofCurve reader: ICCReader) -> Transfer? {
        guard let tag = reader.tag("gTRC") ?? reader.tag("kTRC"),
            let (curve, _) = ToneCurve.parse(reader, at: tag.lowerBound, end: tag.upperBound)
        else { return nil }
        return [Transfer.perceptual, .hybridLog].first { transfer in
            [0.625, 0.75, 0.875].allSatisfy {
                let light = Self.light($0, transfer)
                return abs(Double(curve(Float($0))) - light) <= 0.05 * light
            }
        }
    }

    private static func transfer(ofName reader: ICCReader) -> Transfer? {
        guard let name = ColorProfile.name(of: reader.bytes) else { return nil }
        let words = name.split { !$0.isLetter && !$0.isNumber }.map { $0.uppercased() }
        if words.contains(where: { $0 == "HLG" || $0 == "REC2100HLG" }) { return .hybridLog }
        return words.contains { ["PQ", "REC2100PQ", "ST2084", "PEQ"].contains($0) } ? .perceptual : nil
    }
}

extension ICCReader {
    /// Primaries and transfer function of the tag `cicp`.
    fileprivate var codePoints: (primaries: Int, transfer: Int)? {
        guard let tag = tag("cicp"), tag.count >= 12, matches("cicp", at: tag.lowerBound) else { return nil }
        return (u8(tag.lowerBound + 8), u8(tag.lowerBound + 9))
    }

    /// XYZ of red, green and blue.
    fileprivate var colorants: [SIMD4<Float>]? {
        let tags = [tag("rXYZ"), tag("gXYZ"), tag("bXYZ")].compactMap { $0 }
        guard tags.count == 3, tags.allSatisfy({ $0.count >= 20 && matches("XYZ ", at: $0.lowerBound) }) else {
            return nil
        }
        return tags.map { tag in
            func value(_ i: Int) -> Float { Float(fixed(tag.lowerBound + 8 + 4 * i)) }
            return SIMD4(value(0), value(1), value(2), 0)
        }
    }

    /// The private tag by which ``CodePointProfile`` hands on the light of an image.
    fileprivate var contentLight: ContentLight? {
        guard let tag = tag("clli"), tag.count >= 16, matches("ui32", at: tag.lowerBound) else { return nil }
        return ContentLight(
            maximum: Double(u32(tag.lowerBound + 8)) / 10_000, average: Double(u32(tag.lowerBound + 12)) / 10_000)
    }
}
