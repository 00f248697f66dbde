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
