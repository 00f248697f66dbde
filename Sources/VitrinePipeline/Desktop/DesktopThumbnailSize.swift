/// The sizes of thumbnails that desktops share (Thumbnail Managing Standard 0.9, "Thumbnail Directory").
public enum DesktopThumbnailSize: Int, Sendable, Hashable, CaseIterable, Comparable {
    case normal = 128
    case large = 256
    case extraLarge = 512
    case doubleExtraLarge = 1024

    /// The longest side that such a thumbnail has at most, in pixels.
    public var side: Int { rawValue }

    /// The directory of such thumbnails.
    public var directoryName: String {
        switch self {
        case .normal: "normal"
        case .large: "large"
        case .extraLarge: "x-large"
        case .doubleExtraLarge: "xx-large"
        }
    }

    /// The smallest that has `side` pixels or more; nil above 1024.
    public init?(covering side: Int) {
        guard let size = Self.allCases.first(where: { $0.side >= side }) else { return nil }
        self = size
    }

    public static func < (a: DesktopThumbnailSize, b: DesktopThumbnailSize) -> Bool { a.side < b.side }
}
