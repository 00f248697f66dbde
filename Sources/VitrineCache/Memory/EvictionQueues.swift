import Synchronization

/// The eviction order of a memory cache: S3-FIFO over numbered slots, with costs in bytes.
///
/// New entries enter a *small* queue of a fifth of the capacity. At the end of the queue, an entry with a hit moves to
/// the *main* queue. Other entries are evicted and remembered as ghosts. A key that returns while it is remembered
/// enters the main queue at once. The main queue keeps each entry for as many more rounds as it had hits, at most
/// three. So a scan passes through the small queue and leaves the main queue unchanged, and a hit only counts.
///
/// Algorithm: Yang, Zhang, Qiu, Yue, Rashmi: FIFO queues are all you need for cache eviction, SOSP 2023. The paper has
/// a small queue of 10 % and promotes after two hits. With 20 % and one hit, no measured trace is more than 0.2 points
/// worse than with LRU (`Benchmarks/README.md`, Memory cache).
///
/// It also allocates the slots, the lowest free one first, and grows if there is none.
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
    /// Returns the cost of a slot in bytes.
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
        if place == .small {
            Self.link(slot, ends: &small, nodes: nodes)
        } else {
            Self.link(slot, ends: &main, nodes: nodes)
        }
    }

    private mutating func leave(_ slot: Int32) {
        let isSmall = nodes[Int(slot)].place == Place.small.rawValue
        if isSmall {
            Self.unlink(slot, ends: &small, nodes: nodes)
        } else {
            Self.unlink(slot, ends: &main, nodes: nodes)
        }
    }

    private static func link(_ slot: Int32, ends: inout Ends, nodes: UnsafeMutablePointer<Node>) {
        nodes[Int(slot)].previous = ends.newest
        nodes[Int(slot)].next = -1
        if ends.newest >= 0 { nodes[Int(ends.newest)].next = slot } else { ends.oldest = slot }
        ends.newest = slot
        ends.cost &+= nodes[Int(slot)].cost
    }

    private static func unlink(_ slot: Int32, ends: inout Ends, nodes: UnsafeMutablePointer<Node>) {
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

/// Remembers the hashes of recently evicted keys. A key that returns soon was evicted too early.
///
/// A ring of hashes in the order of eviction, and a table that finds them. Two keys with one hash are not
/// distinguished; at worst, a new entry enters the main queue too early.
@usableFromInline
package struct GhostRing: ~Copyable {
    private var hashes: UnsafeMutablePointer<UInt64>
    private var mask = 15
    /// Where the oldest is, and where the next one goes. They only count up.
    private var tail = 0, head = 0
    private var table = KeyTable()

    /// An empty ring. It grows by itself.
    package init() {
        hashes = .allocate(capacity: 16)
        hashes.initialize(repeating: 0, count: 16)
    }

    deinit {
        hashes.deallocate()
    }

    /// How many it remembers.
    package var count: Int { table.count }

    /// The bytes it occupies.
    package var bytes: Int { (mask + 1) * MemoryLayout<UInt64>.stride + table.bytes }

    /// Remembers one more and forgets the oldest beyond `limit`.
    package mutating func add(_ hash: UInt64, limit: Int) {
        remove(hash)
        // Places of those that came back stay empty until the ring has turned past them. Twice the limit has room.
        while mask &+ 1 < 2 &* limit, head &- tail > mask { grow() }
        if head &- tail > mask { forgetOldest() }
        hashes[head & mask] = hash
        table.insert(head & mask, hash: hash)
        head &+= 1
        while table.count > max(0, limit) { forgetOldest() }
    }

    /// Whether it remembers the hash; it does no longer after that.
    @discardableResult
    package mutating func remove(_ hash: UInt64) -> Bool {
        let hashes = self.hashes
        guard let place = table.slot(forHash: hash, where: { hashes[$0] == hash }) else { return false }
        return table.remove(place, hash: hash)
    }

    private mutating func forgetOldest() {
        table.remove(tail & mask, hash: hashes[tail & mask])
        tail &+= 1
    }

    private mutating func grow() {
        let size = mask &+ 1
        let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: size &* 2)
        larger.initialize(repeating: 0, count: size &* 2)
        var grown = KeyTable()
        var count = 0
        for position in tail..<head {
            let hash = hashes[position & mask]
            guard table.remove(position & mask, hash: hash) else { continue }
            larger[count] = hash
            grown.insert(count, hash: hash)
            count &+= 1
        }
        hashes.deallocate()
        hashes = larger
        table = grown
        mask = size &* 2 &- 1
        tail = 0
        head = count
    }
}
