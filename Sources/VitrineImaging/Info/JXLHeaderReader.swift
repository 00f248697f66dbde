/// Reads the headers of JPEG XL, bare or in its container: the picture's, and of animations every frame's.
///
/// Source: ISO/IEC 18181-1 annex D to F, 18181-2 (container). Exif orientation does not count
/// beside the codestream's own.
package enum JXLHeaderReader: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let codestream = try JXLCodestream(reader)
        let image = try codestream.parse(at: 0, first: 512) { bits throws(JXLFault) in try JXLImageHeader(&bits) }
        var header = ImageHeader(info: image.info)
        if image.hasProfile, let start = try? JXLFrameStart(codestream) { header.setProfile(start.profile, limits) }
        if image.animation != nil { JXLFrameWalker(codestream).describe(&header.info) }
        if let exif = codestream.boxes["Exif"], exif.payload.count > 4,
            let skip = try? reader.u32(at: exif.payload.lowerBound), skip < exif.payload.count - 4
        {
            header.exif = (exif.payload.lowerBound + 4 + skip)..<exif.payload.upperBound
        }
        header.xmp = codestream.boxes["xml "]?.payload
        header.applyExif(reader, orientation: false)
        return header
    }
}
