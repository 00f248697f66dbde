/// An open-addressing hash table from 64-bit hashes to small numbers, such as the slots of a cache.
///
/// It stores no keys: the caller decides which of the slots with a matching hash is meant. A cell has eight bytes, half
/// of them hash, so that a lookup usually reads one cache line. Linear probing with backward shift at removal (Knuth,
/// The Art of Computer Programming, volume 3, 6.4, algorithm R): there are no tombstones, so the table is never
/// rebuilt.
@usableFromInline
package struct KeyTable: ~Copyable {
    /// Upper half: the hash's fragment. Lower half: the slot plus one. 0: empty.
    @usableFromInline var cells: UnsafeMutablePointer<UInt64>
    @usableFromInline var mask: Int
    /// A cell's fragment shifted right by this is where its search begins.
    @usableFromInline var shift: UInt64
    /// How many slots are in it.
    package private(set) var count = 0

    /// The upper half of a cell.
    @inlinable static var fragmentMask: UInt64 { 0xffff_ffff_0000_0000 }

    /// An empty table with room for 11 slots. It grows by itself.
    package init() {
        cells = .allocate(capacity: 16)
        cells.initialize(repeating: 0, count: 16)
        mask = 15
        shift = 60
    }

    deinit {
        cells.deallocate()
    }

    /// The bytes it occupies.
    package var bytes: Int { (mask + 1) * MemoryLayout<UInt64>.stride }

    /// Fibonacci hashing (Knuth, 6.4): the upper half of the product with 2^64 divided by the golden ratio depends on
    /// all bits, even of hashes that count 1, 2, 3.
    @inlinable @inline(__always)
    static func fragment(_ hash: UInt64) -> UInt64 {
        (hash &* 0x9e37_79b9_7f4a_7c15) & fragmentMask
    }

    /// The slot that `matches` accepts among those with this hash; nil if there is none.
    ///
    /// - Parameter matches: Also asked, rarely, about slots with another hash.
    @inlinable @inline(__always)
    package func slot(forHash hash: UInt64, where matches: (Int) -> Bool) -> Int? {
        let fragment = KeyTable.fragment(hash)
        var position = Int(truncatingIfNeeded: fragment &>> shift)
        while true {
            let cell = cells[position]
            if cell == 0 { return nil }
            if cell & KeyTable.fragmentMask == fragment {
                let slot = Int(truncatingIfNeeded: cell & ~KeyTable.fragmentMask) &- 1
                if matches(slot) { return slot }
            }
            position = (position &+ 1) & mask
        }
    }

    /// Adds a slot, which must not be in it under this hash.
    ///
    /// - Parameter slot: 0 ..< 2^32 - 1.
    @usableFromInline
    package mutating func insert(_ slot: Int, hash: UInt64) {
        if count &* 4 >= (mask &+ 1) &* 3 { grow() }
        place(Self.fragment(hash) | UInt64(truncatingIfNeeded: slot &+ 1))
        count &+= 1
    }

    /// Takes a slot out.
    ///
    /// - Returns: Whether it was in it under this hash.
    @discardableResult
    @usableFromInline
    package mutating func remove(_ slot: Int, hash: UInt64) -> Bool {
        let wanted = Self.fragment(hash) | UInt64(truncatingIfNeeded: slot &+ 1)
        var hole = Int(truncatingIfNeeded: wanted &>> shift)
        while cells[hole] != wanted {
            if cells[hole] == 0 { return false }
            hole = (hole &+ 1) & mask
        }
        var next = hole
        while true {
            next = (next &+ 1) & mask
            let cell = cells[next]
            if cell == 0 { break }
            let home = Int(truncatingIfNeeded: cell &>> shift)
            // A cell may move to the hole unless its search begins behind the hole.
            if (next &- home) & mask >= (next &- hole) & mask {
                cells[hole] = cell
                hole = next
            }
        }
        cells[hole] = 0
        count &-= 1
        return true
    }

    private func place(_ cell: UInt64) {
        var position = Int(truncatingIfNeeded: cell &>> shift)
        while cells[position] != 0 { position = (position &+ 1) & mask }
        cells[position] = cell
    }

    private mutating func grow() {
        let old = cells, oldSize = mask &+ 1
        cells = .allocate(capacity: oldSize &* 2)
        cells.initialize(repeating: 0, count: oldSize &* 2)
        mask = oldSize &* 2 &- 1
        shift &-= 1
        for position in 0..<oldSize where old[position] != 0 { place(old[position]) }
        old.deallocate()
    }
}
