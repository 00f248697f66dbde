import VitrineImageCore
import Synchronization

/// The choice between reading files in this process and in worker processes.
///
/// A server that decodes files of its users sets it once, at its start:
///
/// ```swift
/// Isolation.standard = .always
/// ```
public enum Isolation: Sendable, Hashable {
    /// Reads JPEG, PNG, GIF, BMP and WebP in this process, and the headers, covers and pixels of all other formats in a
    /// worker. Where no worker is installed, this process reads them, and formats that only the worker reads fail. The
    /// default.
    case automatic
    /// Reads every format in a worker. Without a worker, decoding fails.
    ///
    /// Only memory-safe Swift runs in this process: it detects the format, reads metadata and the colour profile, and
    /// scales and converts the worker's samples. Images are encoded here, too. Files that are still arriving give only
    /// the camera's preview and the complete image, no single scans or rows.
    case always
    /// Reads everything in this process, for input that you made yourself. Formats that only the worker reads fail.
    case inProcess

    private static let current = Mutex(Isolation.automatic)

    /// The isolation of every ``ImageDecoder`` made without one, including those of pipelines, caches, stores and
    /// views.
    ///
    /// Default ``automatic``. Affects decoders made afterwards.
    public static var standard: Isolation {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }
}

/// Decodes formats in worker processes.
package struct IsolatedDecoder: ImageDecoding {
    package let formats: Set<ImageFormat>
    private let pool: WorkerPool
    private let decoder: String?
    private let leavesDamaged: Bool

    /// Every format the worker reads.
    package static let allFormats = Set(ImageFormat.pictures)

    /// - Parameters:
    ///   - formats: The formats it decodes.
    ///   - pool: The pool whose workers decode.
    ///   - decoder: The type name of the worker's decoder to use; nil for the first that reads the format.
    ///   - leavesDamaged: Whether files that are damaged for it are left to the next decoder.
    package init(
        formats: Set<ImageFormat> = IsolatedDecoder.allFormats, pool: WorkerPool = .shared, decoder: String? = nil,
        leavesDamaged: Bool = false
    ) {
        self.formats = formats
        self.pool = pool
        self.decoder = decoder
        self.leavesDamaged = leavesDamaged
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        do throws(ImageError) {
            return try pool.decode(source, request, decoder: decoder)
        } catch {
            guard leavesDamaged, case .corrupt(let input, let reason) = error else { throw error }
            throw .unsupported(input: input, reason: reason)
        }
    }

    package func frames(of source: ByteSource, _ request: DecodeRequest) -> any FrameDecoding {
        WorkerFrames(source, request, pool: pool, decoder: decoder)
    }
}

/// Encodes in worker processes a format without a codec in this process.
package struct WorkerEncoder: ImageEncoding {
    package let format: ImageFormat
    private let pool: WorkerPool

    package init(format: ImageFormat = .jxl, pool: WorkerPool = .shared) {
        self.format = format
        self.pool = pool
    }

    package func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        try pool.encode(image, as: format, quality: quality, isProgressive: options.isProgressive)
    }
}
