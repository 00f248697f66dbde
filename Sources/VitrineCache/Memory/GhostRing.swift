/// Remembers the hashes of what was evicted lately: who comes back soon was evicted too early.
///
/// A ring of hashes in the order of eviction and a table that finds them in it. Two keys with one hash are one to it,
/// which at worst gives a newcomer a place it has not earned.
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
