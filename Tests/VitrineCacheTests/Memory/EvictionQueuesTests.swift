import Testing
import VitrineCache

struct EvictionQueuesTests {
    @Test func newcomersLeaveInTheirOrder() {
        var queues = EvictionQueues(capacity: 5)
        let slots = (0..<5).map { queues.insert(hash: UInt64($0), cost: 1) }
        let places = slots.map { queues.place($0) }
        #expect(places == Array(repeating: .small, count: 5))
        var left: [Int] = []
        while let slot = queues.evict() { left.append(slot) }
        let count = queues.count, cost = queues.totalCost
        #expect(left == slots && count == 0 && cost == 0)
    }

    @Test func oneHitLeadsToTheMainQueue() {
        var queues = EvictionQueues(capacity: 5)
        let slots = (0..<5).map { queues.insert(hash: UInt64($0), cost: 1) }
        queues.touch(slots[0])
        let left = queues.evict()
        let first = queues.place(slots[0]), second = queues.place(slots[1]), cost = queues.totalCost
        #expect(left == slots[1] && first == .main && second == .free && cost == 4)
    }

    @Test func ghostsReturnToTheMainQueue() {
        var queues = EvictionQueues(capacity: 5)
        for number in 0..<5 { _ = queues.insert(hash: UInt64(number), cost: 1) }
        _ = queues.evict()
        let before = queues.ghostCount
        let back = queues.insert(hash: 0, cost: 1)
        let place = queues.place(back), after = queues.ghostCount
        #expect(before == 1 && place == .main && after == 0)
    }

    @Test func theMainQueueGivesATurnForEachHitUpToThree() {
        var queues = EvictionQueues(capacity: 2)
        let often = queues.insert(hash: 1, cost: 1, place: .main)
        let once = queues.insert(hash: 2, cost: 1, place: .main)
        for _ in 0..<10 { queues.touch(often) }
        queues.touch(once)
        let first = queues.evict()
        // One turn is used up, two are left.
        let third = queues.insert(hash: 3, cost: 1, place: .main)
        queues.touch(third)
        queues.touch(third)
        let second = queues.evict()
        #expect(first == once && second == often)
    }

    @Test func slotsAreUsedAgain() {
        var queues = EvictionQueues(capacity: 100)
        for number in 0..<1000 {
            _ = queues.insert(hash: UInt64(number), cost: 1)
            if queues.count > 10 { _ = queues.evict() }
        }
        let count = queues.slotCount
        #expect(count == 16)
    }

    @Test func walksEverySlotOnce() {
        var queues = EvictionQueues(capacity: 100)
        var slots: Set<Int> = []
        for number in 0..<40 {
            slots.insert(queues.insert(hash: UInt64(number), cost: 2, place: number % 3 == 0 ? .main : .small))
        }
        for slot in [3, 4, 39, 0] {
            queues.remove(slot)
            slots.remove(slot)
        }
        var seen: [Int] = []
        queues.forEach { seen.append($0) }
        let cost = queues.totalCost
        #expect(seen.count == 36 && Set(seen) == slots && cost == 72)
    }
}

struct GhostRingTests {
    @Test func remembersTheLastOnes() {
        var ring = GhostRing()
        for hash in 0..<1000 as Range<UInt64> { ring.add(hash, limit: 100) }
        let before = ring.count
        var remembered: [UInt64] = []
        for hash in 0..<1000 as Range<UInt64> where ring.remove(hash) { remembered.append(hash) }
        let after = ring.count
        #expect(remembered == Array(900..<1000) && before == 100 && after == 0)
    }

    @Test func forgetsWhatCameBackOnce() {
        var ring = GhostRing()
        ring.add(7, limit: 10)
        ring.add(7, limit: 10)
        let count = ring.count, first = ring.remove(7), second = ring.remove(7)
        #expect(count == 1 && first && !second)
    }

    /// The oldest stays while the others come and go: its place must not make the ring grow without end.
    @Test func staysSmall() {
        var ring = GhostRing()
        ring.add(1, limit: 20)
        for hash in 2..<100_000 as Range<UInt64> {
            ring.add(hash, limit: 20)
            ring.remove(hash)
        }
        let bytes = ring.bytes
        #expect(bytes < 2000)
    }

    @Test func shrinksWithItsLimit() {
        var ring = GhostRing()
        for hash in 0..<50 as Range<UInt64> { ring.add(hash, limit: 50) }
        ring.add(50, limit: 3)
        let some = ring.count
        ring.add(51, limit: 0)
        let none = ring.count
        #expect(some == 3 && none == 0)
    }
}
