import Dispatch
import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct FetcherTests {
    @Test func ownFetchersBringKeyAndValue() async throws {
        struct Report: Fetcher {
            let city: String
            let runs: Counter
            var key: CacheKey { CacheKey("report", city) }
            func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
                runs.add(1)
                return FetchResult(value: "\(city): rain", timeToLive: .seconds(60))
            }
        }
        let fixture = try CacheFixture<String>()
        let report = Report(city: "Bremen", runs: Counter())
        #expect(try await fixture.cache.value(from: report) == "Bremen: rain")
        #expect(try await fixture.cache.value(from: report) == "Bremen: rain")
        #expect(report.runs.value == 1)
        #expect(fixture.cache[CacheKey("report", "Bremen")] == "Bremen: rain")
        // Fresh as long as the fetcher said.
        fixture.clock.advance(by: .seconds(61))
        #expect(try await fixture.cache.value(from: report) == "Bremen: rain")
        #expect(report.runs.value == 2)
    }

    @Test func filesAreReadUnderTheirPath() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try fixture.directory.write("water", to: "lake.txt")
        let path = fixture.directory.file("lake.txt")
        #expect(FileFetcher<String>(path: path).key == CacheKey(path))
        #expect(try await cache.value(fromFile: path) == "water")
        #expect(cache[CacheKey(path)] == "water")
        try fixture.directory.write("ice", to: "lake.txt")
        #expect(try await cache.value(from: FileFetcher(path: path)) == "water")
        #expect(try await cache.refresh(from: FileFetcher(path: path)) == "ice")
    }

    @Test func missingFilesAndInvalidOnesAreToldApart() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let missing = fixture.directory.file("nothing")
        do throws(CacheError) {
            _ = try await cache.value(fromFile: missing)
            Issue.record("did not throw")
        } catch {
            guard case .file(.notFound(missing)) = error else {
                Issue.record("\(error)")
                return
            }
        }
        let invalid = fixture.directory.file("invalid")
        try AtomicFile.write([0xFF, 0xFE], to: invalid)
        #expect(await code { _ = try await cache.value(fromFile: invalid) } == -500)
        #expect(await cache.depth(of: CacheKey(invalid)) == .source)
        let large = FileFetcher<String>(path: invalid, limit: 1)
        #expect(await code { _ = try await cache.value(from: large) } == -520)
    }

    @Test func filesAreNotStoredForOtherFormats() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        try fixture.directory.write("water", to: "lake.txt")
        let path = fixture.directory.file("lake.txt")
        #expect(try await cache.value(fromFile: path, format: "loud") == "WATER")
        #expect(await cache.depth(of: CacheKey(path)) == .source)
    }

    @Test func cancelledFetchersAreSilent() async throws {
        let fixture = try CacheFixture<String>()
        try fixture.directory.write("water", to: "lake.txt")
        let fetcher = FileFetcher<String>(path: fixture.directory.file("lake.txt"))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await code { _ = try await fixture.cache.value(from: fetcher) }
        }
        #expect(await task.value == -540)
    }

    @Test func aCancelledReadOfAFileIsNotStored() async throws {
        let executor = BlockingExecutor(threads: 1, name: "files")
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try fixture.directory.write("water", to: "lake.txt")
        let path = fixture.directory.file("lake.txt")
        // The only thread that reads files is taken.
        let taken = Gate(), held = DispatchSemaphore(value: 0)
        executor.submit {
            taken.open()
            held.wait()
        }
        await taken.wait()
        let load = Task {
            await code { _ = try await cache.value(from: FileFetcher(path: path, executor: executor)) }
        }
        while cache.runningLoads == 0 { await Task.yield() }
        load.cancel()
        held.signal()
        #expect(await load.value == -540)
        while cache.runningLoads > 0 { await Task.yield() }
        await executor.run {}
        #expect(await cache.depth(of: CacheKey(path)) == .source)
        // The next one reads.
        #expect(try await cache.value(from: FileFetcher(path: path, executor: executor)) == "water")
    }

    @Test func fetchersDecideWhereTheirValuesStay() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let nowhere = ValueFetcher<String>(key: "a", fetch: { _ in FetchResult(value: "secret", levels: .none) })
        #expect(try await cache.value(from: nowhere) == "secret")
        #expect(await cache.depth(of: "a") == .source)
        let memory = ValueFetcher<String>(key: "b", fetch: { _ in FetchResult(value: "short", levels: .memory) })
        #expect(try await cache.value(from: memory) == "short")
        #expect(cache["b"] == "short")
        #expect(try await cache.info(forKey: "b") == nil)
    }

    @Test func originalBytesStayAsTheyCame() async throws {
        let fixture = try CacheFixture<JSONLike>()
        let bytes = Array("  spaces  ".utf8)
        let fetcher = ValueFetcher<JSONLike>(key: "k", fetch: { _ in FetchResult(bytes: bytes, validator: [7]) })
        #expect(try await fixture.cache.value(from: fetcher).text == "spaces")
        #expect(try await fixture.cache.bytes(forKey: "k") == bytes)
        #expect(try await fixture.cache.info(forKey: "k")?.validator == [7])
    }

    @Test func originalBytesComeWithTheirTagAndTheirEnd() async throws {
        let fixture = try CacheFixture<JSONLike>()
        let runs = Counter()
        // No value of the cache's type: the bytes are not decoded.
        let fetcher = ValueFetcher<JSONLike>(
            key: "k",
            fetch: { _ in
                runs.add(1)
                return FetchResult(bytes: [0xFF, 1], timeToLive: .seconds(60), validator: [7])
            })
        let now = fixture.cache.configuration.clock.now
        for _ in 0..<2 {
            let original = try await fixture.cache.originalBytes(from: fetcher, priority: .high)
            #expect(original.bytes == [0xFF, 1])
            #expect(original.validator == [7])
            #expect(original.expires == now + .seconds(60))
            #expect(!original.isStale)
        }
        #expect(runs.value == 1)
    }
}
