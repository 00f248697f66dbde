import VitrineCore

/// One format's part of a cache: its rules and its places in memory and on disk.
@usableFromInline
package final class FormatArea<Value: CacheableValue>: Sendable {
    package let format: Format<Value>
    /// The format's number in this cache; 0 is the original.
    @usableFromInline package let id: Int
    /// Its own level, or the one it shares.
    @usableFromInline package let memory: MemoryCache<MemoryKey, Value>
    /// Whether ``memory`` is shared with other formats.
    package let sharesMemory: Bool
    package let disk: DiskCache
    /// What could not be queued for the disk at once.
    package let outbox: PendingWrites

    package init(
        _ format: Format<Value>, id: Int, memory: MemoryCache<MemoryKey, Value>, sharesMemory: Bool, disk: DiskCache,
        executor: BlockingExecutor
    ) {
        self.format = format
        self.id = id
        self.memory = memory
        self.sharesMemory = sharesMemory
        self.disk = disk
        outbox = PendingWrites(disk, executor: executor)
    }

    /// Where a key's entry is in memory.
    @inlinable
    package func slot(_ key: CacheKey) -> MemoryKey { MemoryKey(key, format: id) }

    /// Whether a key certainly has no entry on disk, told at once: most that have none have not.
    func excludes(_ key: CacheKey) -> Bool { outbox.isEmpty && disk.engine.excludes(disk.entryKey(key)) }

    /// Empties the format's memory level. Values that are alive elsewhere are forgotten as well.
    ///
    /// - Returns: What was there, to be released outside of all locks.
    func takeMemory() -> DepartedEntries<MemoryKey, Value> {
        guard sharesMemory else { return memory.takeAll() }
        return memory.take { [id] in $0.format == id }
    }
}
