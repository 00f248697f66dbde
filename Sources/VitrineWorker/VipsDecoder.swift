import CVitrineVips
import VitrineImaging

/// Decodes by libvips the formats without a decoder in VitrineImaging, and the varieties that those decoders reject.
///
/// It reduces while it loads where the codec can (scales, pages, pyramid levels) and then averages whole
/// blocks. Only for the worker: libvips' error texts are per process, and libheif may abort.
struct VipsDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.tiff, .heic, .jpeg, .png, .webp, .gif, .avif]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard let format = Self.format(request.info.format) else {
            throw .unknownKind(of: request.info.format, input: source.name)
        }
        if request.info.format == .svg, source.count > request.limits.maximumDocumentBytes {
            throw .limitExceeded(
                input: source.name, limit: .documentBytes, actual: source.count,
                allowed: request.limits.maximumDocumentBytes)
        }
        if Self.turnsByItself(request.info.format) { try Self.checkForLibheif(source, request) }
        guard let page = Int32(exactly: request.options.page), page >= 0, page < 100_000 else {
            throw .invalidRequest(reason: "there is no page \(request.options.page)")
        }
        var job = cvips_request()
        job.format = format
        job.width = Int64(request.target?.width ?? 0)
        job.height = Int64(request.target?.height ?? 0)
        job.page = page
        let region = request.region?.clipped(to: request.info.storedSize)
        if let region, region.x + region.size.width < 1 << 30, region.y + region.size.height < 1 << 30 {
            (job.region_x, job.region_y) = (Int32(region.x), Int32(region.y))
            (job.region_width, job.region_height) = (Int32(region.size.width), Int32(region.size.height))
        }
        job.orientation = Self.turnsByItself(request.info.format) ? Int32(request.info.orientation.rawValue) : 1
        job.allow_partial = request.options.allowsPartial
        let profile = request.info.samplesProfile.flatMap { ColorProfile($0) }
        job.keep_depth = profile?.isHighRange == true
        // A part does not tell where in the map it lies.
        let gain = job.keep_depth && request.options.page == 0 && region == nil ? gain(source, request) : nil
        job.allow_thumbnail = Self.mayUseThumbnail(source, request)
        job.max_pixels = Int64(Self.maximumPixels(request))
        job.max_side = Int64(
            request.info.format == .svg ? request.limits.maximumOutputSide : request.limits.maximumSide)
        // libheif aborts when a read fails half-way.
        return try source.withWholeInput(request.limits) { bytes throws(ImageError) in
            try decode(bytes, job: job, request: request, profile: profile, gain: gain, name: source.name)
        }
    }

    private func decode(
        _ bytes: UnsafeRawBufferPointer, job: cvips_request, request: DecodeRequest, profile: ColorProfile?,
        gain: GainSamples?, name: String
    ) throws(ImageError) -> DecodedImage {
        var picture = cvips_picture()
        let status = withUnsafePointer(to: job) { cvips_decode(bytes.baseAddress, bytes.count, $0, &picture) }
        guard status == CVIPS_OK, let pixels = picture.pixels else {
            throw Self.error(status, request.info.format, picture: picture, job: job, name: name)
        }
        let storage = PixelStorage(
            adopting: UnsafeMutableRawBufferPointer(start: pixels, count: picture.count)
        ) { cvips_free($0.baseAddress) }
        let (width, height, channels) = (Int(picture.width), Int(picture.height), Int(picture.channels))
        let bytesPerSample = picture.is_deep ? 2 : 1
        guard width > 0, height > 0, (1...4).contains(channels),
            picture.count >= width * height * channels * bytesPerSample
        else {
            throw .undecodable(request.info.format, input: name)
        }
        var plane: PixelPlane
        if picture.is_deep, let profile {
            let shown = storage.withUnsafeBytes {
                profile.shown(
                    $0, size: PixelSize(width: width, height: height), channels: channels,
                    isPremultiplied: picture.alpha == CVIPS_PREMULTIPLIED, gain: gain, request.cancellation)
            }
            guard let shown else { throw .cancelled(input: name) }
            plane = shown
        } else {
            plane = PixelPlane(width: width, height: height, channels: channels, storage: storage)
        }
        (plane.extentWidth, plane.extentHeight) = (picture.extent_width, picture.extent_height)
        let model: DecodedImage.Model =
            picture.model == CVIPS_CMYK ? .cmyk(inverted: false) : picture.model == CVIPS_GRAY ? .gray : .rgb
        let alpha: DecodedImage.Alpha =
            picture.alpha == CVIPS_OPAQUE ? .none : picture.alpha == CVIPS_STRAIGHT ? .straight : .premultiplied
        var image = DecodedImage(
            planes: [plane], model: model, alpha: alpha,
            colorProfile: picture.is_srgb || picture.is_deep ? nil : request.info.samplesProfile,
            isPartial: picture.is_partial)
        if picture.has_region {
            image.region = PixelRect(
                x: Int(picture.region_x), y: Int(picture.region_y), width: Int(picture.region_width),
                height: Int(picture.region_height)
            ).clipped(to: request.info.storedSize)
        }
        return image
    }

    private static func format(_ format: ImageFormat) -> cvips_format? {
        switch format {
        case .jpeg: CVIPS_JPEG
        case .png: CVIPS_PNG
        case .webp: CVIPS_WEBP
        case .gif: CVIPS_GIF
        case .tiff: CVIPS_TIFF
        case .heic, .avif: CVIPS_HEIF
        case .svg: CVIPS_SVG
        default: nil
        }
    }

    /// Returns whether the codec of a format always delivers upright pixels.
    private static func turnsByItself(_ format: ImageFormat) -> Bool {
        format == .heic || format == .avif
    }

    private static func maximumPixels(_ request: DecodeRequest) -> Int {
        let limits = request.limits
        switch request.info.format {
        case .jpeg, .tiff: return limits.maximumPixels
        case .png: return request.info.isProgressive ? limits.maximumInterlacedPixels : limits.maximumPixels
        default: return limits.maximumWholeImagePixels
        }
    }

    private static func error(
        _ status: cvips_status, _ format: ImageFormat, picture: cvips_picture, job: cvips_request, name: String
    ) -> ImageError {
        switch status {
        case CVIPS_UNSUPPORTED: .unknownKind(of: format, input: name)
        case CVIPS_TRUNCATED: .truncated(input: name)
        case CVIPS_PIXELS:
            .limitExceeded(input: name, limit: .pixels, actual: Int(picture.actual), allowed: Int(job.max_pixels))
        case CVIPS_SIDE:
            .limitExceeded(input: name, limit: .side, actual: Int(picture.actual), allowed: Int(job.max_side))
        case CVIPS_MEMORY: .limitExceeded(input: name, limit: .memory, actual: 0, allowed: 0)
        case CVIPS_NO_PAGE: .invalidRequest(reason: "there is no page \(job.page)")
        default: .undecodable(format, input: name)
        }
    }
}

/// Asks libvips for files of a format that its own decoder calls damaged.
///
/// libavif rejects containers that libheif reads: without a handler, with items in an unusual order, with properties of
/// later editions.
struct SecondOpinion: ImageDecoding {
    let formats: Set<ImageFormat>
    private let own: [any ImageDecoding]

    init(on format: ImageFormat) {
        formats = [format]
        own = Codecs.standard.decoders(for: format)
    }

    /// - Throws: The error of the format's own decoder where libvips does not read the file either.
    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        do throws(ImageError) {
            return try own.decode(source, request)
        } catch {
            guard case .corrupt = error, request.options.page == 0,
                let image = try? VipsDecoder().decode(source, request)
            else { throw error }
            return image
        }
    }
}

/// Loads the files that decoding needs, before the sandbox closes the file system.
enum WarmUp {
    /// Starts libvips, which loads codec modules, and draws text, which loads fonts.
    static func run() {
        guard cvips_start() == CVIPS_OK else { return }
        let document = """
            <svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><g font-size="4">
            <text y="4">Ab</text><text y="8" font-family="serif" font-weight="bold">Ab</text>
            <text y="12" font-family="monospace" font-style="italic">Ab</text></g></svg>
            """
        let info = ImageInfo(format: .svg, storedSize: PixelSize(16))
        let source = ByteSource(bytes: Array(document.utf8), name: "warm-up")
        // Errors do not matter: without fonts or librsvg the worker still reads everything else.
        _ = try? VipsDecoder().decode(source, DecodeRequest(info: info, target: nil))
    }
}
