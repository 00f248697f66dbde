import VitrineCore
import VitrineImageCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// How a picture of high dynamic range becomes the one of standard range that its maker wanted: the metadata of an item
/// `tmap`, whose base is the primary picture.
///
/// Source: ISO 21496-1 (metadata, and its use), ISO/IEC 23008-12 amendment 1 (`tmap`), AVIF 1.2 §4.2.
package struct GainMap {
    /// One channel of the map.
    private struct Channel {
        var least = 0.0
        var most = 0.0
        var gamma = 1.0
        var baseOffset = 0.0
        var otherOffset = 0.0
    }

    /// The item of the map.
    package let item: Int
    /// Whether the map is applied in the primaries of the base, instead of those of sRGB.
    let isInBase: Bool
    private let channels: [Channel]

    /// Reads the map of the primary picture; nil unless it leads from a higher range to a lower one.
    ///
    /// The file has to name the brand `tmap`, and to prefer the derived picture to the base in a group `altr`. Maps of
    /// later versions are ignored, and those to primaries that are neither the base's nor those of sRGB, and of bases
    /// whose code points are not those of PQ.
    package init?(_ container: HEIFContainer) {
        let reader = container.reader
        let top = ISOBox.children(reader, in: 0..<reader.count)
        guard let primary = container.primary, let base = container.items[primary].flatMap(container.codePoints),
            base.transfer == HighRangeColors.Transfer.perceptual.rawValue, let brands = top["ftyp"]?.payload,
            (try? reader.bytes(brands))?.chunked(by: 4).contains(Array("tmap".utf8)) == true,
            let meta = top["meta"]?.fullPayload,
            let groups = ISOBox.children(reader, in: meta)["grpl"]?.payload
        else { return nil }
        let derived = container.references.first { reference in
            reference.type == "dimg" && reference.to.count == 2 && reference.to[0] == primary
                && container.items[reference.from]?.type == "tmap"
        }
        guard let derived, let tmap = container.items[derived.from], let place = tmap.extent, place.count <= 256,
            ISOBox.children(reader, in: groups).contains(where: {
                Self.prefers(derived.from, to: primary, $0, reader)
            }),
            let metadata = try? reader.bytes(place), let parsed = Self.parse(metadata)
        else { return nil }
        item = derived.to[1]
        let other = container.codePoints(of: tmap)?.primaries ?? base.primaries
        guard parsed.isInBase || other == base.primaries || [0, 1, 2].contains(other) else { return nil }
        isInBase = parsed.isInBase || other == base.primaries
        channels = parsed.channels
    }

    private static func prefers(_ item: Int, to other: Int, _ group: ISOBox, _ reader: ByteReader) -> Bool {
        guard group.type == "altr", let payload = group.fullPayload,
            let count = try? reader.u32(at: payload.lowerBound + 4), count <= (payload.count - 8) / 4
        else { return false }
        let items = (0..<count).compactMap { try? reader.u32(at: payload.lowerBound + 8 + 4 * $0) }
        guard let own = items.firstIndex(of: item), let its = items.firstIndex(of: other) else { return false }
        return own < its
    }

    /// The metadata; nil for other versions, and for maps that do not lead to a lower range.
    private static func parse(_ bytes: [UInt8]) -> (channels: [Channel], isInBase: Bool)? {
        var at = 6
        func fraction(signed: Bool) -> Double? {
            guard at + 8 <= bytes.count else { return nil }
            defer { at += 8 }
            let numerator = bytes.bigEndian32(at: at), denominator = bytes.bigEndian32(at: at + 4)
            guard denominator != 0 else { return nil }
            return (signed ? Double(Int32(bitPattern: numerator)) : Double(numerator)) / Double(denominator)
        }
        guard bytes.count >= 62, bytes[0] == 0, bytes[1] == 0, bytes[2] == 0 else { return nil }
        let flags = bytes[5]
        // What a display can show beyond white, in powers of two. Ours can show nothing.
        guard let base = fraction(signed: false), let other = fraction(signed: false), base > other else { return nil }
        let weight = min(1, base / (base - other))
        var channels: [Channel] = []
        for _ in 0..<(flags & 0x80 != 0 ? 3 : 1) {
            guard let least = fraction(signed: true), let most = fraction(signed: true),
                let gamma = fraction(signed: false), let baseOffset = fraction(signed: true),
                let otherOffset = fraction(signed: true), gamma > 0, most >= least, abs(least) <= 64, abs(most) <= 64
            else { return nil }
            channels.append(
                Channel(
                    least: least * weight, most: most * weight, gamma: gamma, baseOffset: baseOffset,
                    otherOffset: otherOffset))
        }
        if channels.count == 1 { channels += [channels[0], channels[0]] }
        return (channels, flags & 0x40 != 0)
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

    /// The map with its samples.
    ///
    /// - Parameters:
    ///   - pixels: Red, green and blue, rows without gaps.
    ///   - size: The size of the map, usually a part of the picture's.
    package func applying(_ pixels: PixelStorage, size: PixelSize) -> GainSamples {
        func vector(_ value: (Channel) -> Double) -> SIMD4<Float> {
            SIMD4(Float(value(channels[0])), Float(value(channels[1])), Float(value(channels[2])), 0)
        }
        return GainSamples(
            pixels: pixels, size: size, isInBase: isInBase, tables: tables, before: vector(\.baseOffset),
            after: vector(\.otherOffset))
    }
}

extension [UInt8] {
    fileprivate func chunked(by count: Int) -> [[UInt8]] {
        stride(from: 0, to: self.count - count + 1, by: count).map { Array(self[$0..<($0 + count)]) }
    }
}

extension HEIFContainer {
    /// The code points of an item without an ICC profile.
    fileprivate func codePoints(of item: Item) -> (primaries: Int, transfer: Int)? {
        let colors = boxes(of: item).filter { $0.type == "colr" && $0.payload.count >= 10 }
        let kinds = colors.map { try? reader.fourCC(at: $0.payload.lowerBound) }
        guard kinds.allSatisfy({ $0 == "nclx" }), let at = colors.first?.payload.lowerBound,
            let primaries = try? reader.u16(at: at + 4), let transfer = try? reader.u16(at: at + 6)
        else { return nil }
        return (primaries, transfer)
    }

    /// The bytes of the file with another item as the primary one; nil without the box that says which it is.
    package func bytes(withPrimary item: Int) -> [UInt8]? {
        let top = ISOBox.children(reader, in: 0..<reader.count)
        guard let meta = top["meta"]?.fullPayload, let pitm = ISOBox.children(reader, in: meta)["pitm"]?.payload,
            pitm.count >= 6, let version = try? reader.u8(at: pitm.lowerBound),
            var bytes = try? reader.bytes(0..<reader.count)
        else { return nil }
        let width = version == 0 ? 2 : 4
        guard pitm.count >= 4 + width, item < 1 << (8 * width) else { return nil }
        for i in 0..<width {
            bytes[pitm.lowerBound + 4 + i] = UInt8(truncatingIfNeeded: item >> (8 * (width - 1 - i)))
        }
        return bytes
    }
}
