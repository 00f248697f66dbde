/// Changes an Exif block in place: fields are overwritten or struck out, nothing moves.
struct ExifEditor {
    private var bytes: [UInt8]
    private let block: ExifBlock

    /// nil when `exif` is no readable block.
    init?(_ exif: [UInt8]) {
        let reader = ByteReader(ByteSource(bytes: exif, name: "Exif"))
        guard let block = ExifBlock(reader, 0..<exif.count) else { return nil }
        bytes = exif
        self.block = block
    }

    /// See ``ImageMetadata/sanitizedForUprightPixels(removingLocation:)``.
    func sanitized(removingLocation: Bool) -> [UInt8] {
        var copy = self
        copy.resetOrientation()
        copy.removeThumbnail()
        if removingLocation { copy.removeLocation() }
        return copy.bytes
    }

    private mutating func resetOrientation() {
        guard let field = block.primary[0x0112], field.type == 3, field.offset &+ 1 < bytes.count, field.offset >= 0
        else { return }
        bytes[field.offset] = block.structure.isBigEndian ? 0 : 1
        bytes[field.offset + 1] = block.structure.isBigEndian ? 1 : 0
    }

    private mutating func removeThumbnail() {
        let structure = block.structure
        guard block.primary.next != 0, let second = try? structure.directory(at: block.primary.next) else { return }
        if let offset = structure.integer(second[0x0201]), let count = structure.integer(second[0x0202]) {
            erase(offset, count)
        }
        if let strips = second[273], let sizes = second[279] {
            for i in 0..<min(strips.count, sizes.count, 1_024) {
                if let offset = structure.integer(strips, i), let count = structure.integer(sizes, i) {
                    erase(offset, count)
                }
            }
        }
        // Last the directory and the pointer to it, which stands behind the entries of the first.
        eraseDirectory(at: block.primary.next, second)
        guard let count = self.count(at: structure.firstDirectory) else { return }
        erase(structure.firstDirectory &+ 2 &+ 12 &* count, 4)
    }

    private mutating func removeLocation() {
        let structure = block.structure
        guard let field = block.primary.fields.firstIndex(where: { $0.tag == 0x8825 }),
            let offset = structure.integer(block.primary.fields[field])
        else { return }
        if let directory = try? structure.directory(at: offset) { eraseDirectory(at: offset, directory) }
        // The entry itself: those behind it move up by one, and the count says one less.
        let start = structure.firstDirectory
        guard let count = self.count(at: start), count > 0 else { return }
        let entry = start + 2 + 12 * field
        let end = start + 2 + 12 * count + 4  // with the pointer to the next directory
        guard entry >= 0, entry + 12 <= end, end <= bytes.count else { return }
        bytes.replaceSubrange(entry..<(end - 12), with: Array(bytes[(entry + 12)..<end]))
        erase(end - 12, 12)
        let (high, low) = (UInt8(truncatingIfNeeded: (count - 1) >> 8), UInt8(truncatingIfNeeded: count - 1))
        bytes[start] = structure.isBigEndian ? high : low
        bytes[start + 1] = structure.isBigEndian ? low : high
    }

    /// Zeroes a directory, and the values its fields keep elsewhere.
    private mutating func eraseDirectory(at offset: Int, _ directory: TIFFStructure.Directory) {
        for field in directory.fields {
            if let range = block.structure.bytes(field), range.count > 4 { erase(range.lowerBound, range.count) }
        }
        erase(offset, 2 &+ 12 &* directory.fields.count &+ 4)
    }

    private mutating func erase(_ offset: Int, _ count: Int) {
        // Never the header: a hostile block may point at itself.
        guard offset >= 8, count > 0, offset < bytes.count else { return }
        for i in offset..<min(bytes.count, offset + min(count, bytes.count)) { bytes[i] = 0 }
    }

    private func count(at offset: Int) -> Int? {
        try? block.structure.reader.u16(at: offset, bigEndian: block.structure.isBigEndian)
    }
}
