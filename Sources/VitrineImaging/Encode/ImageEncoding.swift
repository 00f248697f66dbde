/// Camera and authoring data that can travel with a picture.
///
/// Nothing of it is written unless it is asked for: photos carry places and serial numbers.
public struct ImageMetadata: Sendable, Hashable {
    /// An Exif block: a TIFF structure, without the `Exif\0\0` that JPEG puts in front.
    public var exif: [UInt8]?
    /// An XMP packet, UTF-8 XML.
    public var xmp: [UInt8]?

    public init(exif: [UInt8]? = nil, xmp: [UInt8]? = nil) {
        self.exif = exif
        self.xmp = xmp
    }
}

/// Choices an encoder may have, all with a default.
public struct EncodeOptions: Sendable, Hashable {
    /// JPEG: several scans, from coarse to fine. PNG: Adam7. Others ignore it. Default false.
    public var isProgressive = false
    /// What to write beside the pixels. Default nil: nothing, all metadata is stripped.
    public var metadata: ImageMetadata?
    /// PNG: red, green, blue and alpha of 8 bits each, also where fewer would do; for readers that expect no others.
    /// Others ignore it. Default false.
    package var writesAllChannels = false

    public init(isProgressive: Bool = false, metadata: ImageMetadata? = nil) {
        self.isProgressive = isProgressive
        self.metadata = metadata
    }
}

/// Turns pixels into the bytes of a file. Synchronous and blocking: the library calls it off the cooperative pool.
public protocol ImageEncoding: Sendable {
    /// The format it writes.
    var format: ImageFormat { get }

    /// The whole file.
    ///
    /// - Parameters:
    ///   - image: Any size and alpha. A format without alpha gets it composed over white.
    ///   - quality: From 0 (smallest) to 1 (best), already clamped. Lossless formats ignore it.
    ///   - options: Scans and metadata.
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``.
    func encode(_ image: Image, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8]
}
