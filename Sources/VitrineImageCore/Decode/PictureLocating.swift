/// An image inside a file of another kind.
package struct EmbeddedPicture: Sendable {
    /// Where the bytes of the image are.
    package enum Content: Sendable {
        /// In the file, as they are.
        case range(Range<Int>)
        /// Here: inflated, decoded from base64, or rebuilt.
        case bytes([UInt8])
        /// In the file, compressed by deflate without a wrapper: where, and the bytes that are expected to come out.
        case deflated(Range<Int>, count: Int)
        /// In a document, as text of 64 characters.
        case base64(ArraySlice<UInt8>)
        /// A page of a comic in an archive that the worker opens, counted from 0.
        case archived(page: Int)
    }

    /// Bytes that an image can have which is not in the file as it is.
    package static let maximumBytes = 64 << 20

    package var content: Content
    /// The stored size; nil to take it from the image's own header.
    package var size: PixelSize?

    package init(content: Content, size: PixelSize? = nil) {
        self.content = content
        self.size = size
    }
}

/// The images of one file.
package struct EmbeddedPictures: Sendable {
    /// In the order of preference for equal sizes.
    package var pictures: [EmbeddedPicture]
    /// The turn that makes every image upright; nil if each image has its own.
    package var orientation: Orientation?
    /// Whether the file is shown by the first image that can be read, however large the others are.
    package var isRanked = false

    package init(pictures: [EmbeddedPicture] = [], orientation: Orientation? = nil, isRanked: Bool = false) {
        self.pictures = pictures
        self.orientation = orientation
        self.isRanked = isRanked
    }
}

/// Finds the images of one family of files.
///
/// Pure Swift, bounds-checked, with a bound on the work: input is foreign. A locator reads the given input only; it
/// opens no other file and follows no reference to one.
package protocol PictureLocating: Sendable {
    /// The formats of the family.
    static var formats: [ImageFormat] { get }

    /// Whether the files are raw ones of cameras, which LibRaw develops. Default false.
    static var isRaw: Bool { get }
    /// Whether the first 64 KiB of a file tell where its images stand. Default false.
    static var tellsEarly: Bool { get }

    /// The format of an input by its content; nil if it belongs to another family. Called for every input that no
    /// image format claims, so the first bytes should suffice to say no.
    static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat?

    /// The images of an input; none if it has no image that could be used.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` or ``ImageError/truncated(input:)`` if its structure cannot be
    ///   read at all.
    static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures
}

extension PictureLocating {
    package static var isRaw: Bool { false }
    package static var tellsEarly: Bool { false }
}

/// An image of a file, opened: where its bytes are and how large it is.
package struct HeldPicture: Sendable {
    package let source: ByteSource
    /// Where it stands in the file; nil if its bytes were made.
    package let range: Range<Int>?
    package let size: PixelSize

    package init(source: ByteSource, range: Range<Int>?, size: PixelSize) {
        (self.source, self.range, self.size) = (source, range, size)
    }
}
