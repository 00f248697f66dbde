/// What happened in a memory cache since it was made.
public struct MemoryCacheStatistics: Sendable, Hashable, Codable {
    /// Lookups that found a value, revived ones included.
    public var hits = 0
    /// Lookups that found none, or an expired one.
    public var misses = 0
    /// Lookups that found a value evicted here but alive elsewhere (R20).
    public var revivals = 0
    /// Values stored, in place of an older one or not, revivals included.
    public var insertions = 0
    /// Entries removed to make room, or because the capacity was lowered or memory became scarce.
    public var evictions = 0
    /// Values not kept because they cost more than an entry may.
    public var refusals = 0
    /// Entries found to be past their lifetime.
    public var expirations = 0

    /// Hits per lookup, 0 ... 1; 0 without any.
    public var hitRatio: Double { hits + misses == 0 ? 0 : Double(hits) / (Double(hits) + Double(misses)) }

    /// Nothing happened.
    public init() {}
}
