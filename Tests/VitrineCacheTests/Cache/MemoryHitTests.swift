import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct MemoryHitTests {
    @Test func memoryHitsRefreshTheLastAccess() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        try await cache.set("rock", forKey: "hill")
        try await cache.flush()
        fixture.clock.advance(by: .seconds(7200))
        #expect(cache["lake"] == "water")
        try await cache.flush()
        let lake = try #require(try await cache.info(forKey: "lake"))
        let hill = try #require(try await cache.info(forKey: "hill"))
        #expect(lake.lastAccess - hill.lastAccess >= .seconds(7100))
        #expect(lake.created == hill.created || lake.created - hill.created < .seconds(1))
    }

    @Test func memoryHitsLeaveTheDiskAloneIfWished() async throws {
        let fixture = try CacheFixture<String> { $0.memoryHits = .leaveDisk }
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        try await cache.flush()
        let before = try #require(try await cache.info(forKey: "lake"))
        fixture.clock.advance(by: .seconds(7200))
        #expect(cache["lake"] == "water")
        try await cache.flush()
        #expect(try await cache.info(forKey: "lake")?.lastAccess == before.lastAccess)
    }

    @Test func memoryHitsRestoreMissingEntriesIfWished() async throws {
        let fixture = try CacheFixture<String> { $0.memoryHits = .restoreMissing }
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        try await cache.flush()
        await cache.disk()?.remove("lake")
        try await cache.flush()
        #expect(try await cache.disk()?.contains("lake") == false)
        #expect(cache["lake"] == "water")
        try await cache.flush()
        while try await cache.disk()?.contains("lake") != true { await Task.yield() }
        #expect(try await cache.bytes(forKey: "lake") == Array("water".utf8))
    }

    @Test func fullBatchesArePassedOn() async throws {
        let recorder = MemoryHitRecorder()
        for number in 0..<MemoryHitRecorder.limit - 1 {
            #expect(recorder.record(MemoryKey(CacheKey("\(number)"), format: 0)) == nil)
        }
        // The same again is no new use.
        #expect(recorder.record(MemoryKey(CacheKey("\(MemoryHitRecorder.limit - 2)"), format: 0)) == nil)
        #expect(recorder.record(MemoryKey("last", format: 0))?.count == MemoryHitRecorder.limit)
        #expect(recorder.take().isEmpty)
    }
}
