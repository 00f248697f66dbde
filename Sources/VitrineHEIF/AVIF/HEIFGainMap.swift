import VitrineImageCore

/// The gain map of an item `tmap`, whose base is the primary picture.
///
/// Source: ISO/IEC 23008-12 amendment 1 (`tmap`), AVIF 1.2 §4.2.
package struct HEIFGainMap {
    /// The item of the map.
    package let item: Int
    package let map: GainMap

    /// Reads the map of the primary picture; nil unless it leads from a higher range to a lower one.
    ///
    /// The file has to name the brand `tmap`, and to prefer the derived picture to the base in a group `altr`. Maps of
    /// later versions are ignored, and those to primaries that are neither the base's nor those of sRGB, and of bases
    /// whose code points are not those of PQ or HLG.
    package init?(_ container: HEIFContainer) {
        let reader = container.reader
        let top = ISOBox.children(reader, in: 0..<reader.count)
        guard let primary = container.primary, let base = container.items[primary].flatMap(container.codePoints),
            HighRangeColors.Transfer(rawValue: base.transfer) != nil, let brands = top["ftyp"]?.payload,
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
                Self.prefers(derived.from, to: primary, in: $0, of: reader)
            }),
            let bytes = try? reader.bytes(place), bytes.first == 0, var map = GainMap(Array(bytes.dropFirst()))
        else { return nil }
        item = derived.to[1]
        let other = container.codePoints(of: tmap)?.primaries ?? base.primaries
        guard map.isInBase || other == base.primaries || [0, 1, 2].contains(other) else { return nil }
        map.isInBase = map.isInBase || other == base.primaries
        self.map = map
    }

    private static func prefers(_ item: Int, to other: Int, in group: ISOBox, of reader: ByteReader) -> Bool {
        guard group.type == "altr", let payload = group.fullPayload,
            let count = try? reader.u32(at: payload.lowerBound + 4), count <= (payload.count - 8) / 4
        else { return false }
        let items = (0..<count).compactMap { try? reader.u32(at: payload.lowerBound + 8 + 4 * $0) }
        guard let own = items.firstIndex(of: item), let its = items.firstIndex(of: other) else { return false }
        return own < its
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
