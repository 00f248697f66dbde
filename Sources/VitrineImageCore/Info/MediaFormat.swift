/// Containers of videos and recordings, by the media type they are known as.
package enum MediaFormat: String, Sendable, Hashable, CaseIterable {
    case mp4 = "video/mp4"
    case quickTime = "video/quicktime"
    case matroska = "video/x-matroska"
    case webM = "video/webm"
    case avi = "video/x-msvideo"
    case flash = "video/x-flv"
    case asf = "video/x-ms-asf"
    case ogg = "video/ogg"
    case transportStream = "video/mp2t"
    case programStream = "video/mpeg"
    case mp4Audio = "audio/mp4"
    case mp3 = "audio/mpeg"
    case flac = "audio/flac"
    case oggAudio = "audio/ogg"
    case windowsMedia = "audio/x-ms-wma"
    case wave = "audio/x-wav"
    case aiff = "audio/x-aiff"
    case dsf = "audio/x-dsf"
    case ape = "audio/x-ape"
    case wavPack = "audio/x-wavpack"
    case musepack = "audio/x-musepack"
    case tak = "audio/x-tak"

    /// Whether it holds sound, so that an image of it is the cover attached to it.
    package var isAudio: Bool { rawValue.hasPrefix("audio/") }

    /// Usual file name extensions, without a dot.
    package var fileExtensions: [String] {
        switch self {
        case .mp4: ["mp4", "m4v", "3gp"]
        case .quickTime: ["mov"]
        case .matroska: ["mkv"]
        case .webM: ["webm"]
        case .avi: ["avi"]
        case .flash: ["flv"]
        case .asf: ["wmv", "asf"]
        case .ogg: ["ogv", "ogx"]
        case .transportStream: ["ts", "mts", "m2ts"]
        case .programStream: ["mpg", "mpeg"]
        case .mp4Audio: ["m4a", "m4b"]
        case .mp3: ["mp3"]
        case .flac: ["flac"]
        case .oggAudio: ["ogg", "oga", "opus", "spx"]
        case .windowsMedia: ["wma"]
        case .wave: ["wav"]
        case .aiff: ["aiff", "aif", "aifc"]
        case .dsf: ["dsf"]
        case .ape: ["ape"]
        case .wavPack: ["wv"]
        case .musepack: ["mpc"]
        case .tak: ["tak"]
        }
    }
}
