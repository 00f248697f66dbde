/// Large previews that cameras put behind the picture and list in an MPF segment.
///
/// Source: CIPA DC-007-2009 §5.2.3; offsets count from the byte-order mark of the segment. Views of a stereo pair, of a
/// panorama, and gain maps are pictures of their own right, not previews, and are left out.
enum MultiPictureIndex {
    /// Entries looked at; real files have 2 to 4.
    private static let maximumEntries = 32

    static func previews(_ reader: ByteReader, _ index: Range<Int>) -> [ImageInfo.EmbeddedPreview] {
        guard let structure = try? TIFFStructure(reader, index),
            let directory = try? structure.directory(at: structure.firstDirectory),
            let entries = structure.bytes(directory[0xB002])
        else { return [] }
        var previews: [ImageInfo.EmbeddedPreview] = []
        for i in 1..<max(2, min(entries.count / 16, maximumEntries)) {
            let at = entries.lowerBound &+ 16 &* i
            guard at &+ 16 <= entries.upperBound,
                let attribute = try? reader.u32(at: at, bigEndian: structure.isBigEndian),
                let count = try? reader.u32(at: at &+ 4, bigEndian: structure.isBigEndian),
                let offset = try? reader.u32(at: at &+ 8, bigEndian: structure.isBigEndian)
            else { break }
            let type = attribute & 0xFF_FFFF
            guard type == 0x01_0001 || type == 0x01_0002,
                let range = try? reader.range(at: index.lowerBound &+ offset, count: count),
                let preview = JPEGHeaderReader.preview(reader, range)
            else { continue }
            previews.append(preview)
        }
        return previews
    }
}
