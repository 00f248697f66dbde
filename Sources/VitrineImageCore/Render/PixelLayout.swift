/// The channels of a pixel in memory, in the order of their addresses.
public enum PixelLayout: Hashable, Sendable {
    /// One byte: grey.
    case gray8
    /// Two bytes: grey, alpha.
    case grayAlpha8
    /// Three bytes: red, green, blue.
    case rgb8
    /// Four bytes: red, green, blue, alpha.
    case rgba8
    /// Four bytes: alpha, red, green, blue.
    case argb8
    /// Four bytes: blue, green, red, alpha.
    case bgra8
    /// Four bytes: red, green, blue, and one that is ignored.
    case rgbx8
    /// Four bytes: one that is ignored, red, green, blue.
    case xrgb8
    /// Red, green, blue and alpha with 16 bits each, the low byte first.
    case rgba16LittleEndian
    /// Red, green, blue and alpha with 16 bits each, the high byte first.
    case rgba16BigEndian

    /// Bytes a pixel.
    package var bytesPerPixel: Int {
        switch self {
        case .gray8: 1
        case .grayAlpha8: 2
        case .rgb8: 3
        case .rgba8, .argb8, .bgra8, .rgbx8, .xrgb8: 4
        case .rgba16LittleEndian, .rgba16BigEndian: 8
        }
    }

    /// Whether one of the channels is alpha.
    package var hasAlpha: Bool {
        switch self {
        case .gray8, .rgb8, .rgbx8, .xrgb8: false
        default: true
        }
    }

    /// The offsets of red, green, blue and alpha in a pixel, of the high bytes for 16 bits. Alpha is -1 in layouts
    /// without it.
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

extension PixelImage {
    /// The initializer below, without a copy of the bytes.
    private init(
        width: Int, height: Int, bytesPerRow: Int? = nil, layout: PixelLayout, alpha: Alpha,
        bytes: UnsafeRawBufferPointer
    ) throws(ImageError) {
        guard width > 0, height > 0, PixelSize(width: width, height: height).pixelCount <= Int.max / 16 else {
            throw .invalidRequest(reason: "an image cannot have the size \(width)×\(height)")
        }
        let row = width * layout.bytesPerPixel
        let pitch = bytesPerRow ?? row
        guard pitch >= row else {
            throw .invalidRequest(reason: "rows of \(row) bytes do not fit into \(pitch) bytes")
        }
        let (before, overflow) = pitch.multipliedReportingOverflow(by: height - 1)
        guard !overflow, bytes.count >= row, before <= bytes.count - row else {
            throw .invalidRequest(
                reason: "\(height) rows of \(pitch) bytes need more than \(bytes.count) bytes")
        }
        let meaning: Alpha = layout.hasAlpha ? alpha : .opaque
        self.init(width: width, height: height, alpha: meaning) { pixels in
            guard let target = pixels.bindMemory(to: UInt8.self).baseAddress,
                let source = bytes.bindMemory(to: UInt8.self).baseAddress
            else { return }
            for y in 0..<height {
                Self.convert(
                    source + y * pitch, layout, into: target + y * width * PixelImage.bytesPerPixel, count: width,
                    isOpaque: meaning == .opaque)
            }
        }
    }

    /// Creates an image from sRGB pixels in another layout.
    ///
    /// 16-bit channels are rounded to 8.
    ///
    /// - Parameters:
    ///   - width: Pixels a row.
    ///   - height: Rows.
    ///   - layout: Order and depth of the channels.
    ///   - bytesPerRow: Bytes from one row to the next. Default nil: rows without gaps.
    ///   - alpha: The meaning of the alpha channel. ``Alpha/opaque`` ignores the channel. A layout without alpha always
    ///     gives an opaque image.
    ///   - bytes: The rows, from the top.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` if the size is empty, the rows overlap or bytes are missing.
    public init(
        width: Int, height: Int, bytesPerRow: Int? = nil, layout: PixelLayout, alpha: Alpha, bytes: [UInt8]
    ) throws(ImageError) {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(ImageError) in
                try PixelImage(
                    width: width, height: height, bytesPerRow: bytesPerRow, layout: layout, alpha: alpha, bytes: bytes)
            }
        }
        self = try result.get()
    }

    private static func convert(
        _ source: UnsafePointer<UInt8>, _ layout: PixelLayout, into pixels: UnsafeMutablePointer<UInt8>, count: Int,
        isOpaque: Bool
    ) {
        let size = layout.bytesPerPixel
        let offsets = layout.offsets
        let isWide = size == 8
        // The less significant byte lies beside the other one.
        let low = layout == .rgba16LittleEndian ? -1 : 1
        @inline(__always) func level(_ p: UnsafePointer<UInt8>, _ offset: Int) -> UInt8 {
            guard isWide else { return p[offset] }
            let value = UInt32(p[offset]) &<< 8 | UInt32(p[offset &+ low])
            return UInt8(truncatingIfNeeded: (value &* 255 &+ 32_767) / 65_535)
        }
        for x in 0..<count {
            let from = source + x &* size
            let to = pixels + x &* 4
            to[0] = level(from, offsets.red)
            to[1] = level(from, offsets.green)
            to[2] = level(from, offsets.blue)
            to[3] = isOpaque || offsets.alpha < 0 ? 255 : level(from, offsets.alpha)
        }
    }
}
