extension ImageInfo {
    /// Reads the header of `input` and no pixels. Blocking; typically some microseconds and a few KiB of reading.
    ///
    /// Whether the picture is within `limits` is not judged here, but by ``ImageLimits/check(_:source:frames:)``; of
    /// `limits` only the size of profiles and documents counts.
    ///
    /// - Throws: ``ImageError/unreadable(input:reason:)``, ``ImageError/empty(input:)``,
    ///   ``ImageError/notAnImage(input:)``, ``ImageError/corrupt(input:reason:)``, ``ImageError/truncated(input:)``,
    ///   or ``ImageError/unsupported(input:reason:)`` for a compressed SVG.
    public init(of input: ImageInput, limits: ImageLimits = .standard) throws(ImageError) {
        try self.init(reading: ByteSource(input), limits: limits)
    }

    /// Reads the header of an opened input; see ``init(of:limits:)``.
    public init(reading source: ByteSource, limits: ImageLimits = .standard) throws(ImageError) {
        self = try ImageHeader(ByteReader(source), limits).info
    }
}

extension ImageHeader {
    /// Finds the format by content and reads its header.
    package init(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        if let decoder = try RegisteredDecoders.shared.decoder(recognizing: reader) {
            self = try decoder.header(reader, limits)
        } else {
            guard let format = try ImageFormat.detectBuiltIn(reader), let headerReader = format.headerReader else {
                throw .notAnImage(input: reader.name)
            }
            self = try headerReader.read(reader, limits)
        }
        guard !info.storedSize.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        sortPreviews()
    }
}

extension ImageFormat {
    /// Reads the header of a built-in format; nil for any other.
    var headerReader: (any HeaderReading.Type)? {
        switch self {
        case .jpeg: JPEGHeaderReader.self
        case .png: PNGHeaderReader.self
        case .webp: WebPHeaderReader.self
        case .gif: GIFHeaderReader.self
        case .tiff: TIFFHeaderReader.self
        case .heic, .avif: HEIFHeaderReader.self
        case .jxl: JXLHeaderReader.self
        case .jp2: JP2HeaderReader.self
        case .svg: SVGHeaderReader.self
        case .bmp: BMPHeaderReader.self
        case .ico: ICOHeaderReader.self
        default: nil
        }
    }
}
