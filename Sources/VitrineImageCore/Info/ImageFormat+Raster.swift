/// Formats of images whose rows are stored plainly or with simple codes. All have decoders in Swift alone, which
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
}
