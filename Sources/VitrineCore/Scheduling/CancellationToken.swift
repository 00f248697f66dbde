import Synchronization

/// A flag that tells running work to stop. It can be read from any thread.
///
/// Blocking work, such as a decoder or a file copy, polls ``isCancelled`` at least every few milliseconds. Work that
/// runs elsewhere, such as a transfer or another process, registers a handler with ``onCancel(_:)``.
public final class CancellationToken: Sendable {
    private struct Handlers {
        var isCancelled = false
        var nextID = 0
        var handlers: [Int: @Sendable () -> Void] = [:]
    }

    private let flag = Atomic<Bool>(false)
    private let state = Locked(Handlers())

    /// Creates a token that is not cancelled.
    public init() {}

    /// Whether ``cancel()`` has been called. It costs one relaxed atomic load, which is cheap enough for an inner loop.
    public var isCancelled: Bool { flag.load(ordering: .relaxed) }

    /// Cancels the work. Each handler runs once, on the calling thread, before the call returns. Later calls do
    /// nothing.
    public func cancel() {
        let handlers = state.withLock { state in
            guard !state.isCancelled else { return [@Sendable () -> Void]() }
            state.isCancelled = true
            flag.store(true, ordering: .releasing)
            defer { state.handlers = [:] }
            return state.handlers.sorted { $0.key < $1.key }.map(\.value)
        }
        for handler in handlers { handler() }
    }

    /// Identifies a handler for ``remove(_:)``.
    package struct Registration: Sendable {
        fileprivate let id: Int?
    }

    /// Calls a handler when the token is cancelled, or at once if it already is.
    ///
    /// - Parameter handler: The closure to call. The token releases it when it is deinitialized.
    public func onCancel(_ handler: @escaping @Sendable () -> Void) { _ = register(handler) }

    /// Calls a handler when the token is cancelled, or at once if it already is, unless it is removed before.
    ///
    /// - Parameter handler: The closure to call.
    /// - Returns: A registration for ``remove(_:)``.
    package func register(_ handler: @escaping @Sendable () -> Void) -> Registration {
        let id: Int? = state.withLock { state in
            guard !state.isCancelled else { return nil }
            state.nextID += 1
            state.handlers[state.nextID] = handler
            return state.nextID
        }
        if id == nil { handler() }
        return Registration(id: id)
    }

    /// Removes a handler and releases its captures. A handler that is running is not waited for.
    ///
    /// - Parameter registration: The result of ``register(_:)``.
    package func remove(_ registration: Registration) {
        guard let id = registration.id else { return }
        state.withLock { _ = $0.handlers.removeValue(forKey: id) }
    }
}
