public import VitrineCore

/// How a ``MemoryCache`` behaves.
package struct MemoryCacheConfiguration: Sendable {
    /// The most all values may cost together. 0 keeps nothing, `.unlimited` sets no limit. Default 64 MB.
    package var capacity: ByteCount
    /// The most a single value may cost; a dearer one is not kept, as is one dearer than the capacity. Default
    /// `.unlimited`: only the capacity counts.
    package var maximumEntryCost: ByteCount
    /// How long a value counts after it was stored, unless it says otherwise. nil, the default: as long as it is kept.
    package var timeToLive: Duration?
    /// The memory pressure that empties the cache: half of it at `.warning`, all at `.critical`. Default: that of the
    /// system; nil for none.
    package var trimsOn: MemoryPressure?
    /// The budget shared with other caches. Default nil: only the capacity limits the cache.
    package var budget: MemoryBudget?
    /// Tells the time for lifetimes. Default the system's.
    package var clock: WallClock

    /// A configuration.
    package init(
        capacity: ByteCount = .megabytes(64), maximumEntryCost: ByteCount = .unlimited, timeToLive: Duration? = nil,
        trimsOn: MemoryPressure? = .shared, budget: MemoryBudget? = nil, clock: WallClock = .system
    ) {
        self.capacity = capacity
        self.maximumEntryCost = maximumEntryCost
        self.timeToLive = timeToLive
        self.trimsOn = trimsOn
        self.budget = budget
        self.clock = clock
    }

    /// A preset for small values: those of 1 MiB and more are stored only with `ignoringEntryLimit: true`.
    package static var smallValues: Self { Self(maximumEntryCost: .mebibytes(1) - 1) }
}

/// The counters of a memory cache since its creation.
@usableFromInline
package struct MemoryCacheStatistics: Sendable, Hashable {
    /// Lookups that found a value, those alive elsewhere included.
    @usableFromInline package var hits = 0
    /// Lookups that found none, or an expired one.
    @usableFromInline package var misses = 0
    /// Lookups that found a value evicted here but alive elsewhere.
    @usableFromInline package var weakHits = 0
    /// Values stored, in place of an older one or not, weak hits included.
    @usableFromInline package var insertions = 0
    /// Entries removed to make room, or because the capacity was lowered or memory became scarce.
    @usableFromInline package var evictions = 0
    /// Values not kept because they cost more than an entry may.
    @usableFromInline package var refusals = 0
    /// Entries found to be past their lifetime.
    @usableFromInline package var expirations = 0

    /// Hits per lookup, 0 ... 1; 0 without any.
    package var hitRatio: Double { hits + misses == 0 ? 0 : Double(hits) / (Double(hits) + Double(misses)) }

    /// Nothing happened.
    package init() {}
}

extension MemoryCache {
    /// The most all entries may cost together. Lowering it evicts at once; 0 keeps nothing.
    public var capacity: ByteCount {
        get { ByteCount(storage.withLock { $0.capacity }) }
        set {
            var removed = RemovedEntries<Key, Value>()
            changing { storage in
                storage.capacity = newValue.bytes
                storage.queues.adapt(toCapacity: newValue.bytes)
                storage.evict(toTotalCost: newValue.bytes, &removed)
            }
        }
    }

    /// Evicts until the cost of the entries is at most this, the least valuable first. Returns when the values are
    /// released. Unlike removed values, evicted ones that are alive elsewhere still count as hits.
    public func trim(to size: ByteCount) {
        var removed = RemovedEntries<Key, Value>()
        changing { Self.trim(&$0, to: size.bytes, &removed) }
    }

    /// Evicts until the cost of the entries is at most this share of the current cost.
    ///
    /// - Parameter share: The share. Clamped to 0 ... 1.
    package func trim(toShare share: Double) {
        let share = share > 0 ? min(share, 1) : 0
        var removed = RemovedEntries<Key, Value>()
        changing { storage in
            let target = share == 1 ? storage.totalCost : Int(Double(storage.totalCost) * share)
            Self.trim(&storage, to: target, &removed)
        }
    }

    /// Evicts everything, as ``trim(to:)`` with 0.
    ///
    /// - Returns: The evicted entries, to be released outside all locks.
    package func evictAll() -> RemovedEntries<Key, Value> {
        var removed = RemovedEntries<Key, Value>()
        changing { Self.trim(&$0, to: 0, &removed) }
        return removed
    }

    private static func trim(
        _ storage: inout MemoryStorage<Key, Value>, to target: Int, _ removed: inout RemovedEntries<Key, Value>
    ) {
        if target > 0 {
            storage.evict(toTotalCost: target, &removed)
        } else {
            storage.statistics.evictions &+= storage.count
            removed = storage.takeAll()
        }
    }

    /// The memory that the cache takes besides values and the storage of keys, in bytes.
    public var overhead: ByteCount { ByteCount(storage.withLock { $0.overhead } + storage.bytes) }

    /// For tests: the sum of the entries' costs, the counted cost, and the capacity, at one moment.
    package var audited: (sum: Int, totalCost: Int, capacity: Int) {
        storage.withLock { storage in
            var sum = 0
            storage.queues.forEach { sum += storage.queues.cost($0) }
            return (sum, storage.totalCost, storage.capacity)
        }
    }
}

extension MemoryCache: BudgetedMemory {
    package var budgetedCost: Int { totalCost }

    package func evictForBudget(to size: Int) -> any Sendable {
        var removed = RemovedEntries<Key, Value>()
        changing { Self.trim(&$0, to: size, &removed) }
        return removed
    }
}
