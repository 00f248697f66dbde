import VitrineCache
import VitrineCore

/// The cache itself, not a simulation of it.
struct VitrinePolicy: SimulatedPolicy {
    let cache: MemoryCache<CacheKey, Int>
    let keys: [CacheKey]

    init(trace: RequestTrace, capacity: Int) {
        cache = MemoryCache(capacity: ByteCount(capacity), trimsOn: nil, cost: { _ in 1 })
        keys = (0..<trace.objectCount).map { CacheKey("\($0)") }
    }

    mutating func request(_ object: Int, cost: Int) -> Bool {
        if cache[keys[object]] != nil { return true }
        cache.set(object, forKey: keys[object], cost: cost)
        return false
    }
}

/// Least recently used.
struct LeastRecentlyUsed: SimulatedPolicy {
    private var list: ObjectList
    private let capacity: Int, costs: [Int]

    init(trace: RequestTrace, capacity: Int) {
        list = ObjectList(objectCount: trace.objectCount)
        self.capacity = capacity
        costs = trace.costs
    }

    mutating func request(_ object: Int, cost: Int) -> Bool {
        if list.contains(object) {
            list.remove(object, cost: cost)
            list.add(object, cost: cost)
            return true
        }
        guard cost <= capacity else { return false }
        while list.cost + cost > capacity { list.remove(list.oldest, cost: costs[list.oldest]) }
        list.add(object, cost: cost)
        return false
    }
}

/// SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi, NSDI 2024): a hand walks from old to new and spares who was asked for.
struct Sieve: SimulatedPolicy {
    private var list: ObjectList
    private var wasAsked: [Bool]
    private var hand: Int?
    private let capacity: Int, costs: [Int]

    init(trace: RequestTrace, capacity: Int) {
        list = ObjectList(objectCount: trace.objectCount)
        wasAsked = [Bool](repeating: false, count: trace.objectCount)
        self.capacity = capacity
        costs = trace.costs
    }

    mutating func request(_ object: Int, cost: Int) -> Bool {
        if list.contains(object) {
            wasAsked[object] = true
            return true
        }
        guard cost <= capacity else { return false }
        while list.cost + cost > capacity {
            var victim = hand ?? list.oldest
            while wasAsked[victim] {
                wasAsked[victim] = false
                victim = list.newer(than: victim) ?? list.oldest
            }
            hand = list.newer(than: victim)
            list.remove(victim, cost: costs[victim])
        }
        wasAsked[object] = false
        list.add(object, cost: cost)
        return false
    }
}

/// S3-FIFO as published (Yang and others, SOSP 2023): small queue 10 %, promotion after two hits, ghosts by cost.
struct PublishedS3FIFO: SimulatedPolicy {
    private var small: ObjectList, main: ObjectList, ghosts: ObjectList
    private var hits: [UInt8]
    private let capacity: Int, smallTarget: Int, costs: [Int]

    init(trace: RequestTrace, capacity: Int) {
        small = ObjectList(objectCount: trace.objectCount)
        main = small
        ghosts = small
        hits = [UInt8](repeating: 0, count: trace.objectCount)
        self.capacity = capacity
        smallTarget = max(1, capacity / 10)
        costs = trace.costs
    }

    mutating func request(_ object: Int, cost: Int) -> Bool {
        if small.contains(object) || main.contains(object) {
            hits[object] = min(3, hits[object] + 1)
            return true
        }
        guard cost <= capacity else { return false }
        let isGhost = ghosts.contains(object)
        if isGhost { ghosts.remove(object, cost: cost) }
        while small.cost + main.cost + cost > capacity { evict() }
        hits[object] = 0
        if isGhost { main.add(object, cost: cost) } else { small.add(object, cost: cost) }
        return false
    }

    private mutating func evict() {
        guard small.cost > smallTarget || main.isEmpty else { return evictFromMain() }
        while !small.isEmpty {
            let object = small.oldest
            small.remove(object, cost: costs[object])
            if hits[object] >= 2 {
                hits[object] = 0
                main.add(object, cost: costs[object])
                continue
            }
            ghosts.add(object, cost: costs[object])
            while ghosts.cost > capacity - smallTarget { ghosts.remove(ghosts.oldest, cost: costs[ghosts.oldest]) }
            return
        }
    }

    private mutating func evictFromMain() {
        while true {
            let object = main.oldest
            main.remove(object, cost: costs[object])
            guard hits[object] > 0 else { return }
            hits[object] -= 1
            main.add(object, cost: costs[object])
        }
    }
}

/// Bélády's optimum: away goes what is needed again last. With unequal costs a strong heuristic, not the optimum.
struct Belady: SimulatedPolicy {
    private let nextUse: [Int32]
    private var residentUntil: [Int32]
    private var heap = FarthestFirst()
    private var time = 0, cost = 0
    private let capacity: Int, costs: [Int]

    init(trace: RequestTrace, capacity: Int) {
        var nextUse = [Int32](repeating: .max, count: trace.requests.count)
        var seen = [Int32](repeating: .max, count: trace.objectCount)
        for index in trace.requests.indices.reversed() {
            let object = Int(trace.requests[index])
            nextUse[index] = seen[object]
            seen[object] = Int32(index)
        }
        self.nextUse = nextUse
        residentUntil = [Int32](repeating: -1, count: trace.objectCount)
        self.capacity = capacity
        costs = trace.costs
    }

    mutating func request(_ object: Int, cost: Int) -> Bool {
        let next = nextUse[time]
        time += 1
        let isHit = residentUntil[object] >= 0
        if isHit { self.cost -= cost }
        residentUntil[object] = -1
        guard next != .max, cost <= capacity else { return isHit }
        residentUntil[object] = next
        self.cost += cost
        heap.add(next, Int32(object))
        while self.cost > capacity, let (use, victim) = heap.takeFarthest() {
            // Entries of the heap whose object was asked for since are out of date.
            guard residentUntil[Int(victim)] == use else { continue }
            residentUntil[Int(victim)] = -1
            self.cost -= costs[Int(victim)]
        }
        return isHit
    }
}

/// A binary heap whose top is the farthest use.
struct FarthestFirst {
    private var items: [(use: Int32, object: Int32)] = []

    mutating func add(_ use: Int32, _ object: Int32) {
        items.append((use, object))
        var child = items.count - 1
        while child > 0, items[child].use > items[(child - 1) / 2].use {
            items.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func takeFarthest() -> (use: Int32, object: Int32)? {
        guard let top = items.first, let last = items.popLast() else { return nil }
        if items.isEmpty { return top }
        items[0] = last
        var parent = 0
        while true {
            var largest = parent
            for child in [parent * 2 + 1, parent * 2 + 2] where child < items.count {
                if items[child].use > items[largest].use { largest = child }
            }
            if largest == parent { return top }
            items.swapAt(parent, largest)
            parent = largest
        }
    }
}
