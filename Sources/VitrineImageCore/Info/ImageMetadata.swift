import VitrineCore

/// Camera and authoring data of an image.
///
/// ``PixelImage/encoded(as:maximumBytes:isProgressive:metadata:)`` writes it only if asked to, as photos contain places and
/// serial numbers.
public struct ImageMetadata: Sendable, Hashable {
    /// Larger blocks are left out. 4 MB.
    package static let maximumBlockBytes = 4 << 20

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
        for word in thumbnails + (removingLocation ? places : []) where ByteText.find(word, in: xmp, from: 0) != nil
        {
            return nil
        }
        guard !keepsOrientation else { return xmp }
        var copy = xmp
        var at = 0
        while let end = ByteText.find("tiff:Orientation", in: copy, from: at) {
            // An attribute's quoted digit or an element's content.
            let digit = copy[end...].prefix(8).firstIndex { ($0 >= 0x31 && $0 <= 0x38) || $0 == UInt8(ascii: "<") }
            if let digit, copy[digit] != UInt8(ascii: "<") { copy[digit] = 0x31 }
            at = end
        }
        return copy
    }
}

/// Reads and writes the texts that stand in the files of a format beside the pixels, by keyword.
package protocol TextStoring: Sendable {
    /// The texts of a file; the first one of a repeated keyword. Damaged ones are left out, and a file of another
    /// format has none.
    ///
    /// - Throws: ``ImageError/unreadable(input:reason:)``.
    static func entries(of source: ByteSource) throws(ImageError) -> [String: String]

    /// The file with further texts. Texts that the format cannot store are left out.
    ///
    /// - Parameter file: A whole file; one of another format is returned as it is.
    static func adding(_ entries: [(keyword: String, text: String)], to file: [UInt8]) -> [UInt8]
}
