import Testing
import VitrineCache

@Suite struct CacheMetricsTests {
    @Test func bothLevelsHitsAndMissesAreCounted() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        #expect(try await cache.value(forKey: "lake") == nil)
        #expect(try await cache.value(forKey: "hill") == nil)
        try await cache.set("blue", forKey: "lake")
        try await cache.flush()
        #expect(cache["lake"] == "blue")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake") == "blue")
        let snapshot = cache.metricsSnapshot
        #expect(snapshot.memory.hits == 1)
        #expect(snapshot.memory.misses == 3)
        #expect(snapshot.disk.hits == 1)
        #expect(snapshot.disk.misses == 2)
        #expect(snapshot.disk.insertions == 1)
    }

    @Test func statisticsAddUpWhole() {
        var one = DiskCache.Statistics()
        let fields: [WritableKeyPath<DiskCache.Statistics, Int>] = [
            \.hits, \.misses, \.insertions, \.insertedBytes, \.evictions, \.evictedBytes, \.expirations, \.damaged,
            \.refusals, \.dropped, \.recoveries,
        ]
        #expect(fields.count == Mirror(reflecting: one).children.count)
        for (index, field) in fields.enumerated() { one[keyPath: field] = index + 1 }
        var sum = one
        sum.add(one)
        for (index, field) in fields.enumerated() { #expect(sum[keyPath: field] == 2 * (index + 1)) }
    }
}
