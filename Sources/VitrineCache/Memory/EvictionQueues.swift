import Synchronization

/// Decides who stays: S3-FIFO over numbered slots, costs in bytes.
///
/// New entries queue in a *small* queue of a fifth of the capacity. Whoever was asked for once when its turn comes
/// moves on to the *main* queue, everyone else leaves and is remembered as a ghost; whoever comes back while it is
/// remembered enters the main queue at once. The main queue gives each entry as many more turns as it had hits since,
/// at most three. So a scan passes through the small queue and leaves the main one alone, and a hit only counts.
///
/// Algorithm: Yang, Zhang, Qiu, Yue, Rashmi: FIFO queues are all you need for cache eviction, SOSP 2023. The paper
/// has a small queue of 10 % and promotes after two hits; of all that was measured, only with 20 % and one hit does no
/// trace fare more than 0.2 points worse than with LRU (`Benchmarks/README.md`, Memory cache).
///
/// It also hands out the slots, the lowest free one it knows, and grows when there is none.
@usableFromInline
package struct EvictionQueues: ~Copyable {
    /// Where a slot stands.
    @usableFromInline
    package enum Place: UInt8, Sendable {
        case free, small, main
    }

    @usableFromInline
    struct Node: ~Copyable {
        @usableFromInline var hash: UInt64
        @usableFromInline var cost: Int
        @usableFromInline var next: Int32
        @usableFromInline var previous: Int32 = -1
        /// Hits since the last turn, at most 3. Counted by several threads at a time.
        @usableFromInline let hits = Atomic<UInt8>(0)
        @usableFromInline var place = Place.free.rawValue
        /// The entry's lifetime is to be looked at before it is given out.
        @usableFromInline var isTimed = false
        /// Its lifetime was over when last looked at.
        @usableFromInline var isExpired = false

        @usableFromInline
        init(hash: UInt64 = 0, cost: Int = 0, next: Int32 = -1) {
            self.hash = hash
            self.cost = cost
            self.next = next
        }
    }

    /// The ends of one queue. -1 where it is empty.
    private struct Ends {
        var newest: Int32 = -1
        var oldest: Int32 = -1
        var cost = 0
    }

    @usableFromInline var nodes: UnsafeMutablePointer<Node>
    /// How many slots there are, free ones included.
    @usableFromInline
    package private(set) var slotCount: Int
    private var freeList: Int32 = -1
    private var small = Ends()
    private var main = Ends()
    private var ghosts = GhostRing()
    /// How many slots are taken.
    @usableFromInline
    package private(set) var count = 0
    /// The sum of the taken slots' costs.
    @usableFromInline
    package var totalCost: Int { small.cost &+ main.cost }
    /// The small queue keeps this much when the cache is full.
    package var smallTarget: Int

    /// The share of the capacity the small queue has, as a divisor.
    private static var smallShare: Int { 5 }

    /// Empty queues for a cache of this capacity in bytes.
    package init(capacity: Int) {
        smallTarget = max(1, capacity / Self.smallShare)
        slotCount = 0
        nodes = .allocate(capacity: 0)
    }

    deinit {
        nodes.deallocate()
    }

    /// The bytes it occupies, the ghosts' included.
    package var bytes: Int { slotCount * MemoryLayout<Node>.stride + ghosts.bytes }
    /// How many ghosts it remembers.
    package var ghostCount: Int { ghosts.count }

    /// Follows a changed capacity in bytes. Evicting down to it is the caller's.
    package mutating func adapt(toCapacity capacity: Int) {
        smallTarget = max(1, capacity / Self.smallShare)
    }

    /// Counts a hit, possibly while others do. Of two at the same moment one may be lost.
    @inlinable @inline(__always)
    package func touch(_ slot: Int) {
        let hits = nodes[slot].hits.load(ordering: .relaxed)
        if hits < 3 { nodes[slot].hits.store(hits &+ 1, ordering: .relaxed) }
    }

    /// Lets a slot go at its next turn.
    @usableFromInline
    package func forgetHits(_ slot: Int) { nodes[slot].hits.store(0, ordering: .relaxed) }
    /// Where a slot stands.
    @usableFromInline
    package func place(_ slot: Int) -> Place { Place(rawValue: nodes[slot].place) ?? .free }
    /// What a slot costs, in bytes.
    package func cost(_ slot: Int) -> Int { nodes[slot].cost }
    /// The hash a slot was taken with.
    @usableFromInline
    package func hash(_ slot: Int) -> UInt64 { nodes[slot].hash }

    /// Takes a slot. Making room before is the caller's.
    ///
    /// - Parameters:
    ///   - hash: Of the key.
    ///   - cost: In bytes.
    ///   - place: Where it enters; by default the small queue, or the main one if it is remembered.
    /// - Returns: The slot, at most ``slotCount`` as it was before: then all slots are new from there on.
    @usableFromInline
    package mutating func insert(hash: UInt64, cost: Int, place: Place? = nil) -> Int {
        if freeList < 0 { grow() }
        let slot = freeList
        freeList = nodes[Int(slot)].next
        let isRemembered = ghosts.remove(hash)
        nodes[Int(slot)] = Node(hash: hash, cost: cost)
        enter(slot, place ?? (isRemembered ? .main : .small))
        count &+= 1
        return Int(slot)
    }

    /// Frees a slot whose entry is removed by its owner.
    @usableFromInline
    package mutating func remove(_ slot: Int) {
        leave(Int32(truncatingIfNeeded: slot))
        free(Int32(truncatingIfNeeded: slot))
    }

    /// Frees the slot that is worth least.
    ///
    /// - Returns: The slot; nil if none is taken.
    @usableFromInline
    package mutating func evict() -> Int? {
        while count > 0 {
            let isSmallsTurn = small.cost > smallTarget || main.oldest < 0
            if let slot = isSmallsTurn ? evictFromSmall() : evictFromMain() { return Int(slot) }
        }
        return nil
    }

    /// Calls `body` with each taken slot: the small queue's, then the main one's, each from the oldest on.
    package func forEach(_ body: (Int) -> Void) {
        for start in [small.oldest, main.oldest] {
            var slot = start
            while slot >= 0 {
                let next = nodes[Int(slot)].next
                body(Int(slot))
                slot = next
            }
        }
    }

    /// nil if all moved on to the main queue.
    private mutating func evictFromSmall() -> Int32? {
        while small.oldest >= 0 {
            let slot = small.oldest
            leave(slot)
            if nodes[Int(slot)].hits.load(ordering: .relaxed) > 0 {
                forgetHits(Int(slot))
                enter(slot, .main)
            } else {
                // As many ghosts as the main queue would hold.
                ghosts.add(nodes[Int(slot)].hash, limit: count &- count / Self.smallShare)
                free(slot)
                return slot
            }
        }
        return nil
    }

    private mutating func evictFromMain() -> Int32? {
        while main.oldest >= 0 {
            let slot = main.oldest
            leave(slot)
            let hits = nodes[Int(slot)].hits.load(ordering: .relaxed)
            if hits > 0 {
                nodes[Int(slot)].hits.store(hits &- 1, ordering: .relaxed)
                enter(slot, .main)
            } else {
                free(slot)
                return slot
            }
        }
        return nil
    }

    private mutating func enter(_ slot: Int32, _ place: Place) {
        nodes[Int(slot)].place = place.rawValue
        if place == .small { Self.link(slot, &small, nodes) } else { Self.link(slot, &main, nodes) }
    }

    private mutating func leave(_ slot: Int32) {
        let isSmall = nodes[Int(slot)].place == Place.small.rawValue
        if isSmall { Self.unlink(slot, &small, nodes) } else { Self.unlink(slot, &main, nodes) }
    }

    private static func link(_ slot: Int32, _ ends: inout Ends, _ nodes: UnsafeMutablePointer<Node>) {
        nodes[Int(slot)].previous = ends.newest
        nodes[Int(slot)].next = -1
        if ends.newest >= 0 { nodes[Int(ends.newest)].next = slot } else { ends.oldest = slot }
        ends.newest = slot
        ends.cost &+= nodes[Int(slot)].cost
    }

    private static func unlink(_ slot: Int32, _ ends: inout Ends, _ nodes: UnsafeMutablePointer<Node>) {
        let next = nodes[Int(slot)].next, previous = nodes[Int(slot)].previous
        if previous >= 0 { nodes[Int(previous)].next = next } else { ends.oldest = next }
        if next >= 0 { nodes[Int(next)].previous = previous } else { ends.newest = previous }
        ends.cost &-= nodes[Int(slot)].cost
    }

    private mutating func free(_ slot: Int32) {
        nodes[Int(slot)].place = Place.free.rawValue
        nodes[Int(slot)].next = freeList
        freeList = slot
        count &-= 1
    }

    private mutating func grow() {
        let size = max(16, slotCount &* 2)
        precondition(size <= Int(Int32.max), "A memory cache holds fewer than 2^31 entries")
        let larger = UnsafeMutablePointer<Node>.allocate(capacity: size)
        larger.moveInitialize(from: nodes, count: slotCount)
        nodes.deallocate()
        nodes = larger
        for slot in (slotCount..<size).reversed() {
            (nodes + slot).initialize(to: Node(next: freeList))
            freeList = Int32(truncatingIfNeeded: slot)
        }
        slotCount = size
    }
}
