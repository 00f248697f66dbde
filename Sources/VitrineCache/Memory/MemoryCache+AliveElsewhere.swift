import VitrineCore

extension MemoryStorage {
    /// Registers what was just stored, or refused, as possibly alive.
    ///
    /// - Returns: Whether dead registrations should be looked for; the caller then does.
    @usableFromInline
    mutating func register(
        _ key: Key, cost: Int, lifetime: EntryLifetime?, revive: (@Sendable () -> Value?)?
    ) -> Bool {
        guard alive != nil else { return false }
        guard let revive, capacity > 0 else {
            alive?.forget(key)
            return false
        }
        alive?.register(key, cost: cost, lifetime: lifetime, revive: revive)
        guard alive?.needsSweep == true else { return false }
        alive?.beginSweep()
        return true
    }
}

extension MemoryCache {
    /// The value of a key that was not found here, if it is alive elsewhere (R20).
    ///
    /// - Parameter isUse: Let it enter again and turn the miss into a hit.
    @usableFromInline
    func revived(_ key: Key, _ hash: UInt64, now: Duration?, isUse: Bool) -> Value? {
        let found = storage.withLock { storage -> WeakValueIndex<Key, Value>.Registration? in
            // Someone may have stored it since, or it is here and expired: then it is not to be found elsewhere.
            guard storage.slot(of: key, hash) == nil else { return nil }
            return storage.alive?.registration(key, now: now)
        }
        // Outside the lock: this may run anyone's code, and so may the end of the value.
        guard let found, let value = found.revive() else { return nil }
        guard isUse else { return value }
        var change = MemoryChange<Key, Value>()
        let most = budget?.entryLimit ?? .max
        changing { storage in
            storage.statistics.misses &-= 1
            storage.statistics.hits &+= 1
            storage.statistics.revivals &+= 1
            // Unless it was removed or replaced meanwhile; the value was right when it was asked for.
            guard storage.alive?.holds(found.id, key) == true, storage.slot(of: key, hash) == nil,
                found.cost <= storage.maximumEntryCost, found.cost <= storage.capacity,
                found.cost <= most
            else { return }
            change.isKept = storage.insert(
                MemoryEntry(key: key, value: value), hash: hash, cost: found.cost, limit: .max,
                lifetime: found.lifetime, departed: &change.departed)
            change.cost = found.cost
        }
        finish(change)
        return value
    }

    /// Forgets registrations whose values are gone.
    @usableFromInline
    func forgetDead() {
        let all = storage.withLock { $0.alive?.all ?? [] }
        let dead = all.filter { $0.registration.revive() == nil }.map { (key: $0.key, id: $0.registration.id) }
        storage.withLock { $0.alive?.forget(dead: dead) }
    }

    /// How many values may be alive elsewhere or here, dead registrations included. For tests.
    package var registrationCount: Int { storage.withLock { $0.alive?.count ?? 0 } }
}
