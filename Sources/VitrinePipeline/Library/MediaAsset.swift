import VitrineCore
import VitrineImaging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A photo or video in a ``MediaLibrary``, as far as it is known.
public struct MediaAsset: Sendable, Hashable, Identifiable {
    /// Whether the asset is a photo or a video.
    public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
        case photo, video
    }

    /// The file.
    public let path: String
    public internal(set) var kind: Kind
    /// The length of the file.
    public internal(set) var size: ByteCount
    /// When the file last changed.
    public internal(set) var modified: Date
    /// When it was taken: from the photo's Exif block (`DateTimeOriginal`, with its offset where there is one), or the
    /// film's header. ``modified`` where the file does not say, or its header has not been read.
    public internal(set) var captureDate: Date
    /// Width and height upright, in pixels; nil while the header has not been read, and for films without a simple
    /// header. ``MediaLibrarySource/details(limits:cancellation:)`` always tells.
    public internal(set) var pixelSize: PixelSize?
    /// Seconds a video takes; nil for photos, and as ``pixelSize``.
    public internal(set) var duration: Double?
    /// Whether the header has been read, and ``captureDate`` will not change unless the file does.
    public internal(set) var isHeaderRead = false

    /// ``path``: there is one asset a file.
    public var id: String { path }
    public var isPhoto: Bool { kind == .photo }
    public var isVideo: Bool { kind == .video }

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
