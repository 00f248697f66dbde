import VitrineImaging

/// How a page or a frame is brought to the size asked for: the modes of pictures, as they cross to a helper.
package enum DocumentFit: UInt8, Sendable {
    case stretch = 0
    case inside = 1
    case cover = 2
    /// As ``inside``, never enlarged; a side of 0 is no limit.
    case limit = 3
    /// At its own size: as large as a film is shown, 1 pixel a point of a page.
    case none = 4

    /// What a picture of `mode` is made from. A crop is cut on the client's side.
    package init(_ mode: ImageResizer.Mode) {
        switch mode {
        case .fill: self = .stretch
        case .aspectFit: self = .inside
        case .aspectFill, .crop: self = .cover
        case .limit: self = .limit
        case .none: self = .none
        }
    }

    /// The mode of pictures that does the same.
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
