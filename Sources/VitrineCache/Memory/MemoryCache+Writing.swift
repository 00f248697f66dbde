import Synchronization
import VitrineCore

extension MemoryCache {
    /// Stores a value for a key. Other entries are evicted before it is stored.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - key: The key of the value.
    ///   - cost: The cost of the value in bytes, at least 1, so that empty values are limited as well. Default nil: the
    ///     cost that the cache computes.
    ///   - expires: The time since 1970 at which the value expires. Default nil: after the configured time to live.
    /// - Returns: Whether the value is stored. A value above the capacity or the entry limit is not stored. It evicts
    ///   nothing, and removes the earlier value of the key.
    @discardableResult
    @inlinable
    public func set(_ value: Value, forKey key: Key, cost: Int? = nil, expires: Duration? = nil) -> Bool {
        set(value, forKey: key, cost: cost ?? self.cost(value), expires: expires, ignoringEntryLimit: false)
    }

    /// Stores a value for a key, even if its cost is above the entry limit.
    ///
    /// - Parameter ignoringEntryLimit: Whether to ignore the limit of one entry. The capacity always holds.
    @discardableResult
    @inlinable
    package func set(
        _ value: Value, forKey key: Key, cost: Int, expires: Duration? = nil, ignoringEntryLimit: Bool
    ) -> Bool {
        var change = MemoryChange<Key, Value>()
        insert(
            incoming(value, forKey: key, cost: cost, expires: expires), ignoringEntryLimit: ignoringEntryLimit, &change)
        finish(change)
        return change.isKept
    }

    /// Gets a value ready to be stored. Runs the user's code, so not under a lock.
    @inlinable
    package func incoming(
        _ value: Value, forKey key: Key, cost: Int, expires: Duration?, tags: EntryTags = .none
    ) -> IncomingEntry<Key, Value> {
        IncomingEntry(
            MemoryEntry(key: key, value: value), hash: key.hash64, cost: max(1, cost), lifetime: lifetime(expires),
            tags: tags, resolve: weakReference?(value))
    }

    /// Stores a value. Runs nothing of the user's.
    ///
    /// - Returns: For ``finish(_:)``, which is to be called, and the result released, outside of all locks.
    @inlinable
    package func insert(_ incoming: consuming IncomingEntry<Key, Value>) -> MemoryChange<Key, Value> {
        var change = MemoryChange<Key, Value>()
        insert(incoming, ignoringEntryLimit: false, &change)
        return change
    }

    /// Stores a value. Neither the entry nor the removed ones are copied, as each copy counts references twice.
    @inlinable
    func insert(
        _ incoming: consuming IncomingEntry<Key, Value>, ignoringEntryLimit: Bool,
        _ change: inout MemoryChange<Key, Value>
    ) {
        // An entry that exceeds the budget alone would empty all caches and then go as well.
        let most = budget?.entryLimit ?? .max
        var pending = Optional(incoming)
        changing { storage in
            guard let incoming = pending.take() else { return }
            let hasTags = storage.tagIndex != nil || !incoming.tags.isEmpty
            let key = storage.alive == nil && !hasTags ? nil : incoming.entry.key
            let limit = min(most, ignoringEntryLimit ? Int.max : storage.maximumEntryCost)
            change.isKept = storage.insert(
                incoming.entry, hash: incoming.hash, cost: incoming.cost, limit: limit, lifetime: incoming.lifetime,
                removed: &change.removed)
            if change.isKept { change.cost = incoming.cost }
            guard let key else { return }
            change.needsSweep = storage.register(
                key, cost: incoming.cost, lifetime: incoming.lifetime, resolve: incoming.resolve)
            if hasTags { storage.setTags(incoming.tags, of: key) }
        }
    }

    /// Performs the remaining steps after a value was stored.
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
            let entry = storage.slot(of: key, hash).map { storage.takeOut($0, hash) }
            storage.forgetTags(of: key)
            return entry
        }
        return entry?.value
    }

    /// Removes everything. Nothing of it comes back by being alive elsewhere; see ``trim(to:)`` for giving up memory
    /// only. Returns when all values are released.
    public func removeAll() { _ = takeAll() }

    /// Removes everything.
    ///
    /// - Returns: The removed entries, to be released outside all locks.
    package func takeAll() -> RemovedEntries<Key, Value> {
        changing { storage in
            if storage.alive != nil { storage.alive = WeakValueIndex() }
            return storage.takeAll()
        }
    }

    /// Removes the entries whose keys the closure picks, from among those there are at the call.
    ///
    /// - Parameter isRemoved: Called without the lock: it may use the cache.
    package func removeAll(where isRemoved: (Key) throws -> Bool) rethrows { _ = try take(where: isRemoved) }

    /// Removes the entries whose keys the closure selects.
    ///
    /// - Returns: The removed entries, to be released outside all locks.
    package func take(where isRemoved: (Key) throws -> Bool) rethrows -> RemovedEntries<Key, Value> {
        var candidates = keys
        if weakReference != nil {
            candidates += storage.withLock { $0.alive?.all.map(\.key) ?? [] }
        }
        let picked = try candidates.filter(isRemoved)
        var removed = RemovedEntries<Key, Value>()
        changing { storage in
            for key in picked {
                storage.alive?.forget(key)
                let hash = key.hash64
                if let slot = storage.slot(of: key, hash) { removed.add(storage.takeOut(slot, hash)) }
                storage.forgetTags(of: key)
            }
        }
        return removed
    }

    /// Removes the entries with a tag, in time proportional to their number.
    ///
    /// - Returns: The removed entries, to be released outside all locks.
    package func take(tag: UInt64) -> RemovedEntries<Key, Value> {
        var removed = RemovedEntries<Key, Value>()
        changing { storage in
            for key in storage.tagIndex?.keys(of: tag) ?? [] {
                storage.alive?.forget(key)
                let hash = key.hash64
                if let slot = storage.slot(of: key, hash) { removed.add(storage.takeOut(slot, hash)) }
                storage.forgetTags(of: key)
            }
        }
        return removed
    }

    /// Lets a value count as expired from now on. Until it is evicted ``staleValue(forKey:)`` still gives it.
    package func expire(_ key: Key) {
        let hash = key.hash64
        storage.withLock { storage in
            storage.alive?.forget(key)
            if let slot = storage.slot(of: key, hash) { storage.markExpired(slot) }
            storage.forgetTags(of: key)
        }
    }

    /// Returns the lifetime of a value stored now.
    @usableFromInline
    func lifetime(_ expires: Duration?) -> EntryLifetime? {
        guard expires != nil || timeToLive != nil else { return nil }
        isTimed.store(true, ordering: .relaxed)
        let now = clock.now
        return EntryLifetime(created: now, expires: expires ?? now + (timeToLive ?? .zero))
    }
}

extension MemoryStorage {
    /// Registers a value that was just stored, or refused, as possibly alive.
    ///
    /// - Returns: Whether the caller should look for dead registrations.
    @usableFromInline
    mutating func register(
        _ key: Key, cost: Int, lifetime: EntryLifetime?, resolve: (@Sendable () -> Value?)?
    ) -> Bool {
        guard alive != nil else { return false }
        guard let resolve, capacity > 0 else {
            alive?.forget(key)
            return false
        }
        alive?.register(key, cost: cost, lifetime: lifetime, resolve: resolve)
        guard alive?.needsSweep == true else { return false }
        alive?.beginSweep()
        return true
    }
}

extension MemoryCache {
    /// Returns the value of a key that is not in the cache but alive elsewhere.
    ///
    /// - Parameter isUse: Whether to store the value again and count the miss as a hit.
    @usableFromInline
    func valueAliveElsewhere(_ key: Key, _ hash: UInt64, now: Duration?, isUse: Bool) -> Value? {
        let found = storage.withLock { storage -> WeakValueIndex<Key, Value>.Registration? in
            // Someone may have stored it since, or it is here and expired: then it is not to be found elsewhere.
            guard storage.slot(of: key, hash) == nil else { return nil }
            let registration = storage.alive?.registration(key, now: now)
            if registration == nil { storage.forgetTags(of: key) }
            return registration
        }
        // Outside the lock: this may run anyone's code, and so may the end of the value.
        guard let found, let value = found.resolve() else { return nil }
        guard isUse else { return value }
        var change = MemoryChange<Key, Value>()
        let most = budget?.entryLimit ?? .max
        changing { storage in
            storage.statistics.misses &-= 1
            storage.statistics.hits &+= 1
            storage.statistics.weakHits &+= 1
            // Unless it was removed or replaced meanwhile; the value was right when it was asked for.
            guard storage.alive?.holds(found.id, key) == true, storage.slot(of: key, hash) == nil,
                found.cost <= storage.maximumEntryCost, found.cost <= storage.capacity,
                found.cost <= most
            else { return }
            change.isKept = storage.insert(
                MemoryEntry(key: key, value: value), hash: hash, cost: found.cost, limit: .max,
                lifetime: found.lifetime, removed: &change.removed)
            change.cost = found.cost
        }
        finish(change)
        return value
    }

    /// Forgets registrations whose values are gone.
    @usableFromInline
    func forgetDead() {
        let all = storage.withLock { $0.alive?.all ?? [] }
        let dead = all.filter { $0.registration.resolve() == nil }.map { (key: $0.key, id: $0.registration.id) }
        storage.withLock { storage in
            storage.alive?.forget(dead: dead)
            for (key, _) in dead { storage.forgetTags(of: key) }
        }
    }

    /// How many values may be alive elsewhere or here, dead registrations included. For tests.
    package var registrationCount: Int { storage.withLock { $0.alive?.count ?? 0 } }
}

/// From when until when an entry counts, both since 1970.
@usableFromInline
package struct EntryLifetime: Sendable, Equatable {
    /// When it was stored.
    package private(set) var created: Duration
    /// From when on it no longer counts.
    package private(set) var expires: Duration

    /// A lifetime.
    package init(created: Duration, expires: Duration) {
        self.created = created
        self.expires = expires
    }

    /// Whether it is over, or the clock stands before it.
    package func needsCare(at now: Duration) -> Bool { now < created || now >= expires }

    /// Whether the lifetime has ended.
    ///
    /// If the clock was set back before the creation, the entry counts as created now, so that it does not live longer
    /// than intended.
    package mutating func isOver(at now: Duration) -> Bool {
        if now < created {
            expires -= created - now
            created = now
        }
        return now >= expires
    }
}
