public import VitrineCore

/// One format's part of a cache: its rules and its places in memory and on disk.
@usableFromInline
package final class FormatArea<Value: CacheableValue>: Sendable {
    package let format: CacheFormat<Value>
    /// The format's number in this cache; 0 is the original.
    @usableFromInline package let id: Int
    /// Its own level, or the one it shares.
    @usableFromInline package let memory: MemoryCache<MemoryKey, Value>
    /// Whether ``memory`` is shared with other formats.
    package let sharesMemory: Bool
    package let disk: DiskCache
    /// The writes that wait for space in the queue of the disk.
    package let pendingWrites: PendingWrites

    package init(
        _ format: CacheFormat<Value>, id: Int, memory: MemoryCache<MemoryKey, Value>, sharesMemory: Bool, disk: DiskCache,
        executor: BlockingExecutor
    ) {
        self.format = format
        self.id = id
        self.memory = memory
        self.sharesMemory = sharesMemory
        self.disk = disk
        pendingWrites = PendingWrites(disk, executor: executor)
    }

    /// Where a key's entry is in memory.
    @inlinable
    package func slot(_ key: CacheKey) -> MemoryKey { MemoryKey(key, format: id) }

    /// Whether a key certainly has no entry on disk. Does not wait.
    func excludes(_ key: CacheKey) -> Bool { pendingWrites.isEmpty && disk.excludes(key) }

    /// Empties the format's memory level, including values that are still alive elsewhere.
    ///
    /// - Returns: The removed entries, to be released outside all locks.
    func takeMemory() -> RemovedEntries<MemoryKey, Value> {
        guard sharesMemory else { return memory.takeAll() }
        return memory.take { [id] in $0.format == id }
    }
}

/// The registered formats of a cache. The original format is always registered.
package final class FormatTable<Value: CacheableValue>: Sendable {
    private struct State {
        var areas: [FormatName: FormatArea<Value>]
        var order: [FormatName]
        var nextID = 1
    }

    private let original: FormatArea<Value>
    private let state: Locked<State>

    package init(original: FormatArea<Value>) {
        self.original = original
        state = Locked(State(areas: [original.format.name: original], order: [original.format.name]))
    }

    /// The area of a name.
    package subscript(name: FormatName) -> FormatArea<Value>? {
        // Nearly always, and cheaper than to look it up.
        name == .original ? original : state.withLock { $0.areas[name] }
    }

    /// All areas in the order of their registration.
    package var all: [FormatArea<Value>] {
        state.withLock { state in state.order.compactMap { state.areas[$0] } }
    }

    /// Adds an area unless the name is taken.
    ///
    /// - Parameter make: Makes the area for a number. Called under the lock: opens nothing.
    /// - Returns: The new area; nil if the name is taken.
    package func add(_ name: FormatName, make: (Int) -> FormatArea<Value>) -> FormatArea<Value>? {
        state.withLock { state in
            guard state.areas[name] == nil else { return nil }
            let area = make(state.nextID)
            state.nextID += 1
            state.areas[name] = area
            state.order.append(name)
            return area
        }
    }

    /// Forgets an area. The original stays.
    package func remove(_ name: FormatName) -> FormatArea<Value>? {
        guard name != .original else { return nil }
        return state.withLock { state in
            state.order.removeAll { $0 == name }
            return state.areas.removeValue(forKey: name)
        }
    }
}

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
