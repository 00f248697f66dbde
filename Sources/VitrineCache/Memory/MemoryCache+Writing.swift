import Synchronization
import VitrineCore

extension MemoryCache {
    /// Stores a value with the cost the cache computes for it.
    ///
    /// - Returns: As ``set(_:forKey:cost:expires:ignoringEntryLimit:)``.
    @discardableResult
    public func set(_ value: Value, forKey key: Key, expires: Duration? = nil) -> Bool {
        set(value, forKey: key, cost: cost(value), expires: expires)
    }

    /// Stores a value in place of the one before. What must go for it goes before it enters.
    ///
    /// - Parameters:
    ///   - value: What to keep.
    ///   - key: What to find it by.
    ///   - cost: What it occupies, in bytes. Below 1 counts as 1, so that even empty values are limited.
    ///   - expires: When it ceases to count, since 1970. nil, the default: after the configured time to live.
    ///   - ignoringEntryLimit: Keep it although it costs more than a single entry may
    ///     (``MemoryCacheConfiguration/maximumEntryCost``). The capacity holds in any case.
    /// - Returns: Whether it is kept. A value dearer than the whole capacity or than an entry may be is not; nothing
    ///   is evicted for it, and the value before is removed, as it is out of date. If it can be referred to weakly, it
    ///   still counts as a hit while it is alive.
    @discardableResult
    @inlinable
    public func set(
        _ value: Value, forKey key: Key, cost: Int, expires: Duration? = nil, ignoringEntryLimit: Bool = false
    ) -> Bool {
        let change = insert(incoming(value, forKey: key, cost: cost, expires: expires), ignoringEntryLimit: ignoringEntryLimit)
        finish(change)
        return change.isKept
    }

    /// Gets a value ready to be stored. Runs the user's code, so not under a lock.
    @inlinable
    package func incoming(
        _ value: Value, forKey key: Key, cost: Int, expires: Duration?
    ) -> IncomingEntry<Key, Value> {
        IncomingEntry(
            MemoryEntry(key: key, value: value), hash: key.hash64, cost: max(1, cost), lifetime: lifetime(expires),
            revive: weakReference?(value))
    }

    /// Stores a value. Runs nothing of the user's.
    ///
    /// - Returns: For ``finish(_:)``, which is to be called, and the result released, outside of all locks.
    @inlinable
    package func insert(
        _ incoming: IncomingEntry<Key, Value>, ignoringEntryLimit: Bool = false
    ) -> MemoryChange<Key, Value> {
        var change = MemoryChange<Key, Value>()
        // An entry that exceeds the budget alone would empty all caches and then go as well.
        let most = budget?.entryLimit ?? .max
        changing { storage in
            let limit = min(most, ignoringEntryLimit ? Int.max : storage.maximumEntryCost)
            change.isKept = storage.insert(
                incoming.entry, hash: incoming.hash, cost: incoming.cost, limit: limit, lifetime: incoming.lifetime,
                departed: &change.departed)
            if change.isKept { change.cost = incoming.cost }
            change.needsSweep = storage.register(
                incoming.entry.key, cost: incoming.cost, lifetime: incoming.lifetime, revive: incoming.revive)
        }
        return change
    }

    /// Does what is left to do after a value was stored.
    @inlinable
    package func finish(_ change: MemoryChange<Key, Value>) {
        if change.needsSweep { forgetDead() }
        if change.cost > 0, let budget { budget.enforce(for: ObjectIdentifier(self), newest: change.cost) }
    }

    /// Removes a value; an unknown key is harmless. It does not come back by being alive elsewhere.
    ///
    /// - Returns: The value that was there, expired or not.
    @discardableResult
    public func remove(_ key: Key) -> Value? {
        let hash = key.hash64
        let entry: MemoryEntry<Key, Value>? = changing { storage in
            storage.alive?.forget(key)
            return storage.slot(of: key, hash).map { storage.takeOut($0, hash) }
        }
        return entry?.value
    }

    /// Removes everything. Nothing of it comes back by being alive elsewhere; see ``trim(to:)`` for giving up memory
    /// only. Returns when all values are released.
    public func removeAll() { _ = takeAll() }

    /// Removes everything.
    ///
    /// - Returns: What was there, to be released outside of all locks.
    package func takeAll() -> DepartedEntries<Key, Value> {
        changing { storage in
            if storage.alive != nil { storage.alive = WeakValueIndex() }
            return storage.takeAll()
        }
    }

    /// Removes the entries whose keys the closure picks, from among those there are at the call.
    ///
    /// - Parameter isRemoved: Called without the lock: it may use the cache.
    public func removeAll(where isRemoved: (Key) throws -> Bool) rethrows { _ = try take(where: isRemoved) }

    /// Removes the entries whose keys the closure picks.
    ///
    /// - Returns: What was there, to be released outside of all locks.
    package func take(where isRemoved: (Key) throws -> Bool) rethrows -> DepartedEntries<Key, Value> {
        var candidates = keys
        if weakReference != nil {
            candidates += storage.withLock { $0.alive?.all.map(\.key) ?? [] }
        }
        let picked = try candidates.filter(isRemoved)
        var departed = DepartedEntries<Key, Value>()
        changing { storage in
            for key in picked {
                storage.alive?.forget(key)
                let hash = key.hash64
                if let slot = storage.slot(of: key, hash) { departed.add(storage.takeOut(slot, hash)) }
            }
        }
        return departed
    }

    /// Lets a value count as expired from now on. Until it is evicted ``staleValue(forKey:)`` still gives it.
    public func expire(_ key: Key) {
        let hash = key.hash64
        storage.withLock { storage in
            storage.alive?.forget(key)
            if let slot = storage.slot(of: key, hash) { storage.markExpired(slot) }
        }
    }

    /// The lifetime of what is stored now.
    @usableFromInline
    func lifetime(_ expires: Duration?) -> EntryLifetime? {
        guard expires != nil || timeToLive != nil else { return nil }
        isTimed.store(true, ordering: .relaxed)
        let now = clock.now
        return EntryLifetime(created: now, expires: expires ?? now + (timeToLive ?? .zero))
    }
}
