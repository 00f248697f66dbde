import VitrineCore

/// A still image: 8-bit sRGB pixels, red, green, blue and alpha interleaved.
///
/// `PixelImage` is a value. Copies share their memory until one is changed. Pixels are upright (orientation is applied when
/// they are decoded) and in sRGB (profiles are converted when they are decoded).
public struct PixelImage: Sendable {
    /// The meaning of the fourth channel.
    public enum Alpha: Sendable, Hashable, CaseIterable {
        /// Every pixel is opaque; the fourth channel is 255.
        case opaque
        /// Colour channels are independent of alpha.
        case straight
        /// Colour channels have been multiplied by alpha.
        case premultiplied

        /// The number in cache keys.
        var code: UInt8 {
            switch self {
            case .opaque: 0
            case .straight: 1
            case .premultiplied: 2
            }
        }
    }

    /// Pixels a row.
    public let width: Int
    /// Rows.
    public let height: Int
    /// Bytes from the start of one row to the start of the next; at least `4 * width`.
    public let bytesPerRow: Int
    /// The meaning of the fourth channel.
    public private(set) var alpha: Alpha
    package private(set) var storage: PixelStorage

    /// Bytes a pixel: red, green, blue, alpha.
    package static let bytesPerPixel = 4

    /// Width and height in pixels.
    public var size: PixelSize { PixelSize(width: width, height: height) }
    /// Whether any pixel may be other than opaque.
    package var hasAlpha: Bool { alpha != .opaque }
    /// The bytes of memory that the pixels occupy.
    package var byteCount: Int { storage.count }

    /// An image on memory that already holds its pixels.
    package init(width: Int, height: Int, bytesPerRow: Int, alpha: Alpha, storage: PixelStorage) {
        precondition(width > 0 && height > 0, "an image has at least one pixel")
        precondition(bytesPerRow >= width * PixelImage.bytesPerPixel, "rows must not overlap")
        precondition(
            storage.count >= bytesPerRow * (height - 1) + width * PixelImage.bytesPerPixel, "the pixels must fit the memory")
        self.width = width
        self.height = height
        self.bytesPerRow = bytesPerRow
        self.alpha = alpha
        self.storage = storage
    }

    /// Creates an image of one colour, by default transparent.
    ///
    /// - Precondition: `size` has at least one pixel.
    public init(size: PixelSize, color: PixelColor = .clear) {
        self.init(width: size.width, height: size.height, alpha: color.alpha == 255 ? .opaque : .straight) { pixels in
            for i in stride(from: 0, to: pixels.count, by: 4) {
                pixels[i] = color.red
                pixels[i + 1] = color.green
                pixels[i + 2] = color.blue
                pixels[i + 3] = color.alpha
            }
        }
    }

    /// Creates an image whose pixels `body` writes, all of them, into rows of `4 * width` bytes.
    ///
    /// The memory is not initialised before `body` runs.
    ///
    /// - Precondition: `width` and `height` are positive.
    public init<E: Error>(
        width: Int, height: Int, alpha: Alpha,
        initializingWith body: (UnsafeMutableRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        let storage = PixelStorage(zeroedByteCount: width * height * PixelImage.bytesPerPixel)
        try body(storage.bytes)
        self.init(
            width: width, height: height, bytesPerRow: width * PixelImage.bytesPerPixel, alpha: alpha, storage: storage)
    }

    /// Calls `body` with the bytes of all rows; row `y` starts at byte `y * bytesPerRow`.
    public func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try storage.withUnsafeBytes(body)
    }

    /// The memory of the pixels, for libraries that read it after a call has returned: a texture, a queue of a codec.
    ///
    /// The content does not change while the storage is held: a changed image copies its pixels first. Row `y` starts
    /// at byte `y * bytesPerRow` of ``PixelStorage/sharedBytes``.
    public var sharedPixels: PixelStorage { storage }

    /// Calls `body` with the writable bytes of all rows; row `y` starts at byte `y * bytesPerRow`. Copies the pixels
    /// first if they are shared.
    public mutating func withUnsafeMutableBytes<R, E: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        if !PixelStorage.isWritable(&storage) {
            storage = PixelStorage(copying: UnsafeRawBufferPointer(storage.bytes))
        }
        return try body(storage.bytes)
    }

    /// The colour of one pixel, with straight alpha. For loops use ``withUnsafeBytes(_:)``.
    ///
    /// - Precondition: `x` and `y` lie within the image.
    public subscript(x: Int, y: Int) -> PixelColor {
        precondition(x >= 0 && x < width && y >= 0 && y < height, "(\(x), \(y)) is outside an image of \(size)")
        let p = storage.bytes.baseAddress! + y * bytesPerRow + x * PixelImage.bytesPerPixel
        let (r, g, b, a) = p.loadUnaligned(as: (UInt8, UInt8, UInt8, UInt8).self)
        switch alpha {
        case .opaque: return PixelColor(red: r, green: g, blue: b)
        case .straight: return PixelColor(red: r, green: g, blue: b, alpha: a)
        case .premultiplied:
            let c = PixelMath.unpremultiply(PixelMath.load(p))
            return PixelColor(
                red: UInt8(truncatingIfNeeded: c), green: UInt8(truncatingIfNeeded: c >> 8),
                blue: UInt8(truncatingIfNeeded: c >> 16), alpha: a)
        }
    }
}

extension PixelImage: Equatable {
    /// Returns whether size, meaning of alpha and visible bytes are equal. Ignores padding between rows.
    public static func == (a: PixelImage, b: PixelImage) -> Bool {
        guard a.size == b.size, a.alpha == b.alpha else { return false }
        if a.storage === b.storage && a.bytesPerRow == b.bytesPerRow { return true }
        let row = a.width * bytesPerPixel
        return a.withUnsafeBytes { a1 in
            b.withUnsafeBytes { b1 in
                (0..<a.height).allSatisfy { y in
                    a1[(y * a.bytesPerRow)..<(y * a.bytesPerRow + row)]
                        .elementsEqual(b1[(y * b.bytesPerRow)..<(y * b.bytesPerRow + row)])
                }
            }
        }
    }
}
