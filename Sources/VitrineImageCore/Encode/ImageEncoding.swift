/// Options of an encoder.
package struct EncodeOptions: Sendable, Hashable {
    /// Whether the file can be shown before it is complete: several scans in JPEG, Adam7 in PNG. Other formats ignore
    /// it. Default false.
    package var isProgressive = false
    /// Metadata to write. Default nil: none, all metadata is stripped.
    package var metadata: ImageMetadata?
    /// PNG: red, green, blue and alpha of 8 bits each, also where fewer would do; for readers that expect no others.
    /// Others ignore it. Default false.
    package var writesAllChannels = false

    /// Creates options.
    ///
    /// - Parameters:
    ///   - isProgressive: Whether the file can be shown before it is complete.
    ///   - metadata: Metadata to write.
    package init(isProgressive: Bool = false, metadata: ImageMetadata? = nil) {
        self.isProgressive = isProgressive
        self.metadata = metadata
    }
}

/// Turns pixels into the bytes of a file. Synchronous and blocking: the library calls it off the cooperative pool.
package protocol ImageEncoding: Sendable {
    /// The format it writes.
    var format: ImageFormat { get }

    /// The whole file.
    ///
    /// - Parameters:
    ///   - image: Any size and alpha. A format without alpha gets it composed over white.
    ///   - quality: From 0 (smallest) to 1 (best), already clamped. Lossless formats ignore it.
    ///   - options: Scans and metadata.
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``.
    func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8]
}

#if SystemCodecs
/// The common input of the C encoders of WebP and AVIF: pixels with straight alpha, and metadata. Copies the file from
/// the library's memory.
package struct EncoderInput {
    /// Where everything lies during one call.
    package struct Addresses {
        /// Four bytes a pixel, in rows of ``bytesPerRow``.
        package let rgba: UnsafePointer<UInt8>?
        package let bytesPerRow: Int
        /// nil when there is none.
        package let exif: UnsafePointer<UInt8>?
        package let exifCount: Int
        package let xmp: UnsafePointer<UInt8>?
        package let xmpCount: Int
    }

    private let format: ImageFormat
    private let pixels: PixelImage
    private let exif: [UInt8]
    private let xmp: [UInt8]

    /// - Parameter maximumSide: The longest side that the format can store, in pixels.
    /// - Throws: ``ImageError/encodingFailed(format:reason:)`` for a longer side.
    package init(
        _ image: PixelImage, as format: ImageFormat, maximumSide: Int, options: EncodeOptions
    ) throws(ImageError) {
        guard image.size.longestSide <= maximumSide else {
            throw .encodingFailed(format: format, reason: "a side is longer than \(maximumSide) pixels")
        }
        self.format = format
        pixels = image.alpha == .premultiplied ? image.converted(to: .straight) : image
        exif = options.metadata?.exif ?? []
        xmp = options.metadata?.xmp ?? []
    }

    /// The file that a library made.
    ///
    /// - Parameters:
    ///   - release: Gives the library its memory back.
    ///   - encode: Returns the file and stores its length, or returns nil and stores a reason (static text).
    /// - Throws: ``ImageError/encodingFailed(format:reason:)`` when there is no file.
    package func file(
        release: (UnsafeMutablePointer<UInt8>) -> Void,
        encode: (Addresses, inout Int, inout UnsafePointer<CChar>?) -> UnsafeMutablePointer<UInt8>?
    ) throws(ImageError) -> [UInt8] {
        var count = 0
        var reason: UnsafePointer<CChar>?
        let bytes = pixels.withUnsafeBytes { base in
            exif.withUnsafeBufferPointer { exif in
                xmp.withUnsafeBufferPointer { xmp in
                    let addresses = Addresses(
                        rgba: base.bindMemory(to: UInt8.self).baseAddress, bytesPerRow: pixels.bytesPerRow,
                        exif: exif.isEmpty ? nil : exif.baseAddress, exifCount: exif.count,
                        xmp: xmp.isEmpty ? nil : xmp.baseAddress, xmpCount: xmp.count)
                    return encode(addresses, &count, &reason)
                }
            }
        }
        guard let bytes else {
            throw .encodingFailed(
                format: format, reason: reason.map { String(cString: $0) } ?? "the library gave no reason")
        }
        defer { release(bytes) }
        return [UInt8](UnsafeBufferPointer(start: bytes, count: count))
    }
}
#endif
