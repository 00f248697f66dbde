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

extension Image {
    /// An image from sRGB pixels in another layout (R65).
    ///
    /// 16-bit channels are rounded to 8.
    ///
    /// - Parameters:
    ///   - width: Pixels a row.
    ///   - height: Rows.
    ///   - layout: Order and depth of the channels.
    ///   - bytesPerRow: Bytes from one row to the next; nil if rows follow each other without a gap.
    ///   - alpha: What the alpha channel means. A layout without one makes an opaque image whatever is said here; with
    ///     ``Alpha/opaque`` the channel is ignored.
    ///   - bytes: The rows, from the top.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` if the size is empty, the rows overlap or the bytes do not
    ///   suffice.
    public init(
        width: Int, height: Int, bytesPerRow: Int? = nil, layout: PixelLayout, alpha: Alpha,
        bytes: UnsafeRawBufferPointer
    ) throws(ImageError) {
        guard width > 0, height > 0, PixelSize(width: width, height: height).pixelCount <= Int.max / 16 else {
            throw .invalidRequest(reason: "a picture cannot be \(width)×\(height)")
        }
        let row = width * layout.bytesPerPixel
        let pitch = bytesPerRow ?? row
        guard pitch >= row else {
            throw .invalidRequest(reason: "rows of \(row) bytes do not fit \(pitch) bytes")
        }
        let (before, overflow) = pitch.multipliedReportingOverflow(by: height - 1)
        guard !overflow, bytes.count >= row, before <= bytes.count - row else {
            throw .invalidRequest(
                reason: "\(height) rows of \(pitch) bytes are more than the \(bytes.count) bytes given")
        }
        let meaning: Alpha = layout.hasAlpha ? alpha : .opaque
        self.init(width: width, height: height, alpha: meaning) { pixels in
            guard let target = pixels.bindMemory(to: UInt8.self).baseAddress,
                let source = bytes.bindMemory(to: UInt8.self).baseAddress
            else { return }
            for y in 0..<height {
                Self.convert(
                    source + y * pitch, layout, into: target + y * width * Image.bytesPerPixel, count: width,
                    isOpaque: meaning == .opaque)
            }
        }
    }

    /// An image from sRGB pixels in another layout, in an array.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` as ``init(width:height:bytesPerRow:layout:alpha:bytes:)``.
    public init(
        width: Int, height: Int, bytesPerRow: Int? = nil, layout: PixelLayout, alpha: Alpha, bytes: [UInt8]
    ) throws(ImageError) {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(ImageError) in
                try Image(
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
