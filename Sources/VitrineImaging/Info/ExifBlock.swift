/// What a header needs of an Exif block: orientation and the thumbnail of its second directory.
///
/// Source: CIPA DC-008 (Exif 2.32) §4.5.8, §4.6.4. Damage makes the block say less; it is never an error.
package struct ExifBlock {
    package let structure: TIFFStructure
    package let primary: TIFFStructure.Directory

    /// nil when `range` holds no readable TIFF structure.
    package init?(_ reader: ByteReader, _ range: Range<Int>) {
        guard let structure = try? TIFFStructure(reader, range),
            let primary = try? structure.directory(at: structure.firstDirectory)
        else { return nil }
        self.structure = structure
        self.primary = primary
    }

    /// The orientation, when it has one of its eight values.
    package var orientation: Orientation? {
        structure.integer(primary[0x0112]).flatMap(Orientation.init(rawValue:))
    }

    /// The JPEG thumbnail, when it lies inside the input and begins like a JPEG file.
    package var preview: ImageInfo.EmbeddedPreview? {
        guard primary.next != 0, let second = try? structure.directory(at: primary.next),
            let offset = structure.integer(second[0x0201]), let count = structure.integer(second[0x0202]), count > 4,
            let start = try? structure.position(offset, 0),
            let range = try? structure.reader.range(at: start, count: count)
        else { return nil }
        return JPEGHeaderReader.preview(structure.reader, range)
    }
}
