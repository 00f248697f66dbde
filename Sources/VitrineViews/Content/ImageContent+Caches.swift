#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore
public import VitrineNetwork

extension ImageContent where Value: CacheableValue {
    /// What a URL stands for, from memory, from disk or loaded.
    ///
    /// - Parameters:
    ///   - url: `http`, `https`, `file`, `data`, or a scheme registered with the loader.
    ///   - id: What it is known by instead of the URL: for one that is signed or changes otherwise.
    ///   - cache: Where it is kept.
    ///   - format: In which form, the same for all targets.
    ///   - options: How to load, and how long it is fresh.
    public static func url(
        _ url: URL, id: String? = nil, in cache: Cache<Value>, format: FormatName,
        options: FetchOptions = .default
    ) -> ImageContent {
        fetcher(NetworkFetcher<Value>(url: url, id: id, options: options), in: cache, format: format)
    }

    /// What a fetcher brings, unless a level of the cache has it.
    public static func fetcher(
        _ fetcher: some Fetcher<Value>, in cache: Cache<Value>, format: FormatName
    ) -> ImageContent {
        cached(cache, fetcher.key, { _ in format }) { cache.fetch(from: fetcher, format: $0, priority: $1) }
    }

    /// The value of a file.
    public static func file(_ path: String, in cache: Cache<Value>, format: FormatName) -> ImageContent {
        fetcher(FileFetcher(path: path), in: cache, format: format)
    }

    /// The value of a key in memory or on disk. Fails if no level has it.
    public static func key(_ key: CacheKey, in cache: Cache<Value>, format: FormatName) -> ImageContent {
        cached(cache, key, { _ in format }) { cache.fetch(forKey: key, format: $0, priority: $1) }
    }

    /// A value that is computed, on a thread that may block, unless a level of the cache has it under its key.
    public static func value(
        _ value: @autoclosure @escaping @Sendable () throws -> Value, forKey key: CacheKey, in cache: Cache<Value>,
        format: FormatName
    ) -> ImageContent {
        fetcher(computing(value, key, on: cache), in: cache, format: format)
    }

    /// Computes a value where a cache's work may block.
    static func computing(
        _ value: @escaping @Sendable () throws -> Value, _ key: CacheKey, on cache: Cache<Value>
    ) -> ValueFetcher<Value> {
        let executor = cache.configuration.executor
        return ValueFetcher(key: key, load: { () async throws -> Value in try await executor.run { try value() } })
    }

    /// - Parameters:
    ///   - format: Chooses the form for a target.
    ///   - fetch: Begins.
    static func cached(
        _ cache: Cache<Value>, _ key: CacheKey, _ format: @escaping @Sendable (TargetGeometry?) -> FormatName,
        _ fetch: @escaping @Sendable (FormatName, Priority) -> FetchTask<Value>
    ) -> ImageContent {
        ImageContent { box in
            let format = format(box)
            return Prepared(
                identity: ContentIdentity(owner: ObjectIdentifier(cache), key: key, form: format.rawValue)
            ) {
                cache[key, format].map { ($0, true) }
            } start: { priority, report in
                let fetch = fetch(format, priority)
                fetch.onEnd { report(.done($0.mapError { $0 })) }
                return ContentLoad(cancel: { fetch.cancel() }, priority: { fetch.priority = $0 })
            }
        }
    }
}
