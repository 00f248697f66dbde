public import VitrineCache
public import VitrineCore
public import VitrineNetwork

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A set of keys to keep. Committing it removes all other entries in one audit.
///
/// ```swift
/// let list = RetainSet(of: cache)
/// for key: CacheKey in ["cover", "title"] { list.preserve(key) }
/// try await list.commit()
/// ```
public final class RetainSet<Value: CacheableValue>: Sendable {
    private let cache: ValueCache<Value>
    private let keys = Locked<Set<CacheKey>>([])

    /// An empty list.
    public init(of cache: ValueCache<Value>) { self.cache = cache }

    /// Registers a key to keep.
    public func preserve(_ key: CacheKey) { keys.withLock { _ = $0.insert(key) } }

    /// Removes all entries whose keys are not in the set, in order with other audits of the cache, and empties the set.
    /// An empty set removes all entries.
    ///
    /// - Parameter sparesMemory: Whether to keep entries that are in memory. Default true.
    @discardableResult
    public func commit(sparesMemory: Bool = true) async throws(CacheError) -> AuditReport {
        let kept = keys.withLock { keys in
            defer { keys = [] }
            return keys
        }
        return try await cache.audit(.keepingOnly(kept), sparesMemory: sparesMemory)
    }
}

extension RetainSet {
    /// Registers the values of a URL to keep, which a cache fetched with the same id and options.
    public func preserve(_ url: URL, id: String? = nil, options: FetchOptions = .default) {
        preserve(NetworkFetcher<Value>(url: url, id: id, options: options).key)
    }
}
