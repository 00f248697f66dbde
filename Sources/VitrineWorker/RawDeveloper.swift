import CVitrineRaw
import VitrineImaging

/// Develops raw files without a preview by LibRaw, for workers that are started for it alone.
///
/// A description is two numbers: the width and the height of the upright image.
struct RawDeveloper: DocumentRendering {
    func describe(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> [UInt8] {
        let bytes = try checkedBytes(source, request)
        var (width, height): (Int64, Int64) = (0, 0)
        let status = bytes.withUnsafeBufferPointer { craw_measure($0.baseAddress, $0.count, &width, &height) }
        if let error = Self.error(status, name: source.name, limits: request.limits) { throw error }
        return RawDevelopment.description(of: PixelSize(width: Int(width), height: Int(height)))
    }

    func render(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> DecodedImage {
        let bytes = try checkedBytes(source, request)
        var (width, height): (Int64, Int64) = (0, 0)
        let measured = bytes.withUnsafeBufferPointer { craw_measure($0.baseAddress, $0.count, &width, &height) }
        if let error = Self.error(measured, name: source.name, limits: request.limits) { throw error }
        // Half the size takes no interpolation.
        let isHalf = request.target.map { 2 * $0.width <= Int(width) && 2 * $0.height <= Int(height) } ?? false
        var picture = craw_picture()
        let status = bytes.withUnsafeBufferPointer {
            craw_develop($0.baseAddress, $0.count, isHalf, Int64(Self.maximumPixels(request.limits)), &picture)
        }
        if let error = Self.error(status, name: source.name, limits: request.limits) { throw error }
        guard let pixels = picture.pixels else {
            throw .corrupt(input: source.name, reason: "its samples cannot be developed")
        }
        let storage = PixelStorage(
            adopting: UnsafeMutableRawBufferPointer(start: pixels, count: picture.count)
        ) { craw_free($0.baseAddress) }
        let plane = PixelPlane(
            width: Int(picture.width), height: Int(picture.height), channels: 3,
            bytesPerRow: 3 * Int(picture.width), storage: storage)
        let image = DecodedImage(planes: [plane], model: .rgb)
        return request.target.map(image.reduced) ?? image
    }

    private func checkedBytes(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> [UInt8] {
        guard source.count <= request.limits.maximumInputBytes else {
            throw .limitExceeded(
                input: source.name, limit: .inputBytes, actual: source.count,
                allowed: request.limits.maximumInputBytes)
        }
        return try source.allBytes()
    }

    /// LibRaw keeps the whole image.
    private static func maximumPixels(_ limits: ImageLimits) -> Int {
        min(limits.maximumPixels, limits.maximumResultPixels)
    }

    private static func error(_ status: craw_status, name: String, limits: ImageLimits) -> ImageError? {
        switch status {
        case CRAW_OK: nil
        case CRAW_ABSENT:
            .unsupported(input: name, reason: "no preview, and developing needs LibRaw, which is not installed")
        case CRAW_UNSUPPORTED: .unsupported(input: name, reason: "no preview, and its camera is unknown")
        case CRAW_TRUNCATED: .truncated(input: name)
        case CRAW_PIXELS:
            .limitExceeded(
                input: name, limit: .pixels, actual: maximumPixels(limits) + 1, allowed: maximumPixels(limits))
        case CRAW_MEMORY: .limitExceeded(input: name, limit: .memory, actual: 0, allowed: 0)
        default: .corrupt(input: name, reason: "its samples cannot be developed")
        }
    }
}
