import VitrineCore

/// Decodes PNG and animated PNG, in pure Swift, in the memory of a few rows and the result.
///
/// When the result is to be smaller than half the picture, rows are averaged over square blocks as they are inflated,
/// so that a 200-pixel thumbnail of any picture needs less than 4 MB. All colour types, depths, transparency chunks and
/// Adam7 are read. Alpha is straight at full size and premultiplied in a reduced picture.
///
/// Samples are in ``ImageInfo/colorProfile`` where the header has one. Without it, a gAMA chunk that differs clearly
/// from sRGB is corrected for; cHRM without a profile is not.
///
/// Page n of an animation is frame n composed as a viewer shows it, which decodes the frames it stands on as well. A
/// default image that is no frame is shown only when there is no animation.
package struct PNGDecoder: ImageDecoding {
    /// The longest stored row, in bytes; three of them are kept.
    private static let maximumRowBytes = 1 << 28
    /// The most bytes a result may have, whatever limits say.
    private static let maximumResultBytes = 1 << 34

    package init() {}

    package var formats: Set<ImageFormat> { [.png] }
    package var needsIsolation: Bool { false }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard request.page >= 0 else { throw .invalidRequest(reason: "page \(request.page) does not exist") }
        let file = try PNGFile(source, cancellation: request.cancellation, isLenient: request.allowPartial)
        try Self.check(file, request, source)
        let isStill = file.frameCount == nil || (request.page == 0 && file.firstFrame != nil)
        if !isStill, let image = try PNGAnimation(source, file, request).decode() { return image }
        guard request.page == 0 else { throw .invalidRequest(reason: "page \(request.page) does not exist") }
        return try still(file, source, request)
    }

    private func still(
        _ file: PNGFile, _ source: ByteSource, _ request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        let decoder = PNGImageDecoder(
            source: source, file: file, allowPartial: request.allowPartial, cancellation: request.cancellation)
        let header = file.header
        let reduction = Self.reduction(header, request)
        let factor = Self.factor(reduction)
        let result = try decoder.decode(
            file.data, width: header.width, height: header.height, factor: factor,
            passes: PNGInterlacing.passCount(reduction: reduction, header: header))
        return Self.image(result.plane, file, request, isPremultiplied: factor > 1, isPartial: result.isPartial)
    }

    /// Stored pixels on one of the result, by the file's own header.
    static func reduction(_ header: PNGHeader, _ request: DecodeRequest) -> Double {
        var request = request
        request.info.storedSize = PixelSize(width: header.width, height: header.height)
        return request.reduction
    }

    /// The side of blocks that leaves at least twice the pixels asked for.
    static func factor(_ reduction: Double) -> Int {
        max(1, min(PNGBlockMeans.maximumFactor, Int(reduction / 2)))
    }

    /// The plane as the request wants it, with gamma corrected.
    static func image(
        _ plane: PixelPlane, _ file: PNGFile, _ request: DecodeRequest, isPremultiplied: Bool, isPartial: Bool
    ) -> DecodedImage {
        let profile = request.info.colorProfile
        if profile == nil, !file.hasColorSpace, let gamma = file.gamma, let table = PNGGamma.table(gamma) {
            PNGGamma.apply(table, to: plane, isPremultiplied: isPremultiplied)
        }
        let hasAlpha = plane.channels & 1 == 0
        return DecodedImage(
            planes: [plane], model: plane.channels <= 2 ? .gray : .rgb,
            alpha: hasAlpha ? (isPremultiplied ? .premultiplied : .straight) : .none, colorProfile: profile,
            isPartial: isPartial, samplesAreMeans: plane.width < file.header.width)
    }

    private static func check(_ file: PNGFile, _ request: DecodeRequest, _ source: ByteSource) throws(ImageError) {
        let size = PixelSize(width: file.header.width, height: file.header.height)
        let limits = request.limits
        func check(_ limit: ImageLimits.Kind, _ actual: Int, _ allowed: Int) throws(ImageError) {
            guard actual <= allowed else {
                throw .limitExceeded(input: source.name, limit: limit, actual: actual, allowed: allowed)
            }
        }
        try check(.side, size.longestSide, limits.maximumSide)
        try check(.pixels, size.pixelCount, limits.maximumPixels)
        if file.header.isInterlaced { try check(.pixels, size.pixelCount, limits.maximumInterlacedPixels) }
        try check(.memory, file.header.rowBytes(width: size.width), maximumRowBytes)
        try check(.memory, size.pixelCount, maximumResultBytes / 4)
    }
}
