/// Decodes formats in worker processes.
public struct IsolatedDecoder: ImageDecoding {
    public let formats: Set<ImageFormat>
    /// False: it runs in a worker already.
    public var needsIsolation: Bool { false }
    private let pool: WorkerPool
    private let decoder: String?

    /// Every format the worker reads.
    public static let allFormats = Set(ImageFormat.builtIn)

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
