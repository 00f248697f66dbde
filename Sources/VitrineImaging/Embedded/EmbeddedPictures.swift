import VitrineContainers
import VitrineCore

extension EmbeddedPicture.Content {
    /// The bytes that are not in the file as they are; nil for those that are, and where they cannot be made.
    fileprivate func bytes(of reader: ByteReader, _ limits: ImageLimits) -> [UInt8]? {
        switch self {
        case .range: nil
        case .bytes(let bytes): bytes
        case .deflated(let compressed, let count):
            try? InflaterRange.inflate(
                compressed, reader.source, wrapper: .raw, claimed: count, maximum: ZipArchive.maximumPicture)
        case .base64(let text): Base64Text.decode(text)
        case .archived(let page): try? ArchivedPages.page(page, of: reader.source, limits)
        }
    }
}

extension HeldPicture {
    /// Pictures of one file looked at; the rest is passed over.
    fileprivate static let maximumPictures = 64

    /// - Returns: nil when its bytes lie outside the file, or are no picture of an image format.
    init?(_ picture: EmbeddedPicture, in reader: ByteReader, _ limits: ImageLimits) {
        let (source, place): (ByteSource, Range<Int>?)
        if case .range(let range) = picture.content {
            guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= reader.count,
                range != 0..<reader.count
            else { return nil }
            source = ByteSource(range, of: reader.source)
            place = range
        } else {
            guard let bytes = picture.content.bytes(of: reader, limits), !bytes.isEmpty else { return nil }
            source = ByteSource(bytes: bytes, name: reader.name)
            place = nil
        }
        guard let size = picture.size ?? (try? HeldPicture.header(source, limits))?.info.storedSize, !size.isEmpty
        else { return nil }
        self.init(source: source, range: place, size: size)
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
        let header = try Codecs.embedded.header(ofPictureIn: reader, limits)
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

extension RecordingCover {
    /// Finds the picture of an input, of any format that may stand inside another file. Default: the front cover.
    package init?(
        of source: ByteSource, preferring kind: Kind = .front, limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) {
        try self.init(of: source, preferring: kind, limits: limits, cancellation: cancellation) {
            HeldPicture($0, in: $1, $2)
        }
    }
}

extension ImageHeader {
    /// The header of the largest picture that a file of another format holds.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` if it holds none.
    init(
        held locator: any PictureLocating.Type, _ format: ImageFormat, _ reader: ByteReader, _ limits: ImageLimits
    ) throws(ImageError) {
        let found = try ArchivedPages.opened(locator.pictures(reader, format, limits), reader, limits)
        if found.isRanked {
            self = try ImageHeader(ranked: found.pictures[...], format, reader, limits)
            return
        }
        let pictures = found.pictures.prefix(HeldPicture.maximumPictures)
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
        for index in pictures.indices.prefix(HeldPicture.maximumPictures) {
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
        part.options.allowsEmbeddedPreview = false
        return try DecoderRegistry.decode(source, part, with: decoders(for: info.format))
    }
}
