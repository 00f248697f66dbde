#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore
public import VitrineNetwork

/// Loads that return a handle.
extension ValueCache {
    /// Fetches the value of a key from memory or disk.
    ///
    /// A memory hit has ended on return. Handlers that are then added on the main actor run before `onSuccess` returns.
    /// With depth `.memory`, a miss has also ended on return, with `CacheError.notFound(key:)`.
    ///
    /// - Returns: The task. A miss ends it with `CacheError.notFound(key:)`, an unregistered format immediately with
    ///   `CacheError.formatNotFound(_:)`.
    @discardableResult
    public func fetch(
        forKey key: CacheKey, format: FormatName = .original, depth: CacheLevel = .disk, levels: CacheLevels = .all,
        priority: RequestPriority = .normal
    ) -> FetchTask<Value> {
        let known: Result<Value, CacheError>? = depth == .memory ? .failure(.notFound(key: key)) : nil
        return begin(key, format: format, levels: levels, priority: priority, otherwise: known) {
            source throws(CacheError) in
            let value = try await self.valueOnDisk(forKey: key, format: format, levels: levels, following: source)
            guard let value else { throw .notFound(key: key) }
            return value
        }
    }

    /// Fetches a value from memory, from disk or with a fetcher, stores it, and delivers the stored value.
    @discardableResult
    public func fetch(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, levels: CacheLevels = .all,
        priority: RequestPriority = .normal
    ) -> FetchTask<Value> {
        begin(fetcher.key, format: format, levels: levels, priority: priority) { source throws(CacheError) in
            try await self.loadedValue(from: fetcher, format: format, levels: levels, following: source)
        }
    }

    /// Fetches the value of a URL from memory, from disk or from the network.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - id: The identity of the value, which replaces the URL in the key.
    ///   - format: The format of the value.
    ///   - priority: The priority.
    ///   - options: The options of the load.
    ///   - progress: Receives the progress of the body and the end of the load.
    @discardableResult
    public func fetch(
        from url: URL, id: String? = nil, format: FormatName = .original, priority: RequestPriority = .normal,
        options: FetchOptions = .default, progress: TransferProgress? = nil
    ) -> FetchTask<Value> {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options, progress: progress)
        let fetch = fetch(from: fetcher, format: format, priority: priority)
        guard let progress else { return fetch }
        return fetch.onEnd(on: .immediate) { outcome in
            if case .success = outcome { progress.end(isComplete: true) } else { progress.end(isComplete: false) }
        }
    }

    /// Starts a fetch, unless memory has the value or the outcome of a miss in memory is known.
    private func begin(
        _ key: CacheKey, format: FormatName, levels: CacheLevels, priority: RequestPriority,
        otherwise known: Result<Value, CacheError>? = nil,
        load: @escaping @Sendable (PrioritySource) async throws(CacheError) -> Value
    ) -> FetchTask<Value> {
        do throws(CacheError) {
            if let value = try valueInMemory(forKey: key, format: format, levels: levels) {
                return FetchTask(key: key, outcome: .success(value))
            }
        } catch {
            return FetchTask(key: key, outcome: .failure(error))
        }
        if let known { return FetchTask(key: key, outcome: known) }
        let fetch = FetchTask<Value>(key: key, priority: priority)
        fetch.run { source throws(CacheError) in try await load(source) }
        return fetch
    }

    /// Fetches the stored value of a key from memory or disk, or derives it from another stored format. Never asks a
    /// source.
    ///
    /// - Returns: The task. A miss ends it with `CacheError.notFound(key:)`.
    func fetchStored(forKey key: CacheKey, format: FormatName, priority: RequestPriority) -> FetchTask<Value> {
        let fetch = FetchTask<Value>(key: key, priority: priority)
        fetch.run { source throws(CacheError) in
            let value = try await self.storedValue(forKey: key, format: format, following: source)
            guard let value else { throw .notFound(key: key) }
            return value
        }
        return fetch
    }
}
