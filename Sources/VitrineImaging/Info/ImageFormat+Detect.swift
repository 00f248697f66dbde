extension ImageFormat {
    /// The format of a file that begins with `prefix`, by content; nil when no known format begins so.
    ///
    /// 4 KiB are enough for every format but an SVG behind a longer comment and a HEIF file whose brands leave open
    /// which codec it uses; that one is taken for HEIC when the prefix ends too early.
    public static func detect(_ prefix: [UInt8]) -> ImageFormat? {
        try? detect(ByteReader(ByteSource(bytes: prefix, name: "prefix")))
    }

    /// The format of a file that begins with `prefix`; see ``detect(_:)-([UInt8])``.
    public static func detect(_ prefix: UnsafeRawBufferPointer) -> ImageFormat? {
        detect([UInt8](prefix.prefix(64 << 10)))
    }

    /// The format of an opened input; nil when it is none. Only read errors are thrown.
    package static func detect(_ reader: ByteReader) throws(ImageError) -> ImageFormat? {
        if let format = try detectBySignature(reader) { return format }
        return try SVGPrologue.isSVG(reader) ? .svg : nil
    }

    private static func detectBySignature(_ reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.count >= 2 else { return nil }
        let two = try reader.u16(at: 0)
        let four = reader.count >= 4 ? try reader.u32(at: 0) : two << 16
        switch two {
        case 0xFFD8: return reader.count == 2 || four >> 8 & 0xFF == 0xFF ? .jpeg : nil
        case 0xFF0A: return .jxl
        case 0xFF4F: return four == 0xFF4F_FF51 ? .jp2 : nil
        case 0x8950: return reader.matches("PNG\r\n\u{1A}\n", at: 1) ? .png : nil
        case 0x4749: return reader.matches("GIF87a", at: 0) || reader.matches("GIF89a", at: 0) ? .gif : nil
        case 0x5249: return reader.matches("RIFF", at: 0) && reader.matches("WEBP", at: 8) ? .webp : nil
        case 0x4949: return four == 0x4949_2A00 || four == 0x4949_2B00 ? .tiff : nil
        case 0x4D4D: return four == 0x4D4D_002A || four == 0x4D4D_002B ? .tiff : nil
        case 0x424D: return try BMPHeaderReader.looksRight(reader) ? .bmp : nil
        default: break
        }
        if four == 0x0000_0100 || four == 0x0000_0200 {
            return try ICOHeaderReader.looksRight(reader) ? .ico : nil
        }
        if four == 12, reader.matches("JXL \r\n", at: 4) { return .jxl }
        if four == 12, reader.matches("jP  \r\n", at: 4) { return .jp2 }
        if reader.matches("ftyp", at: 4) { return try detectByBrands(reader) }
        return nil
    }

    /// Brands of ISO/IEC 23008-12 annex B (HEVC) and the AV1 image format §6; the structural brands `mif1` and
    /// `msf1` say nothing of the codec, so the type of the primary item decides.
    private static func detectByBrands(_ reader: ByteReader) throws(ImageError) -> ImageFormat? {
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
