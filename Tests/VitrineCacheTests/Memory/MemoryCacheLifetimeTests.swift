import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct MemoryCacheLifetimeTests {
    private final class Time: Sendable {
        private let state: Locked<Duration>
        init(_ start: Duration) { state = Locked(start) }
        var now: Duration {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = newValue } }
        }
    }

    private func make(_ timeToLive: Duration? = nil) -> (MemoryCache<CacheKey, String>, Time) {
        let time = Time(.seconds(1_000_000))
        let cache = MemoryCache<CacheKey, String>(
            .init(timeToLive: timeToLive, trimsOn: nil, clock: WallClock { time.now }), cost: { $0.utf8.count })
        return (cache, time)
    }

    @Test func entriesEndWithTheirLifetime() {
        let (cache, time) = make(.seconds(10))
        cache["a"] = "value"
        cache.set("longer", forKey: "b", expires: time.now + .seconds(20))
        time.now += .seconds(10) - .nanoseconds(1)
        #expect(cache["a"] == "value" && cache.contains("a"))
        time.now += .nanoseconds(1)
        #expect(cache["a"] == nil && !cache.contains("a") && cache.peek("a") == nil)
        #expect(cache["b"] == "longer")
        time.now += .seconds(10)
        #expect(cache["b"] == nil)
        #expect(cache.statistics.expirations == 2 && cache.statistics.misses == 2)
        cache["a"] = "new"
        #expect(cache["a"] == "new")
    }

    @Test func expiredEntriesCanStillBeRead() throws {
        let (cache, time) = make(.seconds(10))
        cache["a"] = "value"
        #expect(try #require(cache.staleValue(forKey: "a")) == ("value", false))
        time.now += .seconds(10)
        #expect(try #require(cache.staleValue(forKey: "a")) == ("value", true))
        #expect(cache.staleValue(forKey: "b") == nil)
        #expect(cache.remove("a") == "value")
    }

    @Test func entriesCanBeExpired() throws {
        let (cache, _) = make()
        cache["a"] = "value"
        cache.expire("a")
        cache.expire("unknown")
        #expect(cache["a"] == nil && !cache.contains("a"))
        #expect(try #require(cache.staleValue(forKey: "a")) == ("value", true))
        #expect(cache.statistics.expirations == 1)
        cache["a"] = "new"
        #expect(cache["a"] == "new")
    }

    @Test func anExpiredEntryGoesFirst() {
        let time = Time(.zero)
        let cache = MemoryCache<Int, Int>(
            .init(capacity: 10, trimsOn: nil, clock: WallClock { time.now }), cost: { _ in 1 })
        for number in 0..<10 {
            cache.set(number, forKey: number, expires: number == 4 ? .seconds(1) : nil)
            _ = cache[number]
        }
        time.now = .seconds(2)
        #expect(cache[4] == nil)
        cache[10] = 10
        #expect(cache.staleValue(forKey: 4) == nil)
        #expect(cache.count == 10)
    }

    @Test func aClockSetBackNeitherEndsNorProlongsALifetime() {
        let (cache, time) = make(.seconds(10))
        cache["a"] = "value"
        time.now -= .seconds(500_000)
        #expect(cache["a"] == "value")
        time.now += .seconds(9)
        #expect(cache["a"] == "value")
        time.now += .seconds(1)
        #expect(cache["a"] == nil)
    }

    @Test func lifetimesSurviveGrowth() {
        let (cache, time) = make()
        for number in 0..<1000 {
            let expires: Duration? = number % 3 == 0 ? time.now + .seconds(number) : nil
            cache.set("x", forKey: CacheKey("\(number)"), expires: expires)
        }
        time.now += .seconds(500)
        for number in 0..<1000 {
            #expect(cache.contains(CacheKey("\(number)")) == (number % 3 != 0 || number > 500))
        }
    }
}
