import VitrineCache
public import VitrineCore
import VitrineImaging

/// A running ``ImageRequest``: its result, its previews, its priority and its end.
///
/// ```swift
/// let task = ImagePipeline.shared.start(ImageRequest(.video("film.mp4", at: .poster), size: .fit(320)))
/// for await preview in task.previews { view.image = preview }
/// view.image = try await task.value
/// task.priority = .high
/// task.cancel()
/// ```
///
/// A task ends exactly once: with an image, an error, or by ``cancel()``, after which no closure is called. Equal
/// requests share the work, which runs at the highest of their priorities and stops with the last of them.
///
/// ## Topics
/// ### Results
/// - ``value``
/// - ``previews``
/// - ``onImage(_:)``
/// - ``onPreview(_:)``
/// - ``blocking``
/// ### Urgency
/// - ``priority``
/// - ``executionPriority``
/// ### Ending
/// - ``cancel()``
/// - ``state``
public final class ImageTask: Sendable {
    /// How far a task is.
    public enum State: Sendable, Hashable {
        /// Not started yet.
        case new
        /// Waiting for its turn, or for the content of its source.
        case queued
        /// The source makes the image.
        case running
        /// Ended with an image.
        case finished
        /// Ended with an error.
        case failed
        /// Cancelled.
        case cancelled

        /// Whether the task has ended.
        public var isFinal: Bool { self == .finished || self == .failed || self == .cancelled }
    }

    /// The request.
    public let request: ImageRequest
    let progress: Locked<TaskProgress>

    /// A task that ``ImagePipeline/start(_:)-(ImageTask)`` or a group starts later. For a task that starts at once, call
    /// ``ImagePipeline/start(_:)-(ImageRequest)``.
    public init(_ request: ImageRequest) {
        self.request = request
        var progress = TaskProgress()
        progress.priority = request.priority
        progress.executionPriority = request.executionPriority
        self.progress = Locked(progress)
    }

    // MARK: Urgency

    /// How urgent the task is among all that waits. May be changed at any time.
    public var priority: Priority {
        get { progress.withLock { $0.priority } }
        set {
            progress.withLock { $0.priority = newValue }
            pipeline?.priorityDidChange(self)
        }
    }

    /// The share of the processor the work may claim. Counts from the moment the work starts.
    public var executionPriority: ExecutionPriority {
        get { progress.withLock { $0.executionPriority } }
        set {
            progress.withLock { $0.executionPriority = newValue }
            pipeline?.priorityDidChange(self)
        }
    }

    var cacheLevels: CacheLevels { request.cacheLevels }

    // MARK: State

    /// How far the task is.
    public var state: State { progress.withLock { $0.state } }

    /// Ends the task without a result. The work stops unless another task needs it.
    ///
    /// After this call, no closure of ``onImage(_:)`` or ``onPreview(_:)`` starts on the main actor if it was made
    /// there; on other queues one that is running may still complete. ``value`` throws `CancellationError`. A task that
    /// has ended keeps its result.
    public func cancel() {
        progress.withLock { $0.isSilenced = true }
        end(.failure(.cancelled(source: "\(type(of: request.source))")), as: .cancelled)
    }

    var pipeline: ImagePipeline? { progress.withLock { $0.pipeline } }
}
