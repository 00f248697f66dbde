import VitrineCore

/// What a memory cache keeps of one key.
@usableFromInline
package struct MemoryEntry<Key: HashedKey, Value: Sendable>: Sendable {
    @usableFromInline var key: Key
    @usableFromInline var value: Value

    @inlinable
    init(key: Key, value: Value) {
        self.key = key
        self.value = value
    }
}

/// An entry in its place. Not copyable, so that looking at its key counts no reference: two atomic operations on memory
/// that all threads share, under the lock.
@usableFromInline
struct HeldEntry<Key: HashedKey, Value: Sendable>: ~Copyable {
    @usableFromInline let key: Key
    @usableFromInline let value: Value

    @inlinable
    init(_ entry: consuming MemoryEntry<Key, Value>) {
        key = entry.key
        value = entry.value
    }

    @inlinable @inline(__always)
    borrowing func isFor(_ other: Key) -> Bool { key == other }

    @inlinable
    consuming func released() -> MemoryEntry<Key, Value> { MemoryEntry(key: key, value: value) }
}

/// A value about to be stored. Everything that runs a user's code is done, so that storing it may stand under any lock.
@usableFromInline
package struct IncomingEntry<Key: HashedKey, Value: Sendable>: Sendable {
    @usableFromInline let entry: MemoryEntry<Key, Value>
    @usableFromInline let hash: UInt64
    @usableFromInline let cost: Int
    @usableFromInline let lifetime: EntryLifetime?
    @usableFromInline let revive: (@Sendable () -> Value?)?

    @inlinable
    init(
        _ entry: MemoryEntry<Key, Value>, hash: UInt64, cost: Int, lifetime: EntryLifetime?,
        revive: (@Sendable () -> Value?)?
    ) {
        self.entry = entry
        self.hash = hash
        self.cost = cost
        self.lifetime = lifetime
        self.revive = revive
    }
}

/// What storing a value did. To be given to ``MemoryCache/finish(_:)`` and released outside of all locks.
@usableFromInline
package struct MemoryChange<Key: HashedKey, Value: Sendable>: Sendable {
    @usableFromInline var departed = DepartedEntries<Key, Value>()
    @usableFromInline var isKept = false
    @usableFromInline var needsSweep = false
    /// What the stored value costs; 0 if it was not kept.
    @usableFromInline var cost = 0

    @inlinable
    init() {}
}

/// Entries on their way out: carried from under the lock and released behind it, because the end of a value may run
/// anyone's code. One entry, which is the rule, needs no array.
@usableFromInline
package struct DepartedEntries<Key: HashedKey, Value: Sendable>: Sendable {
    @usableFromInline var first: MemoryEntry<Key, Value>?
    @usableFromInline var others: [MemoryEntry<Key, Value>] = []

    @inlinable
    init() {}

    @inlinable
    mutating func add(_ entry: MemoryEntry<Key, Value>) {
        if first == nil { first = entry } else { others.append(entry) }
    }
}
