import VitrineCore

/// All that reads and writes one family of file formats.
///
/// A codec knows the kernel and no other codec. Parts of others that it needs, such as the decoder of the PNG files inside
/// an icon, are given to it where ``Codecs`` are assembled.
package struct Codec: Sendable {
    /// The formats, the most usual one first.
    package let formats: [ImageFormat]
    /// Returns the format of an input by its content; nil if it has none of ``formats``. Called for every input that no
    /// codec before has recognised, so its first bytes should suffice to say no.
    package let signature: @Sendable (ByteReader) throws(ImageError) -> ImageFormat?
    /// Reads the header of an image; nil for formats whose files are shown by a picture inside them.
    package let header: (any HeaderReading.Type)?
    /// Finds the pictures in a file of such a format.
    package let locator: (any PictureLocating.Type)?
    /// Reads recordings and films, whose formats are none of ``formats``.
    package let media: (any MediaReading.Type)?
    /// Whether headers and pixels are read in a worker process where there is one. False for formats whose code has
    /// earned to read foreign bytes beside the memory of a program; see `Security.md`.
    package let needsIsolation: Bool
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
        (self.formats, self.signature, self.header, locator, media) = (formats, signature, header, nil, nil)
        (self.needsIsolation, self.decoders, self.encoders) = (needsIsolation, decoders, encoders)
    }

    /// A codec of files that are shown by a picture inside them.
    package init(_ locator: any PictureLocating.Type) {
        (formats, header, self.locator, media) = (locator.formats, nil, locator, nil)
        (needsIsolation, decoders, encoders) = (true, [], [])
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

    /// A codec of recordings and films.
    package init(media: any MediaReading.Type) {
        (formats, header, locator, self.media) = ([], nil, nil, media)
        (needsIsolation, decoders, encoders) = (true, [], [])
        signature = { _ in nil }
    }
}

/// Some codecs, in the order in which their signatures are asked.
package struct Codecs: Sendable {
    package let all: [Codec]
    private let byFormat: [ImageFormat: Codec]

    package init(_ all: [Codec]) {
        self.all = all
        byFormat = Dictionary(all.flatMap { codec in codec.formats.map { ($0, codec) } }) { first, _ in first }
    }

    /// The libraries that decode and encode in this process. Loads those that are loaded when first needed.
    package var libraries: [LibraryVersion] { all.compactMap { $0.library?() } }

    /// How files that hold pictures are read.
    package var locators: [any PictureLocating.Type] { all.compactMap(\.locator) }

    /// How recordings and films are read.
    package var media: [any MediaReading.Type] { all.compactMap(\.media) }

    /// The formats of files that hold pictures.
    package var holdingFormats: [ImageFormat] { all.filter { $0.locator != nil }.flatMap(\.formats) }

    /// The formats of all codecs: those of pictures, then those of files that hold pictures.
    package var formats: [ImageFormat] { ImageFormat.builtIn.filter { self[$0] != nil } + holdingFormats }

    /// The codec of a format; nil if this build has none.
    package subscript(format: ImageFormat) -> Codec? { byFormat[format] }

    /// The format of an input by its content.
    package func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        for codec in all {
            if let format = try codec.signature(reader) { return format }
        }
        return nil
    }

    /// The container of a recording or a film by its content; nil for other content.
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
        let format = (ImageFormat.builtIn + ImageFormat.containers).first { $0.fileExtensions.contains(name) }
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
    /// - Throws: ``ImageError/unsupported(input:reason:)`` if it is of no format of these codecs, or holds a picture in
    ///   turn.
    package func header(ofPictureIn reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        guard let format = try format(of: reader), let header = self[format]?.header else {
            throw .unsupported(input: reader.name, reason: "an embedded picture of an unknown format")
        }
        return try header.read(reader, limits)
    }

    /// Decodes an image by the first decoder of its format that does not refuse it.
    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try DecoderRegistry.decode(source, request, with: self[request.info.format]?.decoders ?? [])
    }
}
