import VitrineImaging

/// The modes of ``ImageResizer`` for a page or frame, in requests to helpers.
package enum DocumentFit: UInt8, Sendable {
    case stretch = 0
    case inside = 1
    case cover = 2
    /// Like ``inside``, never enlarged; a side of 0 is no limit.
    case limit = 3
    /// The own size: as displayed for a film, 1 pixel a point for a page.
    case none = 4

    /// Converts a mode of pictures. The client cuts crops.
    package init(_ mode: ImageResizer.Mode) {
        switch mode {
        case .fill: self = .stretch
        case .aspectFit: self = .inside
        case .aspectFill, .crop: self = .cover
        case .limit: self = .limit
        case .none: self = .none
        }
    }

    /// The equivalent mode of pictures.
    package var mode: ImageResizer.Mode {
        switch self {
        case .stretch: .fill
        case .inside: .aspectFit
        case .cover: .aspectFill
        case .limit: .limit
        case .none: .none
        }
    }
}
