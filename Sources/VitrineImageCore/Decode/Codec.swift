import VitrineCore

/// All that reads and writes one family of file formats.
///
/// ``ImageDecoder/register(_:)`` adds a codec of your own: a format, a look at the first bytes, a reader of headers,
/// and a decoder of pixels.
///
/// ```swift
/// // Sun raster files of the kind that stores 32 bits a pixel as unused, red, green, blue.
/// let sunRaster = ImageFormat("sun-raster", mediaTypes: ["image/x-sun-raster"], fileExtensions: ["ras", "sun"])
/// let codec = Codec(sunRaster) { prefix in
///     prefix.starts(with: [0x59, 0xA6, 0x6A, 0x95])
/// } info: { source in
///     let header = try source.bytes(at: 0, count: 32)
///     guard header.count == 32 else { throw ImageError.truncated(input: source.name) }
///     func number(_ at: Int) -> Int { header[at..<at + 4].reduce(0) { $0 << 8 | Int($1) } }
///     guard number(12) == 32, number(20) == 3, number(28) == 0 else {
///         throw ImageError.unsupported(input: source.name, reason: "a Sun raster file of another kind")
///     }
///     return ImageInfo(format: sunRaster, storedSize: PixelSize(width: number(4), height: number(8)))
/// } decode: { source, request in
///     let size = request.info.storedSize
///     let pixels = try source.bytes(at: 32, count: 4 * size.pixelCount)
///     guard pixels.count == 4 * size.pixelCount else { throw ImageError.truncated(input: source.name) }
///     return try PixelImage(width: size.width, height: size.height, layout: .xrgb8, alpha: .opaque, bytes: pixels)
/// }
///
/// try ImageDecoder.register(codec)
/// ```
// A codec of the package knows the kernel and no other codec. Parts of others that it needs, such as the decoder of the
// PNG files inside an icon, are given to it where `Codecs` are assembled.
public struct Codec: Sendable {
    /// Reads the structure of a file, never its pixels; see ``HeaderReading``.
    package typealias Header = @Sendable (ByteReader, ImageLimits) throws(ImageError) -> ImageHeader

    /// The formats, the most usual one first.
    package let formats: [ImageFormat]
    /// Returns the format of an input by its content; nil if it has none of ``formats``. Called for every input that no
    /// codec before has recognised, so its first bytes should suffice to say no.
    package let signature: @Sendable (ByteReader) throws(ImageError) -> ImageFormat?
    /// Reads the header of an image; nil for formats whose files are shown by an image inside them.
    package let header: Header?
    /// Finds the images in a file of such a format.
    package let locator: (any PictureLocating.Type)?
    /// Reads recordings and videos, whose formats are none of ``formats``.
    package let media: (any MediaReading.Type)?
    /// Whether headers and pixels are read in a worker process where there is one. False for formats whose code has
    /// earned to read foreign bytes beside the memory of a program; see `Security.md`.
    package let needsIsolation: Bool
    /// Whether only this process has the codec, because it was registered here.
    package let isRegistered: Bool
    /// In the order in which they are asked. Empty where only `vitrine-worker` decodes.
    package var decoders: [any ImageDecoding]
    /// Of two for one format, the first is used.
    package var encoders: [any ImageEncoding]
    /// Decodes a file while its bytes arrive; nil if the codec decodes whole files only.
    package var arrivalDecoder: (any ArrivalDecoding.Type)?
    /// Begins the file of an animation; nil if the codec writes none.
    package var animationWriter: (@Sendable (AnimationParameters) throws(ImageError) -> any AnimationWriting)?
    /// Reads and writes texts in a file; nil for formats without texts.
    package var texts: (any TextStoring.Type)?
    /// Makes a drawing safe to draw; nil for formats that refer to no other files.
    package var drawing: (any CheckedDrawing.Type)?
    /// The library that it uses, loaded if it is loaded when first needed; nil for none.
    package var library: (@Sendable () -> LibraryVersion)?

    /// A codec of images.
    package init(
        _ formats: ImageFormat..., needsIsolation: Bool = true, header: any HeaderReading.Type,
        decoders: [any ImageDecoding] = [], encoders: [any ImageEncoding] = [],
        signature: @escaping @Sendable (ByteReader) throws(ImageError) -> ImageFormat?
    ) {
        (self.formats, self.signature, locator, media) = (formats, signature, nil, nil)
        self.header = { reader, limits throws(ImageError) in try header.read(reader, limits) }
        (self.needsIsolation, isRegistered) = (needsIsolation, false)
        (self.decoders, self.encoders) = (decoders, encoders)
    }

    /// A codec that a user registers.
    init(_ decoder: RegisteredDecoder) {
        (formats, signature, header) = ([decoder.format], decoder.signature, decoder.header)
        (locator, media) = (nil, nil)
        (needsIsolation, isRegistered, decoders, encoders) = (false, true, [decoder], [])
    }

    /// A codec of files that are shown by an image inside them.
    package init(_ locator: any PictureLocating.Type) {
        (formats, header, self.locator, media) = (locator.formats, nil, locator, nil)
        (needsIsolation, isRegistered, decoders, encoders) = (true, false, [], [])
        signature = { reader throws(ImageError) in
            do throws(ImageError) {
                return try locator.format(of: reader)
            } catch {
                // Too short for this family.
                if case .unreadable = error { throw error }
                return nil
            }
        }
    }

    /// A codec of recordings and videos.
    package init(media: any MediaReading.Type) {
        (formats, header, locator, self.media) = ([], nil, nil, media)
        (needsIsolation, isRegistered, decoders, encoders) = (true, false, [], [])
        signature = { _ in nil }
    }
}

/// Some codecs, in the order in which their signatures are asked: all that a process can read and write.
package struct Codecs: Sendable {
    /// Those of users, which are asked first.
    private var registered: [Codec] = []
    private let others: [Codec]
    private let byFormat: [ImageFormat: Codec]

    package init(_ all: [Codec]) {
        others = all
        byFormat = Dictionary(all.flatMap { codec in codec.formats.map { ($0, codec) } }) { first, _ in first }
    }

    package var all: [Codec] { registered + others }

    /// These codecs, and before them those that are registered now, the latest first.
    package var withRegistered: Codecs {
        var codecs = self
        codecs.registered = RegisteredCodecs.shared.all
        return codecs
    }

    /// These codecs with more decoders.
    ///
    /// - Parameters:
    ///   - decoders: They are asked after those of the codecs.
    ///   - first: They are asked before those of the codecs.
    package func adding(_ decoders: [any ImageDecoding], first: [any ImageDecoding] = []) -> Codecs {
        Codecs(
            all.map { codec in
                func reads(_ decoder: any ImageDecoding) -> Bool { !decoder.formats.isDisjoint(with: codec.formats) }
                var codec = codec
                codec.decoders = first.filter(reads) + codec.decoders + decoders.filter(reads)
                return codec
            })
    }

    /// The libraries that decode and encode in this process. Loads those that are loaded when first needed.
    package var libraries: [LibraryVersion] { all.compactMap { $0.library?() } }

    /// How files that hold images are read.
    package var locators: [any PictureLocating.Type] { all.compactMap(\.locator) }

    /// How recordings and videos are read.
    package var media: [any MediaReading.Type] { all.compactMap(\.media) }

    /// The formats of files that hold images.
    package var holdingFormats: [ImageFormat] { all.filter { $0.locator != nil }.flatMap(\.formats) }

    /// The formats of all codecs: those of images, then those of files that hold images.
    package var formats: [ImageFormat] { ImageFormat.pictures.filter { self[$0] != nil } + holdingFormats }

    /// The codec of a format; nil if there is none.
    package subscript(format: ImageFormat) -> Codec? {
        registered.first { $0.formats.contains(format) } ?? byFormat[format]
    }

    /// The decoders of a format, in the order in which they are asked.
    package func decoders(for format: ImageFormat) -> [any ImageDecoding] {
        self[format]?.decoders.filter { $0.formats.contains(format) } ?? []
    }

    /// The format of an input by its content.
    package func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        for codecs in [registered, others] {
            for codec in codecs {
                if let format = try codec.signature(reader) { return format }
            }
        }
        return nil
    }

    /// The container of a recording or a video by its content; nil for other content.
    package func mediaFormat(of reader: ByteReader) throws(ImageError) -> MediaFormat? {
        for media in media {
            if let format = try media.format(of: reader) { return format }
        }
        return nil
    }

    /// The error for an input whose content is of no format of these codecs. It names the module that was left out of
    /// the build if the input has a name like the files of that module.
    package func unrecognized(_ input: String) -> ImageError {
        let name = FileName.pathExtension(of: input).lowercased()
        let format = ImageFormat.known.first { $0.fileExtensions.contains(name) }
        let isMedia = MediaFormat.allCases.contains { $0.fileExtensions.contains(name) }
        if let format, self[format] == nil, let module = format.module {
            return .unsupported(input: input, reason: Self.leftOut(module))
        }
        return isMedia && media.isEmpty
            ? .unsupported(input: input, reason: Self.leftOut("VitrineContainers")) : .notAnImage(input: input)
    }

    private static func leftOut(_ module: String) -> String { "\(module) is not part of this build" }

    /// The formats that can be written.
    package var writtenFormats: Set<ImageFormat> { Set(all.flatMap(\.encoders).map(\.format)) }

    /// The encoder of a format.
    ///
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``, which names the missing part.
    package func encoder(for format: ImageFormat) throws(ImageError) -> any ImageEncoding {
        guard let encoder = self[format]?.encoders.first(where: { $0.format == format }) else {
            throw .encodingFailed(format: format, reason: reasonAgainstWriting(format))
        }
        return encoder
    }

    private func reasonAgainstWriting(_ format: ImageFormat) -> String {
        if self[format] == nil, let module = format.module { return Self.leftOut(module) }
        return switch format {
        case .jpeg, .webp, .avif: "built without the trait SystemCodecs"
        case .jxl: "only vitrine-worker writes this format, and it is not in use here"
        default: "this format can be read, but not written"
        }
    }

    /// The header of an image inside another file.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` if it is of no format of these codecs, or holds an image in
    ///   turn.
    package func header(ofPictureIn reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        guard let format = try format(of: reader), let header = self[format]?.header else {
            throw .unsupported(input: reader.name, reason: "an embedded image of an unknown format")
        }
        return try header(reader, limits)
    }

    /// Decodes an image by the first decoder of its format that does not refuse it.
    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try decoders(for: request.info.format).decode(source, request)
    }
}
