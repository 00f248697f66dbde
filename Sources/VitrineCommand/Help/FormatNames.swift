import VitrineImaging

/// The names of formats for people, from the lists of the codecs.
package enum FormatNames {
    /// Images whose pixels are decoded.
    package static var images: [String] {
        Codecs.standard.formats.filter { !$0.holdsPictures }.map(name)
    }

    /// Raw files of cameras.
    package static var raw: [String] {
        Codecs.standard.formats.filter { RawDevelopment.develops($0) && $0.rawValue != "raw" }.map(name)
    }

    /// Other files that hold an image of themselves.
    package static var documents: [String] {
        Codecs.standard.formats.filter { $0.holdsPictures && !RawDevelopment.develops($0) }.map(name)
    }

    package static var videos: [String] { MediaFormat.allCases.filter { !$0.isAudio }.map(name) }

    package static var recordings: [String] { MediaFormat.allCases.filter(\.isAudio).map(name) }

    /// Formats that are written.
    package static var outputs: [String] {
        FormatArgument.allCases.compactMap { argument in
            guard argument != .auto else { return nil }
            let name = names[argument.rawValue] ?? argument.rawValue.uppercased()
            return name.lowercased() == argument.rawValue ? name : "\(name) (\(argument.rawValue))"
        }
    }

    /// Returns `A, B and C.`
    static func sentence(_ names: [String]) -> String {
        guard names.count > 1 else { return (names.first ?? "None") + "." }
        return names.dropLast().joined(separator: ", ") + " and " + names[names.count - 1] + "."
    }

    static func name(_ format: ImageFormat) -> String {
        names[format.rawValue] ?? format.rawValue.uppercased()
    }

    static func name(_ media: MediaFormat) -> String {
        switch media {
        case .mp4: "MP4"
        case .quickTime: "MOV"
        case .matroska: "MKV"
        case .webM: "WebM"
        case .avi: "AVI"
        case .flash: "FLV"
        case .asf: "WMV"
        case .ogg: "Ogg"
        case .transportStream: "MPEG-TS"
        case .programStream: "MPEG-PS"
        case .mp4Audio: "M4A"
        case .mp3: "MP3"
        case .flac: "FLAC"
        case .oggAudio: "Ogg and Opus"
        case .windowsMedia: "WMA"
        case .wave: "WAV"
        case .aiff: "AIFF"
        case .dsf: "DSF"
        case .ape: "APE"
        case .wavPack: "WavPack"
        case .musepack: "Musepack"
        case .tak: "TAK"
        }
    }

    /// Names that are not the raw value in capitals.
    private static let names = [
        "jxl": "JPEG XL", "jp2": "JPEG 2000", "webp": "WebP", "exr": "OpenEXR", "hdr": "Radiance HDR",
        "farbfeld": "farbfeld", "iwork": "Pages, Numbers and Keynote", "kra": "Krita", "ora": "OpenRaster",
        "sketch": "Sketch", "procreate": "Procreate", "fig": "Figma", "gcode": "G-code", "bgcode": "binary G-code",
        "fb2": "FictionBook", "fb2.zip": "zipped FictionBook", "mobi": "MOBI",
    ]
}
