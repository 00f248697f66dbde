import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct FormatTests {
    @Test func formatsHaveTheirOwnTransformEncoderAndPlaces() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        var format = CacheFormat<String>("loud", diskCapacity: .kilobytes(100), memoryCapacity: 1000) { $0.uppercased() }
        format.encode = { Array("<\($0)>".utf8) }
        format.decode = { try String(cacheBytes: Array($0.dropFirst().dropLast())) }
        #expect(cache.register(format))
        #expect(try await cache.value(forKey: "lake", format: "loud") { "water" } == "WATER")
        #expect(try await cache.bytes(forKey: "lake", format: "loud") == Array("<WATER>".utf8))
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake", format: "loud") == "WATER")
        #expect(cache.disk(for: "loud")?.capacity == .kilobytes(100))
        #expect(cache.disk()?.capacity == CacheConfiguration().diskCapacity)
        #expect(fixture.directory.names == ["test"])
    }

    @Test func formatCapacitiesHold() async throws {
        let fixture = try CacheFixture<String> { $0.diskCapacity = .megabytes(1) }
        let cache = fixture.cache
        cache.register(CacheFormat("tiny", diskCapacity: 5000, memoryCapacity: 300))
        cache.register(CacheFormat("none", diskCapacity: 0))
        for number in 0..<50 {
            try await cache.set(String(repeating: "x", count: 100), forKey: CacheKey("\(number)"), format: "tiny")
        }
        #expect(try await cache.size(of: "tiny") <= 5000)
        #expect(try await cache.size(of: "tiny") > 2000)
        #expect(cache.memorySize <= 300)
        try await cache.set("x", forKey: "k", format: "none")
        #expect(cache["k", "none"] == "x")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "k", format: "none") == nil)
    }

    @Test func theOriginalLeavesValuesAsTheyAre() async throws {
        let fixture = try CacheFixture<String>()
        #expect(fixture.cache.formatNames == ["original"])
        #expect(FormatName.original.description == "original")
        #expect(CacheFormat<String>.original.isIdentity)
        #expect(!CacheFormat<String>("loud") { $0.uppercased() }.isIdentity)
        #expect(try await fixture.cache.set("water", forKey: "lake") == "water")
    }

    @Test func transformsRunOnceOffTheCallersThread() async throws {
        let executor = BlockingExecutor(threads: 1, name: "transforms")
        let fixture = try CacheFixture<String> { $0.executor = executor }
        let cache = fixture.cache
        let runs = Counter(), gate = Gate(), started = Gate()
        cache.register(
            CacheFormat("loud") { value in
                runs.add(1)
                started.open()
                await gate.wait()
                return value + "!"
            })
        async let first = cache.value(forKey: "lake", format: "loud") { "water" }
        await started.wait()
        async let second = cache.value(forKey: "lake", format: "loud") { "water" }
        while cache.waiters(for: "lake", format: "loud") < 2 { await Task.yield() }
        gate.open()
        #expect(try await [first, second] == ["water!", "water!"])
        #expect(runs.value == 1)
        // Stored as transformed, and not transformed again.
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake", format: "loud") { "other" } == "water!")
        #expect(runs.value == 1)
    }

    @Test func unregisteredFormatFailsWithinTheCall() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache, told = Recorder<Int>()
        cache.set("x", forKey: "lake", format: "unknown", on: .immediate) {
            if case .failure(let error) = $0 { told.add(error.code) }
        }
        #expect(told.all == [-101])
        #expect(await code { _ = try await cache.value(forKey: "lake", format: "unknown") } == -101)
        let fetcher = ValueFetcher(key: "lake") { "x" }
        #expect(await code { _ = try await cache.value(from: fetcher, format: "unknown") } == -101)
        #expect(await code { try await cache.set("x", forKey: "lake", format: "unknown") } == -101)
    }

    @Test func formatsAreRegisteredAndFoundAtRunTime() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        #expect(cache.format("loud") == nil || cache.format("loud")?.name == nil)
        #expect(cache.register(CacheFormat("loud") { $0.uppercased() }))
        #expect(cache.format("loud")?.name == "loud")
        // The first one stays.
        #expect(!cache.register(CacheFormat("loud") { $0 }))
        #expect(!cache.register(CacheFormat(.original) { $0.uppercased() }))
        #expect(try await cache.set("water", forKey: "lake", format: "loud") == "WATER")
        try await cache.flush()
        cache.unregister("loud")
        #expect(cache["lake", "loud"] == nil)
        #expect(await code { _ = try await cache.value(forKey: "lake", format: "loud") } == -101)
        #expect(cache.register(CacheFormat("loud")))
        #expect(try await cache.value(forKey: "lake", format: "loud") == "WATER")
        cache.unregister(.original)
        #expect(cache.formatNames == ["original", "loud"])
    }

    @Test func failedTransformsStoreNothingInTheFormat() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("broken") { _ in throw SourceFailure() })
        #expect(await code { _ = try await cache.value(forKey: "lake", format: "broken") { "water" } } == -531)
        #expect(await code { try await cache.set("water", forKey: "lake", format: "broken") } == -531)
        #expect(await cache.depth(of: "lake", format: "broken") == .source)
    }

    @Test func familiesDeriveFromTwiceTheMagnitude() {
        let small = Derivation(family: "fit", magnitude: 100)
        #expect(small.canDerive(from: Derivation(family: "fit", magnitude: 200)))
        #expect(!small.canDerive(from: Derivation(family: "fit", magnitude: 199)))
        #expect(!small.canDerive(from: Derivation(family: "crop", magnitude: 400)))
        #expect(!Derivation(family: "fit", magnitude: .max).canDerive(from: small))
        #expect(!Derivation(family: "fit", magnitude: 0).canDerive(from: small))
    }
}
