public import VitrineCache
public import VitrineCore

/// A value that is loaded when it is first asked for: what is handed to drag and drop, to a menu, to a list of which
/// only some is ever looked at (R88).
///
/// ```swift
/// guard let picture = resources.provider(for: url) else { return }
/// // later, or never:
/// let image = try await picture.value
/// ```
///
/// Everyone who asks shares one load. A value that was loaded is kept as long as the object; a failure is not: the next
/// one to ask tries again.
public final class LazyValue<Value: Sendable>: Sendable {
    private struct State {
        var known: Value?
        var running: FetchTask<Value>?
    }

    private let key: CacheKey
    private let load: @Sendable () async throws(CacheError) -> Value
    private let state = Locked(State())

    /// - Parameters:
    ///   - key: What is loaded, for errors.
    ///   - load: Loads it.
    public init(key: CacheKey, load: @escaping @Sendable () async throws(CacheError) -> Value) {
        self.key = key
        self.load = load
    }

    deinit {
        // Nobody can ask any more; who asked holds the object.
        state.withLock { $0.running }?.cancel()
    }

    /// The value, loaded if it is not there yet.
    ///
    /// - Throws: Why there is none; `CacheError.cancelled(key:)` when the task is cancelled, which leaves the load
    ///   running for the others.
    public var value: Value {
        get async throws(CacheError) {
            // The load ends with the object.
            defer { withExtendedLifetime(self) {} }
            return try await fetch().value
        }
    }

    /// Calls `completion` on the main actor with the value, or why there is none; before the call returns if the value
    /// is there and the caller is on the main actor.
    public func load(completion: @escaping @MainActor @Sendable (Result<Value, CacheError>) -> Void) {
        load(on: .main) { outcome in MainActor.assumeIsolated { completion(outcome) } }
    }

    /// Calls `completion` with the value, or why there is none, where `delivery` says.
    public func load(on delivery: CallbackQueue, completion: @escaping @Sendable (Result<Value, CacheError>) -> Void) {
        fetch().onEnd(on: delivery) { outcome in
            // Held until then.
            withExtendedLifetime(self) { completion(outcome) }
        }
    }

    /// Whether the value is there.
    public var isLoaded: Bool { state.withLock { $0.known != nil } }

    private func fetch() -> FetchTask<Value> {
        let (fetch, isNew) = state.withLock { state in
            if let known = state.known {
                return (FetchTask(key: key, outcome: .success(known)), false)
            }
            if let running = state.running { return (running, false) }
            let fetch = FetchTask<Value>(key: key)
            state.running = fetch
            return (fetch, true)
        }
        guard isNew else { return fetch }
        fetch.follow(
            Task { [weak self, load] in
                let outcome: Result<Value, CacheError>
                do throws(CacheError) { outcome = .success(try await load()) } catch { outcome = .failure(error) }
                self?.state.withLock { state in
                    state.known = try? outcome.get()
                    state.running = nil
                }
                fetch.finish(outcome)
            })
        return fetch
    }
}
