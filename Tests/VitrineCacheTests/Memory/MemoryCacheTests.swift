import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct MemoryCacheTests {
    private func cache(_ capacity: ByteCount = .unlimited) -> MemoryCache<CacheKey, String> {
        MemoryCache(.init(capacity: capacity, trimsOn: nil), cost: { $0.utf8.count })
    }

    @Test func givesBackWhatWasStored() {
        let cache = cache()
        #expect(cache["a"] == nil)
        cache["a"] = "one"
        cache["b"] = "two"
        #expect(cache["a"] == "one" && cache["b"] == "two")
        cache["a"] = "another"
        #expect(cache["a"] == "another")
        #expect(cache.count == 2 && cache.totalCost == 10)
        #expect(Set(cache.keys) == ["a", "b"])
        cache["a"] = nil
        #expect(cache["a"] == nil && cache["b"] == "two")
        #expect(cache.count == 1 && cache.totalCost == 3)
    }

    @Test func removesOneAllOrThoseAskedFor() {
        let cache = cache()
        for number in 0..<100 { cache[CacheKey("\(number)")] = "value" }
        #expect(cache.remove("7") == "value")
        #expect(cache.remove("7") == nil)
        #expect(cache.remove("unknown") == nil)
        cache.removeAll { key in key.identity.hasSuffix("1") }
        #expect(cache.count == 89)
        #expect(cache["21"] == nil && cache["22"] != nil)
        cache.removeAll()
        #expect(cache.count == 0 && cache.totalCost == 0 && cache.keys.isEmpty)
        cache["7"] = "again"
        #expect(cache["7"] == "again")
    }

    @Test func keysWithOneHashStayApart() {
        struct Key: HashedKey {
            let name: String
            var hash64: UInt64 { 42 }
        }
        let cache = MemoryCache<Key, Int>(.init(trimsOn: nil), cost: { _ in 1 })
        for number in 0..<50 { cache[Key(name: "\(number)")] = number }
        for number in stride(from: 0, to: 50, by: 2) { #expect(cache.remove(Key(name: "\(number)")) == number) }
        for number in 0..<50 { #expect(cache[Key(name: "\(number)")] == (number % 2 == 0 ? nil : number)) }
    }

    @Test func takesAnyHashableKey() {
        let texts = MemoryCache<String, Int>(.init(trimsOn: nil), cost: { _ in 1 })
        let numbers = MemoryCache<Int, Int>(.init(trimsOn: nil), cost: { _ in 1 })
        for number in 0..<1000 {
            texts["\(number)"] = number
            numbers[number] = number
        }
        for number in 0..<1000 { #expect(texts["\(number)"] == number && numbers[number] == number) }
    }

    @Test func neverHoldsMoreThanItsCapacity() {
        let cache = cache(1000)
        for number in 0..<500 {
            cache.set("x", forKey: CacheKey("\(number)"), cost: number % 90 + 1)
            #expect(cache.totalCost <= 1000)
        }
        #expect(cache.totalCost > 800)
        cache.capacity = 100
        #expect(cache.totalCost <= 100)
        #expect(cache.capacity == 100)
        cache.capacity = 0
        #expect(cache.count == 0)
    }

    @Test func refusesWhatIsDearerThanTheWholeCapacity() {
        let cache = cache(1000)
        for number in 0..<10 { cache.set("x", forKey: CacheKey("\(number)"), cost: 100) }
        #expect(!cache.set("huge", forKey: "huge", cost: 1001))
        #expect(cache["huge"] == nil && cache.count == 10)
        #expect(!cache.set("grown", forKey: "3", cost: .max))
        #expect(cache["3"] == nil && cache.count == 9)
        #expect(cache.statistics.refusals == 2 && cache.statistics.evictions == 0)
        #expect(cache.set("all", forKey: "all", cost: 1000))
        #expect(cache.count == 1)
    }

    @Test func limitsASingleEntryUnlessAskedNotTo() {
        let cache = MemoryCache<CacheKey, String>(.smallValues, cost: { $0.utf8.count })
        #expect(!cache.set("a", forKey: "a", cost: 1 << 20))
        #expect(cache.set("a", forKey: "a", cost: 1 << 20, ignoringEntryLimit: true))
        #expect(cache.set("b", forKey: "b", cost: 1 << 20 - 1))
        #expect(cache.count == 2)
    }

    @Test func nothingAndNoLimitMeanWhatTheySay() {
        let none = cache(0)
        #expect(!none.set("a", forKey: "a", cost: 0))
        #expect(none["a"] == nil)
        let unlimited = cache(.unlimited)
        #expect(unlimited.set("a", forKey: "a", cost: .max - 5))
        #expect(unlimited.set("b", forKey: "b", cost: 5))
        #expect(unlimited.count == 2 && unlimited.totalCost == .max)
        #expect(unlimited.set("c", forKey: "c", cost: 5))
        #expect(unlimited["c"] == "c" && unlimited.totalCost < .max)
        #expect(unlimited.set("d", forKey: "d", cost: -7))
    }

    @Test func presetsAreTheAncestors() {
        #expect(CacheConfiguration.thumbnails.memoryCapacity.bytes == 3 * 1024 * 1024)
        #expect(MemoryCacheConfiguration.smallValues.maximumEntryCost.bytes == 1024 * 1024 - 1)
    }

    @Test func countsWhatHappens() {
        let cache = cache(10)
        _ = cache["a"]
        cache["a"] = "12345"
        _ = cache["a"]
        _ = cache["a"]
        _ = cache.peek("a")
        _ = cache.peek("b")
        _ = cache.contains("a")
        cache["b"] = "123456"
        let statistics = cache.statistics
        #expect(statistics.hits == 2 && statistics.misses == 1)
        #expect(statistics.insertions == 2 && statistics.evictions == 1)
        #expect(abs(statistics.hitRatio - 2.0 / 3) < 1e-9)
    }

    @Test func valuesAreReleasedOutsideTheLock() {
        final class Guest: Sendable {
            let cache: MemoryCache<Int, Guest>
            let seen: Counter
            init(_ cache: MemoryCache<Int, Guest>, _ seen: Counter) {
                self.cache = cache
                self.seen = seen
            }
            // Would wait for ever under the lock.
            deinit { seen.add(cache.count >= 0 ? 1 : 0) }
        }
        let seen = Counter()
        let cache = MemoryCache<Int, Guest>(.init(capacity: 10, trimsOn: nil), cost: { _ in 1 })
        for number in 0..<100 { cache[number] = Guest(cache, seen) }
        #expect(seen.value == 90)
        cache.set(Guest(cache, seen), forKey: 99, cost: 10)
        #expect(seen.value == 100)
        #expect(!cache.set(Guest(cache, seen), forKey: 99, cost: 11))
        #expect(seen.value == 102)
        for number in 0..<8 { cache[number] = Guest(cache, seen) }
        cache.trim(toShare: 0.5)
        #expect(seen.value == 106)
        cache[0] = nil
        cache.capacity = 2
        cache.removeAll { _ in true }
        #expect(seen.value == 110)
        for number in 0..<2 { cache[number] = Guest(cache, seen) }
        cache.removeAll()
        #expect(seen.value == 112)
    }

    @Test func givesUpMemoryUnderPressure() {
        let pressure = MemoryPressure()
        let cache = MemoryCache<Int, Int>(.init(trimsOn: pressure), cost: { _ in 10 })
        for number in 0..<100 { cache[number] = number }
        pressure.send(.warning)
        #expect(cache.totalCost == 500)
        pressure.send(.critical)
        #expect(cache.count == 0)
        cache[1] = 1
        #expect(cache[1] == 1)
        #expect(cache.statistics.evictions == 100)
    }

    @Test func trimsToASize() {
        let cache = cache()
        for number in 0..<100 { cache.set("x", forKey: CacheKey("\(number)"), cost: 10) }
        cache.trim(to: 255)
        #expect(cache.totalCost == 250)
        cache.trim(toShare: 7)
        #expect(cache.totalCost == 250)
        cache.trim(toShare: .nan)
        #expect(cache.count == 0)
    }

    @Test func aScanDoesNotFlushWhatIsUsed() {
        let cache = MemoryCache<Int, Int>(.init(capacity: 1000, trimsOn: nil), cost: { _ in 1 })
        for number in 0..<800 { cache[number] = number }
        for _ in 0..<3 { for number in 0..<800 { _ = cache[number] } }
        for number in 10_000..<60_000 { cache[number] = number }
        // One may go while the small queue reaches its share.
        #expect((0..<800).count { cache.contains($0) } >= 799)
    }

    @Test func whoComesBackSoonStays() {
        let cache = MemoryCache<Int, Int>(.init(capacity: 100, trimsOn: nil), cost: { _ in 1 })
        for number in 0..<150 { cache[number] = number }
        #expect(!cache.contains(49))
        cache[49] = 49
        for number in 1000..<1500 { cache[number] = number }
        #expect(cache.contains(49))
        #expect(!cache.contains(1100))
    }
}
