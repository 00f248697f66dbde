/// Formats of pictures whose rows are stored plainly or with simple codes. All have decoders in Swift alone, which
/// average rows while they read them.
extension ImageFormat {
    /// Adobe Photoshop (PSD) and its form for large documents (PSB).
    package static let psd = ImageFormat(
        "psd", mediaTypes: ["image/vnd.adobe.photoshop", "image/x-psd"], fileExtensions: ["psd", "psb"])
    /// Netpbm bitmaps, grey maps and pixel maps, PAM, and portable float maps.
    package static let pnm = ImageFormat(
        "pnm",
        mediaTypes: [
            "image/x-portable-anymap", "image/x-portable-bitmap", "image/x-portable-graymap", "image/x-portable-pixmap",
            "image/x-portable-arbitrarymap", "image/x-pfm",
        ], fileExtensions: ["pnm", "pbm", "pgm", "ppm", "pam", "pfm"])
    /// Quite OK Image.
    package static let qoi = ImageFormat("qoi", mediaTypes: ["image/qoi", "image/x-qoi"], fileExtensions: ["qoi"])
    /// Truevision TGA.
    package static let tga = ImageFormat(
        "tga", mediaTypes: ["image/x-tga", "image/x-targa"], fileExtensions: ["tga", "icb", "vda", "vst"])
    /// Radiance, high dynamic range.
    package static let hdr = ImageFormat(
        "hdr", mediaTypes: ["image/vnd.radiance", "image/x-hdr"], fileExtensions: ["hdr", "pic", "rgbe", "xyze"])
    /// DirectDraw surface.
    package static let dds = ImageFormat(
        "dds", mediaTypes: ["image/x-dds", "image/vnd-ms.dds"], fileExtensions: ["dds"])
    /// Apple icon.
    package static let icns = ImageFormat("icns", mediaTypes: ["image/x-icns", "image/icns"], fileExtensions: ["icns"])
    /// ZSoft PCX.
    package static let pcx = ImageFormat(
        "pcx", mediaTypes: ["image/vnd.zbrush.pcx", "image/x-pcx"], fileExtensions: ["pcx"])
    /// farbfeld.
    package static let farbfeld = ImageFormat(
        "farbfeld", mediaTypes: ["image/x-farbfeld"], fileExtensions: ["ff"])
    /// OpenEXR, high dynamic range.
    package static let exr = ImageFormat("exr", mediaTypes: ["image/x-exr", "image/aces"], fileExtensions: ["exr"])
    /// FITS, of astronomy.
    package static let fits = ImageFormat(
        "fits", mediaTypes: ["image/fits", "application/fits", "image/x-fits"], fileExtensions: ["fits", "fit", "fts"])

    /// All of them.
    package static let raster: [ImageFormat] = [
        .psd, .pnm, .qoi, .tga, .hdr, .dds, .icns, .pcx, .farbfeld, .exr, .fits,
    ]

    /// Whether the format is one of ``raster``.
    var isRaster: Bool { rasterHeaderReader != nil }

    /// Reads the header of one of ``raster``; nil for any other format.
    var rasterHeaderReader: (any HeaderReading.Type)? {
        switch self {
        case .psd: PSDDecoder.self
        case .pnm: PNMDecoder.self
        case .qoi: QOIDecoder.self
        case .tga: TGADecoder.self
        case .hdr: RadianceDecoder.self
        case .dds: DDSDecoder.self
        case .icns: ICNSDecoder.self
        case .pcx: PCXDecoder.self
        case .farbfeld: FarbfeldDecoder.self
        case .exr: EXRDecoder.self
        case .fits: FITSDecoder.self
        default: nil
        }
    }

    /// One of ``raster`` by the first bytes of a file; nil for any other, and for TGA, which has no such mark.
    static func detectRaster(_ reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.count >= 4 else { return nil }
        switch try reader.fourCC(at: 0) {
        case "8BPS": return (1...2).contains((try? reader.u16(at: 4)) ?? 1) ? .psd : nil
        case "qoif": return .qoi
        case "DDS ": return .dds
        case "icns": return .icns
        case "farb": return reader.matches("farbfeld", at: 0) ? .farbfeld : nil
        case "SIMP": return reader.matches("SIMPLE  =", at: 0) ? .fits : nil
        case "#?RA": return reader.matches("#?RADIANCE", at: 0) ? .hdr : nil
        case "#?RG": return reader.matches("#?RGBE", at: 0) ? .hdr : nil
        case FourCC(rawValue: 0x762F_3101): return .exr
        default: break
        }
        if try PNMHeader.looksRight(reader) { return .pnm }
        return PCXHeader.looksRight(reader) ? .pcx : nil
    }

    /// Whether a file without any other mark is TGA: by the mark at its end, or by its name and a possible header.
    static func isTGA(_ reader: ByteReader) -> Bool { TGAHeader.looksRight(reader) }
}

extension DecoderRegistry {
    /// The decoders of ``ImageFormat/raster``.
    ///
    /// - Parameters:
    ///   - pictures: Decode whole files inside icons.
    ///   - jpeg: Decode previews.
    static func raster(pictures: [any ImageDecoding], jpeg: [any ImageDecoding]) -> [any ImageDecoding] {
        [
            PSDDecoder(jpeg: jpeg), PNMDecoder(), QOIDecoder(), TGADecoder(), RadianceDecoder(), DDSDecoder(),
            ICNSDecoder(pictures: pictures), PCXDecoder(), FarbfeldDecoder(), EXRDecoder(), FITSDecoder(),
        ]
    }
}
