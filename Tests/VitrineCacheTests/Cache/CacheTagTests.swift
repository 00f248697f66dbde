import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// Tags of values in both levels.
struct CacheTagTests {
    /// Fetches a text with tags when its gate opens.
    private final class HeldFetcher: Fetcher {
        typealias Value = String
        let key: CacheKey
        let tags: [String]
        let started = Gate(), gate = Gate(), fetches = Counter()

        init(_ key: CacheKey = "lake", tags: [String]) {
            self.key = key
            self.tags = tags
        }

        func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
            let number = fetches.add(1)
            started.open()
            if number == 1 { await gate.wait() }
            return FetchResult(value: "text \(number)", tags: tags)
        }
    }

    @Test func removesTheEntriesOfATagFromAllLevelsAndFormats() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("upper") { $0.uppercased() })
        var apart = CacheFormat<String>("apart") { $0 + "!" }
        apart.memoryCapacity = .megabytes(1)
        cache.register(apart)
        for key in ["a", "b"] as [CacheKey] {
            for format in ["original", "upper", "apart"] as [FormatName] {
                try await cache.set("text", forKey: key, format: format, tags: ["key:\(key)", "all"])
            }
        }
        try await cache.set("plain", forKey: "plain")
        #expect(try await cache.removeAll(tag: "key:a") == 3)
        for format in ["original", "upper", "apart"] as [FormatName] {
            #expect(await cache.depth(of: "a", format: format) == .source)
            #expect(await cache.containsInBoth("b", format: format))
        }
        cache.unregister("upper")
        #expect(try await cache.removeAll(tag: "all") == 3)
        #expect(try await cache.size == ByteCount(5 + "plain".utf8.count + DiskCache.entryOverhead))
        #expect(cache["plain"] == "plain" && cache["b"] == nil)
    }

    @Test func removesFromTheGivenLevelsOnly() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("text", forKey: "a", tags: ["t"])
        #expect(try await cache.removeAll(tag: "t", levels: .memory) == 1)
        #expect(await cache.depth(of: "a") == .disk)
        // Read from the disk it has its tags again.
        #expect(try await cache.value(forKey: "a") == "text")
        #expect(try await cache.removeAll(tag: "t", levels: .disk) == 1)
        #expect(await cache.depth(of: "a") == .memory)
        #expect(try await cache.removeAll(tag: "t") == 0)
        #expect(await cache.depth(of: "a") == .source)
    }

    @Test func everyWayOfStoringTakesTags() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("text", forKey: "set", tags: ["t"])
        try await cache.set(bytes: Array("text".utf8), forKey: "bytes", tags: ["t"])
        _ = try await cache.value(forKey: "load", tags: ["t"]) { "text" }
        _ = try await cache.value(
            from: ValueFetcher<String>(
                key: "fetch", fetch: { _ in FetchResult(bytes: Array("text".utf8), tags: ["t"]) }))
        try await cache.prefetch(
            from: ValueFetcher<String>(key: "prefetch", fetch: { _ in FetchResult(value: "text", tags: ["t"]) }))
        try await cache.flush()
        for key in ["set", "bytes", "load", "fetch", "prefetch"] as [CacheKey] { #expect(await cache.contains(key)) }
        #expect(try await cache.removeAll(tag: "t") == 5)
        for key in ["set", "bytes", "load", "fetch", "prefetch"] as [CacheKey] {
            #expect(await cache.depth(of: key) == .source)
        }
    }

    @Test func settingWithoutTagsRemovesThem() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("one", forKey: "a", tags: ["t"])
        cache["a"] = "two"
        #expect(try await cache.removeAll(tag: "t", levels: .memory) == 0)
        #expect(cache["a"] == "two")
        try await cache.set("three", forKey: "a")
        #expect(try await cache.removeAll(tag: "t") == 0)
        #expect(await cache.containsInBoth("a"))
    }

    @Test func derivedValuesHaveTheTagsOfTheirOriginal() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("upper") { $0.uppercased() })
        cache.register(CacheFormat("double") { $0 + $0 })
        try await cache.set("text", forKey: "a", tags: ["t"])
        // From memory, then from disk.
        #expect(try await cache.value(forKey: "a", format: "upper") { "no" } == "TEXT")
        try await cache.flush()
        cache.clearMemory()
        #expect(try await cache.value(forKey: "a", format: "double") { "no" } == "texttext")
        #expect(try await cache.removeAll(tag: "t") == 3)
        for format in ["original", "upper", "double"] as [FormatName] {
            #expect(await cache.depth(of: "a", format: format) == .source)
        }
    }

    @Test func unchangedValuesKeepTheirTags() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        struct Confirmed: Fetcher {
            typealias Value = String
            var key: CacheKey { "a" }
            var revalidates: Bool { true }
            func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
                if context.storedValidator == [1] { return .unchanged(timeToLive: .seconds(60)) }
                return FetchResult(value: "text", timeToLive: .seconds(60), validator: [1], tags: ["t"])
            }
        }
        for _ in 0..<3 {
            #expect(try await cache.value(from: Confirmed()) == "text")
            try await cache.flush()
            fixture.clock.advance(by: .seconds(100))
        }
        #expect(try await cache.value(from: Confirmed()) == "text")
        #expect(await cache.containsInBoth("a"))
        #expect(try await cache.removeAll(tag: "t") == 1)
        #expect(await cache.depth(of: "a") == .source)
    }

    /// Without a validator equal bytes count as unchanged; their tags may have changed all the same.
    @Test func refreshReplacesTags() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache, count = Counter()
        struct Fixed: Fetcher {
            typealias Value = String
            let count: Counter
            var key: CacheKey { "a" }
            var revalidates: Bool { true }
            func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
                FetchResult(bytes: Array("text".utf8), tags: ["t\(count.add(1))"])
            }
        }
        _ = try await cache.value(from: Fixed(count: count))
        try await cache.flush()
        try await cache.refresh(from: Fixed(count: count))
        #expect(try await cache.removeAll(tag: "t1") == 0)
        #expect(await cache.containsInBoth("a"))
        #expect(try await cache.removeAll(tag: "t2") == 1)
        #expect(await cache.depth(of: "a") == .source)
    }

    @Test func invalidTagsFailTheCall() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let many = (0..<17).map { "t\($0)" }
        #expect(await code { _ = try await cache.set("text", forKey: "a", tags: many) } == -513)
        #expect(await code { _ = try await cache.value(forKey: "a", tags: many) { "text" } } == -513)
        #expect(await code { _ = try await cache.removeAll(tag: String(repeating: "x", count: 257)) } == -513)
        #expect(await cache.depth(of: "a") == .source)
    }

    // MARK: Work under way

    @Test func loadThatRunsDuringAPurgeStoresNothing() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("upper") { $0.uppercased() })
        for format in ["original", "upper"] as [FormatName] {
            let fetcher = HeldFetcher(tags: ["t", "u"])
            async let loaded = cache.value(from: fetcher, format: format)
            await fetcher.started.wait()
            #expect(try await cache.removeAll(tag: "t") == 0)
            // Who asks now does not join the load that began before.
            let later = try await cache.value(from: fetcher, format: format, levels: .readOnly)
            #expect(later.lowercased() == "text 2")
            fetcher.gate.open()
            #expect(try await loaded.lowercased() == "text 1")
            try await cache.flush()
            #expect(await cache.depth(of: "lake") == .source)
            #expect(await cache.depth(of: "lake", format: "upper") == .source)
            // Later loads are stored.
            #expect(try await cache.value(from: fetcher, format: format).lowercased() == "text 3")
            #expect(await cache.containsInBoth("lake", format: format))
            #expect(try await cache.removeAll(tag: "u") > 0)
        }
    }

    @Test func purgesOfOtherTagsLeaveLoadsAlone() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let fetcher = HeldFetcher(tags: ["t"])
        async let loaded = cache.value(from: fetcher)
        await fetcher.started.wait()
        try await cache.removeAll(tag: "other")
        fetcher.gate.open()
        #expect(try await loaded == "text 1")
        try await cache.flush()
        #expect(await cache.containsInBoth("lake"))
        #expect(fetcher.fetches.value == 1)
    }

    @Test func loadOfAnotherProcessThatRunsDuringAPurgeStoresNothing() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache, other = fixture.another()
        for round in 0..<3 {
            // Known to the other one or not.
            if round == 1 { try await cache.removeAll(tag: "t") }
            if round == 2 { try await other.set("x", forKey: "x", tags: ["t"]) }
            let fetcher = HeldFetcher(tags: ["t"])
            async let loaded = other.value(from: fetcher)
            await fetcher.started.wait()
            try await cache.removeAll(tag: "t")
            if round == 2 { try await cache.removeAll() }
            fetcher.gate.open()
            #expect(try await loaded == "text 1")
            try await other.flush()
            #expect(await other.depth(of: "lake") == .source)
            #expect(await cache.depth(of: "lake") == .source)
            #expect(try await other.value(from: fetcher) == "text 2")
            try await other.flush()
            #expect(await cache.depth(of: "lake") == .disk)
            #expect(try await other.removeAll(tag: "t") == 1)
        }
    }

    @Test func valueThatIsSetDuringAPurgeIsRemoved() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache, other = fixture.another()
        for purging in [cache, other] {
            let started = Gate(), gate = Gate()
            cache.unregister("slow")
            cache.register(CacheFormat("slow") { text in
                started.open()
                await gate.wait()
                return text
            })
            try await cache.set("old", forKey: "a", tags: ["t"])
            async let stored = cache.set("new", forKey: "a", format: "slow", tags: ["t"])
            await started.wait()
            try await purging.removeAll(tag: "t")
            gate.open()
            #expect(try await stored == "new")
            try await cache.flush()
            #expect(await cache.depth(of: "a", format: "slow") == .source)
            #expect(await other.depth(of: "a", format: "original") == .source)
        }
    }

    /// The memory level of a process does not learn of purges by others, but what it has does not return to the disk.
    @Test func memoryOfAnotherProcessBringsNothingBack() async throws {
        let fixture = try CacheFixture<String> { $0.memoryHits = .restoreMissing }
        let cache = fixture.cache, other = fixture.another()
        other.register(CacheFormat("upper") { $0.uppercased() })
        try await other.set("text", forKey: "a", tags: ["t"])
        try await other.set("rest", forKey: "b")
        try await other.flush()
        try await cache.removeAll(tag: "t")
        await cache.remove("b")
        try await cache.flush()
        #expect(other["a"] == "text" && other["b"] == "rest")
        #expect(try await other.value(forKey: "a", format: "upper") { "no" } == "TEXT")
        try await other.flush()
        // The one that was removed by its key is restored.
        while await cache.depth(of: "b") == .source { await Task.yield() }
        try await other.flush()
        #expect(await cache.depth(of: "a") == .source)
        let another = fixture.another()
        another.register(CacheFormat("upper") { $0.uppercased() })
        #expect(await another.depth(of: "a", format: "upper") == .source)
    }

    // MARK: Memory

    @Test func valuesAliveElsewhereDoNotReturn() async throws {
        let fixture = try CacheFixture<Portrayed> { $0.memoryCapacity = 1000 }
        let cache = fixture.cache
        var held: [Portrayed] = []
        for number in 0..<30 {
            let value = Portrayed("\(number)")
            held.append(value)
            try await cache.set(value, forKey: CacheKey("k\(number)"), tags: [number % 2 == 0 ? "even" : "odd"])
        }
        // Most were evicted, and are found all the same.
        #expect(cache["k0"] != nil && cache["k1"] != nil)
        #expect(try await cache.removeAll(tag: "even") == 15)
        for number in 0..<30 { #expect((cache[CacheKey("k\(number)")] == nil) == (number % 2 == 0)) }
        withExtendedLifetime(held) {}
    }

    @Test func memoryForgetsTheTagsOfWhatLeaves() throws {
        let cache = MemoryCache<CacheKey, String>(.init(capacity: 1000, trimsOn: nil), cost: { _ in 100 })
        let tags = try EntryTags(["t"], began: nil), tag = try EntryTags.hash(of: "t")
        func set(_ number: Int, _ tags: EntryTags, cost: Int = 100) {
            let key = CacheKey("\(number)")
            cache.finish(cache.insert(cache.incoming("x", forKey: key, cost: cost, expires: nil, tags: tags)))
        }
        for number in 0..<1000 { set(number, tags) }
        #expect(cache.count == 10 && cache.taggedCount == 10)
        for number in 1000..<1004 { set(number, .none) }
        #expect(cache.count == 10 && cache.taggedCount == 6)
        let tagged = try #require(cache.keys.first { cache.peekTagged($0)?.tags.isEmpty == false })
        cache.remove(tagged)
        #expect(cache.taggedCount == 5)
        cache.trim(to: 800)
        #expect(cache.count == 8)
        let left = cache.taggedCount
        #expect(cache.take(tag: tag).count == left)
        #expect(cache.count == 8 - left && cache.taggedCount == 0)
        for number in 0..<5 { set(number, tags) }
        // Too large to be kept.
        set(0, tags, cost: 2000)
        #expect(cache.taggedCount == 4)
        cache.removeAll()
        #expect(cache.taggedCount == 0)
    }

    @Test func memoryForgetsTheTagsOfValuesThatEndElsewhere() throws {
        let cache = MemoryCache<CacheKey, Portrayed>(
            .init(capacity: 1000, trimsOn: nil), weakReference: Portrayed.weakReference)
        let tags = try EntryTags(["t"], began: nil)
        var held: [Portrayed] = []
        for number in 0..<1000 {
            let value = Portrayed("\(number)")
            if number % 100 == 0 { held.append(value) }
            let key = CacheKey("\(number)")
            cache.finish(cache.insert(cache.incoming(value, forKey: key, cost: 100, expires: nil, tags: tags)))
        }
        // Dead ones are looked for when their number has doubled.
        #expect(cache.taggedCount < 200 && cache.taggedCount >= 19)
        #expect(cache.taggedCount == cache.registrationCount)
        cache.trim(to: 0)
        #expect(cache.taggedCount == cache.registrationCount)
        #expect(cache.peekTagged("100")?.tags.isEmpty == false)
        withExtendedLifetime(held) {}
    }
}
