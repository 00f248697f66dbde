import VitrineCore

/// The header of an image, read without decoding pixels.
public struct ImageInfo: Sendable, Hashable {
    /// A smaller image stored inside the file.
    package struct EmbeddedPreview: Sendable, Hashable {
        /// The position of its first byte in the file.
        package var offset: Int
        /// Its length in bytes.
        package var count: Int
        /// Its size as stored; nil if its own header cannot be read.
        package var size: PixelSize?

        /// Creates the description of a preview.
        package init(offset: Int, count: Int, size: PixelSize?) {
            self.offset = offset
            self.count = count
            self.size = size
        }
    }

    /// The colour channels of stored pixels.
    package enum ColorModel: String, Sendable, Hashable {
        /// One channel.
        case gray
        /// Red, green and blue.
        case rgb
        /// Luma and two chroma channels.
        case yCbCr
        /// Four inks.
        case cmyk
        /// Four inks, stored as luma, chroma and black.
        case ycck
        /// Indices into a table of colours.
        case palette
        /// Any other model.
        case other
    }

    /// The format, found by content. Only TGA files without a mark at their end need their file name extension.
    public var format: ImageFormat
    /// Width and height as stored, before ``orientation`` is applied.
    public var storedSize: PixelSize
    /// The turn that makes stored pixels upright.
    public var orientation: Orientation = .up
    /// Whether pixels can be other than opaque.
    public var hasAlpha = false
    /// The colour channels of stored pixels.
    package var colorModel: ColorModel = .rgb
    /// Bits a channel, from 1 to 64; other values are brought there.
    public var bitDepth = 8 {
        didSet { bitDepth = max(1, min(bitDepth, 64)) }
    }
    /// The embedded ICC profile, if it has at most 4 MB.
    public var colorProfile: [UInt8]?
    /// Its description (`desc` tag), for example "Display P3".
    package var colorProfileName: String?
    /// Its colour space by code points: `nclx` of HEIF, `cICP` of PNG.
    package var codedColors: CodedColors?
    /// The light that an image of high dynamic range states for itself.
    package var contentLight: ContentLight?
    /// Frames of an animation or pages of a document; 1 for a still image.
    public var frameCount = 1
    /// Seconds of one loop of an animation; nil for other images.
    public var duration: Double?
    /// The number of loops of an animation, 0 for endless ones; nil for other images.
    public var loopCount: Int?
    /// Whether rows are stored in several passes (progressive JPEG, Adam7 PNG, interlaced GIF).
    public var isProgressive = false
    /// Which image of a book or a comic, in their order, the header describes; 0 for other files.
    package var pictureIndex = 0
    /// Smaller images inside the file, largest first.
    package var embeddedPreviews: [EmbeddedPreview] = []

    /// Creates the header of an opaque still image of 8-bit sRGB.
    public init(format: ImageFormat, storedSize: PixelSize) {
        self.format = format
        self.storedSize = storedSize
    }

    /// Width and height after ``orientation`` is applied.
    public var size: PixelSize { orientation.upright(storedSize) }
    /// Whether the image has several frames with a duration.
    public var isAnimated: Bool { frameCount > 1 && duration != nil }
}

/// The result of one pass over a file's structure: an ``ImageInfo``, and the ranges of the metadata.
package struct ImageHeader {
    package var info: ImageInfo
    /// Where the Exif block stands, from its byte-order mark on.
    package var exif: Range<Int>?
    /// The Exif block of a file that stores it as text; nil if ``exif`` tells where it stands.
    package var convertedExif: [UInt8]?
    /// Where the XMP packet stands, if it is stored uncompressed.
    package var xmp: Range<Int>?
    /// Seconds each frame of an animation is shown, in order; at most as many as the limits allow to decode.
    package var frameSeconds: [Double] = []

    package init(info: ImageInfo) {
        self.info = info
    }

    /// Adds a frame of an animation to ``frameSeconds``, unless there are too many.
    package mutating func addFrame(seconds: Double, _ limits: ImageLimits) {
        if frameSeconds.count < limits.maximumFrames { frameSeconds.append(FrameTiming.seconds(seconds)) }
    }

    /// Takes the profile, unless it is too large or no ICC profile; see ``ImageLimits/maximumProfileBytes``.
    package mutating func setProfile(_ profile: [UInt8]?, _ limits: ImageLimits) {
        guard let profile, info.colorProfile == nil, profile.count <= limits.maximumProfileBytes,
            ICCDescription.isProfile(profile)
        else { return }
        info.colorProfile = profile
        info.colorProfileName = ICCDescription.name(of: profile)
    }

    /// Takes the profile that stands at `range`, unless there is one, it is too large or lies outside the input.
    package mutating func setProfile(at range: Range<Int>, _ reader: ByteReader, _ limits: ImageLimits) {
        guard info.colorProfile == nil, range.count <= limits.maximumProfileBytes else { return }
        setProfile(try? reader.bytes(range), limits)
    }

    /// Applies the orientation and the thumbnail of the Exif block.
    package mutating func applyExif(_ reader: ByteReader, orientation: Bool) {
        guard let exif else {
            // The place of its thumbnail is not one in the file.
            if orientation, let convertedExif, let value = ExifBlock(bytes: convertedExif)?.orientation {
                info.orientation = value
            }
            return
        }
        guard let block = ExifBlock(reader, exif) else { return }
        if orientation, let value = block.orientation { info.orientation = value }
        if let preview = block.preview { info.embeddedPreviews.append(preview) }
    }

    /// Orders previews as ``ImageInfo/embeddedPreviews`` promises.
    package mutating func sortPreviews() {
        info.embeddedPreviews.sort { a, b in
            let (p, q) = (a.size?.pixelCount ?? 0, b.size?.pixelCount ?? 0)
            return p == q ? a.offset < b.offset : p > q
        }
    }
}

/// Reads the structure of one format, up to where it stops being worth it, never its pixels.
package protocol HeaderReading: Sendable {
    /// - Throws: ``ImageError/corrupt(input:reason:)`` or ``ImageError/truncated(input:)`` when not even the size can
    ///   be had, ``ImageError/unreadable(input:reason:)`` when the system refuses. Damage behind that is passed over.
    static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader
}

extension ImageInfo.EmbeddedPreview {
    /// Whether it shows the same section as an image stored with `size`: the shapes agree within 2 %. Cameras
    /// letterbox some previews and crop others.
    package func hasShape(of size: PixelSize) -> Bool {
        guard let own = self.size, !own.isEmpty, !size.isEmpty else { return false }
        let shape = Double(size.width) / Double(size.height)
        return abs(Double(own.width) / Double(own.height) / shape - 1) < 0.02
    }

    /// Whether it has at least as many pixels in both directions.
    package func covers(_ size: PixelSize) -> Bool {
        guard let own = self.size else { return false }
        return own.width >= size.width && own.height >= size.height
    }
}
