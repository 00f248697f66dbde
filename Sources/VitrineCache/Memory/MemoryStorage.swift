import VitrineCore

/// The entries of a memory cache and all decisions about them: the state under the lock of the cache.
///
/// Entries are in flat storage, numbered by ``EvictionQueues`` and found through ``KeyTable``. Removed values are
/// returned to the caller, which releases them after unlocking.
@usableFromInline
package struct MemoryStorage<Key: HashedKey, Value: Sendable>: ~Copyable {
    @usableFromInline typealias Entry = MemoryEntry<Key, Value>
    @usableFromInline typealias Removed = RemovedEntries<Key, Value>

    @usableFromInline var table = KeyTable()
    @usableFromInline var queues: EvictionQueues
    /// One place a slot of the queues; those of free slots are uninitialized.
    @usableFromInline var entries: UnsafeMutablePointer<HeldEntry<Key, Value>>
    @usableFromInline var entryCapacity = 0
    /// One a slot, made when the first entry with a lifetime comes.
    @usableFromInline var lifetimes: UnsafeMutablePointer<EntryLifetime>?
    @usableFromInline var capacity: Int
    @usableFromInline var maximumEntryCost: Int
    @usableFromInline var statistics = MemoryCacheStatistics()
    /// nil unless values can be found alive elsewhere.
    @usableFromInline var alive: WeakValueIndex<Key, Value>?
    /// nil until the first entry with tags comes.
    @usableFromInline var tagIndex: TagIndex<Key>?

    /// Empty storage.
    package init(capacity: Int, maximumEntryCost: Int, findsAlive: Bool) {
        self.capacity = capacity
        self.maximumEntryCost = maximumEntryCost
        queues = EvictionQueues(capacity: capacity)
        entries = .allocate(capacity: 0)
        alive = findsAlive ? WeakValueIndex() : nil
    }

    deinit {
        let entries = entries
        queues.forEach { slot in (entries + slot).deinitialize(count: 1) }
        entries.deallocate()
        lifetimes?.deallocate()
    }

    @usableFromInline var count: Int { queues.count }
    @usableFromInline var totalCost: Int { queues.totalCost }

    /// The memory that the cache takes besides values and the storage of keys, in bytes.
    package var overhead: Int {
        entryCapacity * MemoryLayout<HeldEntry<Key, Value>>.stride + queues.bytes + table.bytes
            + (lifetimes == nil ? 0 : entryCapacity * MemoryLayout<EntryLifetime>.stride) + (tagIndex?.bytes ?? 0)
    }

    // MARK: Looking up

    @inlinable @inline(__always)
    func slot(of key: Key, _ hash: UInt64) -> Int? {
        let entries = entries
        return table.slot(forHash: hash) { entries[$0].isFor(key) }
    }

    /// The value of a key that has not expired. Runs while others look up, so it changes nothing but counts the hit.
    ///
    /// - Parameter now: nil as long as no entry has a lifetime.
    @inlinable @inline(__always)
    func lookUp(_ key: Key, _ hash: UInt64, now: Duration?) -> MemoryLookup<Value> {
        guard let slot = slot(of: key, hash) else { return .missing }
        if queues.nodes[slot].isTimed {
            if queues.nodes[slot].isExpired { return .missing }
            if lifetimeNeedsCare(slot, now) { return .ended }
        }
        queues.touch(slot)
        return .found(entries[slot].value)
    }

    /// Whether ``isFresh(_:_:)`` would change something about a lifetime.
    @usableFromInline
    func lifetimeNeedsCare(_ slot: Int, _ now: Duration?) -> Bool {
        guard let now, let lifetimes else { return false }
        return lifetimes[slot].needsCare(at: now)
    }

    /// Whether an entry's lifetime is not over. Notes it when it is: the entry then goes at its next turn.
    @usableFromInline
    mutating func isFresh(_ slot: Int, _ now: Duration?) -> Bool {
        // Only timed slots have a lifetime to look at.
        guard queues.nodes[slot].isTimed else { return true }
        if queues.nodes[slot].isExpired { return false }
        guard let now, let lifetimes, lifetimes[slot].isOver(at: now) else { return true }
        markExpired(slot)
        return false
    }

    /// Lets an entry count as expired from now on.
    @usableFromInline
    mutating func markExpired(_ slot: Int) {
        guard !queues.nodes[slot].isExpired else { return }
        queues.nodes[slot].isTimed = true
        queues.nodes[slot].isExpired = true
        queues.forgetHits(slot)
        statistics.expirations &+= 1
    }

    // MARK: Storing

    /// Stores a value for a key, evicting other entries if needed.
    ///
    /// - Parameters:
    ///   - cost: At least 1.
    ///   - limit: The maximum cost of the entry.
    /// - Returns: Whether the value is stored. If not, the earlier value is removed as well.
    @inlinable
    mutating func insert(
        _ entry: consuming Entry, hash: UInt64, cost: Int, limit: Int, lifetime: EntryLifetime?, removed: inout Removed
    ) -> Bool {
        var place: EvictionQueues.Place?
        if let slot = slot(of: entry.key, hash) {
            place = queues.place(slot)
            removed.add(takeOut(slot, hash))
        }
        guard cost <= capacity, cost <= limit else {
            statistics.refusals &+= 1
            return false
        }
        evict(toTotalCost: capacity &- cost, &removed)
        let slot = queues.insert(hash: hash, cost: cost, place: place)
        if slot >= entryCapacity { growEntries() }
        (entries + slot).initialize(to: HeldEntry(entry))
        table.insert(slot, hash: hash)
        if let lifetime { setLifetime(lifetime, slot) }
        statistics.insertions &+= 1
        return true
    }

    /// Evicts until the total is at most this.
    @inlinable
    mutating func evict(toTotalCost target: Int, _ removed: inout Removed) {
        while queues.totalCost > target, let slot = queues.evict() {
            table.remove(slot, hash: queues.hash(slot))
            let entry = (entries + slot).move().released()
            if tagIndex != nil { forgetTags(of: entry.key) }
            removed.add(entry)
            statistics.evictions &+= 1
        }
    }

    /// Removes an entry.
    @inlinable
    mutating func takeOut(_ slot: Int, _ hash: UInt64) -> Entry {
        table.remove(slot, hash: hash)
        queues.remove(slot)
        let entry = (entries + slot).move().released()
        if tagIndex != nil { forgetTags(of: entry.key) }
        return entry
    }

    @usableFromInline
    mutating func setLifetime(_ lifetime: EntryLifetime, _ slot: Int) {
        let lifetimes = lifetimes ?? .allocate(capacity: entryCapacity)
        self.lifetimes = lifetimes
        (lifetimes + slot).initialize(to: lifetime)
        queues.nodes[slot].isTimed = true
    }

    /// Follows the queues' slots. All slots below the old number are taken when this is called, but for the new one.
    @inlinable
    mutating func growEntries() {
        let size = queues.slotCount
        let larger = UnsafeMutablePointer<HeldEntry<Key, Value>>.allocate(capacity: size)
        larger.moveInitialize(from: entries, count: entryCapacity)
        entries.deallocate()
        entries = larger
        growLifetimes(from: entryCapacity, to: size)
        entryCapacity = size
    }

    @usableFromInline
    mutating func growLifetimes(from oldSize: Int, to size: Int) {
        guard let old = lifetimes else { return }
        let larger = UnsafeMutablePointer<EntryLifetime>.allocate(capacity: size)
        larger.moveInitialize(from: old, count: oldSize)
        old.deallocate()
        lifetimes = larger
    }

    /// Gives up all entries and their storage.
    mutating func takeAll() -> Removed {
        var removed = Removed()
        removed.others.reserveCapacity(count)
        let entries = entries
        queues.forEach { slot in removed.others.append((entries + slot).move().released()) }
        entries.deallocate()
        self.entries = .allocate(capacity: 0)
        entryCapacity = 0
        lifetimes?.deallocate()
        lifetimes = nil
        table = KeyTable()
        queues = EvictionQueues(capacity: capacity)
        if let alive { tagIndex?.removeAll { alive.holds($0) } } else { tagIndex = nil }
        return removed
    }

    // MARK: Tags

    /// Records the tags of a value that was just stored, or refused.
    @usableFromInline
    mutating func setTags(_ tags: EntryTags, of key: Key) {
        if tagIndex == nil { tagIndex = TagIndex() }
        tagIndex?.set(tags, for: key)
        forgetTags(of: key)
    }

    /// Forgets the tags of a key whose value is neither here nor possibly alive elsewhere.
    @usableFromInline
    mutating func forgetTags(of key: Key) {
        guard tagIndex != nil, slot(of: key, key.hash64) == nil, alive?.holds(key) != true else { return }
        tagIndex?.remove(key)
    }
}

/// An entry of a memory cache.
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
    @usableFromInline let tags: EntryTags
    @usableFromInline let resolve: (@Sendable () -> Value?)?

    @inlinable
    init(
        _ entry: MemoryEntry<Key, Value>, hash: UInt64, cost: Int, lifetime: EntryLifetime?, tags: EntryTags,
        resolve: (@Sendable () -> Value?)?
    ) {
        self.entry = entry
        self.hash = hash
        self.cost = cost
        self.lifetime = lifetime
        self.tags = tags
        self.resolve = resolve
    }
}

/// The result of storing a value. To be passed to ``MemoryCache/finish(_:)`` and released outside all locks.
@usableFromInline
package struct MemoryChange<Key: HashedKey, Value: Sendable>: Sendable {
    @usableFromInline var removed = RemovedEntries<Key, Value>()
    @usableFromInline var isKept = false
    @usableFromInline var needsSweep = false
    /// The cost of the stored value; 0 if it was not stored.
    @usableFromInline var cost = 0

    @inlinable
    init() {}
}

/// Entries on their way out: carried from under the lock and released behind it, because the end of a value may run
/// anyone's code. One entry, which is the rule, needs no array.
@usableFromInline
package struct RemovedEntries<Key: HashedKey, Value: Sendable>: Sendable {
    @usableFromInline var first: MemoryEntry<Key, Value>?
    @usableFromInline var others: [MemoryEntry<Key, Value>] = []

    @inlinable
    init() {}

    @inlinable
    mutating func add(_ entry: MemoryEntry<Key, Value>) {
        if first == nil { first = entry } else { others.append(entry) }
    }

    /// How many there are.
    package var count: Int { others.count + (first == nil ? 0 : 1) }
}

/// The result of a lookup.
@usableFromInline
package enum MemoryLookup<Value: Sendable>: Sendable {
    /// The value, which counts.
    case found(Value)
    /// No entry, or one known to be expired.
    case missing
    /// Its lifetime is over and was not known to be: to be looked up again by who may change things.
    case ended
}

/// How many lookups found something and how many nothing.
@usableFromInline
package struct LookupCounts: Sendable {
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0

    /// Nothing was looked up.
    @usableFromInline
    init() {}
}
