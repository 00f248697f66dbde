public import VitrineCache
public import VitrineCore
public import VitrineImaging

/// One thumbnail that somebody wants (R89).
///
/// ```swift
/// let request = ThumbnailRequest(ImageSource(path: path), size: PixelSize(128), scale: 2)
///     .onPlaceholder { cell.image = $0 }
///     .onThumbnail { cell.show($0) }
/// request.queuePriority = .high
/// service.enqueue(request)
/// // …
/// request.cancel()    // the cell has gone
/// ```
///
/// A request is used once. It ends exactly once: with a thumbnail, an error, or by ``cancel()``, after which nothing is
/// called any more. Requests of one source, size and mode share the work and its result (R91).
///
/// ## Topics
/// ### Results
/// - ``onThumbnail(_:)``
/// - ``onPlaceholder(_:)``
/// - ``value``
/// - ``placeholder``
/// - ``blocking``
///
/// ### Urgency
/// - ``queuePriority``
/// - ``executionPriority``
///
/// ### Ending
/// - ``cancel()``
/// - ``state``
public final class ThumbnailRequest: Sendable {
    /// Where a request is in its life.
    public enum State: Sendable, Hashable {
        /// Not enqueued yet.
        case new
        /// Waiting for its turn.
        case queued
        /// The source is at work on it.
        case running
        /// Has its thumbnail.
        case finished
        /// Has an error.
        case failed
        /// Was cancelled.
        case cancelled

        /// Whether nothing follows.
        public var isFinal: Bool { self == .finished || self == .failed || self == .cancelled }
    }

    /// What it is made from.
    public let source: any ThumbnailSource
    /// The box, in points.
    public let size: PixelSize
    /// Pixels for each point, as of a display of high density.
    public let scale: Double
    /// How the picture is brought to the box.
    public let mode: ImageResizer.Mode
    /// Whether the picture may grow.
    public let allowsUpscaling: Bool

    let progress: Locked<RequestProgress>

    /// A request.
    ///
    /// - Parameters:
    ///   - source: What the thumbnail is made from.
    ///   - size: The box, in points.
    ///   - scale: Pixels for each point; the product is rounded.
    ///   - mode: How the picture is brought to the box.
    ///   - allowsUpscaling: Whether it may grow.
    public init(
        _ source: any ThumbnailSource, size: PixelSize, scale: Double = 1, mode: ImageResizer.Mode = .aspectFit,
        allowsUpscaling: Bool = true
    ) {
        self.source = source
        self.size = size
        self.scale = scale
        self.mode = mode
        self.allowsUpscaling = allowsUpscaling
        progress = Locked(RequestProgress())
    }

    /// The box in pixels.
    public var pixelSize: PixelSize {
        func pixels(_ points: Int) -> Int {
            let product = (Double(points) * scale).rounded()
            // What is no size at all is refused by the rule for pictures, with a sentence.
            return product.isFinite ? Int(max(-1, min(product, 1e9))) : -1
        }
        return PixelSize(width: pixels(size.width), height: pixels(size.height))
    }

    // MARK: Urgency

    /// How urgent it is among all that waits (R92). May be changed at any time; default `normal`.
    public var queuePriority: Priority {
        get { progress.withLock { $0.queuePriority } }
        set {
            progress.withLock { $0.queuePriority = newValue }
            service?.priorityDidChange(self)
        }
    }

    /// How much of the processor it may claim. Counts from the moment the work starts; default
    /// ``ExecutionPriority/low``.
    public var executionPriority: ExecutionPriority {
        get { progress.withLock { $0.executionPriority } }
        set {
            progress.withLock { $0.executionPriority = newValue }
            service?.priorityDidChange(self)
        }
    }

    /// Which levels of the service's caches it may use. Default ``ThumbnailCacheOptions/all``. Set it before
    /// enqueueing.
    public var cacheOptions: ThumbnailCacheOptions {
        get { progress.withLock { $0.cacheOptions } }
        set { progress.withLock { $0.cacheOptions = newValue } }
    }

    /// Where the closures are called. Default the main queue, which needs a running main loop; what waits for
    /// ``value`` does not.
    public var delivery: Delivery {
        get { progress.withLock { $0.delivery } }
        set { progress.withLock { $0.delivery = newValue } }
    }

    // MARK: State

    /// Where the request is now.
    public var state: State { progress.withLock { $0.state } }

    /// Ends the request without a result (R93). The last one to go stops the work. No closure is called afterwards: not
    /// at all where this is called in the place of ``delivery``, else none but one that is being called just now. Who
    /// waits gets a `CancellationError`. A request that has ended stays as it is; closures on their way are silenced.
    public func cancel() {
        progress.withLock { $0.isSilenced = true }
        end(.failure(.cancelled(source: "\(type(of: source))")), as: .cancelled)
    }

    var service: ThumbnailService? { progress.withLock { $0.service } }
}
