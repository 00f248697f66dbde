import VitrineCache
import VitrineCore
import VitrineImaging

/// What changes in the life of a ``ImageTask``.
struct TaskProgress {
    /// A closure of the user's, and where it is called.
    struct Handler<Argument> {
        let queue: CallbackQueue
        let body: @Sendable (Argument) -> Void
    }

    /// How far the placeholder is (R90).
    enum Placeholder {
        /// Nobody has asked for it.
        case unwanted
        /// Somebody will want it as soon as the request is enqueued, or waits for it now.
        case wanted
        /// It is being made.
        case coming
        /// It was made, there is none, or it came to nothing.
        case settled(Image?)

        var isSettled: Bool {
            if case .settled = self { return true }
            return false
        }
    }

    /// A receiver of previews of the bytes received so far.
    struct PreviewReceiver {
        enum Destination {
            case handler(Handler<Image>)
            case stream(AsyncStream<Image>.Continuation)
        }

        let destination: Destination
        /// The number of the last preview it received; 0 for none.
        var received = 0
    }

    var state = ImageTask.State.new
    var priority = Priority.normal
    var executionPriority = ExecutionPriority.low

    var imageHandlers: [Handler<Result<Image, ImagePipelineError>>] = []
    var placeholderHandlers: [Handler<Image>] = []
    var placeholder = Placeholder.unwanted
    var previewReceivers: [PreviewReceiver] = []
    /// The latest preview of the bytes received so far.
    var preview: JobPreview?
    /// Whether a thread delivers previews. It delivers those that arrive meanwhile, and then the result that waits.
    var isDeliveringPreviews = false
    /// The result, from the moment it is told.
    var result: Result<Image, ImagePipelineError>?
    /// A result that waits for the placeholder to be told first.
    var withheld: (result: Result<Image, ImagePipelineError>, origin: Origin?)?
    /// Called when the request has ended, in whatever way.
    var endObservers: [@Sendable () -> Void] = []
    /// Called with the result.
    var waiters: [@Sendable (Result<Image, ImagePipelineError>) -> Void] = []
    /// Called with the placeholder, nil for none.
    var placeholderWaiters: [@Sendable (Image?) -> Void] = []
    /// Set by ``ImageTask/cancel()``: closures on their way to another thread are not called any more.
    var isSilenced = false

    /// Set from enqueueing to the end.
    var pipeline: ImagePipeline?
    /// Whether a group says when it is enqueued.
    var isGrouped = false

    /// Ends it.
    ///
    /// - Returns: What there was before: those who are to be told.
    mutating func end(_ result: Result<Image, ImagePipelineError>, as state: ImageTask.State) -> TaskProgress {
        let before = self
        self.state = state
        self.result = result
        withheld = nil
        imageHandlers = []
        placeholderHandlers = []
        previewReceivers = []
        preview = nil
        waiters = []
        placeholderWaiters = []
        endObservers = []
        pipeline = nil
        return before
    }
}
