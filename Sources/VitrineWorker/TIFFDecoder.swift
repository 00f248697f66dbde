import CVitrineTIFF
import VitrineImaging

/// Decodes by libtiff the varieties of TIFF that libvips rejects or reads wrongly.
///
/// They are: uncompressed Y′CbCr, JPEG of the first kind, tiles in separate planes, samples of other than 1, 2, 4, 8,
/// 16 or 32 bits, pages without a photometric interpretation, CIELab of 8 bits, ICCLab, and samples beyond colour and
/// alpha. All others are left to ``VipsDecoder``, which reads parts and levels of them.
struct TIFFDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.tiff]

    /// - Throws: ``ImageError/unsupported(input:reason:)`` for a variety that libvips reads, among others.
    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard let page = Int32(exactly: request.options.page), page >= 0, page < 100_000 else {
            throw .invalidRequest(reason: "there is no page \(request.options.page)")
        }
        let limits = request.limits
        var job = ctiff_request()
        job.width = Int64(request.target?.width ?? 0)
        job.height = Int64(request.target?.height ?? 0)
        job.page = page
        job.allow_partial = request.options.allowsPartial
        job.max_pixels = Int64(limits.maximumPixels)
        job.max_side = Int64(limits.maximumSide)
        job.max_memory = Int64(limits.maximumWorkerMemory)
        var picture = ctiff_picture()
        var reason = [CChar](repeating: 0, count: 300)
        let status = try source.withWholeInput(limits) { bytes throws(ImageError) in
            ctiff_decode(bytes.baseAddress, bytes.count, &job, &picture, &reason, reason.count)
        }
        guard status == CTIFF_OK, let pixels = picture.pixels else {
            throw Self.error(status, reason: text(in: reason), picture: picture, job: job, name: source.name)
        }
        let plane = PixelPlane(
            width: Int(picture.width), height: Int(picture.height), channels: Int(picture.channels),
            extent: (picture.extent_width, picture.extent_height),
            storage: PixelStorage(
                adopting: UnsafeMutableRawBufferPointer(start: pixels, count: picture.count)
            ) { ctiff_free($0.baseAddress) })
        return DecodedImage(
            planes: [plane],
            model: picture.model == CTIFF_CMYK
                ? .cmyk(inverted: false) : picture.model == CTIFF_GRAY ? .gray : .rgb,
            alpha: picture.alpha == CTIFF_OPAQUE
                ? .none : picture.alpha == CTIFF_STRAIGHT ? .straight : .premultiplied,
            colorProfile: picture.is_srgb ? nil : request.info.colorProfile, isPartial: picture.is_partial)
    }

    private static func error(
        _ status: ctiff_status, reason: String, picture: ctiff_picture, job: ctiff_request, name: String
    ) -> ImageError {
        switch status {
        case CTIFF_ORDINARY: .unsupported(input: name, reason: "another decoder reads it")
        case CTIFF_UNSUPPORTED: .unsupported(input: name, reason: reason)
        case CTIFF_TRUNCATED: .truncated(input: name)
        case CTIFF_PIXELS:
            .limitExceeded(input: name, limit: .pixels, actual: Int(picture.actual), allowed: Int(job.max_pixels))
        case CTIFF_SIDE:
            .limitExceeded(input: name, limit: .side, actual: Int(picture.actual), allowed: Int(job.max_side))
        case CTIFF_MEMORY:
            .limitExceeded(
                input: name, limit: .memory, actual: max(Int(picture.actual), Int(job.max_memory)),
                allowed: Int(job.max_memory))
        case CTIFF_NO_PAGE: .invalidRequest(reason: "there is no page \(job.page)")
        default: .undecodable(.tiff, input: name)
        }
    }
}
