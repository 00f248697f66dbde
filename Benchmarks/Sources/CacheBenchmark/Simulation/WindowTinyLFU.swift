/// W-TinyLFU (Einziger, Friedman, Manes, ACM Transactions on Storage 13(4), 2017) with its usual window of 1 %:
/// newcomers pass a small window and enter the main part, a segmented LRU, only in place of one that was asked for
/// less often.
struct WindowTinyLFU: SimulatedPolicy {
    private var window: ObjectList, probation: ObjectList, protected: ObjectList
    private var frequencies: FrequencySketch
    private var random = SplitMix(state: 7)
    private let capacity: Int, windowTarget: Int, protectedTarget: Int, costs: [Int]

    init(trace: RequestTrace, capacity: Int) {
        window = ObjectList(objectCount: trace.objectCount)
        probation = window
        protected = window
        let meanCost = max(1, trace.footprint / max(1, trace.objectCount))
        frequencies = FrequencySketch(entries: max(16, capacity / meanCost))
        self.capacity = capacity
        windowTarget = max(1, capacity / 100)
        protectedTarget = (capacity - windowTarget) / 5 * 4
        costs = trace.costs
    }

    mutating func request(_ object: Int, cost: Int) -> Bool {
        frequencies.add(object)
        if window.contains(object) {
            window.remove(object, cost: cost)
            window.add(object, cost: cost)
        } else if probation.contains(object) {
            probation.remove(object, cost: cost)
            protected.add(object, cost: cost)
            while protected.cost > protectedTarget {
                let demoted = protected.oldest
                protected.remove(demoted, cost: costs[demoted])
                probation.add(demoted, cost: costs[demoted])
            }
        } else if protected.contains(object) {
            protected.remove(object, cost: cost)
            protected.add(object, cost: cost)
        } else {
            if cost <= capacity {
                window.add(object, cost: cost)
                makeRoom()
            }
            return false
        }
        return true
    }

    private mutating func makeRoom() {
        var candidates = 0
        while window.cost > windowTarget, !window.isEmpty {
            let object = window.oldest
            window.remove(object, cost: costs[object])
            probation.add(object, cost: costs[object])
            candidates += 1
        }
        while window.cost + probation.cost + protected.cost > capacity {
            guard !probation.isEmpty else {
                if protected.isEmpty {
                    window.remove(window.oldest, cost: costs[window.oldest])
                } else {
                    protected.remove(protected.oldest, cost: costs[protected.oldest])
                }
                continue
            }
            let candidate = probation.newest, victim = probation.oldest
            var leaves = victim
            if candidates > 0, candidate != victim, !isAdmitted(candidate, insteadOf: victim) { leaves = candidate }
            if leaves == candidate { candidates -= 1 }
            probation.remove(leaves, cost: costs[leaves])
        }
    }

    /// Now and then a candidate that is asked for often enters by luck, which defeats keys chosen to be refused.
    private mutating func isAdmitted(_ candidate: Int, insteadOf victim: Int) -> Bool {
        let one = frequencies.estimate(candidate), other = frequencies.estimate(victim)
        return one > other || one > 5 && random.next() & 127 == 0
    }
}

/// A count-min sketch of four rows of four-bit counters that are halved now and then.
struct FrequencySketch {
    private var words: [UInt64]
    private var additions = 0
    private let period: Int

    init(entries: Int) {
        var size = 16
        while size < entries { size *= 2 }
        words = [UInt64](repeating: 0, count: size)
        period = 10 * entries
    }

    private func place(_ object: Int, _ row: UInt64) -> (word: Int, shift: UInt64) {
        var mixer = SplitMix(state: UInt64(object) &* 0xa24b_aed4_963e_e407 &+ row &* 0x9fb2_1c65_1e98_df25)
        let hash = mixer.next()
        return (Int(truncatingIfNeeded: hash) & (words.count - 1), (hash >> 60) << 2)
    }

    func estimate(_ object: Int) -> Int {
        var smallest = 15
        for row in 0..<4 as Range<UInt64> {
            let (word, shift) = place(object, row)
            smallest = min(smallest, Int(words[word] >> shift & 15))
        }
        return smallest
    }

    mutating func add(_ object: Int) {
        var isCounted = false
        for row in 0..<4 as Range<UInt64> {
            let (word, shift) = place(object, row)
            guard words[word] >> shift & 15 < 15 else { continue }
            words[word] += 1 << shift
            isCounted = true
        }
        additions += isCounted ? 1 : 0
        guard additions >= period else { return }
        for index in words.indices { words[index] = words[index] >> 1 & 0x7777_7777_7777_7777 }
        additions /= 2
    }
}
