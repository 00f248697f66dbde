import VitrineImaging

/// The way an image fits into its place.
public enum ContentFit: Sendable, Hashable, CaseIterable {
    /// Shows the whole image, as large as possible.
    case contain
    /// Fills the whole place and crops the image.
    case cover
    /// Fills the whole place. The aspect ratio can change.
    case fill
    /// Shows the whole image, never larger than its size.
    case scaleDown

    /// The mode that decodes only the pixels that are shown.
    var mode: ImageResizer.Mode {
        switch self {
        case .contain: .fit
        case .cover: .crop(.center)
        case .fill: .stretch
        case .scaleDown: .limit
        }
    }

    /// Returns the size at which an image is drawn. All sizes have the same unit.
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
