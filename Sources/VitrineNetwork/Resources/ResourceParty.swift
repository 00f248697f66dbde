#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// One who waits for a resource: an observer, held weakly; a caller; or nobody in particular, which is a prefetch.
final class ResourceParty<Value: CacheableValue>: Sendable {
    private struct State {
        weak var observer: (any ResourceObserver<Value>)?
        var isOver = false
    }

    /// Whose party it is; nil if it is no observer's. May be that of an observer that has gone.
    let observer: ObjectIdentifier?
    private let caller: (@Sendable (Result<Value, CacheError>) -> Void)?
    private let state: Locked<State>

    /// An observer; nobody in particular if it is nil.
    init(_ observer: (any ResourceObserver<Value>)?) {
        self.observer = observer.map(ObjectIdentifier.init)
        caller = nil
        state = Locked(State(observer: observer))
    }

    /// A caller, who is told once.
    init(caller: @escaping @Sendable (Result<Value, CacheError>) -> Void) {
        observer = nil
        self.caller = caller
        state = Locked(State())
    }

    /// Whether it is nobody in particular.
    var isPrefetch: Bool { observer == nil && caller == nil }

    /// Whether it still waits.
    ///
    /// - Parameter kept: Gets the observer. To be let go of outside of all locks: it may be the last reference, and
    ///   what goes may call the cache.
    func isWaiting(keeping kept: inout [any ResourceObserver<Value>]) -> Bool {
        let (isOver, object) = state.withLock { ($0.isOver, $0.observer) }
        if let object { kept.append(object) }
        return !isOver && (observer == nil || object != nil)
    }

    /// Whether it has left or been told.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Leaves: nothing is told any more.
    func leave() { state.withLock { $0.isOver = true } }

    /// Tells the outcome, unless the party has left or was told before.
    func tell(_ outcome: Result<Value, CacheError>, _ url: URL) {
        let observer: (any ResourceObserver<Value>)?? = state.withLock { state in
            guard !state.isOver else { return nil }
            state.isOver = true
            return .some(state.observer)
        }
        guard let observer else { return }
        caller?(outcome)
        switch outcome {
        case .success(let value): observer?.resourceDidLoad(value, from: url)
        case .failure(let error): observer?.resourceDidFail(error, from: url)
        }
    }
}
