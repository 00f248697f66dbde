import VitrineImageCore
import VitrineCore

extension HeldPicture {
    /// Images of one file looked at; the rest is passed over.
    fileprivate static let maximumPictures = 64

    /// - Returns: nil when its bytes lie outside the file, or are no image of an image format.
    init?(
        _ picture: EmbeddedPicture, in reader: ByteReader, limits: ImageLimits, archive: ArchivedPage?
    ) {
        let bytes: [UInt8]?
        switch picture.content {
        case .range(let range):
            guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= reader.count, range != 0..<reader.count
            else { return nil }
            self.init(ByteSource(range, of: reader.source), at: range, size: picture.size, limits: limits)
            return
        case .bytes(let content): bytes = content
        case .deflated(let compressed, let count):
            bytes = try? InflaterRange.inflate(
                compressed, reader.source, wrapper: .raw, claimed: count, maximum: EmbeddedPicture.maximumBytes)
        case .base64(let text): bytes = Base64Text.decode(text)
        case .archived(let page): bytes = try? archive?(reader.source, page, limits)
        }
        guard let bytes, !bytes.isEmpty else { return nil }
        self.init(ByteSource(bytes: bytes, name: reader.name), at: nil, size: picture.size, limits: limits)
    }

    private init?(_ source: ByteSource, at range: Range<Int>?, size: PixelSize?, limits: ImageLimits) {
        guard let size = size ?? (try? HeldPicture.header(source, limits))?.info.storedSize, !size.isEmpty
        else { return nil }
        self.init(source: source, range: range, size: size)
    }

    /// The header of the image, which is never one that holds another image.
    func header(_ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try HeldPicture.header(source, limits)
        guard header.info.storedSize == size else {
            throw .corrupt(input: source.name, reason: "an embedded image of another size than announced")
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

/// Returns the file of a page of a comic that is compressed in an archive, counted from 0; no bytes if there are fewer.
package typealias ArchivedPage = @Sendable (ByteSource, Int, ImageLimits) throws(ImageError) -> [UInt8]

/// The images by which a file of another format is shown.
struct ShownPictures {
    /// The header of the file: that of its first image.
    private(set) var header: ImageHeader
    /// That image, and others that show the same, the largest first.
    private(set) var pictures: [HeldPicture]
    /// Whether each of the images has its own orientation.
    let hasOwnOrientation: Bool

    /// - Parameters:
    ///   - index: Which image of a book or a comic. One that cannot be read is passed over.
    ///   - archive: Opens archives; nil where nothing does.
    /// - Throws: ``ImageError/unsupported(input:reason:)`` if there is none.
    init(
        _ locator: any PictureLocating.Type, _ reader: ByteReader, format: ImageFormat, limits: ImageLimits,
        from index: Int, archive: ArchivedPage?
    ) throws(ImageError) {
        let found = try ShownPictures.opened(
            locator.pictures(reader, format: format, limits: limits), reader, limits: limits, from: index,
            archive: archive)
        guard index == 0 || index > 0 && found.isRanked else { throw .noPicture(input: reader.name, format: format) }
        if found.isRanked {
            let last = min(found.pictures.count, HeldPicture.maximumPictures)
            for number in index..<max(index, last) {
                guard let picture = HeldPicture(found.pictures[number], in: reader, limits: limits, archive: archive),
                    let own = try? picture.header(limits)
                else { continue }
                (header, pictures, hasOwnOrientation) = (own, [picture], true)
                hold(picture, in: format)
                header.info.pictureIndex = number
                return
            }
            throw .noPicture(input: reader.name, format: format)
        }
        let all = found.pictures.prefix(HeldPicture.maximumPictures)
            .compactMap { HeldPicture($0, in: reader, limits: limits, archive: archive) }
            .enumerated().sorted {
                let (p, q) = ($0.element.size.pixelCount, $1.element.size.pixelCount)
                return p == q ? $0.offset < $1.offset : p > q
            }.map(\.element)
        for number in all.indices {
            guard let own = try? all[number].header(limits) else { continue }
            (header, pictures) = (own, HeldPicture.alike(all[number...]))
            hasOwnOrientation = found.orientation == nil
            hold(all[number], in: format)
            header.info.orientation = found.orientation ?? own.info.orientation
            return
        }
        throw .noPicture(input: reader.name, format: format)
    }

    /// The images, with the first page from an index on that an archive gives. Damaged pages before it are empty.
    ///
    /// - Throws: The error of the archive, as the first compressed page tells.
    private static func opened(
        _ found: EmbeddedPictures, _ reader: ByteReader, limits: ImageLimits, from first: Int, archive: ArchivedPage?
    ) throws(ImageError) -> EmbeddedPictures {
        guard case .archived? = found.pictures.first?.content else { return found }
        guard let archive else {
            throw .unsupported(input: reader.name, reason: "vitrine-worker opens archives of this kind")
        }
        var (found, failure) = (found, ImageError?.none)
        for index in found.pictures.indices.dropFirst(first) {
            guard case .archived(let number) = found.pictures[index].content else { return found }
            do throws(ImageError) {
                let bytes = try archive(reader.source, number, limits)
                guard !bytes.isEmpty else { return EmbeddedPictures() }
                found.pictures[index].content = .bytes(bytes)
                return found
            } catch {
                guard error.concernsBytes else { throw error }
                failure = failure ?? error
                found.pictures[index].content = .bytes([])
            }
        }
        if let failure { throw failure }
        return EmbeddedPictures()
    }

    /// Turns the header of an image into that of a file of the given format, which holds it.
    private mutating func hold(_ picture: HeldPicture, in format: ImageFormat) {
        let range = picture.range
        header.info.format = format
        (header.info.frameCount, header.info.duration, header.info.loopCount) = (1, nil, nil)
        header.info.embeddedPreviews = []
        header.exif = range.flatMap { range in header.exif?.shifted(by: range.lowerBound) }
        header.xmp = range.flatMap { range in header.xmp?.shifted(by: range.lowerBound) }
    }
}

extension Range<Int> {
    fileprivate func shifted(by offset: Int) -> Range<Int> { Range(from: lowerBound &+ offset, to: upperBound &+ offset) }
}

/// Decodes files that are shown by an image inside them: the smallest one that is large enough, or the next best if
/// that one is damaged.
private struct HeldPictureDecoder: ImageDecoding {
    let formats: Set<ImageFormat>
    private let codecs: Codecs
    private let archive: ArchivedPage?

    init(_ codecs: Codecs, archive: ArchivedPage?) {
        (formats, self.codecs, self.archive) = (Set(codecs.holdingFormats), codecs, archive)
    }

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        let (reader, format) = (ByteReader(source), request.info.format)
        guard let locator = codecs[format]?.locator else {
            throw .noPicture(input: source.name, format: format)
        }
        let shown = try ShownPictures(
            locator, reader, format: format, limits: request.limits, from: request.info.pictureIndex, archive: archive)
        guard shown.header.info.pictureIndex == request.info.pictureIndex,
            shown.header.info.storedSize == request.info.storedSize
        else { throw .corrupt(input: source.name, reason: "the file has changed its image") }
        // A region is given in pixels of the largest.
        let target = request.region == nil ? request.target : nil
        var refusal: ImageError?
        for picture in HeldPicture.order(shown.pictures, for: target) {
            do throws(ImageError) {
                return try decode(picture, shown: shown, request: request)
            } catch {
                switch error {
                case .cancelled, .timedOut, .workerFailed: throw error
                default: refusal = refusal ?? error
                }
            }
        }
        throw refusal ?? .noPicture(input: source.name, format: format)
    }

    private func decode(
        _ picture: HeldPicture, shown: ShownPictures, request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        var info = try picture.header(request.limits).info
        // Turned in another way than the file says.
        guard !shown.hasOwnOrientation || info.orientation == shown.header.info.orientation else {
            throw .unsupported(input: picture.source.name, reason: "an embedded image of another orientation")
        }
        try request.limits.check(info, source: picture.source)
        info.colorProfile = info.colorProfile ?? request.info.colorProfile
        var part = request
        part.info = info
        part.options.allowsEmbeddedPreview = false
        return try codecs.decode(picture.source, part)
    }
}

extension Codecs {
    /// These codecs, which decode files that hold images by their other decoders.
    ///
    /// - Parameter archive: Opens archives; nil where nothing does.
    package func showingHeldPictures(archive: ArchivedPage? = nil) -> Codecs {
        let decoder = HeldPictureDecoder(self, archive: archive)
        return Codecs(
            all.map { codec in
                guard codec.locator != nil else { return codec }
                var codec = codec
                codec.decoders = [decoder]
                return codec
            })
    }
}
