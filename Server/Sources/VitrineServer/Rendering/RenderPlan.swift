package import VitrineImageCore
import VitrineImaging
package import VitrinePipeline

/// The settings of a server for all its results.
package struct RenderSettings: Sendable {
    /// The quality from 1 to 100 where the URL names none. Default: 80.
    package var quality = 80
    /// The quality of single formats. Default: WebP 79, AVIF 63, JPEG XL 77.
    package var formatQuality: [ImageFormat: Int] = [.webp: 79, .avif: 63, .jxl: 77]
    /// Whether Exif and XMP are removed where the URL does not say. Default: true.
    package var stripsMetadata = true
    /// Whether the artist and the copyright stay where metadata is removed. Default: true.
    package var keepsCopyright = true
    /// The image of the option `watermark`; nil for none.
    package var watermark: PixelImage?
    /// Multiplies the opacity of watermarks. Default: 1.
    package var watermarkOpacity = 1.0
    /// The longest side of a result. A larger one is made smaller, or refused if it is larger than its source as well.
    /// Default: that of `ImageLimits.standard`.
    package var maximumSide = ImageLimits.standard.maximumOutputSide
    /// Whether JPEG and PNG are written so that they can be shown before they are complete. Default: false.
    package var isProgressive = false

    /// Creates the defaults.
    package init() {}
}

/// The way from a source to an image: the size at which the pipeline decodes it, and all that follows.
///
/// The image is decoded no larger than the result needs. Only `trim`, and a part that is enlarged, need every pixel.
/// The size is exact, so that several sizes of one source share one decode.
package struct RenderPlan: Sendable {
    /// The size for the pipeline.
    package let resizer: ImageResizer
    /// The processing afterwards.
    package let processors: [ImageProcessor]
    /// The page of a document or the frame of an animation, from 1.
    package let page: Int
    /// The moment of a video.
    package let moment: VideoMoment
    /// The size of the result; nil if it depends on the pixels.
    package let resultSize: PixelSize?
    /// The bytes that decoding and processing need, by estimate.
    package let estimatedBytes: Int

    /// Plans a render.
    ///
    /// - Parameters:
    ///   - options: The processing.
    ///   - header: The source.
    ///   - settings: The watermark.
    ///   - sourceBytes: The length of the source.
    /// - Throws: ``RequestError`` 422 for a result that is larger than its source and than
    ///   ``RenderSettings/maximumSide``.
    package init(
        _ options: ProcessingOptions, header: SourceHeader, settings: RenderSettings = RenderSettings(),
        sourceBytes: Int = 0
    ) throws(RequestError) {
        page = max(1, min(options.page, 1_000_000))
        moment = Self.moment(options)
        let asked = RenderSteps(options, header: header, settings: settings)
        let turned = asked.turnsSideways
            ? PixelSize(width: header.size.height, height: header.size.width) : header.size
        var options =
            try options.sourceRules?.iiif.map { parameters throws(RequestError) in
                try options.resolved(parameters, forSource: turned)
            } ?? options.resolved(forSource: turned)
        var steps = RenderSteps(options, header: header, settings: settings)
        // Another page may have another size, which is known when it is decoded.
        let isSizeKnown = header.size.width > 0 && header.size.height > 0 && (page == 1 || header.kind != .image)
        guard isSizeKnown else {
            (resizer, resultSize) = (.none, nil)
            processors = [ImageProcessor(steps)]
            estimatedBytes = header.estimatedBytes(decodingTo: nil, sourceBytes: sourceBytes)
            return
        }
        var geometry = RenderGeometry(source: turned, options, mayGrow: header.isVector)
        if options.trim == nil {
            let size = geometry.resultSize(options)
            let longest = max(size.width, size.height)
            if longest > settings.maximumSide {
                guard size.width <= turned.width, size.height <= turned.height else {
                    throw Self.tooLarge(longest, settings.maximumSide)
                }
                // All sizes become smaller alike, as imgproxy does it.
                options.dpr = geometry.scale * Double(settings.maximumSide) / Double(longest)
                geometry = RenderGeometry(source: turned, options, mayGrow: header.isVector)
                steps = RenderSteps(options, header: header, settings: settings)
            }
        }
        resultSize = options.trim == nil ? geometry.resultSize(options) : nil
        if options.trim == nil, let whole = Self.wholeSize(geometry, settings.maximumSide) {
            steps.geometry = geometry
            let upright = steps.turnsSideways ? PixelSize(width: whole.height, height: whole.width) : whole
            resizer = upright == header.size && !header.isMagnified
                ? .none : ImageResizer(size: upright, mode: .stretch, allowsUpscaling: true)
            processors = steps.isEmpty ? [] : [ImageProcessor(steps)]
            let decoded = header.estimatedBytes(decodingTo: upright, sourceBytes: sourceBytes)
            estimatedBytes = decoded + 8 * (resultSize ?? whole).pixelCount
        } else {
            resizer = .none
            processors = [ImageProcessor(steps)]
            estimatedBytes = header.estimatedBytes(decodingTo: nil, sourceBytes: sourceBytes)
        }
    }

    /// A plan for a small image from which placeholders and colours are computed.
    static func summary(_ options: ProcessingOptions, _ header: SourceHeader, sourceBytes: Int) -> RenderPlan {
        RenderPlan(summaryOf: options, header, sourceBytes: sourceBytes)
    }

    private init(summaryOf options: ProcessingOptions, _ header: SourceHeader, sourceBytes: Int) {
        page = max(1, min(options.page, 1_000_000))
        moment = Self.moment(options)
        let side = 100
        resizer = .limit(width: side, height: side)
        (processors, resultSize) = ([], nil)
        estimatedBytes = header.estimatedBytes(decodingTo: PixelSize(side), sourceBytes: sourceBytes)
    }

    private static func moment(_ options: ProcessingOptions) -> VideoMoment {
        guard let second = options.second, second.isFinite else { return .poster }
        return .second(max(0, second))
    }

    private static func tooLarge(_ longest: Int, _ limit: Int) -> RequestError {
        RequestError(
            rendering: ImageError.limitExceeded(input: "", limit: .outputSide, actual: longest, allowed: limit))
    }

    /// The size of the whole image by the factors of its part; nil if that would be more than it has, or more than
    /// can be decoded.
    private static func wholeSize(_ geometry: RenderGeometry, _ limit: Int) -> PixelSize? {
        guard let crop = geometry.crop else {
            return max(geometry.scaled.width, geometry.scaled.height) <= limit
                ? geometry.scaled : geometry.scaled == geometry.source ? geometry.source : nil
        }
        func side(_ all: Int, part: Int, scaled: Int) -> Int {
            max(scaled, RenderGeometry.scaled(all, by: Double(scaled) / Double(part)))
        }
        let whole = PixelSize(
            width: side(geometry.source.width, part: crop.width, scaled: geometry.scaled.width),
            height: side(geometry.source.height, part: crop.height, scaled: geometry.scaled.height))
        let isReduced = whole.width <= geometry.source.width && whole.height <= geometry.source.height
        let fits = max(whole.width, whole.height) <= limit || whole == geometry.source
        return isReduced && fits ? whole : nil
    }
}

/// The file that becomes of an image.
struct EncodingPlan: Sendable, Hashable {
    /// Nil to choose by the pixels: JPEG, or PNG if any is translucent.
    var format: ImageFormat?
    /// From 0 to 1.
    var quality: Double
    /// Nil for no limit.
    var maximumBytes: Int?
    var isProgressive: Bool
    var stripsMetadata: Bool
    var keepsCopyright: Bool
    /// Whether the pixels are stored as those of the source are, so that its orientation is true of them.
    var keepsOrientation: Bool

    /// The formats that can be written.
    static let writable: Set<ImageFormat> = [.jpeg, .png, .webp, .avif, .jxl, .gif]

    /// - Parameters:
    ///   - options: The processing.
    ///   - negotiated: The format that the client prefers, if the URL names none; nil for the source's own.
    ///   - header: The source.
    ///   - settings: The server's qualities.
    init(_ options: ProcessingOptions, negotiated: ImageFormat?, header: SourceHeader, settings: RenderSettings) {
        let wanted = options.format ?? negotiated
        let own = header.format.flatMap { Self.writable.contains($0) ? $0 : nil }
        format = wanted ?? own
        quality = Self.quality(options, format: format ?? .jpeg, settings: settings)
        maximumBytes = options.maximumBytes > 0 ? options.maximumBytes : nil
        isProgressive = settings.isProgressive
        stripsMetadata = options.stripMetadata ?? settings.stripsMetadata
        keepsCopyright = options.keepCopyright ?? settings.keepsCopyright
        keepsOrientation = !options.autoRotate
    }

    private static func quality(
        _ options: ProcessingOptions, format: ImageFormat, settings: RenderSettings
    ) -> Double {
        let own = options.quality.flatMap { $0 > 0 ? $0 : nil }
        let percent = own ?? options.formatQuality[format] ?? settings.formatQuality[format] ?? settings.quality
        return Double(max(1, min(100, percent))) / 100
    }

    /// The same in another format; nil to choose by the pixels.
    func replacing(_ other: ImageFormat?, options: ProcessingOptions, settings: RenderSettings) -> EncodingPlan {
        var plan = self
        plan.format = other
        plan.quality = Self.quality(options, format: other ?? .jpeg, settings: settings)
        return plan
    }

    /// Encodes an image. Blocks.
    ///
    /// If even the lowest quality has more than ``maximumBytes``, or the format has no quality, the result has more.
    func encode(_ image: PixelImage, metadata source: [UInt8]?) throws(ImageError) -> [UInt8] {
        let kept = source.flatMap { self.metadata(of: $0) }
        let format = outputFormat(quality)
        guard let maximumBytes, self.format != .png, self.format != .gif else {
            return try image.encoded(as: format, isProgressive: isProgressive, metadata: kept)
        }
        do throws(ImageError) {
            return try image.encoded(
                as: format, maximumBytes: maximumBytes, isProgressive: isProgressive, metadata: kept)
        } catch .encodingFailed {
            return try image.encoded(as: outputFormat(0.01), isProgressive: isProgressive, metadata: nil)
        }
    }

    private func outputFormat(_ quality: Double) -> OutputFormat {
        switch format {
        case .jpeg?: .jpeg(quality: quality)
        case .png?: .png
        case .webp?: .webp(quality: quality)
        case .avif?: .avif(quality: quality)
        case .jxl?: .jxl(quality: quality)
        case .gif?: .gif
        default: .automatic(quality: quality)
        }
    }

    /// The metadata to write of a source.
    private func metadata(of source: [UInt8]) -> ImageMetadata? {
        guard !stripsMetadata || keepsCopyright, let own = try? ImageMetadata(of: .bytes(source)) else { return nil }
        if !stripsMetadata {
            return keepsOrientation ? own.forStoredPixels : own.sanitizedForUprightPixels()
        }
        guard let exif = own.exif, let block = ExifFields(exif).copyrightBlock else { return nil }
        return ImageMetadata(exif: block)
    }
}
