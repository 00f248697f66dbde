/// A file format of images.
///
/// Formats are equal if their names are. The built-in formats are static members; a format of your own has a ``Codec``
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
        let registered = RegisteredCodecs.shared.formats.first { $0.rawValue == rawValue }
        guard let format = ImageFormat(known: rawValue) ?? registered else { return nil }
        self = format
    }

    /// Finds a built-in format by its name; nil if there is none.
    package init?(known name: String) {
        guard let (format, _) = ImageFormat.knownByName[name] else { return nil }
        self = format
    }

    /// JPEG (ITU-T T.81).
    public static let jpeg = ImageFormat(
        "jpeg", mediaTypes: ["image/jpeg"], fileExtensions: ["jpg", "jpeg", "jpe", "jfif"])
    /// PNG and APNG.
    public static let png = ImageFormat("png", mediaTypes: ["image/png", "image/apng"], fileExtensions: ["png", "apng"])
    /// WebP.
    public static let webp = ImageFormat("webp", mediaTypes: ["image/webp"], fileExtensions: ["webp"])
    /// GIF.
    public static let gif = ImageFormat("gif", mediaTypes: ["image/gif"], fileExtensions: ["gif"])
    /// TIFF and BigTIFF.
    public static let tiff = ImageFormat("tiff", mediaTypes: ["image/tiff"], fileExtensions: ["tiff", "tif"])
    /// HEIF with HEVC.
    public static let heic = ImageFormat(
        "heic", mediaTypes: ["image/heic", "image/heif"], fileExtensions: ["heic", "heif", "hif"])
    /// HEIF with AV1.
    public static let avif = ImageFormat(
        "avif", mediaTypes: ["image/avif", "image/avif-sequence"], fileExtensions: ["avif"])
    /// JPEG XL.
    public static let jxl = ImageFormat("jxl", mediaTypes: ["image/jxl"], fileExtensions: ["jxl"])
    /// JPEG 2000.
    public static let jp2 = ImageFormat(
        "jp2", mediaTypes: ["image/jp2", "image/jpx"], fileExtensions: ["jp2", "jpx", "jpf", "j2k", "j2c", "jpc"])
    /// Scalable Vector Graphics.
    public static let svg = ImageFormat("svg", mediaTypes: ["image/svg+xml"], fileExtensions: ["svg", "svgz"])
    /// Windows bitmap.
    public static let bmp = ImageFormat("bmp", mediaTypes: ["image/bmp", "image/x-bmp"], fileExtensions: ["bmp"])
    /// Windows icon or cursor.
    public static let ico = ImageFormat(
        "ico", mediaTypes: ["image/vnd.microsoft.icon", "image/x-icon"], fileExtensions: ["ico", "cur"])

    /// The formats that the package knows, by the module of their codec. Builds without a module know its formats, too.
    private static let formatsOfModules: KeyValuePairs<String, [ImageFormat]> = [
        "VitrineJPEG": [.jpeg],
        "VitrinePNG": [.png],
        "VitrineHEIF": [.heic, .avif],
        "VitrineJXL": [.jxl],
        "VitrineSVG": [.svg],
        "VitrineRaster": [
            .webp, .gif, .tiff, .jp2, .bmp, .ico, .psd, .pnm, .qoi, .tga, .hdr, .dds, .icns, .pcx, .farbfeld, .exr,
            .fits,
        ],
        "VitrineContainers": [
            .epub, .fictionBook, .fictionBookZip, .mobi, .comicZip, .comicTar, .comicRAR, .comic7z, .odt, .ods, .odp,
            .odg, .docx, .xlsx, .pptx, .vsdx, .xps, .threeMF, .iWork, .krita, .openRaster, .sketch, .procreate, .figma,
            .apk, .gcode, .binaryGCode, .cr2, .nef, .arw, .dng, .orf, .rw2, .pef, .srw, .hasselblad, .erf, .kdc, .iiq,
            .tiffRaw, .cr3, .crw, .raf, .x3f, .mrw,
        ],
    ]

    /// All formats that the package knows.
    package static let known = formatsOfModules.flatMap(\.value)

    /// Those whose files are images themselves.
    package static let pictures = known.filter { !$0.holdsPictures }

    private static let knownByName = Dictionary(
        uniqueKeysWithValues: formatsOfModules.flatMap { module, formats in
            formats.map { ($0.rawValue, (format: $0, module: module)) }
        })

    /// The module that has the codec of a built-in format, as far as the build includes it; nil for other formats.
    package var module: String? { ImageFormat.knownByName[rawValue]?.module }

    /// Whether files of this format are shown by an image inside them.
    package var holdsPictures: Bool { module == "VitrineContainers" }

    /// The preferred file name extension, without a dot; the name if there is none.
    public var fileExtension: String { fileExtensions.first ?? rawValue }

    /// The preferred media type, which is the registered one (IANA) of most built-in formats; `application/octet-stream` if
    /// there is none.
    public var mediaType: String { mediaTypes.first ?? "application/octet-stream" }

    /// The name.
    public var description: String { rawValue }
}
