import Dispatch

/// Where callbacks run.
///
/// Callbacks run on the main actor unless a call names another place:
///
/// ```swift
/// pipeline.start(url).onImage(on: .immediate) { result in print(result) }
/// ```
///
/// ``main`` is the only place that needs a running main loop.
public struct CallbackQueue: Sendable {
    private let isHere: @Sendable () -> Bool
    private let submit: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// Creates a queue.
    ///
    /// - Parameters:
    ///   - isHere: Returns whether the caller is already on the queue. Callbacks then run immediately.
    ///   - submit: Runs a closure on the queue later, in the order of the calls.
    package init(
        isHere: @escaping @Sendable () -> Bool = { false },
        submit: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.isHere = isHere
        self.submit = submit
    }

    /// On the thread on which the outcome became known; for an outcome that is known already the caller's, inside the
    /// call. Must not block.
    public static let immediate = CallbackQueue(isHere: { true }, submit: { $0() })

    /// On the main actor. An outcome that is known from the start, such as a value in memory, is delivered at once where
    /// the caller is there already; any other later.
    public static let main = CallbackQueue(isHere: { isMainActor }, submit: { body in Task { @MainActor in body() } })

    /// On the threads of an executor, such as a `BlockingExecutor`, always later. The order of callbacks is the
    /// executor's.
    public static func on(_ executor: some TaskExecutor) -> CallbackQueue {
        CallbackQueue { body in Task(executorPreference: executor) { body() } }
    }

    /// Runs a body there: now if this is the place, else later.
    ///
    /// - Parameter isWithinCall: Whether it may run now.
    package func perform(isWithinCall: Bool = true, _ body: @escaping @Sendable () -> Void) {
        if isWithinCall, isHere() { body() } else { submit(body) }
    }

    /// Marks the main queue, on which the main actor runs. Not the main thread: on Linux that may have given the queue
    /// up (`dispatch_main`).
    private static let mainMark = {
        let mark = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: mark, value: true)
        return mark
    }()

    /// Whether the caller is on the main actor.
    package static var isMainActor: Bool { DispatchQueue.getSpecific(key: mainMark) == true }
}
