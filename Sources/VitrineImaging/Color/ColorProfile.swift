/// An ICC profile, ready for turning 8-bit device values into sRGB.
///
/// Relative colorimetric, colours outside sRGB clipped. Matrix and tone curve profiles (RGB, grey) and table profiles
/// (RGB, CMYK) are understood; anything else, and anything malformed, is no profile at all and the picture counts as
/// sRGB. Source: ICC.1:2022.
public struct ColorProfile: Sendable {
    /// Device channels a profile is for.
    package enum Space: Sendable { case gray, rgb, cmyk }

    private enum Transform: Sendable {
        /// The sRGB level of every device level.
        case gray([UInt8])
        /// What each level of each channel adds to linear sRGB: three tables of 256.
        case sums([SIMD4<Float>])
        /// Tables of 256 a channel, then the grid.
        case lookup(ColorLookup, [Float])
    }

    package let space: Space
    /// Whether conversion would change nothing by more than one level.
    package private(set) var isSRGB = false
    private let transform: Transform

    /// Reads a profile; nil if it is malformed or of a kind that is not understood.
    package init?(_ bytes: [UInt8]) {
        let reader = ICCReader(bytes: bytes)
        guard bytes.count >= 132, reader.matches("acsp", at: 36) else { return nil }
        let isLab = reader.matches("Lab ", at: 20)
        guard isLab || reader.matches("XYZ ", at: 20) else { return nil }
        if reader.matches("GRAY", at: 16) {
            guard let table = Self.grayTable(reader) else { return nil }
            space = .gray
            transform = .gray(table)
            isSRGB = table.indices.allSatisfy { abs(Int(table[$0]) - $0) <= 1 }
        } else if reader.matches("RGB ", at: 16) {
            space = .rgb
            if let sums = Self.matrixTables(reader) {
                transform = .sums(sums)
            } else if let lookup = Self.lookup(reader, channels: 3, isLab: isLab) {
                transform = .lookup(lookup, lookup.inputTables())
            } else {
                return nil
            }
            isSRGB = Self.changesNothing(transform)
        } else if reader.matches("CMYK", at: 16) {
            guard let lookup = Self.lookup(reader, channels: 4, isLab: isLab) else { return nil }
            space = .cmyk
            transform = .lookup(lookup, lookup.inputTables())
        } else {
            return nil
        }
    }

    /// The relative colorimetric table, or the perceptual one if that is all there is.
    private static func lookup(_ reader: ICCReader, channels: Int, isLab: Bool) -> ColorLookup? {
        for tag in [reader.tag("A2B1"), reader.tag("A2B0")] {
            if let tag, let lookup = ColorLookup(reader, tag: tag, channels: channels, isLab: isLab) { return lookup }
        }
        return nil
    }

    private static func grayTable(_ reader: ICCReader) -> [UInt8]? {
        guard let tag = reader.tag("kTRC"),
            let (curve, _) = ToneCurve.parse(reader, at: tag.lowerBound, end: tag.upperBound)
        else { return nil }
        return (0..<256).map { SRGB.encoded[Int(curve(Float($0) / 255) * 65_535 + 0.5)] }
    }

    /// Tone curves and colorants, folded with the way from D50 to linear sRGB.
    private static func matrixTables(_ reader: ICCReader) -> [SIMD4<Float>]? {
        let tags: [(StaticString, StaticString)] = [("rXYZ", "rTRC"), ("gXYZ", "gTRC"), ("bXYZ", "bTRC")]
        var result: [SIMD4<Float>] = []
        for (colorant, tone) in tags {
            guard let xyz = reader.tag(colorant), xyz.count >= 20, reader.matches("XYZ ", at: xyz.lowerBound),
                let tag = reader.tag(tone),
                let (curve, _) = ToneCurve.parse(reader, at: tag.lowerBound, end: tag.upperBound)
            else { return nil }
            let x = Float(reader.fixed(xyz.lowerBound + 8))
            let y = Float(reader.fixed(xyz.lowerBound + 12))
            let z = Float(reader.fixed(xyz.lowerBound + 16))
            let column = SRGB.columns.x * x + SRGB.columns.y * y + SRGB.columns.z * z
            result += (0..<256).map { column * curve(Float($0) / 255) }
        }
        return result
    }

    /// Tries a ramp and the saturated colours.
    private static func changesNothing(_ transform: Transform) -> Bool {
        var probes: [[UInt8]] = stride(from: UInt8(0), through: 255, by: 5).map { [$0, $0, $0, 255] }
        for corner in 1..<7 {
            for level: UInt8 in [120, 255] {
                probes.append([0, 1, 2].map { corner >> $0 & 1 == 1 ? level : 0 } + [255])
            }
        }
        let before = probes.flatMap { $0 }
        var after = before
        after.withUnsafeMutableBufferPointer {
            if let p = $0.baseAddress { convert(p, count: probes.count, transform, isPremultiplied: false) }
        }
        return zip(before, after).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
    }

    // MARK: Conversion

    /// Converts red, green, blue, alpha in place. Without effect unless the profile's space is ``Space/rgb``.
    package func convertRGB(_ pixels: UnsafeMutablePointer<UInt8>, count: Int, isPremultiplied: Bool) {
        guard space == .rgb else { return }
        Self.convert(pixels, count: count, transform, isPremultiplied: isPremultiplied)
    }

    /// The sRGB level of every grey level; nil unless the space is ``Space/gray``.
    package var grayLevels: [UInt8]? {
        if case .gray(let table) = transform { return table }
        return nil
    }

    /// Converts cyan, magenta, yellow, black (255 = full ink) to opaque pixels in place.
    package func convertCMYK(_ pixels: UnsafeMutablePointer<UInt8>, count: Int) {
        guard space == .cmyk, case .lookup(let lookup, let tables) = transform else { return }
        Self.convert(pixels, count: count, lookup, tables)
    }

    private static func convert(
        _ pixels: UnsafeMutablePointer<UInt8>, count: Int, _ transform: Transform, isPremultiplied: Bool
    ) {
        if isPremultiplied { AlphaMath.unpremultiply(pixels, count: count) }
        switch transform {
        case .gray: return
        case .lookup(let lookup, let tables): convert(pixels, count: count, lookup, tables)
        case .sums(let sums):
            SRGB.encoded.withUnsafeBufferPointer { encoded in
                sums.withUnsafeBufferPointer { sums in
                    for i in 0..<count {
                        let p = pixels + 4 &* i
                        let linear = sums[Int(p[0])] + sums[256 &+ Int(p[1])] + sums[512 &+ Int(p[2])]
                        let index = SRGB.index(linear)
                        p[0] = encoded[Int(index.x)]
                        p[1] = encoded[Int(index.y)]
                        p[2] = encoded[Int(index.z)]
                    }
                }
            }
        }
        if isPremultiplied { AlphaMath.premultiply(pixels, count: count) }
    }

    /// Three or four device channels through the grid. Alpha stays, or becomes opaque where it was black ink.
    private static func convert(
        _ pixels: UnsafeMutablePointer<UInt8>, count: Int, _ lookup: ColorLookup, _ tables: [Float]
    ) {
        let isCMYK = lookup.inputs == 4
        let encoded = SRGB.encoded
        var lastDevice: UInt32 = 0
        var lastResult: UInt32 = 0
        for i in 0..<count {
            let p = pixels + 4 &* i
            let device = UnsafeRawPointer(p).loadUnaligned(as: UInt32.self)
            if i == 0 || device != lastDevice {
                var v = SIMD4(tables[Int(p[0])], tables[256 + Int(p[1])], tables[512 + Int(p[2])], 0)
                if isCMYK { v[3] = tables[768 + Int(p[3])] }
                let index = SRGB.index(lookup.linear(v))
                p[0] = encoded[Int(index.x)]
                p[1] = encoded[Int(index.y)]
                p[2] = encoded[Int(index.z)]
                if isCMYK { p[3] = 255 }
                lastResult = UnsafeRawPointer(p).loadUnaligned(as: UInt32.self)
                lastDevice = device
            } else {
                UnsafeMutableRawPointer(p).storeBytes(of: lastResult, as: UInt32.self)
            }
        }
    }
}
