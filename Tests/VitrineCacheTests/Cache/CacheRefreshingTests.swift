import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct CacheRefreshingTests {
    @Test func refreshReplacesTheValue() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("old", forKey: "lake")
        #expect(try await cache.refresh(from: ValueFetcher(key: "lake") { "new" }) == "new")
        #expect(cache["lake"] == "new")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake") == "new")
    }

    @Test func failedRefreshKeepsTheOldValue() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("old", forKey: "lake")
        let failing = ValueFetcher<String>(key: "lake", load: { throw SourceFailure() })
        #expect(await code { try await cache.refresh(from: failing) } == -530)
        #expect(cache["lake"] == "old")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake") == "old")
        // Bytes that are no value are a failure as well.
        let bad = ValueFetcher<String>(key: "lake", fetch: { _ in FetchResult(bytes: [0xFF]) })
        #expect(await code { try await cache.refresh(from: bad) } == -500)
        #expect(try await cache.value(forKey: "lake") == "old")
    }

    @Test func refreshRemovesWhatWasMadeFromTheOldOriginal() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        cache.register(CacheFormat("twice") { $0 + $0 })
        let old = ValueFetcher<String>(key: "lake") { "old" }
        for format in cache.formatNames { _ = try await cache.value(from: old, format: format) }
        let new = ValueFetcher<String>(key: "lake") { "new" }
        #expect(try await cache.refresh(from: new, format: "loud") == "NEW")
        #expect(try await cache.value(from: old, format: "twice") == "newnew")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake") == "new")
    }

    @Test func fetchersRevalidateWhatIsStored() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let fetcher = VersionedFetcher()
        #expect(try await cache.value(from: fetcher) == "first")
        fixture.clock.advance(by: .seconds(61))
        #expect(try await cache.value(from: fetcher) == "first")
        #expect(fetcher.seen.all == [[], Array("v1".utf8)])
        // Fresh again, without having been sent again.
        let info = try #require(try await cache.info(forKey: "lake"))
        #expect(info.expires == cache.configuration.clock.now + .seconds(60))
        #expect(info.validator == Array("v1".utf8))
        #expect(try await cache.value(from: fetcher) == "first")
        #expect(fetcher.seen.all.count == 2)

        #expect(try await cache.refresh(from: fetcher) == "first")
        #expect(fetcher.seen.all.count == 3)
        try await cache.removeAll()
        #expect(try await cache.value(from: fetcher) == "first")
        #expect(fetcher.seen.all.last == [])
    }

    private struct VersionedFetcher: Fetcher {
        let seen = Recorder<[UInt8]>()
        var key: CacheKey { "lake" }
        var revalidates: Bool { true }
        func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
            seen.add(context.stored?.validator ?? [])
            if context.stored?.validator == Array("v1".utf8) { return .unchanged(timeToLive: .seconds(60)) }
            return FetchResult(value: "first", timeToLive: .seconds(60), validator: Array("v1".utf8))
        }
    }
}
