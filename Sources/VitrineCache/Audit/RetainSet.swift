public import VitrineCore

/// Keys that are collected one by one, everything else then being removed in one audit (R55).
///
/// ```swift
/// let list = RetainSet(of: cache)
/// for note in notes { list.preserve(note.key) }
/// try await list.commit()
/// ```
public final class RetainSet<Value: CacheableValue>: Sendable {
    private let cache: Cache<Value>
    private let keys = Locked<Set<CacheKey>>([])

    /// An empty list.
    public init(of cache: Cache<Value>) { self.cache = cache }

    /// Registers a key to keep.
    public func preserve(_ key: CacheKey) { keys.withLock { _ = $0.insert(key) } }

    /// Removes all entries whose keys were not registered, in its turn among the cache's audits, and begins an empty
    /// list. Nothing registered means that nothing is kept.
    ///
    /// - Parameter sparesMemory: Whether entries in memory are kept as well (R56).
    @discardableResult
    public func commit(sparesMemory: Bool = true) async throws(CacheError) -> AuditReport {
        let kept = keys.withLock { keys in
            defer { keys = [] }
            return keys
        }
        return try await cache.audit(.keepingOnly(kept), sparesMemory: sparesMemory)
    }
}
