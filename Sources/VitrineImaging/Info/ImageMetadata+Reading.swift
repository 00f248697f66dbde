extension ImageMetadata {
    /// Larger blocks are left out. 4 MB.
    static let maximumBlockBytes = 4 << 20

    /// The Exif block and the XMP packet of an input, as they stand in it; empty when it has none.
    ///
    /// JPEG, PNG, WebP, HEIC, AVIF and JPEG XL have both, TIFF and GIF XMP alone. Blocks above 4 MB, compressed ones,
    /// the extension packets of JPEG's XMP, and HEIF items in several pieces are left out.
    ///
    /// - Throws: What ``ImageInfo/init(reading:limits:)`` throws.
    public init(reading source: ByteSource) throws(ImageError) {
        let reader = ByteReader(source)
        let header = try ImageHeader(reader, .standard)
        self.init()
        if let range = header.exif, range.count <= ImageMetadata.maximumBlockBytes, ExifBlock(reader, range) != nil {
            exif = try? reader.bytes(range)
        }
        if let range = header.xmp, range.count <= ImageMetadata.maximumBlockBytes { xmp = try? reader.bytes(range) }
    }
}
