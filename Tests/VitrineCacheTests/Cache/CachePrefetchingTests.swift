import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct CachePrefetchingTests {
    /// No text, so that who decodes it fails.
    private static let noText: [UInt8] = [0x61, 0xFF]

    private func fetcher(_ bytes: [UInt8], _ runs: Counter, key: CacheKey = "lake") -> ValueFetcher<String> {
        ValueFetcher(key: key) { _ in
            runs.add(1)
            return FetchResult(bytes: bytes, validator: [7])
        }
    }

    @Test func bringsBytesToDiskWithoutDecodingThem() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let runs = Counter()
        try await cache.prefetch(from: fetcher(Self.noText, runs))
        #expect(try await cache.bytes(forKey: "lake") == Self.noText)
        #expect(try await cache.info(forKey: "lake")?.validator == [7])
        #expect(cache["lake"] == nil)
        // What is there is not asked for again.
        try await cache.prefetch(from: fetcher(Self.noText, runs))
        #expect(runs.value == 1)
        // When it is wanted it shows to be no value: removed, and asked for again.
        #expect(try await cache.value(from: fetcher(Array("water".utf8), runs)) == "water")
        #expect(runs.value == 2)
        #expect(try await cache.bytes(forKey: "lake") == Array("water".utf8))
    }

    @Test func formatsAreMadeFromTheOriginalWhenTheyAreWanted() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let runs = Counter(), transforms = Counter()
        cache.register(
            CacheFormat("loud") { value in
                transforms.add(1)
                return value.uppercased()
            })
        let fetcher = fetcher(Array("water".utf8), runs)
        try await cache.prefetch(from: fetcher, format: "loud", to: .disk)
        #expect(transforms.value == 0)
        #expect(await cache.depth(of: "lake") == .disk)
        #expect(await cache.depth(of: "lake", format: "loud") == .source)
        #expect(try await cache.value(from: fetcher, format: "loud") == "WATER")
        #expect((runs.value, transforms.value) == (1, 1))
        // Either entry is near enough.
        await cache.remove("lake")
        try await cache.prefetch(from: fetcher, format: "loud", to: .disk)
        #expect(runs.value == 1)
    }

    @Test func entriesOfFormatsAreStoredWhereOriginalsAreNot() async throws {
        let fixture = try CacheFixture<String> { $0.storesOriginals = false }
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        let runs = Counter()
        try await cache.prefetch(from: fetcher(Array("water".utf8), runs), format: "loud", to: .disk)
        #expect(await cache.depth(of: "lake", format: "loud") == .disk)
        #expect(await cache.depth(of: "lake") == .source)
        #expect(cache["lake", "loud"] == nil)
    }

    @Test func warmsMemory() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        let runs = Counter()
        for _ in 0..<2 {
            try await cache.prefetch(from: fetcher(Array("water".utf8), runs), format: "loud", to: .memory)
        }
        #expect(cache["lake", "loud"] == "WATER")
        #expect(runs.value == 1)
        try await cache.prefetch(from: fetcher(Array("ice".utf8), runs, key: "pond"), to: .source)
        #expect(runs.value == 1)
    }

    @Test func failuresAreThrownAndTriedAgain() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let failing = ValueFetcher<String>(key: "lake", load: { throw SourceFailure() })
        #expect(await code { try await cache.prefetch(from: failing) } == -530)
        #expect(await code { try await cache.prefetch(from: failing, to: .memory) } == -530)
        #expect(await code { try await cache.prefetch(from: failing, format: "none") } == -101)
        let runs = Counter()
        try await cache.prefetch(from: fetcher([0x61], runs))
        #expect(await cache.depth(of: "lake") == .disk)
    }

    @Test func whatMayNotBeStoredIsNot() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let secret = ValueFetcher<String>(key: "lake", fetch: { _ in FetchResult(bytes: [0x61], levels: .memory) })
        try await cache.prefetch(from: secret)
        #expect(try await cache.info(forKey: "lake") == nil)
    }

    /// Requests of all levels, formats, depths and priorities share one load.
    @Test func prefetchesAndLoadsShareOneFetch() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        let gate = Gate(), started = Gate(), runs = Counter(), priorities = Recorder<RequestPriority>()
        let fetcher = ValueFetcher<String>(key: "lake") { context in
            runs.add(1)
            started.open()
            await gate.wait()
            priorities.add(context.priority)
            return FetchResult(bytes: Array("water".utf8))
        }
        async let disk: Void = cache.prefetch(from: fetcher, to: .disk, priority: .veryLow)
        await started.wait()
        async let memory: Void = cache.prefetch(from: fetcher, to: .memory)
        async let loud = cache.value(from: fetcher, format: "loud", priority: .high)
        async let fresh = cache.value(from: fetcher, levels: .writeOnly)
        async let passing = cache.value(from: fetcher, levels: .none)
        while cache.sourceWaiters(for: "lake") < 5 { await Task.yield() }
        gate.open()
        #expect(try await [loud, fresh, passing] == ["WATER", "water", "water"])
        try await disk
        try await memory
        #expect(runs.value == 1)
        #expect(priorities.all == [.high])
        #expect(cache["lake"] == "water")
        try await cache.flush()
        #expect(cache.disk()?.statistics.insertions == 1)
    }

    @Test func aDeeperRequestKeepsWhatAPrefetchBegan() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let gate = Gate(), started = Gate(), runs = Counter()
        let fetcher = ValueFetcher<String>(key: "lake") { _ in
            runs.add(1)
            started.open()
            await gate.wait()
            return FetchResult(bytes: Array("water".utf8))
        }
        let prefetch = Task { try await cache.prefetch(from: fetcher) }
        await started.wait()
        async let value = cache.value(from: fetcher)
        while cache.sourceWaiters(for: "lake") < 2 { await Task.yield() }
        prefetch.cancel()
        #expect(await code { try await prefetch.value } == -540)
        gate.open()
        #expect(try await value == "water")
        #expect(runs.value == 1)
        #expect(await cache.depth(of: "lake") == .memory)
    }
}
