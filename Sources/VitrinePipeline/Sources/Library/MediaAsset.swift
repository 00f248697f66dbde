#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineImaging

/// A photo or video in a ``MediaLibrary``, as far as it is known.
public struct MediaAsset: Sendable, Hashable, Identifiable {
    /// Whether the asset is a photo or a video.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// A photo or another image.
        case photo
        /// A video.
        case video
    }

    /// The file.
    public let path: String
    /// Whether the asset is a photo or a video.
    public internal(set) var kind: Kind
    /// The length of the file.
    public internal(set) var size: ByteCount
    /// When the file last changed.
    public internal(set) var modified: Date
    /// When it was taken: from the photo's Exif block (`DateTimeOriginal`, with its offset where there is one), or the
    /// video's header. ``modified`` where the file does not say, or its header has not been read.
    public internal(set) var captureDate: Date
    /// Width and height upright, in pixels; nil while the header has not been read, and for videos without a simple
    /// header.
    public internal(set) var pixelSize: PixelSize?
    /// Seconds a video takes; nil for photos, and as ``pixelSize``.
    public internal(set) var duration: Double?
    /// Whether the header has been read, and ``captureDate`` will not change unless the file does.
    package internal(set) var isHeaderRead = false

    /// ``path``: there is one asset a file.
    public var id: String { path }
    package var isPhoto: Bool { kind == .photo }
    package var isVideo: Bool { kind == .video }

    init(path: String, kind: Kind, size: ByteCount, modified: Date) {
        self.path = path
        self.kind = kind
        self.size = size
        self.modified = modified
        captureDate = modified
    }

    /// Takes over the facts of a header.
    mutating func take(_ header: MediaHeader) {
        isHeaderRead = true
        kind = header.kind ?? kind
        captureDate = header.captureDate ?? modified
        pixelSize = header.pixelSize
        duration = header.duration
    }

    /// The order of a library: by capture date, then by path.
    static func precedes(_ one: MediaAsset, _ other: MediaAsset) -> Bool {
        one.captureDate == other.captureDate ? one.path < other.path : one.captureDate < other.captureDate
    }
}

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
