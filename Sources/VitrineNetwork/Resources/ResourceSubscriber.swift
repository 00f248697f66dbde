#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// A subscriber of a load: an observer or listener, held weakly; a caller; or a prefetch without any receiver.
final class ResourceSubscriber<Value: CacheableValue>: Sendable {
    /// An observer or listener that is retained until all locks are released.
    typealias Kept = any AnyObject & Sendable

    private struct State {
        weak var observer: (any LoadObserver<Value>)?
        weak var listener: (any ResourceListener<Value>)?
        var isOver = false

        var object: Kept? {
            if let observer { return observer }
            return listener
        }
    }

    /// The identity of the observer or listener, which may be deinitialized; nil for other subscribers.
    let observer: ObjectIdentifier?
    /// The queue of the notification.
    let delivery: CallbackQueue
    private let caller: (@Sendable (Result<Value, CacheError>) -> Void)?
    private let state: Locked<State>

    /// Creates the subscriber of an observer, which is notified on the main actor, or of a prefetch.
    init(observer: (any LoadObserver<Value>)?) {
        self.observer = observer.map(ObjectIdentifier.init)
        delivery = .main
        caller = nil
        state = Locked(State(observer: observer))
    }

    /// Creates the subscriber of a listener, which is notified at once.
    init(listener: any ResourceListener<Value>) {
        observer = ObjectIdentifier(listener)
        delivery = .immediate
        caller = nil
        state = Locked(State(listener: listener))
    }

    /// Creates the subscriber of a caller, which is notified at once.
    init(caller: @escaping @Sendable (Result<Value, CacheError>) -> Void) {
        observer = nil
        delivery = .immediate
        self.caller = caller
        state = Locked(State())
    }

    /// Whether the subscriber is a prefetch.
    var isPrefetch: Bool { observer == nil && caller == nil }

    /// Returns whether the subscriber waits.
    ///
    /// - Parameter kept: Receives the observer, which must be released outside of all locks. It may be the last
    ///   reference, and a `deinit` may call the cache.
    func isWaiting(keeping kept: inout [Kept]) -> Bool {
        let (isOver, object) = state.withLock { ($0.isOver, $0.object) }
        if let object { kept.append(object) }
        return !isOver && (observer == nil || object != nil)
    }

    /// Whether the subscriber was cancelled or notified.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Cancels the subscriber.
    func leave() { state.withLock { $0.isOver = true } }

    /// Notifies the subscriber, unless it was cancelled or notified before. Call it on ``delivery``.
    func notify(_ outcome: Result<Value, CacheError>, _ url: URL) {
        let state: State? = state.withLock { state in
            guard !state.isOver else { return nil }
            state.isOver = true
            return state
        }
        guard let state else { return }
        caller?(outcome)
        if let listener = state.listener {
            switch outcome {
            case .success(let value): listener.resourceDidLoad(value, from: url)
            case .failure(let error): listener.resourceDidFail(error, from: url)
            }
        }
        guard let observer = state.observer else { return }
        MainActor.assumeIsolated {
            switch outcome {
            case .success(let value): observer.resourceDidLoad(value, from: url)
            case .failure(let error): observer.resourceDidFail(error, from: url)
            }
        }
    }
}
