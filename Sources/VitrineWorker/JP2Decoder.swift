import CVitrineJP2
import VitrineImaging

/// Decodes JPEG 2000 by OpenJPEG, at the resolution that suffices, and averages blocks where the file has none so
/// small.
///
/// libvips reads tiles one by one, and palettes, offsets, subsampled components and errors of OpenJPEG get lost there.
/// Only for the worker: an image is one call that cannot be cancelled.
struct JP2Decoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.jp2]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard request.options.page == 0 else {
            throw .invalidRequest(reason: "JPEG 2000 has no page \(request.options.page)")
        }
        let limits = request.limits
        var job = cjp2_request()
        job.width = Int64(request.target?.width ?? 0)
        job.height = Int64(request.target?.height ?? 0)
        if let region = request.region?.clipped(to: request.info.storedSize),
            region.x + region.size.width < 1 << 30, region.y + region.size.height < 1 << 30
        {
            (job.region_x, job.region_y) = (Int32(region.x), Int32(region.y))
            (job.region_width, job.region_height) = (Int32(region.size.width), Int32(region.size.height))
        }
        job.allow_partial = request.options.allowsPartial
        job.max_pixels = Int64(limits.maximumWholeImagePixels)
        job.max_memory = Int64(limits.maximumWorkerMemory)
        var picture = cjp2_picture()
        var reason = [CChar](repeating: 0, count: 300)
        let status = try source.withWholeInput(limits) { bytes throws(ImageError) in
            cjp2_decode(bytes.baseAddress, bytes.count, &job, &picture, &reason, reason.count)
        }
        guard status == CJP2_OK, let pixels = picture.pixels else {
            throw Self.error(status, reason: text(in: reason), picture: picture, job: job, name: source.name)
        }
        let plane = PixelPlane(
            width: Int(picture.width), height: Int(picture.height), channels: Int(picture.channels),
            extent: (picture.extent_width, picture.extent_height),
            storage: PixelStorage(
                adopting: UnsafeMutableRawBufferPointer(start: pixels, count: picture.count)
            ) { cjp2_free($0.baseAddress) })
        var image = DecodedImage(
            planes: [plane],
            model: picture.model == CJP2_CMYK
                ? .cmyk(inverted: false) : picture.model == CJP2_GRAY ? .gray : .rgb,
            alpha: picture.alpha == CJP2_OPAQUE
                ? .none : picture.alpha == CJP2_STRAIGHT ? .straight : .premultiplied,
            colorProfile: request.info.colorProfile, isPartial: picture.is_partial)
        if picture.has_region {
            image.region = PixelRect(
                x: Int(picture.region_x), y: Int(picture.region_y), width: Int(picture.region_width),
                height: Int(picture.region_height)
            ).clipped(to: request.info.storedSize)
        }
        return image
    }

    private static func error(
        _ status: cjp2_status, reason: String, picture: cjp2_picture, job: cjp2_request, name: String
    ) -> ImageError {
        switch status {
        case CJP2_UNSUPPORTED: .unsupported(input: name, reason: reason)
        case CJP2_TRUNCATED: .truncated(input: name)
        case CJP2_PIXELS:
            .limitExceeded(input: name, limit: .pixels, actual: Int(picture.actual), allowed: Int(job.max_pixels))
        case CJP2_MEMORY:
            .limitExceeded(
                input: name, limit: .memory, actual: max(Int(picture.actual), Int(job.max_memory)),
                allowed: Int(job.max_memory))
        default: .undecodable(.jp2, input: name)
        }
    }
}
