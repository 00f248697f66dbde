import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct MemoryCacheAliveElsewhereTests {
    private final class Picture: Sendable {
        let number: Int
        init(_ number: Int) { self.number = number }
    }

    private typealias Cache = MemoryCache<Int, Picture>

    private func make(_ capacity: ByteCount = 10) -> Cache {
        Cache(.init(capacity: capacity, trimsOn: nil), cost: { _ in 1 }, weakReference: Cache.aliveElsewhere)
    }

    @Test func evictedButAliveIsAHitAndEntersAgain() {
        let cache = make()
        let shown = Picture(0)
        cache[0] = shown
        for number in 1..<100 { cache[number] = Picture(number) }
        #expect(!cache.keys.contains(0))
        #expect(cache.contains(0) && cache.peek(0) === shown)
        #expect(!cache.keys.contains(0))
        #expect(cache[0] === shown)
        #expect(cache.keys.contains(0))
        #expect(cache[1] == nil)
        let statistics = cache.statistics
        #expect(statistics.hits == 1 && statistics.misses == 1 && statistics.weakHits == 1)
        #expect(cache.totalCost == 10)
    }

    @Test func doesNotKeepAnythingAlive() {
        let cache = make()
        weak var seen: Picture?
        do {
            let picture = Picture(1)
            seen = picture
            cache[1] = picture
        }
        #expect(seen != nil)
        cache.trim(to: 0)
        #expect(seen == nil && cache[1] == nil)
    }

    @Test func survivesTrimmingButNotRemoval() {
        let cache = make()
        let pictures = (0..<5).map(Picture.init)
        for picture in pictures { cache[picture.number] = picture }
        cache.trim(to: 0)
        cache.remove(0)
        cache.removeAll { $0 == 1 }
        cache.expire(2)
        cache[3] = Picture(33)
        cache.trim(to: 0)
        #expect(cache[0] == nil && cache[1] == nil && cache[2] == nil && cache[3] == nil)
        #expect(cache[4] === pictures[4])
        cache.removeAll()
        #expect(cache[4] == nil)
    }

    @Test func refusedButAliveIsAHitThatStaysOutside() {
        let cache = make()
        let huge = Picture(1)
        #expect(!cache.set(huge, forKey: 1, cost: 11))
        #expect(cache[1] === huge && cache.count == 0)
        let none = make(0)
        none[1] = huge
        #expect(none[1] == nil)
    }

    @Test func keepsItsLifetime() {
        let clock = ManualClock()
        let cache = Cache(
            .init(timeToLive: .seconds(10), trimsOn: nil, clock: .following(clock)), cost: { _ in 1 },
            weakReference: Cache.aliveElsewhere)
        let picture = Picture(1)
        cache[1] = picture
        cache.trim(to: 0)
        clock.advance(by: .seconds(6))
        #expect(cache[1] === picture)
        clock.advance(by: .seconds(4))
        #expect(cache[1] == nil)
        cache.trim(to: 0)
        #expect(cache[1] == nil)
    }

    @Test func forgetsTheDead() {
        let cache = make(100)
        for number in 0..<10_000 { cache[number] = Picture(number) }
        #expect(cache.registrationCount <= 400)
    }
}
