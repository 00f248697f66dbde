import VitrineImageCore

/// Finds the previews of Canon's raw files in ISO media boxes: `THMB` and `PRVW`, and the JPEG of the first track.
///
/// Source: ISO/IEC 14496-12 for boxes and sample tables; L. Lalou's description of CR3 (canon_cr3) for Canon's boxes.
package enum CanonRaw3Locator: PictureLocating {
    package static let formats: [ImageFormat] = [.cr3]
    package static let isRaw = true
    package static let tellsEarly = true

    package static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        reader.matches("ftypcrx ", at: 4) ? .cr3 : nil
    }

    package static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        let boxes = ISOBox.children(reader, in: 0..<reader.count)
        var found = EmbeddedPictures()
        if let movie = boxes["moov"] {
            let children = ISOBox.children(reader, in: movie.payload)
            if let track = children["trak"], let picture = sample(reader, track) { found.pictures.append(picture) }
            for box in children
            where box.type == "uuid" && isUUID(reader, box: box, first: 0x85C0_B687, second: 0x820F_11E0) {
                let inner = ISOBox.children(reader, in: behindUUID(box, 16))
                found.orientation = inner["CMT1"].flatMap { orientation(reader, $0.payload) }
                if let thumbnail = inner["THMB"], let picture = blob(reader, thumbnail.payload, countAt: 8) {
                    found.pictures.append(picture)
                }
            }
        }
        for box in boxes where box.type == "uuid" && isUUID(reader, box: box, first: 0xEAF4_2B5E, second: 0x1C98_4B88) {
            let inner = ISOBox.children(reader, in: behindUUID(box, 24))
            if let preview = inner["PRVW"], let picture = blob(reader, preview.payload, countAt: 12) {
                found.pictures.append(picture)
            }
        }
        return found
    }

    /// Whether the box has the identifier that begins with these two words.
    private static func isUUID(_ reader: ByteReader, box: ISOBox, first: Int, second: Int) -> Bool {
        let at = box.payload.lowerBound
        return box.payload.count > 24 && (try? reader.u32(at: at)) == first
            && (try? reader.u32(at: at &+ 4)) == second
    }

    private static func behindUUID(_ box: ISOBox, _ count: Int) -> Range<Int> {
        min(box.payload.lowerBound &+ count, box.payload.upperBound)..<box.payload.upperBound
    }

    /// A JPEG file that begins 16 bytes into the box; its length stands before it.
    private static func blob(_ reader: ByteReader, _ payload: Range<Int>, countAt: Int) -> EmbeddedPicture? {
        guard let count = try? reader.u32(at: payload.lowerBound &+ countAt), count <= payload.count &- 16 else {
            return nil
        }
        return RawPicture.jpeg(reader, at: payload.lowerBound &+ 16, count: count)
    }

    private static func orientation(_ reader: ByteReader, _ payload: Range<Int>) -> Orientation? {
        ExifBlock(reader, payload)?.orientation
    }

    /// The first sample of a track.
    private static func sample(_ reader: ByteReader, _ track: ISOBox) -> EmbeddedPicture? {
        var box = track
        for type in ["mdia", "minf", "stbl"] as [FourCC] {
            guard let next = ISOBox.children(reader, in: box.payload)[type] else { return nil }
            box = next
        }
        let tables = ISOBox.children(reader, in: box.payload)
        guard let sizes = tables["stsz"]?.payload.lowerBound, let common = try? reader.u32(at: sizes &+ 4),
            let count = common > 0 ? common : try? reader.u32(at: sizes &+ 12)
        else { return nil }
        let offset: Int?
        if let table = tables["co64"]?.payload.lowerBound {
            offset = try? reader.u64(at: table &+ 8)
        } else {
            offset = tables["stco"].flatMap { try? reader.u32(at: $0.payload.lowerBound &+ 8) }
        }
        return offset.flatMap { RawPicture.jpeg(reader, at: $0, count: count) }
    }
}

/// Finds the previews of Canon's first raw files: heaps, each with its directory at the end.
///
/// Source: the CIFF specification 1.0 (Canon, 1997) and ExifTool (CanonRaw).
package enum CanonHeapLocator: PictureLocating {
    package static let formats: [ImageFormat] = [.crw]
    package static let isRaw = true

    private static let maximumHeaps = 64
    private static let maximumEntries = 512
    private static let maximumDepth = 4

    package static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        reader.matches("HEAPCCDR", at: 6) ? .crw : nil
    }

    package static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        let isBigEndian = reader.matches("MM", at: 0)
        func u16(_ offset: Int) throws(ImageError) -> Int { try reader.u16(at: offset, bigEndian: isBigEndian) }
        func u32(_ offset: Int) throws(ImageError) -> Int { try reader.u32(at: offset, bigEndian: isBigEndian) }
        let start = try u32(2)
        guard start < reader.count else { throw .truncated(input: reader.name) }
        var found = EmbeddedPictures()
        var pending = [(heap: start..<reader.count, depth: 0)]
        var count = 0
        while let (heap, depth) = pending.popLast(), count < maximumHeaps {
            count += 1
            guard heap.count >= 6, let relative = try? u32(heap.upperBound &- 4), relative <= heap.count &- 6,
                let entries = try? u16(heap.lowerBound &+ relative)
            else { continue }
            for index in 0..<min(entries, maximumEntries) {
                let entry = heap.lowerBound &+ relative &+ 2 &+ 10 &* index
                guard let tag = try? u16(entry), let size = try? u32(entry &+ 2), let offset = try? u32(entry &+ 6)
                else { break }
                // A value of the heap, not one inside the entry.
                guard tag & 0xC000 == 0, offset <= heap.count, size <= heap.count &- offset else { continue }
                let value = (heap.lowerBound &+ offset)..<(heap.lowerBound &+ offset &+ size)
                switch tag & 0x3FFF {
                case 0x2007, 0x2008:
                    if let picture = RawPicture.jpeg(reader, at: value.lowerBound, count: value.count) {
                        found.pictures.append(picture)
                    }
                case 0x1810 where size >= 16:
                    let degrees = (try? u32(value.lowerBound &+ 12)).map { Int(Int32(truncatingIfNeeded: $0)) }
                    found.orientation = degrees.flatMap(RawPicture.orientation) ?? found.orientation
                default:
                    if [0x2800, 0x3000].contains(tag & 0x3800), depth < maximumDepth {
                        pending.append((value, depth + 1))
                    }
                }
            }
        }
        return found
    }
}
