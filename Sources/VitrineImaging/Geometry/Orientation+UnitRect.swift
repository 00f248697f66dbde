extension Orientation {
    /// Where a part of the upright picture lies in the picture as stored.
    func stored(_ rect: UnitRect) -> UnitRect {
        let (x, y, w, h) = (rect.x, rect.y, rect.width, rect.height)
        let (right, bottom) = (1 - x - w, 1 - y - h)
        return switch self {
        case .up: rect
        case .upMirrored: UnitRect(x: right, y: y, width: w, height: h)
        case .down: UnitRect(x: right, y: bottom, width: w, height: h)
        case .downMirrored: UnitRect(x: x, y: bottom, width: w, height: h)
        case .leftMirrored: UnitRect(x: y, y: x, width: h, height: w)
        case .right: UnitRect(x: y, y: right, width: h, height: w)
        case .rightMirrored: UnitRect(x: bottom, y: right, width: h, height: w)
        case .left: UnitRect(x: bottom, y: x, width: h, height: w)
        }
    }
}
