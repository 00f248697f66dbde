/// The directory of an icon or cursor file.
enum ICODirectory {
    /// One picture: where its bytes are, and what the directory says about it.
    struct Entry {
        var offset: Int
        var count: Int
        var size: PixelSize
        var bits: Int
    }

    /// All entries that lie within the file, in the order pages are numbered: largest, deepest, first stored.
    ///
    /// - Throws: ``ImageError/notAnImage(input:)`` for other files, ``ImageError/corrupt(input:reason:)`` when there is
    ///   no entry, ``ImageError/truncated(input:)`` when none lies within the file.
    static func entries(of source: ByteSource) throws(ImageError) -> [Entry] {
        let head = BMPReader(bytes: try source.bytes(at: 0, count: 6))
        guard head.count == 6 else { throw .truncated(input: source.name) }
        guard head.u16(0) == 0, head.u16(2) == 1 || head.u16(2) == 2 else { throw .notAnImage(input: source.name) }
        let isCursor = head.u16(2) == 2
        let count = Int(head.u16(4))
        guard count > 0 else { throw .corrupt(input: source.name, reason: "the icon has no pictures") }
        let table = BMPReader(bytes: try source.bytes(at: 6, count: 16 * count))
        var entries: [Entry] = []
        for i in 0..<(table.count / 16) {
            let at = 16 * i
            let (width, height) = (Int(table[at]), Int(table[at + 1]))
            let entry = Entry(
                offset: Int(table.u32(at + 12)), count: Int(table.u32(at + 8)),
                // 0 stands for 256.
                size: PixelSize(width: width == 0 ? 256 : width, height: height == 0 ? 256 : height),
                // A cursor keeps its hot spot there.
                bits: isCursor ? 0 : Int(table.u16(at + 6)))
            if entry.count > 0, entry.offset < source.count { entries.append(entry) }
        }
        guard !entries.isEmpty else { throw .truncated(input: source.name) }
        // Sorting is stable.
        return entries.sorted { a, b in
            a.size.pixelCount != b.size.pixelCount ? a.size.pixelCount > b.size.pixelCount : a.bits > b.bits
        }
    }
}
