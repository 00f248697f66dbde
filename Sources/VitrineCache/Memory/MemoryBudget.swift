import Synchronization
public import VitrineCore

/// A limit on the memory that several caches use together.
///
/// ```swift
/// MemoryBudget.shared.limit = .megabytes(64)      // all caches of the process together
/// ```
///
/// Every `ValueCache` shares ``shared`` unless its `CacheConfiguration.memoryBudget` names another budget. Each cache still
/// observes its own capacity. When an insertion raises the sum of all costs above ``limit``, the largest caches evict
/// first: each is trimmed to the same level, and caches below that level lose nothing. Within a cache the entries that
/// are used least are evicted.
///
/// The limit holds after each insertion has returned. A lookup does not touch the budget; an insertion adds to one
/// counter.
public final class MemoryBudget: Sendable {
    /// The budget of all caches that do not name another one.
    public static let shared = MemoryBudget()

    /// The default limit: an eighth of the memory that the process may use (the machine's memory or the limit of its
    /// control group), at most 256 MB.
    @usableFromInline
    package static let defaultLimit = ByteCount(min(ByteCount.megabytes(256).bytes, PhysicalMemory.available / 8))

    private struct Member: Sendable {
        weak var memory: (any BudgetedMemory)?
    }

    private let limitBytes: Atomic<Int>
    /// The sum of the costs of all caches.
    private let counted = Atomic<Int>(0)
    private let members = Locked<[ObjectIdentifier: Member]>([:])
    /// Held while caches are trimmed.
    private let trimming = Locked<Void>(())

    /// Creates a budget.
    ///
    /// - Parameter limit: The limit of all caches together. Default: 256 MB, at most an eighth of the memory.
    public init(limit: ByteCount = MemoryBudget.defaultLimit) {
        limitBytes = Atomic(limit.bytes)
    }

    /// The limit of all caches together, in bytes of the costs of their entries. Lowering it evicts before the setter
    /// returns; 0 stores nothing.
    public var limit: ByteCount {
        get { ByteCount(limitBytes.load(ordering: .relaxed)) }
        set {
            limitBytes.store(newValue.bytes, ordering: .sequentiallyConsistent)
            enforce()
        }
    }

    /// The current cost of all caches together.
    public var used: ByteCount { ByteCount(counted.load(ordering: .relaxed)) }

    // MARK: For caches

    func join(_ memory: some BudgetedMemory) {
        members.withLock { $0[ObjectIdentifier(memory)] = Member(memory: memory) }
    }

    /// A cache is deinitialized.
    func leave(_ id: ObjectIdentifier, cost: Int) {
        members.withLock { _ = $0.removeValue(forKey: id) }
        count(-cost)
    }

    /// Adds a change of a cache's cost.
    @usableFromInline
    func count(_ change: Int) {
        if change != 0 { counted.wrappingAdd(change, ordering: .sequentiallyConsistent) }
    }

    /// The most one entry may cost.
    @usableFromInline
    var entryLimit: Int { limitBytes.load(ordering: .relaxed) }

    /// Evicts until the limit holds. Must not be called under a lock, because values of the user are released here.
    ///
    /// - Parameters:
    ///   - id: The cache that has just stored a value.
    ///   - newest: The cost of this value. Other caches evict entries for it even if they then have less.
    @usableFromInline
    func enforce(for id: ObjectIdentifier? = nil, newest: Int = 0) {
        while counted.load(ordering: .sequentiallyConsistent) > limitBytes.load(ordering: .sequentiallyConsistent) {
            // The evicted values are released after unlocking, and so are the caches: their last owners may have gone.
            let kept = trimming.withLock { _ in trim(id, newest) }
            guard kept.isExceeded else { return }
            withExtendedLifetime(kept) {}
        }
    }

    private struct Trimmed: Sendable {
        var isExceeded = false
        var memories: [any BudgetedMemory] = []
        var removed: [any Sendable] = []
    }

    private func trim(_ id: ObjectIdentifier?, _ newest: Int) -> Trimmed {
        var trimmed = Trimmed()
        trimmed.memories = members.withLock { $0.values.compactMap(\.memory) }
        var sizes = trimmed.memories.map(\.budgetedCost)
        let limit = limitBytes.load(ordering: .sequentiallyConsistent)
        // A cache that is being deinitialized is counted until it has left, and nothing is evicted for it.
        guard sizes.reduce(0, { (ByteCount($0) + ByteCount($1)).bytes }) > limit else { return trimmed }
        trimmed.isExceeded = true
        // Some more than necessary, so that this happens seldom.
        var target = limit - limit / Self.slack
        var spared: Int?
        var level = Self.level(sizes, target)
        let own = trimmed.memories.firstIndex { ObjectIdentifier($0) == id }
        if let index = own, level < min(newest, sizes[index]) {
            spared = index
            let available = min(newest, limit)
            trimmed.removed.append(trimmed.memories[index].evictForBudget(to: available))
            target -= available
            sizes[index] = 0
            level = Self.level(sizes, target)
        }
        for (index, memory) in trimmed.memories.enumerated() where index != spared && sizes[index] > level {
            trimmed.removed.append(memory.evictForBudget(to: level))
        }
        return trimmed
    }

    /// A trim makes room for this share of the limit, as a divisor.
    private static var slack: Int { 32 }

    /// The level to which the largest sizes have to fall for the sum to be at most the target.
    static func level(_ sizes: [Int], _ target: Int) -> Int {
        var left = max(0, target)
        let sorted = sizes.sorted()
        for (index, size) in sorted.enumerated() {
            let share = left / (sorted.count - index)
            if size > share { return share }
            left -= size
        }
        return .max
    }
}

/// A memory level that shares a ``MemoryBudget``.
package protocol BudgetedMemory: AnyObject, Sendable {
    /// The cost of all entries together.
    var budgetedCost: Int { get }

    /// Evicts until the cost of the entries is at most this.
    ///
    /// - Returns: The evicted entries, to be released outside all locks.
    func evictForBudget(to size: Int) -> any Sendable
}
