#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Calls that load a URL with a ``NetworkFetcher``.
extension Cache {
    /// Returns the value of a URL from memory, from disk or from the network.
    ///
    /// ```swift
    /// let image = try await Shared.images.value(from: url)
    /// ```
    ///
    /// - Parameters:
    ///   - url: The URL, whose scheme is `http`, `https`, `file`, `data`, or one registered with the loader.
    ///   - id: The identity of the value, which replaces the URL in the key. Use it for signed URLs.
    ///   - format: The format of the value.
    ///   - levels: The cache levels to use.
    ///   - priority: The priority.
    ///   - options: The options of the load.
    ///   - progress: Receives the progress of the body and the end of the load.
    /// - Throws: ``CacheError/source(key:underlying:)`` with a ``NetworkError`` if the load fails, and the errors of
    ///   ``value(from:format:levels:priority:)``.
    public func value(
        from url: URL, id: String? = nil, format: FormatName = .original, levels: CacheLevels = .all,
        priority: Priority = .normal, options: FetchOptions = .default, progress: TransferProgress? = nil
    ) async throws(CacheError) -> Value {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options, progress: progress)
        do throws(CacheError) {
            let value = try await value(from: fetcher, format: format, levels: levels, priority: priority)
            progress?.end(isComplete: true)
            return value
        } catch {
            progress?.end(isComplete: false)
            throw error
        }
    }

    /// Starts a load and returns a handle for callbacks.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - id: The identity of the value, which replaces the URL in the key.
    ///   - format: The format of the value.
    ///   - levels: The cache levels to use.
    ///   - priority: The priority.
    ///   - options: The options of the load.
    ///   - progress: Receives the progress of the body and the end of the load.
    @discardableResult
    public func fetch(
        from url: URL, id: String? = nil, format: FormatName = .original, levels: CacheLevels = .all,
        priority: Priority = .normal, options: FetchOptions = .default, progress: TransferProgress? = nil
    ) -> FetchTask<Value> {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options, progress: progress)
        let fetch = fetch(from: fetcher, format: format, levels: levels, priority: priority)
        guard let progress else { return fetch }
        return fetch.onEnd(on: .immediate) { outcome in
            if case .success = outcome { progress.end(isComplete: true) } else { progress.end(isComplete: false) }
        }
    }

    /// Revalidates a URL with its server, however fresh the stored value is.
    ///
    /// An unchanged body is not transferred again. If the refresh fails, the stored value stays.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - id: The identity of the value, which replaces the URL in the key.
    ///   - format: The format of the value.
    ///   - priority: The priority.
    ///   - options: The options of the load.
    /// - Throws: ``CacheError/source(key:underlying:)`` with a ``NetworkError`` if the server does not answer.
    @discardableResult
    public func refresh(
        from url: URL, id: String? = nil, format: FormatName = .original, priority: Priority = .normal,
        options: FetchOptions = .default
    ) async throws(CacheError) -> Value {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options)
        return try await refresh(from: fetcher, format: format, priority: priority)
    }

    /// Loads a URL into the cache for later, as ``prefetch(from:format:to:priority:)`` does.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - id: The identity of the value, which replaces the URL in the key.
    ///   - format: The format of the value.
    ///   - depth: The level to load to: `.disk` stores bytes without decoding them, `.memory` decodes.
    ///   - priority: The priority.
    ///   - options: The options of the load.
    public func prefetch(
        from url: URL, id: String? = nil, format: FormatName = .original, to depth: CacheLevel = .disk,
        priority: Priority = .low, options: FetchOptions = .default
    ) async throws(CacheError) {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options)
        try await prefetch(from: fetcher, format: format, to: depth, priority: priority)
    }

    /// Returns the stored value of a URL, however old, and then the newer one of the server, if it has changed. See
    /// ``updates(from:format:levels:priority:revalidatingFresh:)``.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - id: The identity of the value, which replaces the URL in the key.
    ///   - format: The format of the values.
    ///   - levels: The cache levels to use.
    ///   - priority: The priority.
    ///   - revalidatesFresh: Whether to revalidate a fresh value.
    ///   - options: The options of the load.
    public func updates(
        from url: URL, id: String? = nil, format: FormatName = .original, levels: CacheLevels = .all,
        priority: Priority = .normal, revalidatingFresh revalidatesFresh: Bool = false,
        options: FetchOptions = .default
    ) -> some AsyncSequence<Value, CacheError> & Sendable {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options)
        return updates(
            from: fetcher, format: format, levels: levels, priority: priority, revalidatingFresh: revalidatesFresh)
    }
}
