/// A file format of images.
///
/// Formats are equal if their names are. The built-in formats are static members; a format of your own has a decoder
/// that ``ImageDecoder/register(_:)`` adds:
///
/// ```swift
/// let sunRaster = ImageFormat("sun-raster", mediaTypes: ["image/x-sun-raster"], fileExtensions: ["ras", "sun"])
/// ```
public struct ImageFormat: RawRepresentable, Sendable, Hashable, Codable, CustomStringConvertible {
    /// The name in lower case, for example `jpeg`.
    public let rawValue: String
    /// Media types in lower case, the preferred one first.
    package let mediaTypes: [String]
    /// File name extensions in lower case and without a dot, the preferred one first.
    package let fileExtensions: [String]

    /// Creates a format.
    ///
    /// - Parameters:
    ///   - name: Identifies the format. Upper-case letters become lower-case.
    ///   - mediaTypes: The preferred one first. Sources of URLs accept them in HTTP responses.
    ///   - fileExtensions: Without a dot, the preferred one first.
    public init(_ name: String, mediaTypes: [String] = [], fileExtensions: [String] = []) {
        rawValue = name.lowercased()
        self.mediaTypes = mediaTypes.map { $0.lowercased() }
        self.fileExtensions = fileExtensions.map { $0.lowercased() }
    }

    /// Finds a built-in or registered format by its name; nil if there is none.
    public init?(rawValue: String) {
        if let format = ImageFormat.builtInByName[rawValue] {
            self = format
        } else if let format = RegisteredDecoders.shared.decoder(for: rawValue)?.format {
            self = format
        } else {
            return nil
        }
    }

    /// JPEG (ITU-T T.81).
    public static let jpeg = ImageFormat("jpeg", mediaTypes: ["image/jpeg"], fileExtensions: ["jpg", "jpeg", "jpe"])
    /// PNG and APNG.
    public static let png = ImageFormat("png", mediaTypes: ["image/png", "image/apng"], fileExtensions: ["png"])
    /// WebP.
    public static let webp = ImageFormat("webp", mediaTypes: ["image/webp"], fileExtensions: ["webp"])
    /// GIF.
    public static let gif = ImageFormat("gif", mediaTypes: ["image/gif"], fileExtensions: ["gif"])
    /// TIFF and BigTIFF.
    public static let tiff = ImageFormat("tiff", mediaTypes: ["image/tiff"], fileExtensions: ["tiff", "tif"])
    /// HEIF with HEVC.
    public static let heic = ImageFormat(
        "heic", mediaTypes: ["image/heic", "image/heif"], fileExtensions: ["heic", "heif"])
    /// HEIF with AV1.
    public static let avif = ImageFormat(
        "avif", mediaTypes: ["image/avif", "image/avif-sequence"], fileExtensions: ["avif"])
    /// JPEG XL.
    public static let jxl = ImageFormat("jxl", mediaTypes: ["image/jxl"], fileExtensions: ["jxl"])
    /// JPEG 2000.
    public static let jp2 = ImageFormat("jp2", mediaTypes: ["image/jp2", "image/jpx"], fileExtensions: ["jp2", "jpx"])
    /// Scalable Vector Graphics.
    public static let svg = ImageFormat("svg", mediaTypes: ["image/svg+xml"], fileExtensions: ["svg", "svgz"])
    /// Windows bitmap.
    public static let bmp = ImageFormat("bmp", mediaTypes: ["image/bmp", "image/x-bmp"], fileExtensions: ["bmp"])
    /// Windows icon or cursor.
    public static let ico = ImageFormat(
        "ico", mediaTypes: ["image/vnd.microsoft.icon", "image/x-icon"], fileExtensions: ["ico", "cur"])

    /// The built-in formats.
    package static let builtIn: [ImageFormat] = [
        .jpeg, .png, .webp, .gif, .tiff, .heic, .avif, .jxl, .jp2, .svg, .bmp, .ico,
    ] + raster

    private static let builtInByName = Dictionary(
        uniqueKeysWithValues: (builtIn + PictureLocators.formats).map { ($0.rawValue, $0) })

    /// Whether the package reads the format: one of ``builtIn``, or one whose files hold pictures.
    package var isBuiltIn: Bool { ImageFormat.builtInByName[rawValue] != nil }

    /// The preferred file name extension, without a dot; the name if there is none.
    public var fileExtension: String { fileExtensions.first ?? rawValue }

    /// The preferred media type, which is the registered one (IANA) of most built-in formats; `application/octet-stream` if
    /// there is none.
    public var mediaType: String { mediaTypes.first ?? "application/octet-stream" }

    /// The name.
    public var description: String { rawValue }
}

// MARK: Detection

extension ImageFormat {
    /// Returns the format of a file that begins with `prefix`; nil if no known format begins so.
    ///
    /// Registered decoders are asked first, the latest first, then the built-in formats. 4 KiB suffice for all formats
    /// but an SVG document behind a longer comment. A HEIF file whose brands do not name the codec counts as HEIC if
    /// the prefix ends too early.
    public static func detect(_ prefix: [UInt8]) -> ImageFormat? {
        try? detect(ByteReader(ByteSource(bytes: prefix, name: "prefix")))
    }

    /// Returns the format of an opened input; nil if it has none.
    ///
    /// - Throws: Read errors only.
    package static func detect(_ reader: ByteReader) throws(ImageError) -> ImageFormat? {
        if let decoder = try RegisteredDecoders.shared.decoder(recognizing: reader) { return decoder.format }
        return try detectBuiltIn(reader)
    }

    /// ``detect(_:)-(ByteReader)`` among the built-in formats.
    package static func detectBuiltIn(_ reader: ByteReader) throws(ImageError) -> ImageFormat? {
        let format = try detectBySignature(reader)
        // Camera files are TIFF, too.
        if let format, format != .tiff { return format }
        if let format = try PictureLocators.format(of: reader) { return format }
        if let format { return format }
        if try SVGPrologue.isSVG(reader) { return .svg }
        return isTGA(reader) ? .tga : nil
    }

    /// The format by the first bytes; nil for drawings, and for files that hold pictures.
    static func detectBySignature(_ reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.count >= 2 else { return nil }
        let two = try reader.u16(at: 0)
        let four = reader.count >= 4 ? try reader.u32(at: 0) : two << 16
        switch two {
        case 0xFFD8:
            // Readers pass over garbage in front of the first marker, too.
            return reader.count == 2 || four >> 8 & 0xFF == 0xFF || JPEGHeaderReader.beginsPicture(reader) ? .jpeg : nil
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
        return try detectRaster(reader)
    }

    private static let animated: Set<ImageFormat> = [.gif, .png, .webp, .heic, .avif, .jxl]

    /// Whether the first bytes of a file are those of a format that ``AnimatedImage`` plays. Asks no registered decoder.
    package static func mayBeAnimated(_ bytes: [UInt8]) -> Bool {
        guard let format = try? detectBySignature(ByteReader(ByteSource(bytes: bytes, name: "bytes"))) else {
            return false
        }
        return animated.contains(format)
    }

    /// Brands of ISO/IEC 23008-12 annex B (HEVC) and the AV1 image format §6. The structural brands `mif1` and `msf1`
    /// do not name a codec; the type of the primary item decides.
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
