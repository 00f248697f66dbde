public import VitrineCore

/// Where an entry is in memory: its key, and the number of its format in the cache.
@usableFromInline
package struct MemoryKey: Sendable, Hashable {
    @usableFromInline package let key: CacheKey
    /// 0 for the original; numbers are a cache's own and not stored.
    @usableFromInline package let format: Int

    @inlinable
    package init(_ key: CacheKey, format: Int) {
        self.key = key
        self.format = format
    }

    @inlinable
    package static func == (one: MemoryKey, other: MemoryKey) -> Bool {
        one.format == other.format && one.key == other.key
    }

    @inlinable
    package func hash(into hasher: inout Hasher) { hasher.combine(hash64) }
}

extension MemoryKey: HashedKey {
    /// The key's hash, moved apart for each format by a multiple of the golden ratio's fraction (Knuth, TAOCP 6.4).
    @inlinable
    package var hash64: UInt64 {
        key.hash ^ (UInt64(truncatingIfNeeded: format) &* 0x9E37_79B9_7F4A_7C15)
    }
}
