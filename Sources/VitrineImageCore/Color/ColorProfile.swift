#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An ICC profile, ready to convert 8-bit device values to sRGB.
///
/// Relative colorimetric, colours outside sRGB clipped; those of PQ and HLG are shown by ``DisplayLight``. Reads matrix
/// and tone curve profiles (RGB, grey) and table profiles (RGB, CMYK). Images with other, malformed or degenerate
/// profiles count as sRGB. Source: ICC.1:2022.
package struct ColorProfile: Sendable {
    /// Device channels a profile is for.
    package enum Space: Sendable { case gray, rgb, cmyk }

    private enum Transform: Sendable {
        /// The sRGB level of every device level.
        case gray([UInt8])
        /// The part of each level of each channel in linear sRGB: three tables of 256.
        case sums([SIMD4<Float>])
        /// Tables of 256 a channel, then the grid.
        case lookup(ColorLookup, [Float])
        case highRange(HighRangeColors)
    }

    package let space: Space
    /// Whether conversion changes no level by more than one.
    package private(set) var isSRGB = false
    private let transform: Transform
    /// The colours of a profile of PQ or HLG.
    package var highRange: HighRangeColors? {
        if case .highRange(let colors) = transform { return colors }
        return nil
    }

    /// Reads a profile of PQ or HLG; nil for any other.
    package init?(highRange bytes: [UInt8]) {
        let reader = ICCReader(bytes: bytes)
        guard bytes.count >= 132, reader.matches("acsp", at: 36) else { return nil }
        let isGray = reader.matches("GRAY", at: 16)
        guard isGray || reader.matches("RGB ", at: 16), let colors = HighRangeColors(reader) else { return nil }
        space = isGray ? .gray : .rgb
        transform = .highRange(colors)
    }

    /// Reads a profile; nil if it is malformed or of an unsupported kind.
    package init?(_ bytes: [UInt8]) {
        let reader = ICCReader(bytes: bytes)
        guard bytes.count >= 132, reader.matches("acsp", at: 36) else { return nil }
        if let profile = ColorProfile(highRange: bytes) {
            self = profile
            return
        }
        let isLab = reader.matches("Lab ", at: 20)
        guard isLab || reader.matches("XYZ ", at: 20) else { return nil }
        if reader.matches("GRAY", at: 16) {
            guard let table = Self.grayTable(reader, isLab: isLab) else { return nil }
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
        guard Self.showsPictures(transform, space) else { return nil }
    }

    /// Whether white and black differ, and white is nearly neutral.
    ///
    /// Profiles of zeros or of random numbers are well-formed, and make every image one plain colour.
    private static func showsPictures(_ transform: Transform, _ space: Space) -> Bool {
        if case .gray(let table) = transform { return abs(Int(table[255]) - Int(table[0])) >= minimumContrast }
        let white: [UInt8] = space == .cmyk ? [0, 0, 0, 0] : [255, 255, 255, 255]
        let black: [UInt8] = space == .cmyk ? [255, 255, 255, 255] : [0, 0, 0, 255]
        var ends = white + black
        ends.withUnsafeMutableBufferPointer {
            if let p = $0.baseAddress { convert(p, count: 2, transform, isPremultiplied: false) }
        }
        let tint = (ends[0..<3].max() ?? 0) - (ends[0..<3].min() ?? 0)
        return abs(Int(ends[1]) - Int(ends[5])) >= minimumContrast && tint <= maximumTint
    }

    /// Levels of sRGB between white and black, at least: newsprint has 150.
    private static let minimumContrast = 32
    /// Levels of sRGB between the channels of white, at most: relative colorimetry makes white neutral.
    private static let maximumTint = 96

    /// The relative colorimetric table, or the perceptual one of a profile without it.
    private static func lookup(_ reader: ICCReader, channels: Int, isLab: Bool) -> ColorLookup? {
        for tag in [reader.tag("A2B1"), reader.tag("A2B0")] {
            if let tag, let lookup = ColorLookup(reader, tag: tag, channels: channels, isLab: isLab) { return lookup }
        }
        return nil
    }

    /// The curve gives luminance, or lightness where the connection space is Lab (ICC.1:2022 §8.4.4, §F.2).
    private static func grayTable(_ reader: ICCReader, isLab: Bool) -> [UInt8]? {
        guard let tag = reader.tag("kTRC"),
            let (curve, _) = ToneCurve.parse(reader, at: tag.lowerBound, end: tag.upperBound)
        else { return nil }
        return (0..<256).map {
            let value = curve(Float($0) / 255)
            return SRGB.level(isLab ? ColorLookup.luminance(lightness: 100 * value) : value)
        }
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

    /// Compares a ramp and the saturated colours.
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

    /// The sRGB level of every grey level; nil unless the space is ``Space/gray``, or the encoding PQ or HLG.
    package var grayLevels: [UInt8]? {
        switch transform {
        case .gray(let table): return table
        case .highRange(let colors): return colors.grayLevels
        default: return nil
        }
    }

    /// Converts cyan, magenta, yellow, black (255 = full ink) to opaque pixels in place.
    package func convertCMYK(_ pixels: UnsafeMutablePointer<UInt8>, count: Int) {
        guard space == .cmyk, case .lookup(let lookup, let tables) = transform else { return }
        Self.convert(pixels, count: count, lookup: lookup, tables: tables)
    }

    private static func convert(
        _ pixels: UnsafeMutablePointer<UInt8>, count: Int, _ transform: Transform, isPremultiplied: Bool
    ) {
        if isPremultiplied { AlphaMath.unpremultiply(pixels, count: count) }
        switch transform {
        case .gray: return
        case .highRange(let colors): colors.convert(pixels, count: count)
        case .lookup(let lookup, let tables): convert(pixels, count: count, lookup: lookup, tables: tables)
        case .sums(let sums):
            SRGB.encoded.withUnsafeBufferPointer { encoded in
                sums.withUnsafeBufferPointer { sums in
                    for i in 0..<count {
                        let p = pixels + 4 &* i
                        let (red, green, blue) = (Int(p[0]), Int(p[1]), Int(p[2]))
                        let linear = sums[red] + sums[256 &+ green] + sums[512 &+ blue]
                        let index = Self.index(linear)
                        p[0] = encoded[Int(index.x)]
                        p[1] = encoded[Int(index.y)]
                        p[2] = encoded[Int(index.z)]
                    }
                }
            }
        }
        if isPremultiplied { AlphaMath.premultiply(pixels, count: count) }
    }

    /// Index of clamped linear light into ``SRGB/encoded``.
    @inline(__always)
    private static func index(_ linear: SIMD4<Float>) -> SIMD4<Int32> {
        @inline(__always) func scale(_ v: Float) -> Int32 { Int32(max(0, min(1, v)) * 65_535 + 0.5) }
        return SIMD4(scale(linear[0]), scale(linear[1]), scale(linear[2]), 0)
    }

    /// Three or four device channels through the grid. Alpha stays, or becomes opaque where it was black ink.
    private static func convert(
        _ pixels: UnsafeMutablePointer<UInt8>, count: Int, lookup: ColorLookup, tables: [Float]
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
                let index = Self.index(lookup.linear(v))
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

extension ColorProfile {
    /// Returns the description of a profile, for example "Display P3"; nil if it has none.
    ///
    /// At most 128 characters, of the English text where a profile has several languages.
    /// Source: ICC.1:2022 §9.2.41, §10.15 (`mluc`); ICC.1:2001 §6.5.17 (`desc`).
    package static func name(of bytes: [UInt8]) -> String? {
        let reader = ICCReader(bytes: bytes)
        guard reader.matches("acsp", at: 36), let tag = reader.tag("desc") else { return nil }
        let text: String
        if reader.matches("desc", at: tag.lowerBound) {
            let count = min(reader.u32(tag.lowerBound + 8), tag.count - 12, 512)
            guard count > 0 else { return nil }
            let start = tag.lowerBound + 12
            text = String(decoding: bytes[start..<(start + count)].prefix { $0 != 0 }, as: UTF8.self)
        } else if reader.matches("mluc", at: tag.lowerBound), let units = localised(reader, tag) {
            text = String(decoding: units.prefix { $0 != 0 }, as: UTF16.self)
        } else {
            return nil
        }
        return text.isEmpty ? nil : String(text.prefix(128))
    }

    private static func localised(_ reader: ICCReader, _ tag: Range<Int>) -> [UInt16]? {
        let records = min(reader.u32(tag.lowerBound + 8), max(0, tag.count - 16) / 12, 256)
        guard records > 0 else { return nil }
        let all = (0..<records).map { tag.lowerBound + 16 + 12 * $0 }
        let english = Int(UInt8(ascii: "e")) << 8 | Int(UInt8(ascii: "n"))
        let record = all.first { reader.u16($0) == english } ?? all[0]
        let count = min(reader.u32(record + 4), 1_024) / 2
        let offset = reader.u32(record + 8)
        guard offset <= tag.count, count <= (tag.count - offset) / 2 else { return nil }
        return (0..<count).map { UInt16(reader.u16(tag.lowerBound + offset + 2 * $0)) }
    }
}

/// A curve from device values to linear ones, both 0...1: a `curv` or `para` element.
///
/// Source: ICC.1:2022 §10.6 (curveType), §10.18 (parametricCurveType).
enum ToneCurve: Sendable {
    case identity
    case gamma(Double)
    /// Function types 1 to 4 all as type 4: `(a x + b)^g + e` from `d` on, `c x + f` below.
    case parametric(g: Double, a: Double, b: Double, c: Double, d: Double, e: Double, f: Double)
    case table([Float])

    /// Reads the curve at `offset` and its length in bytes; nil if it is malformed.
    static func parse(_ reader: ICCReader, at offset: Int, end: Int) -> (curve: ToneCurve, count: Int)? {
        guard offset >= 0, end <= reader.bytes.count, end - offset >= 12 else { return nil }
        if reader.matches("curv", at: offset) { return parseTable(reader, at: offset, end: end) }
        guard reader.matches("para", at: offset) else { return nil }
        let kind = reader.u16(offset + 8)
        let counts = [1, 3, 4, 5, 7]
        guard kind < counts.count, end - offset >= 12 + 4 * counts[kind] else { return nil }
        let p = (0..<7).map { $0 < counts[kind] ? reader.fixed(offset + 12 + 4 * $0) : 0 }
        let length = 12 + 4 * counts[kind]
        switch kind {
        case 0: return (.gamma(p[0]), length)
        case 1:
            let d = p[1] == 0 ? 0 : -p[2] / p[1]
            return (.parametric(g: p[0], a: p[1], b: p[2], c: 0, d: d, e: 0, f: 0), length)
        case 2:
            let d = p[1] == 0 ? 0 : -p[2] / p[1]
            return (.parametric(g: p[0], a: p[1], b: p[2], c: 0, d: d, e: p[3], f: p[3]), length)
        case 3: return (.parametric(g: p[0], a: p[1], b: p[2], c: p[3], d: p[4], e: 0, f: 0), length)
        default: return (.parametric(g: p[0], a: p[1], b: p[2], c: p[3], d: p[4], e: p[5], f: p[6]), length)
        }
    }

    private static func parseTable(_ reader: ICCReader, at offset: Int, end: Int) -> (curve: ToneCurve, count: Int)? {
        let count = reader.u32(offset + 8)
        guard count <= (end - offset - 12) / 2 else { return nil }
        switch count {
        case 0: return (.identity, 12)
        case 1: return (.gamma(Double(reader.u16(offset + 12)) / 256), 14)
        default:
            let values = (0..<count).map { Float(reader.u16(offset + 12 + 2 * $0)) / 65_535 }
            return (.table(values), 12 + 2 * count)
        }
    }

    /// Returns the curve at `x`, both clamped to 0...1. A value that is not a number counts as 0.
    func callAsFunction(_ x: Float) -> Float {
        let x = x > 0 ? min(x, 1) : 0
        switch self {
        case .identity: return x
        case .gamma(let g): return Self.unit(pow(Double(x), g))
        case .parametric(let g, let a, let b, let c, let d, let e, let f):
            let x = Double(x)
            return Self.unit(x >= d ? pow(max(0, a * x + b), g) + e : c * x + f)
        case .table(let values):
            let position = x * Float(values.count - 1)
            let i = min(Int(position), values.count - 2)
            return values[i] + (values[i + 1] - values[i]) * (position - Float(i))
        }
    }

    private static func unit(_ value: Double) -> Float { value > 0 ? Float(min(value, 1)) : 0 }
}

/// Reads big-endian numbers of a profile. A read outside it gives 0, so that no file can cause a trap.
///
/// Source: ICC.1:2022 §4 (number types), §7.3 (tag table).
struct ICCReader: Sendable {
    let bytes: [UInt8]

    func u8(_ offset: Int) -> Int { offset >= 0 && offset < bytes.count ? Int(bytes[offset]) : 0 }
    func u16(_ offset: Int) -> Int { u8(offset) << 8 | u8(offset &+ 1) }
    func u32(_ offset: Int) -> Int { u16(offset) << 16 | u16(offset &+ 2) }
    /// s15Fixed16Number.
    func fixed(_ offset: Int) -> Double { Double(Int32(truncatingIfNeeded: u32(offset))) / 65_536 }
    /// Four characters as a number, for comparing with ``signature(_:)``.
    static func signature(_ text: StaticString) -> Int {
        text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | Int($1) } }
    }

    func matches(_ text: StaticString, at offset: Int) -> Bool { u32(offset) == Self.signature(text) }

    /// The range of a tag's data; nil if the tag is absent or reaches outside the profile.
    func tag(_ name: StaticString) -> Range<Int>? {
        let wanted = Self.signature(name)
        for i in 0..<min(u32(128), 1_024) {
            let entry = 132 + 12 * i
            guard entry + 12 <= bytes.count else { return nil }
            guard u32(entry) == wanted else { continue }
            let start = u32(entry + 4)
            let count = u32(entry + 8)
            guard count >= 8, start >= 128, start <= bytes.count, count <= bytes.count - start else { return nil }
            return start..<(start + count)
        }
        return nil
    }
}
