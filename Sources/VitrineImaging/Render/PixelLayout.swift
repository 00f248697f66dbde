/// How the channels of a pixel lie in memory, in the order of their addresses.
public enum PixelLayout: String, Hashable, Sendable, Codable, CaseIterable {
    case gray8, grayAlpha8, rgb8, rgba8, argb8, bgra8
    /// The fourth byte means nothing.
    case rgbx8
    /// The first byte means nothing.
    case xrgb8
    case rgba16LittleEndian, rgba16BigEndian

    /// Bytes a pixel.
    public var bytesPerPixel: Int {
        switch self {
        case .gray8: 1
        case .grayAlpha8: 2
        case .rgb8: 3
        case .rgba8, .argb8, .bgra8, .rgbx8, .xrgb8: 4
        case .rgba16LittleEndian, .rgba16BigEndian: 8
        }
    }

    /// Whether a channel can say how opaque a pixel is.
    public var hasAlpha: Bool {
        switch self {
        case .gray8, .rgb8, .rgbx8, .xrgb8: false
        default: true
        }
    }

    /// Byte of red, green, blue and alpha in a pixel, of the more significant ones where there are two; alpha is -1
    /// where there is none.
    var offsets: (red: Int, green: Int, blue: Int, alpha: Int) {
        switch self {
        case .gray8: (0, 0, 0, -1)
        case .grayAlpha8: (0, 0, 0, 1)
        case .rgb8, .rgbx8: (0, 1, 2, -1)
        case .rgba8: (0, 1, 2, 3)
        case .argb8: (1, 2, 3, 0)
        case .bgra8: (2, 1, 0, 3)
        case .xrgb8: (1, 2, 3, -1)
        case .rgba16LittleEndian: (1, 3, 5, 7)
        case .rgba16BigEndian: (0, 2, 4, 6)
        }
    }
}
