import Synchronization
import VitrineCore

/// Raw files without a usable preview, developed by LibRaw in workers of their own.
///
/// Off by default: it takes seconds and hundreds of megabytes for one image, and LibRaw reads foreign bytes of a
/// hundred makers' formats.
package enum RawDevelopment {
    /// The argument that makes `vitrine-worker` such a worker.
    package static let argument = "raw"

    /// Seconds, and bytes of memory, for one image.
    private static let deadline = 20.0
    private static let maximumMemory = 512 << 20

    static let isOn = Mutex(false)
    private static let workers = WorkerPool(
        program: "vitrine-worker", arguments: [argument], maximumWorkers: 1, recycling: WorkerRecycling())

    /// The formats that LibRaw is asked for.
    private static let formats = Set(
        Codecs.standard.locators.filter { $0.isRaw }.flatMap { $0.formats.map(\.rawValue) })

    /// Whether files of a format without a preview can be developed.
    package static func develops(_ format: ImageFormat) -> Bool { formats.contains(format.rawValue) }

    /// A worker's description of an image.
    package static func description(of size: PixelSize) -> [UInt8] {
        [size.width, size.height].flatMap { value in (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
    }

    private static func size(_ description: [UInt8]) -> PixelSize? {
        guard description.count == 8 else { return nil }
        func number(_ at: Int) -> Int { (0..<4).reduce(0) { $0 | Int(description[at + $1]) << (8 * $1) } }
        let size = PixelSize(width: number(0), height: number(4))
        return size.isEmpty ? nil : size
    }

    /// The images of a raw file without a preview; nil if development is off or the input is another file.
    static func images(
        of source: ByteSource, at resizers: [ImageResizer], decoder: ImageDecoder, cancellation: CancellationToken
    ) throws(ImageError) -> [PixelImage]? {
        guard isOn.withLock({ $0 }), decoder.isolation != .inProcess,
            let format = try Codecs.standard.format(of: ByteReader(source)), formats.contains(format.rawValue),
            workers.isAvailable
        else { return nil }
        var limits = decoder.limits
        limits.deadline = max(limits.deadline, deadline)
        limits.maximumWorkerMemory = min(limits.maximumWorkerMemory, maximumMemory)
        let description = try workers.describe(
            source, parameters: [], limits: limits, cancellation: cancellation)
        guard let size = size(description) else {
            throw .workerFailed(input: source.name, reason: "the helper described no image")
        }
        let info = ImageInfo(format: format, storedSize: size)
        try limits.check(info, source: source)
        var target: PixelSize? = PixelSize(width: 0, height: 0)
        for resizer in resizers {
            guard let wanted = try DecodePlan(resizer, for: info, limits: limits, input: source.name).target else {
                target = nil
                break
            }
            target = target.map {
                PixelSize(width: max($0.width, wanted.width), height: max($0.height, wanted.height))
            }
        }
        let decoded = try workers.render(
            source, target: target, parameters: [], limits: limits, cancellation: cancellation)
        return try ResizedImages(
            decoded: decoded, info: info, limits: limits, cancellation: cancellation, inputName: source.name
        ).images(resizers)
    }
}

extension ImageDecoder {
    /// Whether raw files of cameras without a usable preview are developed by LibRaw, in the whole process.
    ///
    /// Default false: one image takes seconds and up to 512 MB in a helper process of its own. It needs
    /// `vitrine-worker` and LibRaw; without them, such files stay ``ImageError/unsupported(input:reason:)``. Files with
    /// a preview are never developed.
    public static var developsRawFiles: Bool {
        get { RawDevelopment.isOn.withLock { $0 } }
        set { RawDevelopment.isOn.withLock { $0 = newValue } }
    }
}
