import Dispatch
public import VitrineCore

/// Where callbacks run.
///
/// Callbacks run on the main actor unless a call names another place:
///
/// ```swift
/// cache.fetch(forKey: "lake").onSuccess(on: .immediate) { show($0) }
/// ```
///
/// ``main`` is the only place that needs a running main loop.
public struct CallbackQueue: Sendable {
    private let isHere: @Sendable () -> Bool
    private let submit: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// - Parameters:
    ///   - isHere: Whether the caller is in the right place already, so that what is known at once is told at once.
    ///   - submit: Runs a body there, later, in the order of the calls.
    public init(
        isHere: @escaping @Sendable () -> Bool = { false },
        submit: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.isHere = isHere
        self.submit = submit
    }

    /// On the thread on which the outcome became known; for a memory hit the caller's, inside the call. Must not block.
    public static let immediate = CallbackQueue(isHere: { true }, submit: { $0() })

    /// On the main actor; at once where the caller is there already.
    public static let main = CallbackQueue(isHere: { isMainActor }, submit: { body in Task { @MainActor in body() } })

    /// On the threads of an executor, always later.
    public static func on(_ executor: BlockingExecutor) -> CallbackQueue {
        CallbackQueue { body in executor.submit(body) }
    }

    /// Wherever a task executor runs its tasks, always later. The order of callbacks is the executor's.
    public static func on(_ executor: some TaskExecutor) -> CallbackQueue {
        CallbackQueue { body in Task(executorPreference: executor) { body() } }
    }

    /// Runs a body there: now if this is the place, else later.
    package func perform(_ body: @escaping @Sendable () -> Void) {
        if isHere() { body() } else { submit(body) }
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
