import VitrineCore
import VitrineImaging

/// A source of images: a picture, a page, a video frame, or a type of your own.
///
/// Only ``identity()`` and ``image(_:)`` have to be written. Both may block, and neither is ever called on a thread
/// of Swift's cooperative pool.
public protocol ImageSource: Sendable {
    /// Returns the identity of the source, under which its results are cached.
    ///
    /// It stays the same when the home directory moves, and changes when the content does. Cheap: a look at the file's
    /// status, not at its content.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)`` when the source is gone.
    func identity() throws(ImagePipelineError) -> CacheKey

    /// The ``identity()`` where it is known without asking anybody; nil, the default, where it takes a look at a file.
    ///
    /// Thumbnails of such sources that are in memory are given at once even to callers that must not block, as the main
    /// thread.
    var knownIdentity: CacheKey? { get }

    /// Something to show until the thumbnail is there, without much work; nil for nothing, which is the default.
    func placeholder(_ request: RenderRequest) throws -> Image?

    /// The thumbnail.
    ///
    /// Long work looks at ``RenderRequest/cancellation`` every few milliseconds, or registers a handler with it.
    ///
    /// - Throws: ``ImagePipelineError``, or any error of your own.
    func image(_ request: RenderRequest) throws -> Image

    /// The thumbnails for several requests, in their order, at less cost than one by one.
    ///
    /// By default the source is asked once, for a picture that is large enough for all, which is then reduced. A side
    /// may differ by one pixel from that of the same request alone, as both follow from rounded sizes.
    ///
    /// - Throws: As ``image(_:)``: one error for all.
    func images(_ requests: [RenderRequest]) throws -> [Image]

    /// Whether ``placeholder(_:)`` and ``image(_:)`` must be called on the main actor. Default false.
    var requiresMainActor: Bool { get }
}

extension ImageSource {
    public var knownIdentity: CacheKey? { nil }

    public var requiresMainActor: Bool { false }

    public func placeholder(_ request: RenderRequest) throws -> Image? { nil }

    public func images(_ requests: [RenderRequest]) throws -> [Image] {
        guard let common = RenderRequest.covering(requests), requests.count > 1 else {
            return try requests.map(image)
        }
        let largest = try image(common)
        return try requests.map { request in
            if request.cancellation.isCancelled { throw ImagePipelineError.cancelled(source: "\(type(of: self))") }
            return try request.resizer.resize(largest)
        }
    }
}
