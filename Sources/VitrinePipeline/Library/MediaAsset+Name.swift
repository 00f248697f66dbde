extension MediaAsset.Kind {
    /// Facts about a file that follow from its name.
    enum Name: Equatable {
        case kind(MediaAsset.Kind)
        /// It could be either, or something else: only its content tells.
        case doubtful
        case other
    }

    private static let photos: Set<String> = [
        "jpg", "jpeg", "jpe", "jfif", "png", "apng", "gif", "webp", "heic", "heif", "hif", "avif", "jxl", "tif", "tiff",
        "bmp", "jp2", "j2k", "svg", "ico", "dng", "mpo",
    ]
    private static let videos: Set<String> = [
        "mp4", "m4v", "mov", "qt", "mkv", "webm", "avi", "mpg", "mpeg", "mpe", "m2v", "3gp", "3g2", "mts", "m2ts",
        "wmv", "flv", "f4v", "ogv", "mxf",
    ]
    /// `ts` is TypeScript or a transport stream. Caches, cameras and downloads use the other ones for any content.
    private static let doubtful: Set<String> = [
        "ts", "dat", "bin", "img", "image", "tmp", "part", "download", "ogg", "asf", "vob", "raw",
    ]

    /// The kind that an extension stands for, in letters of either case.
    static func named(_ name: String) -> Name {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return .doubtful }
        let suffix = name[name.utf8.index(after: dot)...].lowercased()
        if photos.contains(suffix) { return .kind(.photo) }
        if videos.contains(suffix) { return .kind(.video) }
        return doubtful.contains(suffix) ? .doubtful : .other
    }
}
