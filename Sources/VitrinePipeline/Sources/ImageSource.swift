import VitrineCore
import VitrineImaging

/// A source of images: a renderer, a device, a database, or any other type of your own.
///
/// Implement ``identity()`` and ``image(_:)``. The methods run in tasks and must not block; a source whose methods block
/// conforms to ``BlockingImageSource``. The task is cancelled when no request needs the result any more, and when the
/// call takes longer than ``ImagePipeline/Configuration/timeLimit``.
public protocol ImageSource: Sendable {
    /// Returns the identity of the source, under which its results are cached.
    ///
    /// It stays the same when the home directory moves, and changes with the content. It must be cheap: read the status
    /// of a file, not its content.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)`` if the source does not exist.
    func identity() async throws(ImagePipelineError) -> CacheKey

    /// The ``identity()`` if it is known without a look at the content; nil, the default, if it has to be found out.
    ///
    /// Images of such sources are found in memory at once, also by callers that must not block, such as the main
    /// thread.
    var knownIdentity: CacheKey? { get }

    /// Returns a cheap image to show until the image is made; nil, the default, for none.
    func preview(_ request: RenderRequest) async throws -> PixelImage?

    /// Returns the image of a request.
    ///
    /// Long work looks at `Task.isCancelled` or ``RenderRequest/cancellation`` every few milliseconds.
    ///
    /// - Throws: ``ImagePipelineError``, or any error of your own.
    func image(_ request: RenderRequest) async throws -> PixelImage

    /// Returns the images of several requests, in their order, at less cost than one by one.
    ///
    /// By default the source makes one image that is large enough for all, which is then reduced. A side may differ by
    /// one pixel from that of the same request alone, as both follow from rounded sizes.
    ///
    /// - Throws: As ``image(_:)``: one error for all.
    func images(_ requests: [RenderRequest]) async throws -> [PixelImage]
}

extension ImageSource {
    public var knownIdentity: CacheKey? { nil }

    public func preview(_ request: RenderRequest) async throws -> PixelImage? { nil }

    public func images(_ requests: [RenderRequest]) async throws -> [PixelImage] {
        guard let common = RenderRequest.covering(requests), requests.count > 1 else {
            var images: [PixelImage] = []
            for request in requests { images.append(try await image(request)) }
            return images
        }
        let largest = try await image(common)
        return try await BlockingExecutor.shared.run { try reduced(largest, to: requests) }
    }

    /// The images of requests, made from one that is large enough for each.
    fileprivate func reduced(_ largest: PixelImage, to requests: [RenderRequest]) throws -> [PixelImage] {
        try requests.map { request in
            if request.cancellation.isCancelled { throw ImagePipelineError.cancelled(source: "\(type(of: self))") }
            return try request.resizer.resize(largest)
        }
    }
}

/// A source whose methods block the thread that calls them, such as one that draws or reads files.
///
/// A pipeline calls them on threads of its own, never on one of Swift's cooperative pool. Threads have the priority of
/// the request. A source that hangs keeps its thread and fails its own requests alone.
public protocol BlockingImageSource: ImageSource {
    /// Returns the identity of the source. See ``ImageSource/identity()``.
    func identity() throws(ImagePipelineError) -> CacheKey

    /// Returns a cheap image to show until the image is made; nil, the default, for none.
    func preview(_ request: RenderRequest) throws -> PixelImage?

    /// Returns the image of a request.
    ///
    /// Long work looks at ``RenderRequest/cancellation`` every few milliseconds, or registers a handler with it.
    ///
    /// - Throws: ``ImagePipelineError``, or any error of your own.
    func image(_ request: RenderRequest) throws -> PixelImage

    /// Returns the images of several requests, in their order. See ``ImageSource/images(_:)``.
    func images(_ requests: [RenderRequest]) throws -> [PixelImage]

    /// Whether ``preview(_:)`` and ``image(_:)`` must be called on the main actor. Default false.
    var requiresMainActor: Bool { get }
}

extension BlockingImageSource {
    public var requiresMainActor: Bool { false }

    public func preview(_ request: RenderRequest) throws -> PixelImage? { nil }

    public func images(_ requests: [RenderRequest]) throws -> [PixelImage] {
        guard let common = RenderRequest.covering(requests), requests.count > 1 else {
            return try requests.map(image)
        }
        return try reduced(try image(common), to: requests)
    }
}

extension ImageSource {
    /// Whether ``BlockingImageSource/requiresMainActor`` is true.
    var needsMainActor: Bool { (self as? any BlockingImageSource)?.requiresMainActor ?? false }

    /// Whether it is neither one that blocks nor one whose content is loaded by this package.
    var isAskedInTasks: Bool { !(self is any BlockingImageSource) && !(self is any RemoteImageSource) }

    /// ``identityBlocking()`` without its error.
    var identityIfFound: CacheKey? { (try? identityBlocking()) ?? nil }

    /// The identity of a source of this module or of one that blocks, on a thread that may block; nil for a source that
    /// has to be asked in a task.
    package func identityBlocking() throws(ImagePipelineError) -> CacheKey? {
        if let source = self as? BuiltInSource { return try source.base.identityBlocking() }
        if let source = self as? any BlockingImageSource { return try source.identity() }
        if let source = self as? any RemoteImageSource { return try source.identity() }
        return nil
    }
}

/// A request to an ``ImageSource`` for one image, in pixels of the display.
public struct RenderRequest: Sendable {
    /// The box, in pixels.
    public var size: PixelSize
    /// How the image is brought to ``size``. Default `fit`.
    public var mode: ImageResizer.Mode
    /// Whether the image may grow. Pages and other drawings have the size of 1 pixel a point. Default true.
    public var allowsUpscaling: Bool
    /// Bounds on the input and on the work.
    public var limits: ImageLimits
    /// Cancelled when no request needs the result any more.
    public var cancellation: CancellationToken

    /// Creates a request for one image in pixels.
    public init(
        size: PixelSize, mode: ImageResizer.Mode = .fit, allowsUpscaling: Bool = true,
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) {
        self.size = size
        self.mode = mode
        self.allowsUpscaling = allowsUpscaling
        self.limits = limits
        self.cancellation = cancellation
    }

    /// ``size``, ``mode`` and ``allowsUpscaling`` as a rule for images.
    public var resizer: ImageResizer {
        var resizer = ImageResizer(size: size, mode: mode, allowsUpscaling: allowsUpscaling)
        resizer.maximumSide = limits.maximumOutputSide
        return resizer
    }

    /// One request whose image has enough pixels for each of `requests`, and the whole of the content; nil for none.
    ///
    /// It is cancelled with the first of them: callers who may lose interest one by one give all the same token.
    package static func covering(_ requests: [RenderRequest]) -> RenderRequest? {
        guard var common = requests.first else { return nil }
        var fits = true
        for request in requests {
            common.size.width = max(common.size.width, request.size.width)
            common.size.height = max(common.size.height, request.size.height)
            switch request.mode {
            case .fit: break
            // A side without limit needs every pixel, and so does no rule at all.
            case .limit where !request.size.isEmpty: break
            case .limit, .none: return common.asStored
            case .stretch, .fill, .crop: fits = false
            }
        }
        // Whether an image would grow is told by its own size; made larger, it would not be known any more.
        common.allowsUpscaling = requests.allSatisfy { $0.allowsUpscaling && $0.mode != .limit }
        common.mode = fits ? .fit : .fill
        return common
    }

    private var asStored: RenderRequest {
        var request = self
        request.mode = .none
        return request
    }
}

extension RenderRequest {
    /// The image of a page or frame that a helper has drawn at the size of ``mode``, upright: in sRGB, and cut if
    /// the request asks for a crop.
    func image(from drawn: DecodedImage, source: String) throws(ImagePipelineError) -> PixelImage {
        do throws(ImageError) {
            let plane = drawn.planes[0]
            let image = try DecodedImageRenderer.image(
                from: drawn, size: PixelSize(width: plane.width, height: plane.height), orientation: .up,
                cancellation: cancellation, inputName: source)
            guard case .crop = mode else { return image }
            return try resizer.resize(image)
        } catch {
            throw ImagePipelineError(error, source: source)
        }
    }
}
