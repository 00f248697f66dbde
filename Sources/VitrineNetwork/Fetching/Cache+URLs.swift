#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// The forms with URLs (R3–R8): those with fetchers, for a ``NetworkFetcher``.
extension Cache {
    /// What a URL stands for: from memory, from disk, or loaded.
    ///
    /// ```swift
    /// let image = try await Shared.images.value(from: url)
    /// ```
    ///
    /// - Parameters:
    ///   - url: `http`, `https`, `file`, `data`, or a scheme registered with the loader.
    ///   - id: What the value is known by instead of the URL: for one that is signed or changes otherwise.
    ///   - format: In which form.
    ///   - levels: Which levels to use (R21).
    ///   - priority: How urgent it is.
    ///   - options: How to load, and how long it is fresh.
    ///   - progress: Told how far the body has come, and in any case of the end (R82).
    /// - Throws: ``CacheError/source(key:underlying:)`` with a ``NetworkError`` if it could not be loaded, and the
    ///   errors of ``value(from:format:levels:priority:)``.
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

    /// The same with a handle and callbacks (R8).
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

    /// Asks the server again, however fresh what is stored; that stays if there is no answer (R81).
    ///
    /// Loads nothing anew that has not changed. Caches on the way are asked to do the same.
    @discardableResult
    public func refresh(
        from url: URL, id: String? = nil, format: FormatName = .original, priority: Priority = .normal,
        options: FetchOptions = .default
    ) async throws(CacheError) -> Value {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options)
        return try await refresh(from: fetcher, format: format, priority: priority)
    }

    /// Brings what a URL stands for nearer, for later. See ``prefetch(from:format:to:priority:)``.
    public func prefetch(
        from url: URL, id: String? = nil, format: FormatName = .original, to depth: CacheLevel = .disk,
        priority: Priority = .low, options: FetchOptions = .default
    ) async throws(CacheError) {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options)
        try await prefetch(from: fetcher, format: format, to: depth, priority: priority)
    }

    /// What is stored of a URL at once, however old, then what the server has now, if that is another. See
    /// ``updates(from:format:levels:priority:revalidatingFresh:)``.
    public func updates(
        from url: URL, id: String? = nil, format: FormatName = .original, levels: CacheLevels = .all,
        priority: Priority = .normal, revalidatingFresh revalidatesFresh: Bool = false,
        options: FetchOptions = .default
    ) -> ValueUpdates<Value> {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options)
        return updates(
            from: fetcher, format: format, levels: levels, priority: priority, revalidatingFresh: revalidatesFresh)
    }
}
