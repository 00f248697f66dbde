import VitrineCore

/// Camera and authoring data of an image.
///
/// ``Image/encoded(as:maximumBytes:isProgressive:metadata:)`` writes it only if asked to, as photos contain places and
/// serial numbers.
public struct ImageMetadata: Sendable, Hashable {
    /// An Exif block: a TIFF structure, without the `Exif\0\0` that JPEG puts in front.
    public var exif: [UInt8]?
    /// An XMP packet, UTF-8 XML.
    public var xmp: [UInt8]?

    /// Creates metadata.
    ///
    /// - Parameters:
    ///   - exif: An Exif block, from its byte-order mark on.
    ///   - xmp: An XMP packet.
    public init(exif: [UInt8]? = nil, xmp: [UInt8]? = nil) {
        self.exif = exif
        self.xmp = xmp
    }
}

extension ImageMetadata {
    /// Larger blocks are left out. 4 MB.
    static let maximumBlockBytes = 4 << 20

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
        let header = try ImageHeader.read(source, .standard, CancellationToken())
        self.init()
        if let range = header.exif, range.count <= ImageMetadata.maximumBlockBytes, ExifBlock(reader, range) != nil {
            exif = try? reader.bytes(range)
        } else if header.exif == nil, let block = header.convertedExif, ExifBlock(bytes: block) != nil {
            exif = block
        }
        if let range = header.xmp, range.count <= ImageMetadata.maximumBlockBytes { xmp = try? reader.bytes(range) }
    }
}

extension ImageMetadata {
    /// Returns a copy for pixels that were turned upright and changed.
    ///
    /// Exif: the orientation becomes 1, and the thumbnail, which shows the former image, is removed and its bytes
    /// zeroed. Nothing moves, so offsets inside maker notes stay valid. XMP: `tiff:Orientation` becomes 1; a packet
    /// with thumbnails is dropped. An Exif block that cannot be read is dropped.
    ///
    /// - Parameter removingLocation: Also removes the GPS directory of the Exif block, zeroing its bytes, and drops an
    ///   XMP packet that names a place. Maker notes stay and can contain a place in an unknown form.
    public func sanitizedForUprightPixels(removingLocation: Bool = false) -> ImageMetadata {
        sanitized(removingLocation: removingLocation, keepsOrientation: false)
    }

    /// Returns the metadata without embedded thumbnails, for pixels that are stored as those of the source.
    ///
    /// The orientation stays: it tells how these pixels are to be turned.
    @_spi(StoredPixels) public func sanitizedForStoredPixels() -> ImageMetadata {
        sanitized(removingLocation: false, keepsOrientation: true)
    }

    private func sanitized(removingLocation: Bool, keepsOrientation: Bool) -> ImageMetadata {
        ImageMetadata(
            exif: exif.flatMap {
                ExifEditor($0)?.sanitized(removingLocation: removingLocation, keepsOrientation: keepsOrientation)
            },
            xmp: xmp.flatMap {
                ImageMetadata.sanitized($0, removingLocation: removingLocation, keepsOrientation: keepsOrientation)
            })
    }

    private static func sanitized(
        _ xmp: [UInt8], removingLocation: Bool, keepsOrientation: Bool
    ) -> [UInt8]? {
        let thumbnails: [StaticString] = ["xmpGImg:image", "xmp:Thumbnails", "xap:Thumbnails"]
        let places: [StaticString] = [
            "exif:GPS", "photoshop:City", "photoshop:State", "photoshop:Country", "Iptc4xmpCore:Location",
            "Iptc4xmpCore:CountryCode", "LocationCreated", "LocationShown", "GPSLatitude",
        ]
        for word in thumbnails + (removingLocation ? places : []) where SVGPrologue.find(word, in: xmp, from: 0) != nil
        {
            return nil
        }
        guard !keepsOrientation else { return xmp }
        var copy = xmp
        var at = 0
        while let end = SVGPrologue.find("tiff:Orientation", in: copy, from: at) {
            // An attribute's quoted digit or an element's content.
            let digit = copy[end...].prefix(8).firstIndex { ($0 >= 0x31 && $0 <= 0x38) || $0 == UInt8(ascii: "<") }
            if let digit, copy[digit] != UInt8(ascii: "<") { copy[digit] = 0x31 }
            at = end
        }
        return copy
    }
}
