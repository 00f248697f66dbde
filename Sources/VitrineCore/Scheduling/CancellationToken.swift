import Synchronization

/// A flag that tells running work to stop, readable from any thread and any language.
///
/// Blocking work (a decoder, a file copy) polls ``isCancelled`` at least every few milliseconds. Work that runs
/// elsewhere (another process, a transfer) registers a handler with ``onCancel(_:)`` instead.
public final class CancellationToken: Sendable {
    private struct Handlers {
        var isCancelled = false
        var nextID = 0
        var handlers: [Int: @Sendable () -> Void] = [:]
    }

    private let flag = Atomic<Bool>(false)
    private let state = Locked(Handlers())

    public init() {}

    /// Whether ``cancel()`` has been called. One relaxed atomic load: cheap enough for an inner loop.
    public var isCancelled: Bool { flag.load(ordering: .relaxed) }

    /// Cancels the work. Handlers run once, on the calling thread, before the call returns; later calls do nothing.
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

    /// A handle for taking a handler back.
    public struct Registration: Sendable {
        fileprivate let id: Int?
    }

    /// Calls `handler` when the token is cancelled; at once if it already is.
    ///
    /// - Returns: A registration for ``remove(_:)``.
    @discardableResult
    public func onCancel(_ handler: @escaping @Sendable () -> Void) -> Registration {
        let id: Int? = state.withLock { state in
            guard !state.isCancelled else { return nil }
            state.nextID += 1
            state.handlers[state.nextID] = handler
            return state.nextID
        }
        if id == nil { handler() }
        return Registration(id: id)
    }

    /// Forgets a handler, which releases what it captured. A handler that is running is not waited for.
    public func remove(_ registration: Registration) {
        guard let id = registration.id else { return }
        state.withLock { _ = $0.handlers.removeValue(forKey: id) }
    }
}
