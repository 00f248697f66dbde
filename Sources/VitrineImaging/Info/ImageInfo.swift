/// What the header of a picture says, read without decoding pixels.
public struct ImageInfo: Sendable, Hashable {
    /// A smaller picture stored inside the file.
    public struct EmbeddedPreview: Sendable, Hashable {
        /// Where its bytes stand in the file.
        public var offset: Int
        public var count: Int
        /// Its size as stored, when its own header could be read.
        public var size: PixelSize?

        public init(offset: Int, count: Int, size: PixelSize?) {
            self.offset = offset
            self.count = count
            self.size = size
        }
    }

    /// How colour channels are stored.
    public enum ColorModel: String, Sendable, Hashable, Codable {
        case gray, rgb, yCbCr, cmyk, ycck, palette, other
    }

    /// The format, found by content, never by name.
    public var format: ImageFormat
    /// Width and height as stored, before ``orientation`` is applied.
    public var storedSize: PixelSize
    /// How stored pixels must be turned to be upright.
    public var orientation: Orientation = .up
    /// Whether pixels can be other than opaque.
    public var hasAlpha = false
    public var colorModel: ColorModel = .rgb
    /// Bits a channel.
    public var bitDepth = 8
    /// The embedded ICC profile, if it is within ``ImageLimits/maximumProfileBytes``.
    public var colorProfile: [UInt8]?
    /// Its description (`desc` tag), for example "Display P3".
    public var colorProfileName: String?
    /// Frames of an animation or pages of a document; 1 for a still picture.
    public var frameCount = 1
    /// Seconds one loop of an animation takes; nil for anything else.
    public var duration: Double?
    /// How often an animation repeats; 0 means for ever; nil for anything else.
    public var loopCount: Int?
    /// Whether rows come in several passes (progressive JPEG, Adam7 PNG, interlaced GIF).
    public var isProgressive = false
    /// Smaller pictures inside the file, largest first.
    public var embeddedPreviews: [EmbeddedPreview] = []

    public init(format: ImageFormat, storedSize: PixelSize) {
        self.format = format
        self.storedSize = storedSize
    }

    /// Width and height upright, as a viewer shows them.
    public var size: PixelSize { orientation.upright(storedSize) }
    /// Whether there is more than one frame and they are to be shown in time.
    public var isAnimated: Bool { frameCount > 1 && duration != nil }
}
