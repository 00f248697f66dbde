import VitrineImaging

/// How a picture is brought into the place it is shown in.
public enum ContentFit: Sendable, Hashable, CaseIterable {
    /// All of it, as large as possible.
    case contain
    /// The whole place, what is too much cut off.
    case cover
    /// The whole place; its ratio may change.
    case fill
    /// All of it, never larger than it is.
    case scaleDown

    /// How pictures are decoded for it: no pixel more than is shown.
    var mode: ImageResizer.Mode {
        switch self {
        case .contain: .aspectFit
        case .cover: .crop(.center)
        case .fill: .fill
        case .scaleDown: .limit
        }
    }

    /// The size at which a picture is drawn. All in units of one kind.
    package func size(
        of width: Double, _ height: Double, in boxWidth: Double, _ boxHeight: Double
    ) -> (Double, Double) {
        let (x, y) = (boxWidth / width, boxHeight / height)
        switch self {
        case .contain: return (width * min(x, y), height * min(x, y))
        case .cover: return (width * max(x, y), height * max(x, y))
        case .fill: return (boxWidth, boxHeight)
        case .scaleDown: return (width * min(1, x, y), height * min(1, x, y))
        }
    }
}
