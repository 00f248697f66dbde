import TestSupport
import Testing
import VitrineCache
import VitrineCore

@Suite struct DiskCacheExpiryTests {
    @Test func expiredIsMissingButForWhoAsksForIt() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache { $0.timeToLive = .seconds(100) }
        try await cache.set([1], forKey: "default")
        try await cache.set([2], forKey: "short", timeToLive: .seconds(10))
        try await cache.flush()
        fixture.advance(.seconds(10))
        #expect(try await cache.bytes(forKey: "short") == nil)
        #expect(try await cache.contains("short") == false)
        let stale = try #require(try cache.blocking.entry(forKey: "short", includingExpired: true))
        #expect(stale.bytes == [2] && stale.isExpired)
        #expect(try await cache.bytes(forKey: "default") == [1])
        fixture.advance(.seconds(90))
        #expect(try await cache.bytes(forKey: "default") == nil)
    }

    @Test func expiredInTheQueueIsMissingToo() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        try cache.set([1], forKey: "a")
        cache.expire("a")
        #expect(try cache.bytes(forKey: "a") == nil)
        #expect(try cache.entry(forKey: "a", includingExpired: true)?.bytes == [1])
        try cache.flush()
        #expect(try cache.bytes(forKey: "a") == nil)
        #expect(try cache.entry(forKey: "a", includingExpired: true)?.bytes == [1])
        cache.renew("a", timeToLive: .seconds(5))
        #expect(try cache.bytes(forKey: "a") == [1])
        try cache.flush()
        #expect(try cache.bytes(forKey: "a") == [1])
    }

    @Test func purgesSixtyFourWithEachBatch() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache { $0.expiredRetention = .seconds(5) }
        let disk = cache.blocking
        for i in 0..<100 { try disk.set([1], forKey: CacheKey("\(i)"), timeToLive: .seconds(10)) }
        try disk.flush()
        fixture.advance(.seconds(14))
        try disk.set([1], forKey: "x")
        try disk.flush()
        #expect(try disk.count == 101)
        fixture.advance(.seconds(1))
        try disk.set([1], forKey: "y")
        try disk.flush()
        #expect(try disk.count == 102 - 64)
        try disk.set([1], forKey: "z")
        try disk.flush()
        #expect(try disk.count == 3)
        #expect(cache.statistics.expirations == 100)
    }

    @Test func expiredGoBeforeOthersWhenRoomIsNeeded() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache { $0.capacity = ByteCount(DiskFixture.charge(1000, "a") * 3) }.blocking
        try cache.set(DiskFixture.bytes(1000), forKey: "a")
        try cache.set(DiskFixture.bytes(1000), forKey: "b", timeToLive: .seconds(1))
        try cache.set(DiskFixture.bytes(1000), forKey: "c")
        try cache.flush()
        for _ in 0..<5 { _ = try cache.bytes(forKey: "b") }
        fixture.advance(.seconds(1))
        try cache.set(DiskFixture.bytes(1000), forKey: "d")
        try cache.flush()
        #expect(try cache.entries().map(\.key.identity).sorted() == ["a", "c", "d"])
    }

    @Test func aClockThatGoesBackNeitherExpiresNorKeepsForEver() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        try cache.set([1], forKey: "a", timeToLive: .seconds(100), validator: [5])
        try cache.flush()
        fixture.advance(.seconds(-100_000))
        #expect(try cache.bytes(forKey: "a") == [1])
        // The next batch lets it begin anew.
        try cache.set([2], forKey: "b")
        try cache.flush()
        fixture.advance(.seconds(99))
        #expect(try cache.entry(forKey: "a")?.validator == [5])
        fixture.advance(.seconds(1))
        #expect(try cache.bytes(forKey: "a") == nil)
        #expect(try cache.verify(removingDamage: false).isSound)
    }

    @Test func recordsUsesForAudits() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        try await cache.set([1, 2], forKey: "a", validator: [3])
        try await cache.flush()
        let start = fixture.now
        for _ in 0..<40 {
            fixture.advance(.seconds(30))
            _ = try await cache.bytes(forKey: "a")
            _ = try await cache.entries()
        }
        let info = try #require(try await cache.entries().first)
        #expect(info.key == "a" && info.size.bytes == 2 && info.validator == [3] && info.created == start)
        #expect(info.hits == 15)
        #expect(info.lastAccess >= fixture.now - .seconds(60))
        let direct = try await cache.info(forKey: "a")
        #expect(direct == info)
    }
}
