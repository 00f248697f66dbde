#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// One who waits for a resource: an observer or a listener, held weakly; a caller; or nobody in particular, which is a
/// prefetch.
final class ResourceSubscriber<Value: CacheableValue>: Sendable {
    /// An observer or listener that is kept until all locks are left.
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

    /// Whose party it is; nil if it is no observer's or listener's. May be that of one that has gone.
    let observer: ObjectIdentifier?
    /// Where it is told.
    let delivery: CallbackQueue
    private let caller: (@Sendable (Result<Value, CacheError>) -> Void)?
    private let state: Locked<State>

    /// An observer, which is told on the main actor; nobody in particular if it is nil.
    init(observer: (any LoadObserver<Value>)?) {
        self.observer = observer.map(ObjectIdentifier.init)
        delivery = .main
        caller = nil
        state = Locked(State(observer: observer))
    }

    /// A listener, which is told at once.
    init(listener: any ResourceListener<Value>) {
        observer = ObjectIdentifier(listener)
        delivery = .immediate
        caller = nil
        state = Locked(State(listener: listener))
    }

    /// A caller, who is told once and at once.
    init(caller: @escaping @Sendable (Result<Value, CacheError>) -> Void) {
        observer = nil
        delivery = .immediate
        self.caller = caller
        state = Locked(State())
    }

    /// Whether it is nobody in particular.
    var isPrefetch: Bool { observer == nil && caller == nil }

    /// Whether it still waits.
    ///
    /// - Parameter kept: Gets the observer. To be let go of outside of all locks: it may be the last reference, and
    ///   what goes may call the cache.
    func isWaiting(keeping kept: inout [Kept]) -> Bool {
        let (isOver, object) = state.withLock { ($0.isOver, $0.object) }
        if let object { kept.append(object) }
        return !isOver && (observer == nil || object != nil)
    }

    /// Whether it has left or been told.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Leaves: nothing is told any more.
    func leave() { state.withLock { $0.isOver = true } }

    /// Tells the outcome, unless the party has left or was told before. To be called where ``delivery`` says.
    func tell(_ outcome: Result<Value, CacheError>, _ url: URL) {
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
