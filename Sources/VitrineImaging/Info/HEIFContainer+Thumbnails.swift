extension HEIFContainer {
    /// Whether the primary item has thumbnails, and all of them are turned, mirrored and cut by the same properties as
    /// it is. Decoders apply an item's own properties only; a thumbnail that lacks them shows another picture.
    ///
    /// Source: ISO/IEC 23008-12 §6.5.9 to §6.5.12 (clap, irot, imir), ISO/IEC 14496-12 §12.1.4 (clap).
    package var hasThumbnailTurnedAlike: Bool {
        guard let primary, let picture = items[primary] else { return false }
        let thumbnails = references.filter { $0.type == "thmb" && $0.to.contains(primary) }
        return !thumbnails.isEmpty
            && thumbnails.allSatisfy { reference in
                guard let item = items[reference.from] else { return false }
                return isTurned(item, like: picture)
            }
    }

    private func isTurned(_ item: Item, like other: Item) -> Bool {
        let (own, its) = (transformations(of: item), transformations(of: other))
        return own.count == its.count
            && zip(own, its).allSatisfy { one, two in
                // The cut is in pixels of the item, so it differs between sizes.
                one.type == two.type && (one.type == "clap" || firstByte(one) == firstByte(two))
            }
    }

    private func transformations(of item: Item) -> [ISOBox] {
        boxes(of: item).filter { ["irot", "imir", "clap"].contains($0.type) }
    }

    private func firstByte(_ box: ISOBox) -> Int? {
        box.payload.isEmpty ? nil : try? reader.u8(at: box.payload.lowerBound)
    }
}
