import Synchronization
import VitrineCore

/// A cache in memory: synchronous, for any thread, never above its capacity.
///
/// ```swift
/// let cache = MemoryCache<CacheKey, Image>(.init(capacity: .megabytes(100)))
/// cache["lake"] = image
/// if let image = cache["lake"] { show(image) }
/// ```
///
/// A hit allocates nothing and takes, for some ten nanoseconds, a lock that only readers on the same processor and
/// writers share: threads that read do not hold each other up. Which entries stay is decided by S3-FIFO, which a scan of
/// a thousand pictures seen once does not flush; what they cost is counted in bytes. Values that leave are released
/// after unlocking, so their `deinit` may use the cache.
///
/// ## Memory
/// Besides the value and what the key refers to, an entry occupies 75 to 140 bytes with a `CacheKey` and
/// a class as value: key and value side by side, 32 bytes in the queues, and its share of a table and of the ghosts.
///
/// ## Topics
/// ### Reading
/// - ``value(forKey:)``
/// - ``peek(_:)``
/// - ``contains(_:)``
/// - ``staleValue(forKey:)``
/// - ``keys``
/// ### Writing
/// - ``set(_:forKey:cost:expires:ignoringEntryLimit:)``
/// - ``remove(_:)``
/// - ``removeAll()``
/// - ``removeAll(where:)``
/// - ``expire(_:)``
/// ### Limits
/// - ``capacity``
/// - ``totalCost``
/// - ``trim(to:)``
/// - ``trim(toShare:)``
/// - ``statistics``
public final class MemoryCache<Key: HashedKey, Value: Sendable>: Sendable {
    /// How the cache behaves.
    public typealias Configuration = MemoryCacheConfiguration
    /// Gives a value back while it is alive.
    public typealias WeakReference = @Sendable () -> Value?

    @usableFromInline let storage: StripedLock<MemoryStorage<Key, Value>, LookupTally>
    /// Set before the first entry with a lifetime is stored: until then lookups need not know the time.
    @usableFromInline let isTimed: Atomic<Bool>
    @usableFromInline let clock: WallClock
    let timeToLive: Duration?
    let cost: @Sendable (Value) -> Int
    @usableFromInline let weakReference: (@Sendable (Value) -> WeakReference?)?
    @usableFromInline let budget: MemoryBudget?
    private let subscription = Locked<MemoryPressure.Subscription?>(nil)

    /// A cache of values of any type.
    ///
    /// - Parameters:
    ///   - configuration: Limits and times.
    ///   - cost: What a value stored without a cost costs, in bytes. Called on the storing thread.
    ///   - weakReference: Makes, from a value, a closure that gives it back while it is alive and does not keep it
    ///     alive; nil for a value that cannot be referred to so. Values evicted here but alive elsewhere then still
    ///     count as hits and enter again (R20). For classes ``aliveElsewhere`` is the one. nil, the default: evicted
    ///     is gone. It costs each stored value an allocation.
    public init(
        _ configuration: Configuration = .init(), cost: @escaping @Sendable (Value) -> Int,
        weakReference: (@Sendable (Value) -> WeakReference?)? = nil
    ) {
        storage = StripedLock(
            MemoryStorage(
                capacity: configuration.capacity.bytes, maximumEntryCost: configuration.maximumEntryCost.bytes,
                findsAlive: weakReference != nil),
            tally: LookupTally())
        isTimed = Atomic(false)
        clock = configuration.clock
        timeToLive = configuration.timeToLive
        self.cost = cost
        self.weakReference = weakReference
        budget = configuration.budget
        budget?.join(self)
        let subscription = configuration.trimsOn?.subscribe { [weak self] level in
            self?.trim(toShare: level == .critical ? 0 : 0.5)
        }
        self.subscription.withLock { $0 = subscription }
    }

    deinit { budget?.leave(ObjectIdentifier(self), cost: totalCost) }

    /// Changes what is stored, and counts for the budget what that changes about the cost.
    @inlinable
    func changing<Result: Sendable>(
        _ body: (inout MemoryStorage<Key, Value>) -> Result
    ) -> Result {
        guard let budget else { return storage.withLock(body) }
        return storage.withLock { storage in
            let before = storage.totalCost
            let result = body(&storage)
            budget.count(storage.totalCost &- before)
            return result
        }
    }

    // MARK: Reading

    /// The value of a key, or nil if there is none or it has expired. Counts as a use, and as a hit or a miss.
    @inlinable
    public func value(forKey key: Key) -> Value? {
        let hash = key.hash64
        // Read outside the lock: it is anyone's code.
        let now = isTimed.load(ordering: .relaxed) ? clock.now : nil
        let found = storage.withSharedLock { storage, tally in
            let found = storage.lookUp(key, hash, now: now)
            if case .found = found { tally.hits &+= 1 } else { tally.misses &+= 1 }
            return found
        }
        switch found {
        case .found(let value): return value
        case .missing: return weakReference == nil ? nil : revived(key, hash, now: now, isUse: true)
        case .ended: return settled(key, hash, now: now)
        }
    }

    /// Looks up again, alone, a key whose entry's lifetime seems to be over, and notes it if it is. What was counted
    /// as a miss becomes a hit if it is not.
    @usableFromInline
    func settled(_ key: Key, _ hash: UInt64, now: Duration?) -> Value? {
        let value: Value? = storage.withLock { storage in
            guard let slot = storage.slot(of: key, hash), storage.isFresh(slot, now) else { return nil }
            storage.queues.touch(slot)
            storage.statistics.misses &-= 1
            storage.statistics.hits &+= 1
            return storage.entries[slot].value
        }
        if value == nil, weakReference != nil { return revived(key, hash, now: now, isUse: true) }
        return value
    }

    /// Reads and writes as ``value(forKey:)``, ``set(_:forKey:cost:expires:ignoringEntryLimit:)`` with the cost the cache
    /// computes, and ``remove(_:)`` for nil.
    @inlinable
    public subscript(key: Key) -> Value? {
        get { value(forKey: key) }
        set {
            if let newValue { set(newValue, forKey: key) } else { remove(key) }
        }
    }

    /// The value ``value(forKey:)`` would give, without counting as a use, a hit or a miss. One that is only alive
    /// elsewhere is found too and stays outside.
    public func peek(_ key: Key) -> Value? {
        let hash = key.hash64
        let now = isTimed.load(ordering: .relaxed) ? clock.now : nil
        let value: Value? = storage.withLock { storage in
            guard let slot = storage.slot(of: key, hash), storage.isFresh(slot, now) else { return nil }
            return storage.entries[slot].value
        }
        if value == nil, weakReference != nil { return revived(key, hash, now: now, isUse: false) }
        return value
    }

    /// Whether ``peek(_:)`` finds a value (R22).
    public func contains(_ key: Key) -> Bool { peek(key) != nil }

    /// The value of a key even if it has expired but not yet been evicted. Does not count as a use, a hit or a miss.
    public func staleValue(forKey key: Key) -> (value: Value, isExpired: Bool)? {
        let hash = key.hash64
        let now = isTimed.load(ordering: .relaxed) ? clock.now : nil
        return storage.withLock { storage in
            guard let slot = storage.slot(of: key, hash) else { return nil }
            return (storage.entries[slot].value, !storage.isFresh(slot, now))
        }
    }

    /// When the entry of a key stops being fresh, since 1970; nil if there is no entry, or it never does.
    package func expiry(forKey key: Key) -> Duration? {
        let hash = key.hash64
        return storage.withLock { storage in
            guard let slot = storage.slot(of: key, hash), storage.queues.nodes[slot].isTimed else { return nil }
            return storage.lifetimes?[slot].expires
        }
    }

    /// The keys of all entries, expired ones included, in no particular order. Takes time in proportion.
    public var keys: [Key] {
        storage.withLock { storage in
            var keys: [Key] = []
            keys.reserveCapacity(storage.count)
            let entries = storage.entries
            storage.queues.forEach { keys.append(entries[$0].key) }
            return keys
        }
    }

    /// How many entries there are, expired ones included.
    public var count: Int { storage.withSharedLock { storage, _ in storage.count } }

    /// What all entries cost together, in bytes. Never above ``capacity``.
    public var totalCost: Int { storage.withSharedLock { storage, _ in storage.totalCost } }

    /// What happened since the cache was made.
    public var statistics: MemoryCacheStatistics {
        storage.withLock { storage, tallies in
            var statistics = storage.statistics
            for tally in tallies {
                statistics.hits &+= tally.hits
                statistics.misses &+= tally.misses
            }
            return statistics
        }
    }
}

extension MemoryCache where Value: CacheableValue {
    /// A cache of values that know what they cost.
    ///
    /// - Parameters:
    ///   - configuration: Limits and times.
    ///   - weakReference: See ``init(_:cost:weakReference:)``.
    public convenience init(
        _ configuration: Configuration = .init(), weakReference: (@Sendable (Value) -> WeakReference?)? = nil
    ) {
        self.init(configuration, cost: { $0.cacheCost }, weakReference: weakReference)
    }
}

extension MemoryCache where Value: AnyObject {
    /// The weak reference for classes: values evicted here but alive elsewhere still count as hits (R20).
    public static var aliveElsewhere: @Sendable (Value) -> WeakReference? {
        { value in { [weak value] in value } }
    }
}
