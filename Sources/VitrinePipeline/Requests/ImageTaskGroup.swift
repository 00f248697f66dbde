/// Requests that are enqueued by rules of their own, a few at a time.
///
/// A service asks ``nextTasks()`` when the group is enqueued and after the end of each of its requests, until
/// ``isFinished`` is true. The group learns of each end, also of an error or a cancellation, so
/// that no group can stall. The calls come one at a time, on any thread, and must not block.
///
/// ``ImageTaskSequence`` is the one that most need.
public protocol ImageTaskGroup: AnyObject, Sendable {
    /// The requests to enqueue now; none to wait for one that is under way. Each request is given once.
    func nextTasks() -> [ImageTask]

    /// A request that was given has ended; its ``ImageTask/state`` says how.
    func taskDidEnd(_ task: ImageTask)

    /// Whether nothing follows and nothing is under way. A group that has nothing under way, gives nothing and is not
    /// finished is asked again only when ``ImagePipeline/start(_:)-(ImageTaskGroup)`` is called again.
    var isFinished: Bool { get }

    /// Cancels all tasks of the group, started or not, and finishes the group.
    func cancel()
}
