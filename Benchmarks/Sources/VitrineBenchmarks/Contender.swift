import CPeers
import Foundation
import VitrineCore
import VitrineImaging

/// One way to make a thumbnail; each measurement runs one of them in a process of its own.
enum Contender: String, CaseIterable, Sendable {
    /// Reads the file's header and does no more: the memory a process of this program has anyway.
    case idle
    /// Vitrine, every decoder in this process.
    case vitrine
    /// Vitrine as it comes: foreign and unstoppable decoders in a worker.
    case vitrineDefault
    /// Vitrine, every decoder in a worker.
    case vitrineWorker
    /// Vitrine, the camera's embedded preview allowed.
    case vitrinePreview
    /// `vips_thumbnail` and `jpegsave`, in process, one thread.
    case libvips
    /// libjpeg-turbo decoding at 1/8, and nothing else.
    case turboEighth

    var title: String {
        switch self {
        case .idle: "idle"
        case .vitrine: "Vitrine"
        case .vitrineDefault: "Vitrine (default isolation)"
        case .vitrineWorker: "Vitrine (worker)"
        case .vitrinePreview: "Vitrine (embedded preview)"
        case .libvips: "libvips"
        case .turboEighth: "libjpeg-turbo 1/8 decode only"
        }
    }

    private var decoder: ImageDecoder {
        // The corpus has a picture of 280 million pixels, which the peers decode too.
        var limits = ImageLimits.standard
        limits.maximumPixels = 300_000_000
        return switch self {
        case .vitrineDefault: ImageDecoder(limits: limits)
        case .vitrineWorker: ImageDecoder(limits: limits, isolation: .always)
        default: ImageDecoder(limits: limits, isolation: .inProcess)
        }
    }

    /// What is done once per process before the clock starts.
    func prepare() throws {
        if self == .libvips, peers_start() != 0 { throw BenchmarkError.failed("libvips does not start") }
    }

    /// One thumbnail of `path` within `size` pixels, as JPEG of quality 75 in memory.
    func run(_ path: String, size: Int) throws {
        switch self {
        case .idle:
            _ = try ImageInfo(of: .file(path))
        case .vitrine, .vitrineDefault, .vitrineWorker, .vitrinePreview:
            var resizer = ImageResizer.fit(width: size, height: size)
            resizer.allowsUpscaling = false
            let options = DecodeOptions(allowsEmbeddedPreview: self == .vitrinePreview)
            let image = try decoder.decode(.file(path), at: resizer, options: options)
            _ = try image.encoded(as: .jpeg(quality: 0.75))
        case .libvips:
            guard peers_vips_thumbnail(path, Int32(size), Int32(size)) > 0 else { throw BenchmarkError.failed(path) }
        case .turboEighth:
            guard peers_jpeg_decode(path, 1) > 0 else { throw BenchmarkError.failed(path) }
        }
    }
}

enum BenchmarkError: Error {
    case failed(String)
}
