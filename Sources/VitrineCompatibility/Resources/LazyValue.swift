package import VitrineCache
import VitrineCore

/// A value that is loaded on first access, for drag and drop, menus and long lists.
///
/// ```swift
/// guard let picture = resources.lazyValue(for: url) else { return }
/// // later, or never:
/// let image = try await picture.value
/// ```
///
/// Concurrent accesses share one load. A loaded value is retained by the object. After a failure, the next access loads
/// again.
public final class LazyValue<Value: Sendable>: Sendable {
    private struct State {
        var known: Value?
        var running: FetchTask<Value>?
    }

    private let key: CacheKey
    private let load: @Sendable () async throws(CacheError) -> Value
    private let state = Locked(State())

    /// Creates a value.
    ///
    /// - Parameters:
    ///   - key: The key of the value, for errors.
    ///   - load: Loads the value.
    package init(key: CacheKey, load: @escaping @Sendable () async throws(CacheError) -> Value) {
        self.key = key
        self.load = load
    }

    deinit {
        // Every waiting access retains the object, so no access is left.
        state.withLock { $0.running }?.cancel()
    }

    /// The value. The first access loads it.
    ///
    /// - Throws: The error of the load, or `CacheError.cancelled(key:)` if the task is cancelled. Cancellation does not
    ///   end the load for other accesses.
    public var value: Value {
        get async throws(CacheError) {
            // The load ends with the object.
            defer { withExtendedLifetime(self) {} }
            return try await fetch().value
        }
    }

    /// Loads the value and calls a closure on the main actor.
    ///
    /// - Parameter completion: Receives the value or the error. It runs before the call returns if the value is loaded
    ///   and the caller is on the main actor.
    package func load(completion: @escaping @MainActor @Sendable (Result<Value, CacheError>) -> Void) {
        fetch().onEnd(on: .main) { outcome in
            // Retained until then.
            withExtendedLifetime(self) { MainActor.assumeIsolated { completion(outcome) } }
        }
    }

    /// Whether the value is loaded.
    package var isLoaded: Bool { state.withLock { $0.known != nil } }

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
        fetch.run { [weak self, load] _ throws(CacheError) in
            let outcome: Result<Value, CacheError>
            do throws(CacheError) { outcome = .success(try await load()) } catch { outcome = .failure(error) }
            self?.state.withLock { state in
                state.known = try? outcome.get()
                state.running = nil
            }
            return try outcome.get()
        }
        return fetch
    }
}
