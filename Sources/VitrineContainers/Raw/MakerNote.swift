import VitrineImageCore

/// The previews that makers put into their part of the Exif block.
///
/// Source: the headers and tags that ExifTool documents (MakerNotes, Nikon, Olympus, Pentax, Sony, Samsung, Minolta).
/// Offsets count from the beginning of the note or of the TIFF structure around it, and editors move notes: both
/// places are tried, and only a JPEG file counts.
struct MakerNote {
    private let outer: TIFFStructure
    private let note: Range<Int>
    private let maker: String

    init(_ outer: TIFFStructure, _ note: Range<Int>, maker: String) {
        (self.outer, self.note, self.maker) = (outer, note, maker.uppercased())
    }

    /// How the note begins.
    private struct Layout {
        /// The directory of the note, from the beginning of the note on.
        var directory: Int
        /// The origin of the offsets of its fields, from the beginning of the input on.
        var base: Int
        var isBigEndian: Bool
    }

    func pictures() -> [EmbeddedPicture] {
        guard note.count > 16 else { return [] }
        if outer.reader.matches("Nikon\0\u{2}", at: note.lowerBound) { return nikon() }
        guard let layout, layout.base <= note.lowerBound else { return [] }
        let structure = TIFFStructure(
            outer.reader, layout.base..<outer.range.upperBound, isBigEndian: layout.isBigEndian,
            firstDirectory: note.lowerBound &+ layout.directory &- layout.base)
        guard let directory = try? structure.directory(at: structure.firstDirectory) else { return [] }
        return pictures(structure, directory)
    }

    private var layout: Layout? {
        let (reader, start) = (outer.reader, note.lowerBound)
        func isBigEndian(at offset: Int) -> Bool {
            reader.matches("MM", at: start &+ offset)
                || (!reader.matches("II", at: start &+ offset) && outer.isBigEndian)
        }
        if reader.matches("OLYMPUS\0", at: start) {
            return Layout(directory: 12, base: start, isBigEndian: isBigEndian(at: 8))
        }
        if reader.matches("OM SYSTEM\0", at: start) {
            return Layout(directory: 16, base: start, isBigEndian: isBigEndian(at: 12))
        }
        if reader.matches("PENTAX \0", at: start) {
            return Layout(directory: 10, base: start, isBigEndian: isBigEndian(at: 8))
        }
        var directory: Int?
        if reader.matches("OLYMP\0", at: start) || reader.matches("EPSON\0", at: start) { directory = 8 }
        if reader.matches("SONY DSC ", at: start) || reader.matches("SONY CAM ", at: start) { directory = 12 }
        if directory == nil, ["SONY", "SAMSUNG", "MINOLTA", "KONICA"].contains(where: maker.hasPrefix) { directory = 0 }
        if reader.matches("AOC\0", at: start) {
            return Layout(directory: 6, base: outer.range.lowerBound, isBigEndian: isBigEndian(at: 4))
        }
        return directory.map {
            Layout(directory: $0, base: outer.range.lowerBound, isBigEndian: outer.isBigEndian)
        }
    }

    /// A TIFF structure of its own behind ten bytes, whose directory 0x0011 has the preview.
    private func nikon() -> [EmbeddedPicture] {
        let start = note.lowerBound &+ 10
        guard start < outer.range.upperBound,
            let structure = try? TIFFStructure(outer.reader, start..<outer.range.upperBound),
            let directory = try? structure.directory(at: structure.firstDirectory)
        else { return [] }
        return subdirectory(structure, field: directory[0x0011], offset: 0x0201, count: 0x0202)
    }

    private func pictures(
        _ structure: TIFFStructure, _ directory: TIFFStructure.Directory
    ) -> [EmbeddedPicture] {
        var pictures: [EmbeddedPicture] = []
        // Offset and length: Minolta and Olympus, later Olympus, Pentax.
        for (offset, count) in [(0x0088, 0x0089), (0x1036, 0x1037), (0x0004, 0x0003)] {
            if let picture = picture(structure, directory: directory, offset: offset, count: count) {
                pictures.append(picture)
            }
        }
        // The file as a value: Minolta, Olympus, and Sony behind 32 bytes.
        for tag in [0x0081, 0x0100, 0x2001] {
            guard let range = structure.bytes(directory[tag]), range.count > 36 else { continue }
            let picture =
                jpeg(at: range.lowerBound, count: range.count)
                ?? jpeg(at: range.lowerBound + 32, count: range.count - 32)
            if let picture { pictures.append(picture) }
        }
        pictures += subdirectory(structure, field: directory[0x2020], offset: 0x0101, count: 0x0102)  // CameraSettings of Olympus
        pictures += subdirectory(structure, field: directory[0x0035], offset: 0x0201, count: 0x0202)  // PreviewIFD of Samsung
        return pictures
    }

    /// The preview of the directory that a field points at, or that stands in the field itself.
    private func subdirectory(
        _ structure: TIFFStructure, field: TIFFStructure.Field?, offset: Int, count: Int
    ) -> [EmbeddedPicture] {
        guard let field else { return [] }
        let at = field.type == 7 ? field.offset : structure.integer(field)
        guard let at, let directory = try? structure.directory(at: at),
            let picture = picture(structure, directory: directory, offset: offset, count: count)
        else { return [] }
        return [picture]
    }

    private func picture(
        _ structure: TIFFStructure, directory: TIFFStructure.Directory, offset: Int, count: Int
    ) -> EmbeddedPicture? {
        guard let offset = structure.integer(directory[offset]), let count = structure.integer(directory[count]) else {
            return nil
        }
        for base in [structure.range.lowerBound, outer.range.lowerBound, note.lowerBound] {
            if let picture = jpeg(at: base &+ offset, count: count) { return picture }
        }
        return nil
    }

    private func jpeg(at offset: Int, count: Int) -> EmbeddedPicture? {
        RawPicture.jpeg(outer.reader, at: offset, count: count)
            ?? RawPicture.mendedJPEG(outer.reader, at: offset, count: count)
    }
}
