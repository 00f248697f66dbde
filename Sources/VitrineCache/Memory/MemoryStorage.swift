import VitrineCore

/// The entries of a memory cache and everything that is decided about them: what stands under the cache's lock.
///
/// Entries lie in flat storage, numbered by ``EvictionQueues``, found through ``KeyTable``. Nothing that leaves is
/// released here: it is handed to the caller, who releases it after unlocking.
@usableFromInline
package struct MemoryStorage<Key: HashedKey, Value: Sendable>: ~Copyable {
    @usableFromInline typealias Entry = MemoryEntry<Key, Value>
    @usableFromInline typealias Departed = DepartedEntries<Key, Value>

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

    /// The bytes the cache occupies besides the values and what keys refer to.
    package var overhead: Int {
        entryCapacity * MemoryLayout<HeldEntry<Key, Value>>.stride + queues.bytes + table.bytes
            + (lifetimes == nil ? 0 : entryCapacity * MemoryLayout<EntryLifetime>.stride)
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

    /// Stores a value in place of the one before, evicting what must go for it.
    ///
    /// - Parameters:
    ///   - cost: At least 1.
    ///   - limit: The most the entry may cost.
    /// - Returns: Whether it is kept. If not, the one before is gone as well.
    @inlinable
    mutating func insert(
        _ entry: Entry, hash: UInt64, cost: Int, limit: Int, lifetime: EntryLifetime?, departed: inout Departed
    ) -> Bool {
        var place: EvictionQueues.Place?
        if let slot = slot(of: entry.key, hash) {
            place = queues.place(slot)
            departed.add(takeOut(slot, hash))
        }
        guard cost <= capacity, cost <= limit else {
            statistics.refusals &+= 1
            return false
        }
        evict(toTotalCost: capacity &- cost, &departed)
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
    mutating func evict(toTotalCost target: Int, _ departed: inout Departed) {
        while queues.totalCost > target, let slot = queues.evict() {
            table.remove(slot, hash: queues.hash(slot))
            departed.add((entries + slot).move().released())
            statistics.evictions &+= 1
        }
    }

    /// Removes an entry.
    @inlinable
    mutating func takeOut(_ slot: Int, _ hash: UInt64) -> Entry {
        table.remove(slot, hash: hash)
        queues.remove(slot)
        return (entries + slot).move().released()
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
    mutating func takeAll() -> Departed {
        var departed = Departed()
        departed.others.reserveCapacity(count)
        let entries = entries
        queues.forEach { slot in departed.others.append((entries + slot).move().released()) }
        entries.deallocate()
        self.entries = .allocate(capacity: 0)
        entryCapacity = 0
        lifetimes?.deallocate()
        lifetimes = nil
        table = KeyTable()
        queues = EvictionQueues(capacity: capacity)
        return departed
    }
}
