/// Formats of files that are shown by an image inside them: documents, books, comics, drawings and models.
extension ImageFormat {
    /// Books in EPUB.
    package static let epub = ImageFormat("epub", mediaTypes: ["application/epub+zip"], fileExtensions: ["epub"])
    /// Books in FictionBook.
    package static let fictionBook = ImageFormat(
        "fb2", mediaTypes: ["application/x-fictionbook+xml", "application/x-fictionbook"], fileExtensions: ["fb2"])
    /// Books in FictionBook, zipped.
    package static let fictionBookZip = ImageFormat(
        "fb2.zip", mediaTypes: ["application/x-zip-compressed-fb2"], fileExtensions: ["fb2.zip", "fbz"])
    /// Books for Kindle and Mobipocket readers, AZW3 included.
    package static let mobi = ImageFormat(
        "mobi",
        mediaTypes: ["application/x-mobipocket-ebook", "application/vnd.amazon.mobi8-ebook"],
        fileExtensions: ["mobi", "azw3", "azw", "prc"])
    /// Comics in ZIP archives.
    package static let comicZip = ImageFormat(
        "cbz", mediaTypes: ["application/vnd.comicbook+zip", "application/x-cbz"], fileExtensions: ["cbz"])
    /// Comics in tar archives.
    package static let comicTar = ImageFormat("cbt", mediaTypes: ["application/x-cbt"], fileExtensions: ["cbt"])
    /// Comics in RAR archives.
    package static let comicRAR = ImageFormat(
        "cbr", mediaTypes: ["application/vnd.comicbook-rar", "application/x-cbr"], fileExtensions: ["cbr"])
    /// Comics in 7z archives.
    package static let comic7z = ImageFormat("cb7", mediaTypes: ["application/x-cb7"], fileExtensions: ["cb7"])

    /// Texts in OpenDocument (ISO/IEC 26300).
    package static let odt = openDocument("odt", type: "text", others: ["ott", "odm"])
    /// Spreadsheets in OpenDocument.
    package static let ods = openDocument("ods", type: "spreadsheet", others: ["ots"])
    /// Presentations in OpenDocument.
    package static let odp = openDocument("odp", type: "presentation", others: ["otp"])
    /// Drawings in OpenDocument.
    package static let odg = openDocument("odg", type: "graphics", others: ["otg"])

    private static func openDocument(_ name: String, type: String, others: [String]) -> ImageFormat {
        let type = "application/vnd.oasis.opendocument." + type
        return ImageFormat(name, mediaTypes: [type, type + "-template"], fileExtensions: [name] + others)
    }

    /// Texts in Office Open XML (ECMA-376).
    package static let docx = openXML("docx", type: "wordprocessingml.document", others: ["docm", "dotx"])
    /// Spreadsheets in Office Open XML.
    package static let xlsx = openXML("xlsx", type: "spreadsheetml.sheet", others: ["xlsm", "xltx"])
    /// Presentations in Office Open XML.
    package static let pptx = openXML("pptx", type: "presentationml.presentation", others: ["pptm", "ppsx", "potx"])

    private static func openXML(_ name: String, type: String, others: [String]) -> ImageFormat {
        ImageFormat(
            name, mediaTypes: ["application/vnd.openxmlformats-officedocument." + type],
            fileExtensions: [name] + others)
    }

    /// Drawings of Visio.
    package static let vsdx = ImageFormat(
        "vsdx", mediaTypes: ["application/vnd.ms-visio.drawing.main+xml", "application/vnd.visio"],
        fileExtensions: ["vsdx", "vsdm", "vstx"])
    /// Pages in XML Paper Specification.
    package static let xps = ImageFormat(
        "xps", mediaTypes: ["application/oxps", "application/vnd.ms-xpsdocument"], fileExtensions: ["xps", "oxps"])
    /// Models in the 3D Manufacturing Format.
    package static let threeMF = ImageFormat(
        "3mf", mediaTypes: ["model/3mf", "application/vnd.ms-package.3dmanufacturing-3dmodel+xml"],
        fileExtensions: ["3mf"])
    /// Documents of Pages, Numbers and Keynote.
    package static let iWork = ImageFormat(
        "iwork",
        mediaTypes: [
            "application/vnd.apple.iwork", "application/vnd.apple.pages", "application/vnd.apple.numbers",
            "application/vnd.apple.keynote", "application/x-iwork-pages-sffpages",
            "application/x-iwork-numbers-sffnumbers", "application/x-iwork-keynote-sffkey",
        ], fileExtensions: ["pages", "numbers", "key"])
    /// Paintings of Krita.
    package static let krita = ImageFormat("kra", mediaTypes: ["application/x-krita"], fileExtensions: ["kra", "krz"])
    /// Paintings in OpenRaster.
    package static let openRaster = ImageFormat("ora", mediaTypes: ["image/openraster"], fileExtensions: ["ora"])
    /// Drawings of Sketch.
    package static let sketch = ImageFormat(
        "sketch", mediaTypes: ["application/vnd.sketch", "image/x-sketch"], fileExtensions: ["sketch"])
    /// Paintings of Procreate.
    package static let procreate = ImageFormat(
        "procreate", mediaTypes: ["application/x-procreate"], fileExtensions: ["procreate"])
    /// Drawings of Figma.
    package static let figma = ImageFormat("fig", mediaTypes: ["application/x-figma"], fileExtensions: ["fig"])
    /// Programs for Android.
    package static let apk = ImageFormat(
        "apk", mediaTypes: ["application/vnd.android.package-archive"], fileExtensions: ["apk"])
    /// Instructions for 3D printers.
    package static let gcode = ImageFormat(
        "gcode", mediaTypes: ["text/x.gcode", "text/x-gcode"], fileExtensions: ["gcode"])
    /// Instructions for 3D printers, in binary.
    package static let binaryGCode = ImageFormat(
        "bgcode", mediaTypes: ["application/x-bgcode"], fileExtensions: ["bgcode"])
}

/// Raw files of cameras, which are shown by the preview in them.
extension ImageFormat {
    /// Canon raw, version 2.
    package static let cr2 = ImageFormat("cr2", mediaTypes: ["image/x-canon-cr2"], fileExtensions: ["cr2"])
    /// Nikon raw.
    package static let nef = ImageFormat(
        "nef", mediaTypes: ["image/x-nikon-nef", "image/x-nikon-nrw"], fileExtensions: ["nef", "nrw"])
    /// Sony raw.
    package static let arw = ImageFormat(
        "arw", mediaTypes: ["image/x-sony-arw", "image/x-sony-sr2", "image/x-sony-srf"],
        fileExtensions: ["arw", "sr2", "srf"])
    /// Digital Negative.
    package static let dng = ImageFormat("dng", mediaTypes: ["image/x-adobe-dng"], fileExtensions: ["dng"])
    /// Olympus and OM System raw.
    package static let orf = ImageFormat("orf", mediaTypes: ["image/x-olympus-orf"], fileExtensions: ["orf"])
    /// Panasonic and Leica raw.
    package static let rw2 = ImageFormat(
        "rw2", mediaTypes: ["image/x-panasonic-rw2", "image/x-panasonic-rw"], fileExtensions: ["rw2", "rwl", "raw"])
    /// Pentax raw.
    package static let pef = ImageFormat("pef", mediaTypes: ["image/x-pentax-pef"], fileExtensions: ["pef"])
    /// Samsung raw.
    package static let srw = ImageFormat("srw", mediaTypes: ["image/x-samsung-srw"], fileExtensions: ["srw"])
    /// Hasselblad raw.
    package static let hasselblad = ImageFormat(
        "3fr", mediaTypes: ["image/x-hasselblad-3fr"], fileExtensions: ["3fr", "fff"])
    /// Epson raw.
    package static let erf = ImageFormat("erf", mediaTypes: ["image/x-epson-erf"], fileExtensions: ["erf"])
    /// Kodak raw.
    package static let kdc = ImageFormat(
        "kdc", mediaTypes: ["image/x-kodak-kdc", "image/x-kodak-dcr", "image/x-kodak-k25"],
        fileExtensions: ["kdc", "dcr", "k25"])
    /// Phase One, Leaf and Mamiya raw.
    package static let iiq = ImageFormat(
        "iiq", mediaTypes: ["image/x-phaseone-iiq"], fileExtensions: ["iiq", "mos", "mef"])
    /// Raw of other cameras in a TIFF structure.
    package static let tiffRaw = ImageFormat("raw", mediaTypes: ["image/x-dcraw"])
    /// Canon raw, version 3.
    package static let cr3 = ImageFormat("cr3", mediaTypes: ["image/x-canon-cr3"], fileExtensions: ["cr3"])
    /// Canon raw of the first cameras.
    package static let crw = ImageFormat("crw", mediaTypes: ["image/x-canon-crw"], fileExtensions: ["crw"])
    /// Fujifilm raw.
    package static let raf = ImageFormat("raf", mediaTypes: ["image/x-fuji-raf"], fileExtensions: ["raf"])
    /// Sigma raw.
    package static let x3f = ImageFormat("x3f", mediaTypes: ["image/x-sigma-x3f"], fileExtensions: ["x3f"])
    /// Minolta raw.
    package static let mrw = ImageFormat("mrw", mediaTypes: ["image/x-minolta-mrw"], fileExtensions: ["mrw"])
}
