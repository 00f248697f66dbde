#if canImport(VitrineContainers)
import VitrineContainers
#endif
#if canImport(VitrineHEIF)
import VitrineHEIF
#endif
import VitrineImageCore
#if canImport(VitrineJPEG)
import VitrineJPEG
#endif
#if canImport(VitrineJXL)
import VitrineJXL
#endif
#if canImport(VitrinePNG)
import VitrinePNG
#endif
#if canImport(VitrineRaster)
import VitrineRaster
#endif
#if canImport(VitrineSVG)
import VitrineSVG
#endif
import VitrineWorkers

extension Codecs {
    /// Images whose first bytes tell their format. The only list of codecs: one whose module is not in the manifest is
    /// left out of the build.
    package static let pictures: Codecs = {
        var all: [Codec] = []
        #if canImport(VitrineJPEG)
        all.append(.jpeg)
        #endif
        #if canImport(VitrinePNG)
        all.append(.png)
        #endif
        #if canImport(VitrineHEIF)
        all.append(.heif)
        #endif
        #if canImport(VitrineJXL)
        var jxl = Codec.jxl
        jxl.encoders.append(WorkerEncoder())
        all.append(jxl)
        #endif
        #if canImport(VitrineRaster)
        // Icons and Photoshop files hold such images. The last codecs have the weakest signatures.
        let held = Codecs(all.filter { [.jpeg, .png].contains($0.formats[0]) } + [.jp2])
        all += [
            .gif, .webp, .tiff, .jp2, .bmp, .ico(pictures: held), .psd(pictures: held), .qoi, .dds,
            .icns(pictures: held), .farbfeld, .fits, .hdr, .exr, .pnm, .pcx,
        ]
        #endif
        return Codecs(all)
    }()

    /// All codecs of this build.
    package static let standard: Codecs = {
        // Raw files of cameras are TIFF to `pictures`, too.
        var all = pictures.all.filter { !$0.formats.contains(.tiff) }
        #if canImport(VitrineContainers)
        all += containers.all
        #endif
        #if canImport(VitrineSVG)
        all.append(.svg)
        #endif
        #if canImport(VitrineRaster)
        all += [.tiff, .tga]
        #endif
        return Codecs(all).showingHeldPictures()
    }()

    /// Images that may stand inside another file.
    static let embedded = Codecs(pictures.all + [standard[.svg]].compactMap(\.self))
}

extension ImageFormat {
    /// Returns the format of a file that begins with `prefix`; nil if no known format begins so.
    ///
    /// Registered codecs are asked first, the latest first, then the built-in formats. 4 KiB suffice for all formats
    /// but an SVG document behind a longer comment. A HEIF file whose brands do not name the codec counts as HEIC if
    /// the prefix ends too early.
    public static func detect(_ prefix: [UInt8]) -> ImageFormat? {
        try? detect(ByteReader(ByteSource(bytes: prefix, name: "prefix")))
    }

    /// Returns the format of an opened input; nil if it has none.
    ///
    /// - Throws: Read errors only.
    package static func detect(_ reader: ByteReader) throws(ImageError) -> ImageFormat? {
        try Codecs.standard.withRegistered.format(of: reader)
    }

    private static let animated: Set<ImageFormat> = [.gif, .png, .webp, .heic, .avif, .jxl]

    /// Whether the first bytes of a file are those of a format that ``AnimatedImage`` plays. Asks no registered codec.
    package static func mayBeAnimated(_ bytes: [UInt8]) -> Bool {
        guard let format = try? Codecs.pictures.format(of: ByteReader(ByteSource(bytes: bytes, name: "bytes"))) else {
            return false
        }
        return animated.contains(format)
    }
}
