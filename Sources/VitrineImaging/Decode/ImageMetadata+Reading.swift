import VitrineCore

extension ImageMetadata {
    /// Reads the Exif block and the XMP packet of an input, unchanged; empty if it has none. Blocks.
    ///
    /// JPEG, PNG, WebP, HEIC, AVIF and JPEG XL have both, TIFF and GIF only XMP. Blocks above 4 MB, compressed ones,
    /// the extension packets of JPEG's XMP, and HEIF items in several pieces are left out.
    ///
    /// - Throws: As ``ImageInfo/init(of:limits:cancellation:)``.
    public init(of input: ImageInput) throws(ImageError) {
        try self.init(reading: ByteSource(input))
    }

    /// Reads the metadata of an opened input; see ``init(of:)``.
    package init(reading source: ByteSource) throws(ImageError) {
        let reader = ByteReader(source)
        let header = try ImageDecoder().header(of: source)
        self.init()
        if let range = header.exif, range.count <= ImageMetadata.maximumBlockBytes, ExifBlock(reader, range) != nil {
            exif = try? reader.bytes(range)
        } else if header.exif == nil, let block = header.convertedExif, ExifBlock(bytes: block) != nil {
            exif = block
        }
        if let range = header.xmp, range.count <= ImageMetadata.maximumBlockBytes { xmp = try? reader.bytes(range) }
    }
}
