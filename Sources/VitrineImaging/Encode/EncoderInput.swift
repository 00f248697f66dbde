#if SystemCodecs
/// What the C encoders of WebP and AVIF are given alike, and the way back: pixels with straight alpha, metadata, and a
/// file in the library's memory.
struct EncoderInput {
    /// Where everything lies during one call.
    struct Addresses {
        /// Four bytes a pixel, in rows of ``bytesPerRow``.
        let rgba: UnsafePointer<UInt8>?
        let bytesPerRow: Int
        /// nil when there is none.
        let exif: UnsafePointer<UInt8>?
        let exifCount: Int
        let xmp: UnsafePointer<UInt8>?
        let xmpCount: Int
    }

    private let format: ImageFormat
    private let pixels: Image
    private let exif: [UInt8]
    private let xmp: [UInt8]

    /// - Parameter maximumSide: What the format can say, in pixels.
    /// - Throws: ``ImageError/encodingFailed(format:reason:)`` for a longer side.
    init(
        _ image: Image, as format: ImageFormat, maximumSide: Int, options: EncodeOptions
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
    func file(
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
