import Synchronization
import VitrineCore

/// A synchronous, thread-safe cache in memory with a strict capacity.
///
/// ```swift
/// let cache = MemoryCache<CacheKey, PixelImage>(capacity: .megabytes(100))
/// cache["lake"] = image
/// if let image = cache["lake"] { show(image) }
/// ```
///
/// A hit allocates nothing. It locks, for some ten nanoseconds, a lock shared with readers on the same processor and
/// with writers, so that readers do not block each other. Entries are evicted by S3-FIFO, which a scan of many values
/// does not flush. Costs are in bytes. Evicted values are released after unlocking, so their `deinit` may use the
/// cache.
///
/// ## Memory
/// Besides the value and the storage of the key, an entry takes 75 to 140 bytes for a `CacheKey` and a class as value:
/// key and value side by side, 32 bytes in the queues, and its share of a table and of the ghosts.
///
/// ## Topics
/// ### Reading
/// - ``subscript(_:)``
/// - ``contains(_:)``
/// - ``keys``
/// ### Writing
/// - ``set(_:forKey:cost:expires:)``
/// - ``remove(_:)``
/// - ``removeAll()``
/// ### Limits
/// - ``capacity``
/// - ``trim(to:)``
public final class MemoryCache<Key: HashedKey, Value: Sendable>: Sendable {
    @usableFromInline let storage: StripedLock<MemoryStorage<Key, Value>, LookupCounts>
    /// Set before the first entry with a lifetime is stored: until then lookups need not know the time.
    @usableFromInline let isTimed: Atomic<Bool>
    @usableFromInline let clock: WallClock
    let timeToLive: Duration?
    @usableFromInline let cost: @Sendable (Value) -> Int
    @usableFromInline let weakReference: (@Sendable (Value) -> (@Sendable () -> Value?)?)?
    @usableFromInline let budget: MemoryBudget?
    private let subscription = Locked<MemoryPressure.Subscription?>(nil)

    /// Creates a cache of values of any type.
    ///
    /// - Parameters:
    ///   - capacity: The maximum cost of all values together. 0 keeps nothing, `.unlimited` sets no limit.
    ///   - maximumEntryCost: The maximum cost of a single value. More expensive values are not kept.
    ///   - timeToLive: How long a value is kept after it was stored. Default nil: as long as there is room.
    ///   - trimsOn: The memory pressure that evicts half of the cache at `.warning`, and all of it at `.critical`.
    ///     Default: that of the system; nil for none.
    ///   - budget: A limit shared with other caches. Default nil: only the capacity limits the cache.
    ///   - clock: Tells the time for lifetimes.
    ///   - cost: Returns the cost in bytes of a value stored without a cost. Called on the storing thread.
    public convenience init(
        capacity: ByteCount = .megabytes(64), maximumEntryCost: ByteCount = .unlimited, timeToLive: Duration? = nil,
        trimsOn: MemoryPressure? = .shared, budget: MemoryBudget? = nil, clock: WallClock = .system,
        cost: @escaping @Sendable (Value) -> Int
    ) {
        let configuration = MemoryCacheConfiguration(
            capacity: capacity, maximumEntryCost: maximumEntryCost, timeToLive: timeToLive, trimsOn: trimsOn,
            budget: budget, clock: clock)
        self.init(configuration, cost: cost)
    }

    /// Creates a cache of values of any type.
    ///
    /// - Parameters:
    ///   - configuration: The limits and times.
    ///   - cost: Returns the cost in bytes of a value stored without a cost. Called on the storing thread.
    ///   - weakReference: Returns a closure that returns a value while it is alive, without keeping it alive; nil for a
    ///     value without a weak reference. Values evicted here but alive elsewhere then count as hits and are stored
    ///     again. Use ``aliveElsewhere`` for classes. Default nil: evicted values are misses. Each stored value costs
    ///     an allocation.
    package init(
        _ configuration: MemoryCacheConfiguration, cost: @escaping @Sendable (Value) -> Int,
        weakReference: (@Sendable (Value) -> (@Sendable () -> Value?)?)? = nil
    ) {
        storage = StripedLock(
            MemoryStorage(
                capacity: configuration.capacity.bytes, maximumEntryCost: configuration.maximumEntryCost.bytes,
                findsAlive: weakReference != nil),
            counts: LookupCounts())
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

    /// Changes the storage, and adds the change of the cost to the budget.
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
    package func value(forKey key: Key) -> Value? {
        let hash = key.hash64
        // Read outside the lock: it is anyone's code.
        let now = isTimed.load(ordering: .relaxed) ? clock.now : nil
        let found = storage.withSharedLock { storage, counts in
            let found = storage.lookUp(key, hash, now: now)
            if case .found = found { counts.hits &+= 1 } else { counts.misses &+= 1 }
            return found
        }
        switch found {
        case .found(let value): return value
        case .missing: return weakReference == nil ? nil : valueAliveElsewhere(key, hash, now: now, isUse: true)
        case .ended: return settled(key, hash, now: now)
        }
    }

    /// Repeats, with all locks, the lookup of a key whose entry has apparently expired, and removes the entry if it
    /// has. If it has not, the counted miss becomes a hit.
    @usableFromInline
    func settled(_ key: Key, _ hash: UInt64, now: Duration?) -> Value? {
        let value: Value? = storage.withLock { storage in
            guard let slot = storage.slot(of: key, hash), storage.isFresh(slot, now) else { return nil }
            storage.queues.touch(slot)
            storage.statistics.misses &-= 1
            storage.statistics.hits &+= 1
            return storage.entries[slot].value
        }
        if value == nil, weakReference != nil { return valueAliveElsewhere(key, hash, now: now, isUse: true) }
        return value
    }

    /// The value of a key; nil if there is none. Reading it counts as a use, and as a hit or a miss.
    ///
    /// A value is stored as by ``set(_:forKey:cost:expires:)``, with the cost that the cache computes. Nil removes the
    /// value, as ``remove(_:)``.
    @inlinable
    public subscript(key: Key) -> Value? {
        get { value(forKey: key) }
        set {
            if let newValue { set(newValue, forKey: key) } else { remove(key) }
        }
    }

    /// The value `value(forKey:)` would give, without counting as a use, a hit or a miss. One that is only alive
    /// elsewhere is found too and stays outside.
    package func peek(_ key: Key) -> Value? {
        let hash = key.hash64
        let now = isTimed.load(ordering: .relaxed) ? clock.now : nil
        let value: Value? = storage.withLock { storage in
            guard let slot = storage.slot(of: key, hash), storage.isFresh(slot, now) else { return nil }
            return storage.entries[slot].value
        }
        if value == nil, weakReference != nil { return valueAliveElsewhere(key, hash, now: now, isUse: false) }
        return value
    }

    /// The value ``peek(_:)`` would give, and its tags.
    package func peekTagged(_ key: Key) -> (value: Value, tags: EntryTags)? {
        let hash = key.hash64
        let now = isTimed.load(ordering: .relaxed) ? clock.now : nil
        let (found, tags) = storage.withLock { storage -> (Value?, EntryTags) in
            // Before a value that is alive elsewhere is asked for: a purge meanwhile then finds the tags.
            let tags = storage.tagIndex?.tags(of: key) ?? .none
            guard let slot = storage.slot(of: key, hash), storage.isFresh(slot, now) else { return (nil, tags) }
            return (storage.entries[slot].value, tags)
        }
        if let found { return (found, tags) }
        guard weakReference != nil else { return nil }
        return valueAliveElsewhere(key, hash, now: now, isUse: false).map { ($0, tags) }
    }

    /// How many keys have tags, those of values alive elsewhere included. For tests.
    package var taggedCount: Int { storage.withLock { $0.tagIndex?.count ?? 0 } }

    /// Returns whether there is a value. This does not count as an access.
    public func contains(_ key: Key) -> Bool { peek(key) != nil }

    /// The value of a key even if it has expired but not yet been evicted. Does not count as a use, a hit or a miss.
    package func staleValue(forKey key: Key) -> (value: Value, isExpired: Bool)? {
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

    /// The cost of all entries in bytes. Never above ``capacity``.
    package var totalCost: Int { storage.withSharedLock { storage, _ in storage.totalCost } }

    /// The counters since the creation of the cache.
    package var statistics: MemoryCacheStatistics {
        storage.withLock { storage, counts in
            var statistics = storage.statistics
            for count in counts {
                statistics.hits &+= count.hits
                statistics.misses &+= count.misses
            }
            return statistics
        }
    }
}

extension MemoryCache where Value: CacheableValue {
    /// Creates a cache of values that know their cost.
    ///
    /// The parameters are those of ``init(capacity:maximumEntryCost:timeToLive:trimsOn:budget:clock:cost:)``.
    public convenience init(
        capacity: ByteCount = .megabytes(64), maximumEntryCost: ByteCount = .unlimited, timeToLive: Duration? = nil,
        trimsOn: MemoryPressure? = .shared, budget: MemoryBudget? = nil, clock: WallClock = .system
    ) {
        self.init(
            capacity: capacity, maximumEntryCost: maximumEntryCost, timeToLive: timeToLive, trimsOn: trimsOn,
            budget: budget, clock: clock, cost: { $0.cacheCost })
    }

    /// Creates a cache of values that know their cost.
    ///
    /// - Parameters:
    ///   - configuration: The limits and times.
    ///   - weakReference: See ``init(_:cost:weakReference:)``.
    package convenience init(
        _ configuration: MemoryCacheConfiguration,
        weakReference: (@Sendable (Value) -> (@Sendable () -> Value?)?)? = nil
    ) {
        self.init(configuration, cost: { $0.cacheCost }, weakReference: weakReference)
    }
}

extension MemoryCache where Value: AnyObject {
    /// The weak reference for classes: values evicted here but alive elsewhere still count as hits.
    package static var aliveElsewhere: @Sendable (Value) -> (@Sendable () -> Value?)? {
        { value in { [weak value] in value } }
    }
}
