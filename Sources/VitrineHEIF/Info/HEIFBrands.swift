import VitrineImageCore

/// Brands of ISO/IEC 23008-12 annex B (HEVC) and the AV1 image format §6. The structural brands `mif1` and `msf1`
/// do not name a codec; the type of the primary item decides.
enum HEIFBrands {
    /// The format of a file of the ISO base media file format; nil for any other.
    static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.matches("ftyp", at: 4) else { return nil }
        let end = min(try reader.u32(at: 0), reader.count, 4096)
        var structural = false
        var (hevc, av1) = (false, false)
        var offset = 8
        while offset &+ 4 <= end {
            switch try reader.fourCC(at: offset) {
            case "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs": hevc = true
            case "avif", "avis": av1 = true
            case "mif1", "msf1", "mif2": structural = true
            default: break
            }
            // The major brand, when it names a codec, decides alone.
            if offset == 8, hevc != av1 { return hevc ? .heic : .avif }
            offset = offset == 8 ? 16 : offset &+ 4  // behind the major brand stands a minor version
        }
        if hevc != av1 { return hevc ? .heic : .avif }
        guard structural else { return nil }
        switch (try? HEIFContainer(reader))?.codec {
        case "av01": return .avif
        default: return .heic
        }
    }
}
