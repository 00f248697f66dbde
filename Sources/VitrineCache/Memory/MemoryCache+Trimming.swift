import VitrineCore

extension MemoryCache {
    /// The most all entries may cost together. Lowering it evicts at once; 0 keeps nothing.
    public var capacity: ByteCount {
        get { ByteCount(storage.withLock { $0.capacity }) }
        set {
            var departed = DepartedEntries<Key, Value>()
            changing { storage in
                storage.capacity = newValue.bytes
                storage.queues.adapt(toCapacity: newValue.bytes)
                storage.evict(toTotalCost: newValue.bytes, &departed)
            }
        }
    }

    /// Gives up memory until the entries cost at most this, those worth least first: on memory pressure, when the
    /// program goes to the background (R18), or at any time. Returns when the values are released. Unlike removed
    /// ones, values alive elsewhere still count as hits.
    public func trim(to size: ByteCount) {
        var departed = DepartedEntries<Key, Value>()
        changing { Self.trim(&$0, to: size.bytes, &departed) }
    }

    /// Gives up memory until the entries cost at most this share of what they cost now.
    ///
    /// - Parameter share: Values outside 0 ... 1 count as the nearer of the two.
    public func trim(toShare share: Double) {
        let share = share > 0 ? min(share, 1) : 0
        var departed = DepartedEntries<Key, Value>()
        changing { storage in
            let target = share == 1 ? storage.totalCost : Int(Double(storage.totalCost) * share)
            Self.trim(&storage, to: target, &departed)
        }
    }

    private static func trim(
        _ storage: inout MemoryStorage<Key, Value>, to target: Int, _ departed: inout DepartedEntries<Key, Value>
    ) {
        if target > 0 {
            storage.evict(toTotalCost: target, &departed)
        } else {
            storage.statistics.evictions &+= storage.count
            departed = storage.takeAll()
        }
    }

    /// What the cache occupies besides the values and what keys refer to, in bytes.
    public var overhead: ByteCount { ByteCount(storage.withLock { $0.overhead } + storage.bytes) }

    /// For tests: what all entries really cost, what the cache believes they do, and its capacity, at one moment.
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
        var departed = DepartedEntries<Key, Value>()
        changing { Self.trim(&$0, to: size, &departed) }
        return departed
    }
}
