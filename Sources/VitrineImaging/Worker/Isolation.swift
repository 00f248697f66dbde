import Synchronization

/// Whether decoders run in a worker process of their own.
///
/// A server that decodes what strangers send sets it once, at its start:
///
/// ```swift
/// Isolation.standard = .always
/// ```
public enum Isolation: Int, Sendable, Hashable {
    /// Decoders that need it in a worker where there is one; else in this process, where the decoder allows it. The
    /// default.
    case automatic
    /// Every decode in a worker, whatever the format; without one, decoding fails.
    ///
    /// What remains in this process is memory-safe Swift: the detection of the format, the reading of the header (with
    /// metadata and colour profile), the check of what an SVG document refers to, and the scaling and colour conversion
    /// of the worker's samples. Pictures are encoded here, too. Files that are still arriving give no pictures of
    /// single scans or rows, only the camera's preview and the complete picture.
    case always
    /// Everything in this process, for input you made yourself. Formats that only the worker reads fail.
    case inProcess

    private static let code = Atomic<Int>(Isolation.automatic.rawValue)

    /// What decoders use that are not told: those of thumbnails, caches, stores and views, and every ``ImageDecoder``
    /// made without an isolation. Default ``automatic``. Concerns decoders made afterwards.
    public static var standard: Isolation {
        get { Isolation(rawValue: code.load(ordering: .acquiring)) ?? .automatic }
        set { code.store(newValue.rawValue, ordering: .releasing) }
    }
}

/// Decodes formats in worker processes.
public struct IsolatedDecoder: ImageDecoding {
    public let formats: Set<ImageFormat>
    /// False: it runs in a worker already.
    public var needsIsolation: Bool { false }
    private let pool: WorkerPool
    private let decoder: String?

    /// Every format the worker reads.
    public static let allFormats = Set(ImageFormat.allCases)

    /// - Parameters:
    ///   - formats: What it is asked for.
    ///   - pool: Whose workers decode.
    ///   - decoder: The type name of the worker's decoder to use; nil for the first that reads the format.
    public init(
        formats: Set<ImageFormat> = IsolatedDecoder.allFormats, pool: WorkerPool = .shared, decoder: String? = nil
    ) {
        self.formats = formats
        self.pool = pool
        self.decoder = decoder
    }

    public func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try pool.decode(source, request, decoder: decoder)
    }
}

/// Encodes in a worker process a format that this library does not link a codec for.
public struct WorkerEncoder: ImageEncoding {
    public let format: ImageFormat
    private let pool: WorkerPool

    public init(format: ImageFormat = .jxl, pool: WorkerPool = .shared) {
        self.format = format
        self.pool = pool
    }

    public func encode(_ image: Image, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        try pool.encode(image, as: format, quality: quality, isProgressive: options.isProgressive)
    }
}
