import Dispatch
import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct MemoryBudgetTests {
    private typealias Memory = MemoryCache<CacheKey, Int>

    private func memory(_ budget: MemoryBudget) -> Memory {
        Memory(.init(capacity: .unlimited, trimsOn: nil, budget: budget), cost: { _ in 100 })
    }

    @Test func insertionsKeepTheSumWithinTheLimit() {
        let budget = MemoryBudget(limit: ByteCount(10_000))
        let caches = [memory(budget), memory(budget), memory(budget)]
        for number in 0..<1000 {
            caches[number * 7 % 3][CacheKey("\(number)")] = number
            let sum = caches.reduce(0) { $0 + $1.totalCost }
            #expect(sum <= 10_000 && budget.used.bytes == sum)
        }
        #expect(budget.used > ByteCount(9_000))
        caches[0].removeAll()
        caches[1].trim(toShare: 0.5)
        caches[2].remove("999")
        #expect(budget.used.bytes == caches.reduce(0) { $0 + $1.totalCost })
    }

    @Test func insertionsOfSeveralThreadsKeepTheSumWithinTheLimit() async throws {
        let budget = MemoryBudget(limit: ByteCount(20_000))
        let caches = (0..<4).map { _ in memory(budget) }
        try await offPool {
            DispatchQueue.concurrentPerform(iterations: 8) { thread in
                for number in 0..<2000 {
                    let cache = caches[(thread + number) % 4]
                    cache[CacheKey("\(thread) \(number)")] = number
                    if number % 17 == 0 { cache.remove(CacheKey("\(thread) \(number - 1)")) }
                }
            }
        }
        // Before the last use of the caches, which leave the budget after it.
        let used = budget.used.bytes
        let sum = caches.reduce(0) { $0 + $1.totalCost }
        #expect(sum <= 20_000 && used == sum)
    }

    @Test func largeCachesMakeRoomBeforeSmallOnes() {
        let budget = MemoryBudget(limit: ByteCount(10_000))
        let (small, large) = (memory(budget), memory(budget))
        for number in 0..<20 { small[CacheKey("\(number)")] = number }
        for number in 0..<1000 { large[CacheKey("\(number)")] = number }
        #expect(small.count == 20)
        #expect(large.count >= 70)
    }

    @Test func loweredLimitsEvictAtOnce() {
        let budget = MemoryBudget(limit: .unlimited)
        let caches = [memory(budget), memory(budget)]
        for number in 0..<100 { for cache in caches { cache[CacheKey("\(number)")] = number } }
        #expect(budget.used == ByteCount(20_000))
        budget.limit = ByteCount(5_000)
        #expect(budget.used <= ByteCount(5_000) && caches.allSatisfy { $0.count > 20 })
        budget.limit = 0
        #expect(budget.used == .zero && caches.allSatisfy { $0.count == 0 })
        caches[0]["a"] = 1
        #expect(caches[0]["a"] == nil)
    }

    @Test func releasedCachesLeaveTheBudget() {
        let budget = MemoryBudget(limit: ByteCount(10_000))
        var gone: Memory? = memory(budget)
        let stays = memory(budget)
        for number in 0..<40 { gone?[CacheKey("\(number)")] = number }
        stays["a"] = 1
        #expect(budget.used == ByteCount(4_100))
        gone = nil
        #expect(budget.used == ByteCount(100) && stays["a"] == 1)
    }

    @Test func newEntriesGetRoomAboveTheirShareButNotAboveTheLimit() {
        let budget = MemoryBudget(limit: ByteCount(10_000))
        let (first, second) = (memory(budget), memory(budget))
        for number in 0..<60 { first[CacheKey("\(number)")] = number }
        second.set(1, forKey: "large", cost: 9_000)
        #expect(second["large"] == 1 && budget.used <= ByteCount(10_000))
        #expect(!second.set(1, forKey: "too large", cost: 10_001))
        #expect(second["large"] == 1)
    }

    @Test func evictedValuesMayUseTheCaches() async throws {
        final class Value: Sendable {
            let onEnd: @Sendable () -> Void
            init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
            deinit { onEnd() }
        }
        let budget = MemoryBudget(limit: ByteCount(1_000))
        let numbers = memory(budget)
        let values = MemoryCache<CacheKey, Value>(
            .init(capacity: .unlimited, trimsOn: nil, budget: budget), cost: { _ in 100 })
        try await offPool {
            for number in 0..<100 {
                values[CacheKey("\(number)")] = Value { [weak values] in
                    values?.remove(CacheKey("\(number + 1)"))
                    numbers[CacheKey("\(number)")] = number
                }
            }
        }
        #expect(budget.used <= ByteCount(1_000))
        values.removeAll()
        #expect(budget.used.bytes == numbers.totalCost)
    }

    @Test func cachesShareTheirConfigurationsBudget() throws {
        let budget = MemoryBudget(limit: ByteCount(1_000))
        let first = try CacheFixture<String> { $0.memoryBudget = budget }
        let second = try CacheFixture<String> { $0.memoryBudget = budget }
        for number in 0..<100 {
            first.cache[CacheKey("\(number)")] = String(repeating: "a", count: 50)
            second.cache[CacheKey("\(number)")] = String(repeating: "b", count: 50)
            #expect(budget.used <= ByteCount(1_000))
        }
        #expect(CacheConfiguration().memoryBudget === MemoryBudget.shared)
        #expect(MemoryBudget.defaultLimit > .zero && MemoryBudget.defaultLimit <= .megabytes(256))
    }

    @Test func theCapacityOfACacheCanBeChangedAtAnyTime() throws {
        let fixture = try CacheFixture<String> { $0.memoryCapacity = .megabytes(1) }
        let cache = fixture.cache
        #expect(cache.memoryCapacity == .megabytes(1))
        cache["lake"] = "water"
        cache.memoryCapacity = 0
        #expect(cache["lake"] == nil)
        cache["lake"] = "water"
        #expect(cache["lake"] == nil)
        cache.memoryCapacity = .megabytes(1)
        cache["lake"] = "water"
        #expect(cache["lake"] == "water")
    }
}
