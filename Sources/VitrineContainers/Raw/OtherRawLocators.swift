import VitrineImageCore

/// Finds the JPEG of Fujifilm's raw files, whose place the header names. Its own Exif block has the orientation.
///
/// Source: the layout that ExifTool (FujiFilm, ProcessRAF) and LibRaw (parse_fuji) read.
package enum FujifilmRawLocator: PictureLocating {
    package static let formats: [ImageFormat] = [.raf]
    package static let isRaw = true
    package static let tellsEarly = true

    package static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        reader.matches("FUJIFILMCCD-RAW ", at: 0) ? .raf : nil
    }

    package static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        let (offset, count) = (try reader.u32(at: 84), try reader.u32(at: 88))
        guard let picture = RawPicture.jpeg(reader, at: offset, count: count) else { return EmbeddedPictures() }
        return EmbeddedPictures(pictures: [picture])
    }
}

/// Finds the images of Sigma's raw files: sections that a directory at the end of the file lists.
///
/// Source: the X3F description by J. Hoyt (x3f_specification) and ExifTool (SigmaRaw).
package enum SigmaRawLocator: PictureLocating {
    package static let formats: [ImageFormat] = [.x3f]
    package static let isRaw = true

    /// Sections of one file looked at.
    private static let maximumSections = 64

    package static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        reader.matches("FOVb", at: 0) ? .x3f : nil
    }

    package static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        func u32(_ offset: Int) throws(ImageError) -> Int { try reader.u32(at: offset, bigEndian: false) }
        guard reader.count >= 64 else { throw .truncated(input: reader.name) }
        let directory = try u32(reader.count &- 4)
        guard reader.matches("SECd", at: directory) else { throw reader.corrupt("no directory of sections") }
        var found = EmbeddedPictures()
        // Quattro files have a header of another layout.
        found.orientation = RawPicture.orientation(degrees: try u32(try u32(4) >> 16 >= 4 ? 48 : 36))
        var bitmaps: [EmbeddedPicture] = []
        for index in 0..<min(try u32(directory &+ 8), maximumSections) {
            let entry = directory &+ 12 &+ 12 &* index
            guard let offset = try? u32(entry), let count = try? u32(entry &+ 4),
                let type = try? reader.fourCC(at: entry &+ 8)
            else { break }
            guard type == "IMAG" || type == "IMA2", count > 28, reader.matches("SECi", at: offset),
                let kind = try? u32(offset &+ 8), kind == 2, let coding = try? u32(offset &+ 12)
            else { continue }
            if coding == 18 {
                if let picture = RawPicture.jpeg(reader, at: offset &+ 28, count: count &- 28) {
                    found.pictures.append(picture)
                }
            } else if coding == 3, let width = try? u32(offset &+ 16), let height = try? u32(offset &+ 20),
                let stride = try? u32(offset &+ 24)
            {
                let size = PixelSize(width: width, height: height)
                if let picture = RawPicture.bitmap(
                    reader, at: offset &+ 28, size: size, stride: stride == 0 ? 3 &* width : stride)
                {
                    bitmaps.append(picture)
                }
            }
        }
        if found.pictures.isEmpty { found.pictures = bitmaps }
        return found
    }
}

/// Finds the preview of Minolta's raw files: a TIFF structure in one of their blocks, with the preview in the maker's
/// note.
///
/// Source: the layout that ExifTool (MinoltaRaw) and LibRaw (parse_minolta) read.
package enum MinoltaRawLocator: PictureLocating {
    package static let formats: [ImageFormat] = [.mrw]
    package static let isRaw = true

    private static let maximumBlocks = 64

    package static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        reader.matches("\0MRM", at: 0) || reader.matches("\0MRI", at: 0) ? .mrw : nil
    }

    package static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        let isBigEndian = reader.matches("\0MRM", at: 0)
        var offset = 8
        for _ in 0..<maximumBlocks {
            guard let length = try? reader.u32(at: offset &+ 4, bigEndian: isBigEndian) else { break }
            if reader.matches("\0TTW", at: offset) {
                let block = offset &+ 8
                // Previews lie behind the block, and their offsets count from its beginning.
                var walk = RawDirectoryWalk(try TIFFStructure(reader, block..<max(block, reader.count)))
                try walk.run()
                return EmbeddedPictures(pictures: walk.found, orientation: walk.orientation)
            }
            offset = offset &+ 8 &+ length
        }
        throw reader.corrupt("no block with the TIFF structure")
    }
}
