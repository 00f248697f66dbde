/// How stored pixels must be turned to be upright, with the values of EXIF tag 0x0112.
///
/// Source: CIPA DC-008 (Exif 2.32) §4.6.4, Orientation.
public enum Orientation: Int, Sendable, Hashable, Codable, CaseIterable {
    case up = 1
    case upMirrored = 2
    case down = 3
    case downMirrored = 4
    case leftMirrored = 5
    case right = 6
    case rightMirrored = 7
    case left = 8

    /// Whether turning upright exchanges width and height.
    public var swapsAxes: Bool { rawValue >= 5 }

    /// The size after turning upright of pixels stored with `size`, and the other way round.
    public func upright(_ size: PixelSize) -> PixelSize { swapsAxes ? size.transposed : size }
}
