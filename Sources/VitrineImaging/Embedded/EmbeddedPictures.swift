/// A picture inside a file of another kind.
package struct EmbeddedPicture: Sendable {
    /// Where the bytes of the picture are.
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

        /// The bytes that are not in the file as they are; nil for those that are, and where they cannot be made.
        fileprivate func bytes(of reader: ByteReader, _ limits: ImageLimits) -> [UInt8]? {
            switch self {
            case .range: nil
            case .bytes(let bytes): bytes
            case .deflated(let compressed, let count):
                try? ZipArchive.inflate(
                    compressed, reader.source, wrapper: .raw, claimed: count, maximum: ZipArchive.maximumPicture)
            case .base64(let text): Base64Text.decode(text)
            case .archived(let page): try? ComicArchivePictures.page(page, of: reader.source, limits)
            }
        }
    }

    package var content: Content
    /// The stored size; nil to take it from the picture's own header.
    package var size: PixelSize?

    package init(content: Content, size: PixelSize? = nil) {
        self.content = content
        self.size = size
    }
}

/// The pictures of one file.
package struct EmbeddedPictures: Sendable {
    /// In the order of preference for equal sizes.
    package var pictures: [EmbeddedPicture]
    /// The turn that makes every picture upright; nil if each picture has its own.
    package var orientation: Orientation?
    /// Whether the file is shown by the first picture that can be read, however large the others are.
    package var isRanked = false

    package init(pictures: [EmbeddedPicture] = [], orientation: Orientation? = nil, isRanked: Bool = false) {
        self.pictures = pictures
        self.orientation = orientation
        self.isRanked = isRanked
    }
}

/// Finds the pictures of one family of files.
///
/// Pure Swift, bounds-checked, with a bound on the work: input is foreign. A locator reads the given input only; it
/// opens no other file and follows no reference to one.
package protocol PictureLocating: Sendable {
    /// The formats of the family.
    static var formats: [ImageFormat] { get }

    /// The format of an input by its content; nil if it belongs to another family. Called for every input that no
    /// image format claims, so the first bytes should suffice to say no.
    static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat?

    /// The pictures of an input; none if it has no picture that could be used.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` or ``ImageError/truncated(input:)`` if its structure cannot be
    ///   read at all.
    static func pictures(
        _ reader: ByteReader, _ format: ImageFormat, _ limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures
}

/// The locators of this package.
package enum PictureLocators {
    /// In the order in which they are asked for the format of an input.
    package static let all: [any PictureLocating.Type] = [
        TIFFRawLocator.self, CanonRaw3Locator.self, CanonHeapLocator.self, FujifilmRawLocator.self,
        SigmaRawLocator.self, MinoltaRawLocator.self,
        ZipPictures.self, MobiPictures.self, FictionBookPictures.self, ComicTarPictures.self,
        ComicArchivePictures.self, GCodePictures.self,
    ]

    /// Pictures of one file looked at; the rest is passed over.
    static let maximumPictures = 64

    private static let byName: [String: any PictureLocating.Type] = {
        var locators: [String: any PictureLocating.Type] = [:]
        for locator in all {
            for format in locator.formats { locators[format.rawValue] = locator }
        }
        return locators
    }()

    /// The formats of all locators.
    package static let formats: [ImageFormat] = all.flatMap { $0.formats }

    /// The locator of a format; nil for image formats.
    package static func locator(for format: ImageFormat) -> (any PictureLocating.Type)? { byName[format.rawValue] }

    /// The format of an input that holds pictures; nil for any other.
    static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        for locator in all {
            do throws(ImageError) {
                if let format = try locator.format(of: reader) { return format }
            } catch {
                // Too short for this family.
                if case .unreadable = error { throw error }
            }
        }
        return nil
    }
}

extension ImageFormat {
    /// Whether files of this format are shown by a picture inside them.
    package var holdsPictures: Bool { PictureLocators.locator(for: self) != nil }

    /// Whether a picture of this format may stand inside another file: an image format of this package.
    fileprivate var canBeHeld: Bool { isBuiltIn && !holdsPictures }
}

/// A picture of a file, opened: where its bytes are and how large it is.
struct HeldPicture {
    let source: ByteSource
    /// Where it stands in the file; nil if its bytes were made.
    let range: Range<Int>?
    let size: PixelSize

    /// - Returns: nil when its bytes lie outside the file, or are no picture of an image format.
    init?(_ picture: EmbeddedPicture, in reader: ByteReader, _ limits: ImageLimits) {
        if case .range(let range) = picture.content {
            guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= reader.count,
                range != 0..<reader.count
            else { return nil }
            source = ByteSource(range, of: reader.source)
            self.range = range
        } else {
            guard let bytes = picture.content.bytes(of: reader, limits), !bytes.isEmpty else { return nil }
            source = ByteSource(bytes: bytes, name: reader.name)
            range = nil
        }
        if let size = picture.size {
            guard !size.isEmpty else { return nil }
            self.size = size
        } else {
            guard let header = try? HeldPicture.header(source, limits) else { return nil }
            size = header.info.storedSize
        }
    }

    /// The header of the picture, which is never one that holds another picture.
    func header(_ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try HeldPicture.header(source, limits)
        guard header.info.storedSize == size else {
            throw .corrupt(input: source.name, reason: "an embedded picture of another size than announced")
        }
        return header
    }

    private static func header(_ source: ByteSource, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let reader = ByteReader(source)
        var found = try ImageFormat.detectBySignature(reader)
        if found == nil, try SVGPrologue.isSVG(reader) { found = .svg }
        guard let format = found, format.canBeHeld, let headerReader = format.headerReader else {
            throw .unsupported(input: source.name, reason: "an embedded picture of an unknown format")
        }
        let header = try headerReader.read(reader, limits)
        guard !header.info.storedSize.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        return header
    }

    /// Whether it shows the same section as `other`: the shapes agree within 2 %. Cameras letterbox small previews.
    private func hasShape(of other: HeldPicture) -> Bool {
        ImageInfo.EmbeddedPreview(offset: 0, count: 0, size: size).hasShape(of: other.size)
    }

    /// Those that show the same as the first one, which is the largest.
    static func alike(_ pictures: ArraySlice<HeldPicture>) -> [HeldPicture] {
        guard let first = pictures.first else { return [] }
        return pictures.filter { $0.hasShape(of: first) }
    }

    /// The order in which to try them: the smallest that is large enough first, then larger ones, then smaller ones.
    static func order(_ pictures: [HeldPicture], for target: PixelSize?) -> [HeldPicture] {
        guard let target else { return Array(pictures.prefix(1)) }
        let large = pictures.prefix { $0.size.width >= target.width && $0.size.height >= target.height }
        return large.reversed() + pictures[large.count...]
    }
}

extension ImageHeader {
    /// The header of the largest picture that a file of another format holds.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` if it holds none.
    init(
        held locator: any PictureLocating.Type, _ format: ImageFormat, _ reader: ByteReader, _ limits: ImageLimits
    ) throws(ImageError) {
        let found = try locator.pictures(reader, format, limits)
        if found.isRanked {
            self = try ImageHeader(ranked: found.pictures[...], format, reader, limits)
            return
        }
        let pictures = found.pictures.prefix(PictureLocators.maximumPictures)
            .compactMap { HeldPicture($0, in: reader, limits) }
            .enumerated().sorted {
                let (p, q) = ($0.element.size.pixelCount, $1.element.size.pixelCount)
                return p == q ? $0.offset < $1.offset : p > q
            }.map(\.element)
        for index in pictures.indices {
            guard let header = try? pictures[index].header(limits) else { continue }
            self = header
            hold(pictures[index], in: format)
            info.orientation = found.orientation ?? header.info.orientation
            self.pictures = HeldPicture.alike(pictures[index...])
            ownOrientation = found.orientation == nil
            return
        }
        throw .noPicture(input: reader.name, format: format)
    }

    /// The header of the first picture that can be read, of a file of another format.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` if none can.
    fileprivate init(
        ranked pictures: ArraySlice<EmbeddedPicture>, _ format: ImageFormat, _ reader: ByteReader,
        _ limits: ImageLimits
    ) throws(ImageError) {
        for index in pictures.indices.prefix(PictureLocators.maximumPictures) {
            guard let picture = HeldPicture(pictures[index], in: reader, limits),
                let header = try? picture.header(limits)
            else { continue }
            self = header
            hold(picture, in: format)
            self.pictures = [picture]
            ownOrientation = true
            alternatives = Array(pictures[(index + 1)...])
            return
        }
        throw .noPicture(input: reader.name, format: format)
    }

    /// Turns the header of a picture into that of a file of the given format, which holds it.
    private mutating func hold(_ picture: HeldPicture, in format: ImageFormat) {
        let range = picture.range
        info.format = format
        (info.frameCount, info.duration, info.loopCount) = (1, nil, nil)
        info.embeddedPreviews = []
        exif = range.flatMap { range in exif?.shifted(by: range.lowerBound) }
        xmp = range.flatMap { range in xmp?.shifted(by: range.lowerBound) }
    }

    /// The header of the file if the picture that it is shown by is damaged; nil when no other one can be read.
    func next(_ source: ByteSource, _ limits: ImageLimits) -> ImageHeader? {
        guard !alternatives.isEmpty else { return nil }
        return try? ImageHeader(ranked: alternatives[...], info.format, ByteReader(source), limits)
    }
}

extension Range<Int> {
    fileprivate func shifted(by offset: Int) -> Range<Int> { Range(from: lowerBound &+ offset, to: upperBound &+ offset) }
}

extension ImageDecoder {
    /// Decodes the smallest of a file's pictures that is large enough, or the next best if that one is damaged.
    ///
    /// - Parameters:
    ///   - header: The header of the file, with at least one picture.
    ///   - source: The file.
    ///   - request: The request for the file.
    func decodeHeld(
        _ header: ImageHeader, _ source: ByteSource, _ request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        // A region is given in pixels of the largest.
        let target = request.region == nil ? request.target : nil
        var refusal: ImageError?
        for picture in HeldPicture.order(header.pictures, for: target) {
            do throws(ImageError) {
                return try decodeHeld(picture, header, request)
            } catch {
                switch error {
                case .cancelled, .timedOut, .workerFailed: throw error
                default: refusal = refusal ?? error
                }
            }
        }
        throw refusal ?? .unsupported(input: source.name, reason: "no preview")
    }

    private func decodeHeld(
        _ picture: HeldPicture, _ header: ImageHeader, _ request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        var info = try picture.header(limits).info
        // Turned in another way than the file says.
        guard !header.ownOrientation || info.orientation == header.info.orientation else {
            throw .unsupported(input: picture.source.name, reason: "an embedded picture of another orientation")
        }
        var source = picture.source
        try limits.check(info, source: source)
        if info.format == .svg { (source, info) = try checkedDrawing(source, frames: 1) }
        info.colorProfile = info.colorProfile ?? header.info.colorProfile
        var part = request
        part.info = info
        part.allowsEmbeddedPreview = false
        return try DecoderRegistry.decode(source, part, with: decoders(for: info.format))
    }
}
