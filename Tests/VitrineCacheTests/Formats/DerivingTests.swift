import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct DerivingTests {
    /// A cache with three formats that cut text to a length, and a source that counts.
    private struct Setting {
        let fixture: CacheFixture<String>
        let loads = Counter()
        let cuts = Recorder<String>()
        var cache: ValueCache<String> { fixture.cache }

        init(_ change: (inout CacheConfiguration) -> Void = { _ in }) throws {
            fixture = try CacheFixture(change)
            for (name, length) in [("large", 8), ("medium", 4), ("small", 2)] {
                var format = CacheFormat<String>(FormatName(name)) { [cuts] value in
                    cuts.add("\(name) of \(value.count)")
                    return String(value.prefix(length))
                }
                format.derivation = Derivation(family: "cut", magnitude: length)
                cache.register(format)
            }
        }

        var fetcher: ValueFetcher<String> {
            ValueFetcher(key: "lake") { [loads] in
                loads.add(1)
                return "0123456789"
            }
        }
    }

    @Test func smallerFormatsComeFromTheSmallestLargerOne() async throws {
        for clearsMemory in [false, true] {
            let setting = try Setting()
            let cache = setting.cache
            #expect(try await cache.value(from: setting.fetcher, format: "large") == "01234567")
            if clearsMemory { cache.clearMemory() }
            #expect(try await cache.value(from: setting.fetcher, format: "medium") == "0123")
            if clearsMemory { cache.clearMemory() }
            #expect(try await cache.value(from: setting.fetcher, format: "small") == "01")
            #expect(setting.cuts.all == ["large of 10", "medium of 8", "small of 4"])
            #expect(setting.loads.value == 1)
            cache.clearMemory()
            #expect(try await cache.value(forKey: "lake", format: "small") == "01")
        }
    }

    @Test func largerFormatsComeFromTheStoredOriginal() async throws {
        let setting = try Setting()
        let cache = setting.cache
        #expect(try await cache.value(from: setting.fetcher, format: "small") == "01")
        // Kept on disk alone: nobody asked for it.
        #expect(cache["lake"] == nil)
        #expect(await cache.depth(of: "lake") == .disk)
        #expect(try await cache.value(from: setting.fetcher, format: "large") == "01234567")
        #expect(setting.cuts.all == ["small of 10", "large of 10"])
        #expect(setting.loads.value == 1)
        // Without the original and anything large enough the source is asked.
        await cache.remove("lake")
        await cache.remove("lake", format: "large")
        #expect(try await cache.value(from: setting.fetcher, format: "medium") == "0123")
        #expect(setting.loads.value == 2)
    }

    @Test func originalsAreNotKeptIfNotWished() async throws {
        let setting = try Setting { $0.storesOriginals = false }
        _ = try await setting.cache.value(from: setting.fetcher, format: "small")
        #expect(await setting.cache.depth(of: "lake") == .source)
        _ = try await setting.cache.value(from: setting.fetcher, format: "large")
        #expect(setting.loads.value == 2)
    }

    @Test func formatsThatAskAtOnceShareOneFetch() async throws {
        let setting = try Setting()
        let cache = setting.cache
        let gate = Gate(), started = Gate()
        let fetcher = ValueFetcher<String>(key: "lake") { [loads = setting.loads] in
            loads.add(1)
            started.open()
            await gate.wait()
            return "0123456789"
        }
        async let small = cache.value(from: fetcher, format: "small")
        async let large = cache.value(from: fetcher, format: "large")
        async let original = cache.value(from: fetcher)
        await started.wait()
        while cache.sourceWaiters(for: "lake") < 3 { await Task.yield() }
        gate.open()
        #expect(try await [small, large, original] == ["01", "01234567", "0123456789"])
        #expect(setting.loads.value == 1)
        #expect(try await cache.bytes(forKey: "lake") == Array("0123456789".utf8))
    }

    @Test func bytesAreDerivedWithoutDecodingThemFirst() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let seen = Recorder<[UInt8]>()
        var format = CacheFormat<String>("head")
        format.derive = { bytes in
            seen.add(bytes)
            return try String(cacheBytes: Array(bytes.prefix(2)))
        }
        cache.register(format)
        // No text as a whole: only a format that takes the bytes can use it.
        let bytes: [UInt8] = [0x61, 0x62, 0xFF]
        let fetcher = ValueFetcher<String>(key: "lake", fetch: { _ in FetchResult(bytes: bytes) })
        #expect(try await cache.value(from: fetcher, format: "head") == "ab")
        #expect(try await cache.bytes(forKey: "lake") == bytes)
        await cache.remove("lake", format: "head")
        #expect(try await cache.value(forKey: "lake", format: "head") { throw SourceFailure() } == "ab")
        #expect(seen.all == [bytes, bytes])
        // A value has no bytes of its own yet: it is encoded for the format.
        #expect(try await cache.set("xyz", forKey: "river", format: "head") == "xy")
    }

    @Test func storedOriginalsThatAreNoValueAreReplaced() async throws {
        let setting = try Setting()
        let cache = setting.cache
        try await cache.disk()?.set([0xFF], forKey: "lake")
        #expect(try await cache.value(from: setting.fetcher, format: "small") == "01")
        #expect(setting.loads.value == 1)
        #expect(try await cache.bytes(forKey: "lake") == Array("0123456789".utf8))
    }

    @Test func bytesThatAreNoValueAreNotStored() async throws {
        let setting = try Setting()
        let cache = setting.cache
        let fetcher = ValueFetcher<String>(key: "lake", fetch: { _ in FetchResult(bytes: [0xFF]) })
        for format in cache.formatNames {
            #expect(await code { _ = try await cache.value(from: fetcher, format: format) } == -500)
            #expect(await cache.depth(of: "lake", format: format) == .source)
        }
        #expect(await cache.depth(of: "lake") == .source)
    }

    @Test func derivedEntriesExpireWithTheirOriginal() async throws {
        let setting = try Setting()
        let cache = setting.cache
        let fetcher = ValueFetcher<String>(
            key: "lake", fetch: { _ in FetchResult(bytes: Array("0123456789".utf8), timeToLive: .seconds(60)) })
        _ = try await cache.value(from: fetcher, format: "large")
        cache.clearMemory()
        setting.fixture.clock.advance(by: .seconds(40))
        _ = try await cache.value(from: fetcher, format: "small")
        setting.fixture.clock.advance(by: .seconds(21))
        #expect(cache["lake", "small"] == nil)
        #expect(try await cache.value(forKey: "lake", format: "small") == nil)
    }
}
