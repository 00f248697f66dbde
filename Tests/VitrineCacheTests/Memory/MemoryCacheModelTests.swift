import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct MemoryCacheModelTests {
    /// Whatever is found is what was stored last; what is not evicted is found.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func agreesWithAModel(seed: UInt64) {
        var random = SeededGenerator(seed)
        let clock = ManualClock()
        let cache = MemoryCache<CacheKey, Int>(
            .init(capacity: 2000, trimsOn: nil, clock: .following(clock)), cost: { _ in 1 })
        var model: [CacheKey: (value: Int, cost: Int, expires: Duration?)] = [:]
        let keys = (0..<200).map { CacheKey("key", "\($0)") }
        for step in 0..<100_000 {
            let key = keys[Int(random.next() % 200)]
            switch random.next() % 20 {
            case 0..<7:
                let cost = Int(random.next() % 60) + 1
                let lasts = random.next() % 3 == 0 ? Duration.seconds(Int64(random.next() % 50)) : nil
                let expires = lasts.map { clock.now.offset + $0 }
                #expect(cache.set(step, forKey: key, cost: cost, expires: expires))
                model[key] = (step, cost, expires)
                #expect(cache.staleValue(forKey: key)?.value == step)
            case 7: cache.remove(key); model[key] = nil
            case 8: cache.expire(key); model[key]?.expires = .zero
            case 9: clock.advance(by: .seconds(1))
            case 10 where random.next() % 500 == 0: cache.removeAll(); model = [:]
            case 11 where random.next() % 100 == 0: cache.trim(toShare: 0.7)
            case 12 where random.next() % 50 == 0: cache.capacity = ByteCount(Int(random.next() % 3000) + 60)
            default:
                let expected = model[key], found = cache.value(forKey: key)
                if let found { #expect(found == expected?.value) }
                let isFresh = expected.map { $0.expires.map { clock.now.offset < $0 } ?? true } ?? false
                let isThere = cache.staleValue(forKey: key) != nil
                #expect((found != nil) == (isFresh && isThere))
            }
            if step % 100 == 0 { agree(cache, &model) }
        }
        let statistics = cache.statistics
        #expect(statistics.hits > 1000 && statistics.evictions > 1000 && statistics.expirations > 100)
    }

    /// What is there is what the model has, and the costs add up. What was evicted leaves the model.
    private func agree(
        _ cache: MemoryCache<CacheKey, Int>, _ model: inout [CacheKey: (value: Int, cost: Int, expires: Duration?)]
    ) {
        let keys = Set(cache.keys)
        model = model.filter { keys.contains($0.key) }
        #expect(keys.count == cache.count && model.count == cache.count)
        #expect(model.values.reduce(0) { $0 + $1.cost } == cache.totalCost)
        let audited = cache.audited
        #expect(audited.sum == audited.totalCost && audited.totalCost <= audited.capacity)
    }

    /// Threads that do everything at once, and one that looks on.
    @Test func limitsHoldAtEveryMomentUnderManyThreads() {
        let pressure = MemoryPressure()
        let cache = MemoryCache<CacheKey, String>(
            .init(capacity: 50_000, timeToLive: .seconds(3600), trimsOn: pressure), cost: { $0.utf8.count })
        let keys = (0..<2000).map { CacheKey("key", "\($0)") }
        let wrong = Counter(), running = Counter()
        DispatchQueue.concurrentPerform(iterations: 9) { thread in
            if thread == 8 {
                repeat {
                    let audited = cache.audited
                    if audited.sum != audited.totalCost || audited.totalCost > 50_000 { wrong.add(1) }
                } while running.value < 8
                return
            }
            var random = SeededGenerator(UInt64(thread))
            for step in 0..<20_000 {
                let number = Int(random.next() % 2000)
                switch random.next() % 16 {
                case 0..<5: cache.set("\(number)", forKey: keys[number], cost: Int(random.next() % 200))
                case 5: cache.remove(keys[number])
                case 6: cache.expire(keys[number])
                case 7 where step % 1000 == 0: cache.removeAll { $0.hash % 2 == 0 }
                case 8 where step % 1000 == 0: pressure.send(thread % 2 == 0 ? .warning : .critical)
                default: if let found = cache[keys[number]], found != "\(number)" { wrong.add(1) }
                }
            }
            running.add(1)
        }
        #expect(wrong.value == 0)
        #expect(cache.statistics.hits > 0 && cache.statistics.evictions > 0)
    }

    /// Lookups run side by side and are counted where they run: none may be lost, whatever else goes on.
    @Test func everyLookupOfEveryThreadIsCounted() {
        let clock = ManualClock()
        let cache = MemoryCache<Int, Int>(
            .init(capacity: 300, timeToLive: .seconds(5), trimsOn: nil, clock: .following(clock)), cost: { _ in 1 })
        let found = Counter()
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            var random = SeededGenerator(UInt64(thread))
            for step in 0..<10_000 {
                let number = Int(random.next() % 400)
                if let value = cache[number] {
                    found.add(value == number ? 1 : 1_000_000)
                } else {
                    cache[number] = number
                }
                if thread == 0, step % 100 == 0 { clock.advance(by: .seconds(1)) }
            }
        }
        let statistics = cache.statistics
        #expect(statistics.hits == found.value && statistics.hits + statistics.misses == 80_000)
        #expect(statistics.hits > 0 && statistics.expirations > 0)
    }

    /// The same with values that come back from elsewhere.
    @Test func revivalHoldsUnderManyThreads() {
        final class Picture: Sendable {
            let number: Int
            init(_ number: Int) { self.number = number }
        }
        typealias Cache = MemoryCache<Int, Picture>
        let cache = Cache(
            .init(capacity: 100, trimsOn: nil), cost: { _ in 1 }, weakReference: Cache.aliveElsewhere)
        let kept = (0..<500).map(Picture.init)
        let wrong = Counter()
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            var random = SeededGenerator(UInt64(thread))
            for _ in 0..<20_000 {
                let number = Int(random.next() % 1000)
                if random.next() % 3 == 0 {
                    cache[number] = number < 500 ? kept[number] : Picture(number)
                } else if let found = cache[number], found.number != number {
                    wrong.add(1)
                }
                if cache.totalCost > 100 { wrong.add(1) }
            }
        }
        #expect(wrong.value == 0)
        #expect(cache.statistics.weakHits > 0)
        #expect((0..<500).allSatisfy { cache[$0] === kept[$0] })
    }
}
