#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The metadata of a gain map that leads from an image of high dynamic range to the one of standard range that its
/// maker wanted.
///
/// Sources: ISO 21496-1 (metadata, and its use); libultrahdr's `gainmapmetadata.cpp` (common denominators); Adobe,
/// "Gain map specification" 1.0 (metadata in XMP).
package struct GainMap: Sendable {
    /// One channel of the map.
    private struct Channel {
        var least = 0.0
        var most = 0.0
        var gamma = 1.0
        var baseOffset = 0.0
        var otherOffset = 0.0
    }

    /// Whether the map is applied in the primaries of the base, instead of those of sRGB.
    package var isInBase: Bool
    private let channels: [Channel]

    /// Reads the metadata from its least version on; nil for later versions, and for maps that do not lead to a lower
    /// range.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count > 5, bytes[0] == 0, bytes[1] == 0 else { return nil }
        let flags = bytes[4]
        var at = 5
        func number() -> UInt32? {
            guard at + 4 <= bytes.count else { return nil }
            defer { at += 4 }
            return bytes.bigEndian32(at: at)
        }
        let common = flags & 0x08 != 0 ? number() : nil
        func fraction(signed: Bool) -> Double? {
            guard let numerator = number(), let denominator = common ?? number(), denominator != 0 else { return nil }
            return (signed ? Double(Int32(bitPattern: numerator)) : Double(numerator)) / Double(denominator)
        }
        // What a display can show beyond white, in powers of two. Ours can show nothing, so the whole map applies.
        guard let base = fraction(signed: false), let other = fraction(signed: false), base > other else { return nil }
        var channels: [Channel] = []
        for _ in 0..<(flags & 0x80 != 0 ? 3 : 1) {
            guard let least = fraction(signed: true), let most = fraction(signed: true),
                let gamma = fraction(signed: false), let baseOffset = fraction(signed: true),
                let otherOffset = fraction(signed: true)
            else { return nil }
            channels.append(
                Channel(
                    least: least, most: most, gamma: gamma, baseOffset: baseOffset, otherOffset: otherOffset))
        }
        guard let complete = GainMap.complete(channels) else { return nil }
        self.channels = complete
        isInBase = flags & 0x40 != 0
    }

    /// Reads the metadata of the XMP of the map, which is applied in the primaries of the base; nil without them, and
    /// for maps that do not lead to a lower range.
    package init?(xmp document: [UInt8]) {
        let names: [StaticString] = ["GainMapMin", "GainMapMax", "Gamma", "OffsetHDR", "OffsetSDR"]
        let texts: [StaticString] = ["Version", "BaseRenditionIsHDR", "HDRCapacityMin", "HDRCapacityMax"]
        var values: [String: [String]] = [:]
        var scanner = XMLScanner(document, input: "XMP")
        // The property whose text or list of texts is being read.
        var open: String?
        while let event = try? scanner.next() {
            switch event {
            case .start where scanner.isNamed("Description"):
                for name in names + texts {
                    if let text = scanner.attribute(name) { values["\(name)"] = [text] }
                }
            case .start:
                if let name = (names + texts).first(where: { scanner.isNamed($0) }) {
                    open = "\(name)"
                    values["\(name)"] = []
                }
            case .text:
                let text = scanner.string(scanner.text).filter { !$0.isWhitespace }
                if let open, !text.isEmpty, values[open, default: []].count < 3 {
                    values[open, default: []].append(text)
                }
            case .end:
                if (names + texts).contains(where: { scanner.isNamed($0) }) { open = nil }
            }
        }
        // Values that are absent have the defaults of the specification. One value is for all channels.
        func number(_ name: String, of channel: Int = 0, default standard: Double?) -> Double? {
            guard let texts = values[name] else { return standard }
            guard texts.count == 1 || texts.count == 3, let value = Double(texts[channel % texts.count]), value.isFinite
            else { return nil }
            return value
        }
        guard values["Version"] == ["1.0"], values["BaseRenditionIsHDR"]?.first?.lowercased() == "true",
            let low = number("HDRCapacityMin", default: 0), let high = number("HDRCapacityMax", default: nil),
            low < high
        else { return nil }
        var channels: [Channel] = []
        for c in 0..<3 {
            guard let least = number("GainMapMin", of: c, default: 0),
                let most = number("GainMapMax", of: c, default: nil),
                let gamma = number("Gamma", of: c, default: 1), let high = number("OffsetHDR", of: c, default: 1 / 64),
                let standard = number("OffsetSDR", of: c, default: 1 / 64)
            else { return nil }
            channels.append(Channel(least: least, most: most, gamma: gamma, baseOffset: high, otherOffset: standard))
        }
        guard let complete = GainMap.complete(channels) else { return nil }
        self.channels = complete
        isInBase = true
    }

    /// Three channels of one or three; nil with values outside of the bounds of both forms.
    private static func complete(_ channels: [Channel]) -> [Channel]? {
        let isSound = channels.allSatisfy {
            $0.gamma > 0 && $0.most >= $0.least && abs($0.least) <= 64 && abs($0.most) <= 64
        }
        return isSound ? (0..<3).map { channels[$0 % channels.count] } : nil
    }

    /// The factors by which light is divided, for 256 levels of each channel of the map.
    private var tables: [[Float]] {
        channels.map { channel in
            (0..<256).map { level in
                let share = pow(Double(level) / 255, 1 / channel.gamma)
                return Float(exp2(-(channel.least + (channel.most - channel.least) * share)))
            }
        }
    }

    /// The map with its samples: a plane of grey, or of red, green and blue, usually smaller than the image.
    ///
    /// - Returns: nil for a plane of other channels.
    package func applying(_ plane: PixelPlane) -> GainSamples? {
        guard plane.channels == 1 || plane.channels == 3 else { return nil }
        let size = PixelSize(width: plane.width, height: plane.height)
        let pixels = PixelStorage(zeroedByteCount: 3 * size.pixelCount)
        for y in 0..<size.height {
            for x in 0..<size.width {
                let from = y * plane.bytesPerRow + x * plane.channels
                for c in 0..<3 {
                    pixels.bytes[3 * (y * size.width + x) + c] = plane.storage.bytes[from + c % plane.channels]
                }
            }
        }
        func vector(_ value: (Channel) -> Double) -> SIMD4<Float> {
            SIMD4(Float(value(channels[0])), Float(value(channels[1])), Float(value(channels[2])), 0)
        }
        return GainSamples(
            pixels: pixels, size: size, isInBase: isInBase, tables: tables, before: vector(\.baseOffset),
            after: vector(\.otherOffset))
    }
}

/// The samples of a gain map, from an image of high dynamic range to one of standard range.
package struct GainSamples: Sendable {
    let pixels: PixelStorage
    let size: PixelSize
    /// Whether the map is for the primaries of the image, instead of those of sRGB.
    let isInBase: Bool
    /// The factor of each level of each channel.
    let tables: [[Float]]
    let before: SIMD4<Float>
    let after: SIMD4<Float>

    /// Returns the light of the other image at a place given in fractions of it.
    func applied(to light: SIMD4<Float>, x: Float, y: Float) -> SIMD4<Float> {
        func place(_ fraction: Float, _ side: Int) -> (Int, Int, Float) {
            let position = max(0, min(fraction * Float(side) - 0.5, Float(side - 1)))
            let first = Int(position)
            return (first, min(first + 1, side - 1), position - Float(first))
        }
        let (left, right, across) = place(x, size.width)
        let (top, bottom, down) = place(y, size.height)
        let bytes = pixels.bytes
        func factors(_ x: Int, _ y: Int) -> SIMD4<Float> {
            let at = 3 &* (y &* size.width &+ x)
            return SIMD4(
                tables[0][Int(bytes[at])], tables[1][Int(bytes[at &+ 1])], tables[2][Int(bytes[at &+ 2])], 0)
        }
        let upper = factors(left, top) + (factors(right, top) - factors(left, top)) * across
        let lower = factors(left, bottom) + (factors(right, bottom) - factors(left, bottom)) * across
        return (light + before) * (upper + (lower - upper) * down) - after
    }
}
