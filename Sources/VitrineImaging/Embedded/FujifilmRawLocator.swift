extension ImageFormat {
    /// Raw files of Fujifilm cameras.
    package static let raf = ImageFormat("raf", mediaTypes: ["image/x-fuji-raf"], fileExtensions: ["raf"])
}

/// Finds the JPEG of Fujifilm's raw files, whose place the header names. Its own Exif block has the orientation.
///
/// Source: the layout that ExifTool (FujiFilm.pm, ProcessRAF) and LibRaw (parse_fuji) read.
enum FujifilmRawLocator: PictureLocating {
    static let formats: [ImageFormat] = [.raf]

    static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        reader.matches("FUJIFILMCCD-RAW ", at: 0) ? .raf : nil
    }

    static func pictures(
        _ reader: ByteReader, _ format: ImageFormat, _ limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        let (offset, count) = (try reader.u32(at: 84), try reader.u32(at: 88))
        guard let picture = RawPicture.jpeg(reader, at: offset, count: count) else { return EmbeddedPictures() }
        return EmbeddedPictures(pictures: [picture])
    }
}

/// Candidates for pictures of raw files.
enum RawPicture {
    /// A JPEG file at this place; nil when there is none, or when it holds sensor data (lossless or of 12 bits).
    static func jpeg(_ reader: ByteReader, at offset: Int, count: Int) -> EmbeddedPicture? {
        guard count > 4, let range = try? reader.range(at: offset, count: count),
            let size = JPEGHeaderReader.pictureSize(reader, range)
        else { return nil }
        return EmbeddedPicture(content: .range(range), size: size)
    }
}
