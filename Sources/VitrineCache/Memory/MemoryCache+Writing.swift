import Synchronization
import VitrineCore

extension MemoryCache {
    /// Stores a value with the cost the cache computes for it.
    ///
    /// - Returns: As ``set(_:forKey:cost:expires:evenIfLarge:)``.
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
    ///   - evenIfLarge: Keep it although it costs more than a single entry may
    ///     (``MemoryCacheConfiguration/maximumEntryCost``). The capacity holds in any case.
    /// - Returns: Whether it is kept. A value dearer than the whole capacity or than an entry may be is not; nothing
    ///   is evicted for it, and the value before is removed, as it is out of date. If it can be referred to weakly, it
    ///   still counts as a hit while it is alive.
    @discardableResult
    @inlinable
    public func set(
        _ value: Value, forKey key: Key, cost: Int, expires: Duration? = nil, evenIfLarge: Bool = false
    ) -> Bool {
        let hash = key.hash64, cost = max(1, cost)
        let lifetime = lifetime(expires)
        let revive = weakReference?(value)
        var departed = DepartedEntries<Key, Value>()
        let entry = MemoryEntry(key: key, value: value)
        let (isKept, needsSweep) = storage.withLock { storage in
            let limit = evenIfLarge ? Int.max : storage.maximumEntryCost
            let isKept = storage.insert(
                entry, hash: hash, cost: cost, limit: limit, lifetime: lifetime, departed: &departed)
            return (isKept, storage.register(key, cost: cost, lifetime: lifetime, revive: revive))
        }
        if needsSweep { forgetDead() }
        return isKept
    }

    /// Removes a value; an unknown key is harmless. It does not come back by being alive elsewhere.
    ///
    /// - Returns: The value that was there, expired or not.
    @discardableResult
    public func remove(_ key: Key) -> Value? {
        let hash = key.hash64
        let entry: MemoryEntry<Key, Value>? = storage.withLock { storage in
            storage.alive?.forget(key)
            return storage.slot(of: key, hash).map { storage.takeOut($0, hash) }
        }
        return entry?.value
    }

    /// Removes everything. Nothing of it comes back by being alive elsewhere; see ``trim(to:)`` for giving up memory
    /// only. Returns when all values are released.
    public func removeAll() {
        let departed = storage.withLock { storage in
            if storage.alive != nil { storage.alive = AliveIndex() }
            return storage.takeAll()
        }
        withExtendedLifetime(departed) {}
    }

    /// Removes the entries whose keys the closure picks, from among those there are at the call.
    ///
    /// - Parameter isRemoved: Called without the lock: it may use the cache.
    public func removeAll(where isRemoved: (Key) throws -> Bool) rethrows {
        var candidates = keys
        if weakReference != nil {
            candidates += storage.withLock { $0.alive?.all.map(\.key) ?? [] }
        }
        let picked = try candidates.filter(isRemoved)
        var departed = DepartedEntries<Key, Value>()
        storage.withLock { storage in
            for key in picked {
                storage.alive?.forget(key)
                let hash = key.hash64
                if let slot = storage.slot(of: key, hash) { departed.add(storage.takeOut(slot, hash)) }
            }
        }
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
