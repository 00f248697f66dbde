#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore
public import VitrineImaging

/// A request for an image: its source, its size and its processors.
///
/// ```swift
/// let image = try await ImagePipeline.shared.image(for: ImageRequest(url, resizing: .fit(200)))
/// let cover = ImageRequest(.pdf("manual.pdf", page: 1), resizing: .fit(256), scale: 2)
/// let avatar = ImageRequest(url, resizing: .crop(width: 96, height: 96), processors: [.circle()])
/// ```
///
/// Requests of the same source, size and processors share their work and their result.
public struct ImageRequest: Sendable {
    /// The source of the image.
    public internal(set) var source: any ImageSource
    /// The rule for the size of the result. Default: `none`, the size of the source.
    public var resizing: ImageResizer
    /// Pixels for each unit of the size in ``resizing``, as of a display of high density. The product is rounded up,
    /// unless it is within a millionth of a whole number. Default: 1.
    public var scale: Double
    /// The processors, which run in order after the image was resized. Results are cached with them.
    public var processors: [ImageProcessor]
    /// The file format in which the pipeline's cache stores the result on disk. Results in other formats are separate
    /// ones. Default nil: PNG if any pixel is translucent, and JPEG of quality 0.95 otherwise.
    public var format: OutputFormat?
    /// How urgent it is among all that waits. Default: normal.
    public var priority: RequestPriority
    /// How much of the processor the work may claim against everything else on the machine. Of several requests for one
    /// image the highest counts. Default: low, so that nothing the user touches is slowed down.
    ///
    /// On Linux it is a nice value: 10 for `veryLow`, 5 for `low`, 0 for `normal`, and -5 above, where the system lets
    /// the program. On Apple platforms it is a quality of service.
    public var executionPriority = RequestPriority.low
    /// The levels of the pipeline's cache that it may use. Default: all.
    ///
    /// With `.writeOnly` a remote source is asked again, although a stored image or its original bytes are fresh, and
    /// the answer replaces them. An empty set does the same and stores nothing.
    public var cacheLevels = CacheLevels.all
    /// Whether ``ImageTask/previews`` contain images of the bytes received so far, while a URL is transferred: the
    /// preview that a camera embeds, then the scans or rows of a JPEG. Default: false.
    ///
    /// The previews have the size of the request and are not cached. They cost up to a few additional decodes of each
    /// image, and only tasks whose previews are observed pay for them. The transfer keeps a copy of its bytes.
    public var isProgressive = false

    /// A request for an image of any source.
    ///
    /// - Parameters:
    ///   - source: The source of the image.
    ///   - resizing: The rule for the size of the result.
    ///   - scale: Pixels for each unit of the size, as of a display of high density. Default: 1, so that sizes are
    ///     pixels.
    ///   - processors: The processors, which run after the image was resized.
    ///   - priority: How urgent it is.
    ///   - isProgressive: See ``isProgressive``.
    public init(
        _ source: any ImageSource, resizing: ImageResizer = .none, scale: Double = 1, processors: [ImageProcessor] = [],
        priority: RequestPriority = .normal, isProgressive: Bool = false
    ) {
        self.source = (source as? BuiltInSource)?.base ?? source
        self.resizing = resizing
        self.scale = scale
        self.processors = processors
        self.priority = priority
        self.isProgressive = isProgressive
    }

    /// A request for the image at a URL. See ``ImageSource/url(_:page:at:id:options:progress:)``.
    public init(
        _ url: URL, resizing: ImageResizer = .none, scale: Double = 1, processors: [ImageProcessor] = [],
        priority: RequestPriority = .normal, isProgressive: Bool = false
    ) {
        self.init(
            URLImageSource(url), resizing: resizing, scale: scale, processors: processors, priority: priority,
            isProgressive: isProgressive)
    }

    /// The size in pixels; a side of -1 if it is not valid.
    package var pixelSize: PixelSize {
        func pixels(_ points: Int) -> Int {
            let product = PixelSize.pixels(Double(points), scale: scale)
            return product.isFinite ? Int(max(-1, min(product, 1e9))) : -1
        }
        return PixelSize(width: pixels(resizing.size.width), height: pixels(resizing.size.height))
    }

    var spec: ResultSpec {
        ResultSpec(
            size: pixelSize, mode: resizing.mode, allowsUpscaling: resizing.allowsUpscaling, processors: processors,
            format: format)
    }

    /// The error of a request that no source can fulfil.
    func invalidity(_ identity: CacheKey) -> ImagePipelineError? {
        let pixels = pixelSize
        switch resizing.mode {
        case .none: return nil
        case .limit where pixels.width >= 0 && pixels.height >= 0: return nil
        case .limit, .stretch, .fit, .fill, .crop: break
        }
        guard pixels.isEmpty else { return nil }
        return .underlying(
            source: identity.sourceName, error: ImageError.invalidRequest(reason: "an image cannot be \(pixels)"))
    }
}

extension ImageRequest {
    /// Identifies an image for a view that shows it.
    package enum ViewIdentity: Hashable, Sendable {
        /// The key of the image in the caches.
        case image(CacheKey)
        /// The path of a file, whose content may change.
        case place(CacheKey)
    }

    /// Identifies the image without a look at a file; nil if the source has no such identity.
    ///
    /// Makes a key: callers that need it several times keep it.
    package var viewIdentity: ViewIdentity? {
        if let known = source.knownIdentity { return .image(spec.key(for: known)) }
        let place: CacheKey? =
            switch source {
            case let file as ImageFileSource:
                file.path.map { CacheKey("path", $0, "\(file.page)", "\(file.sizing)") }
            case let remote as URLImageSource: CacheKey("url", remote.url.absoluteString, "\(remote.part)")
            default: nil
            }
        return place.map { .place(spec.key(for: $0)) }
    }
}
