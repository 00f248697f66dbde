#if canImport(VitrineJXL)
import CVitrineJXL
import VitrineCore
import VitrineImaging
import VitrineJXL

/// Decodes whole frames of JPEG XL by libjxl, and averages blocks while rows arrive.
///
/// Only for the worker: a frame is one call that cannot be cancelled. ``JXLLowFrequencyDecoder`` decodes low-frequency
/// images itself, since libjxl needs as long for them as for the whole image. This decoder gets the files that it
/// rejects.
struct LibJXLDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.jxl]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        let limits = request.limits
        guard source.count > 0 else { throw .empty(input: source.name) }
        guard source.count <= limits.maximumInputBytes else {
            throw .limitExceeded(
                input: source.name, limit: .inputBytes, actual: source.count, allowed: limits.maximumInputBytes)
        }
        guard let frame = Int32(exactly: request.options.page), frame >= 0 else {
            throw .invalidRequest(reason: "there is no frame \(request.options.page)")
        }
        guard request.options.page < limits.maximumFrames else {
            throw .limitExceeded(
                input: source.name, limit: .frames, actual: request.options.page + 1, allowed: limits.maximumFrames)
        }
        var job = Self.request(request)
        job.frame = frame
        var picture = cjxl_picture()
        let bytes = try JXLFile.codestream(of: source)
        let status = bytes.withUnsafeBufferPointer { cjxl_decode($0.baseAddress, $0.count, &job, &picture) }
        guard status == CJXL_OK, let pixels = picture.pixels else {
            throw Self.error(status, picture: picture, job: job, name: source.name)
        }
        return try Self.image(picture, pixels: pixels, cancellation: request.cancellation, name: source.name)
    }

    func frames(of source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> any FrameDecoding {
        try LibJXLFrames(source, request)
    }

    fileprivate static func request(_ request: DecodeRequest) -> cjxl_request {
        var job = cjxl_request()
        job.width = Int64(request.target?.width ?? 0)
        job.height = Int64(request.target?.height ?? 0)
        job.allow_partial = request.options.allowsPartial
        job.max_pixels = Int64(request.limits.maximumWholeImagePixels)
        job.max_side = Int64(request.limits.maximumSide)
        job.max_profile = max(0, request.limits.maximumProfileBytes)
        return job
    }

    fileprivate static func image(
        _ picture: cjxl_picture, pixels: UnsafeMutablePointer<UInt8>, cancellation: CancellationToken, name: String
    ) throws(ImageError) -> DecodedImage {
        let storage = PixelStorage(
            adopting: UnsafeMutableRawBufferPointer(start: pixels, count: picture.count)
        ) { cjxl_free($0.baseAddress) }
        let size = PixelSize(width: Int(picture.width), height: Int(picture.height))
        let channels = Int(picture.channels)
        var profile: [UInt8]?
        var plane: PixelPlane
        if picture.is_deep {
            let code = CodePointProfile(primaries: Int(picture.primaries), transfer: Int(picture.transfer))
            let shown = code.flatMap { ColorProfile($0.bytes) }.flatMap { colors in
                storage.withUnsafeBytes {
                    colors.shown(
                        $0, size: size, channels: channels, isPremultiplied: picture.is_premultiplied, cancellation)
                }
            }
            guard let shown else { throw .cancelled(input: name) }
            plane = shown
        } else {
            plane = PixelPlane(width: size.width, height: size.height, channels: channels, storage: storage)
        }
        (plane.extentWidth, plane.extentHeight) = (picture.extent_width, picture.extent_height)
        if let bytes = picture.profile {
            profile = [UInt8](UnsafeBufferPointer(start: bytes, count: picture.profile_count))
            cjxl_free(bytes)
        }
        let hasAlpha = picture.channels == 2 || picture.channels == 4
        return DecodedImage(
            planes: [plane], model: picture.channels <= 2 ? .gray : .rgb,
            alpha: !hasAlpha ? .none : picture.is_premultiplied ? .premultiplied : .straight, colorProfile: profile,
            isPartial: picture.is_partial, samplesAreMeans: picture.factor > 1)
    }

    fileprivate static func error(
        _ status: cjxl_status, picture: cjxl_picture, job: cjxl_request, name: String
    ) -> ImageError {
        switch status {
        case CJXL_UNSUPPORTED: .unsupported(input: name, reason: "CMYK in JPEG XL")
        case CJXL_TRUNCATED: .truncated(input: name)
        case CJXL_PIXELS:
            .limitExceeded(input: name, limit: .pixels, actual: Int(picture.actual), allowed: Int(job.max_pixels))
        case CJXL_SIDE:
            .limitExceeded(input: name, limit: .side, actual: Int(picture.actual), allowed: Int(job.max_side))
        case CJXL_MEMORY: .limitExceeded(input: name, limit: .memory, actual: 0, allowed: 0)
        case CJXL_NO_FRAME: .invalidRequest(reason: "there is no frame \(job.frame)")
        default: .undecodable(.jxl, input: name)
        }
    }
}

/// Decodes the frames of an animated JPEG XL in order. Keeps a copy of the file.
private final class LibJXLFrames: FrameDecoding {
    private let name: String
    private let job: cjxl_request
    /// The file, which the animation refers to.
    private let file: PixelStorage
    private let animation: OpaquePointer
    private var image: DecodedImage?

    init(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) {
        name = source.name
        guard source.count > 0 else { throw .empty(input: name) }
        file = try JXLFile.codestream(of: source).withUnsafeBytes { PixelStorage(copying: $0) }
        job = LibJXLDecoder.request(request)
        var job = job
        let base = file.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard let animation = cjxl_animation_open(base, file.count, &job) else {
            throw .limitExceeded(input: name, limit: .memory, actual: 0, allowed: 0)
        }
        self.animation = animation
    }

    deinit { cjxl_animation_close(animation) }

    func advance(_ cancellation: CancellationToken) throws(ImageError) -> Bool {
        var picture = cjxl_picture()
        let status = cjxl_animation_next(animation, &picture)
        if status == CJXL_NO_FRAME { return false }
        guard status == CJXL_OK, let pixels = picture.pixels else {
            throw LibJXLDecoder.error(status, picture: picture, job: job, name: name)
        }
        image = try LibJXLDecoder.image(picture, pixels: pixels, cancellation: cancellation, name: name)
        return true
    }

    func samples(_ cancellation: CancellationToken) throws(ImageError) -> DecodedImage {
        guard let image else { throw .invalidRequest(reason: "no frame was decoded") }
        return image
    }
}

/// Writes JPEG XL by libjxl.
struct LibJXLEncoder: ImageEncoding {
    let format = ImageFormat.jxl

    func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        let rowBytes = image.width * PixelImage.bytesPerPixel
        guard image.bytesPerRow == rowBytes, image.alpha != .premultiplied else {
            throw .encodingFailed(format: .jxl, reason: "needs straight alpha and rows without gaps")
        }
        guard let width = UInt32(exactly: image.width), let height = UInt32(exactly: image.height) else {
            throw .encodingFailed(format: .jxl, reason: "\(image.size) is too large")
        }
        var file: UnsafeMutablePointer<UInt8>?
        var count = 0
        let percent = quality.isFinite ? Int32(max(0, min(100, (quality * 100).rounded()))) : 75
        let status = image.withUnsafeBytes { pixels in
            cjxl_encode(
                pixels.bindMemory(to: UInt8.self).baseAddress, width, height, image.hasAlpha, percent, &file, &count)
        }
        guard status == CJXL_OK, let file else {
            throw .encodingFailed(format: .jxl, reason: "libjxl gave status \(status.rawValue)")
        }
        defer { cjxl_free(file) }
        return [UInt8](UnsafeBufferPointer(start: file, count: count))
    }
}
#endif
