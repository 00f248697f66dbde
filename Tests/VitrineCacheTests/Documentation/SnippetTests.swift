import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore

/// Every snippet of the documentation, compiled and run.
struct SnippetTests {
    @Test func overviewOfTheCatalogue() async throws {
        let directory = try TemporaryDirectory()
        let weather = Weather()

        let cache = ValueCache<String>(name: "reports", configuration: CacheConfiguration(root: directory.path))
        let report = try await cache.value(forKey: "bremen", timeToLive: .seconds(600)) {
            try await weather.report("Bremen")
        }
        let now = cache["bremen"]  // memory only, at once
        #expect(report == "Bremen: rain" && now == report)

        let short = CacheFormat<String>("short", diskCapacity: .megabytes(50)) { String($0.prefix(3)) }
        cache.register(short)
        let start = try await cache.value(from: WeatherFetcher(city: "bremen"), format: "short")
        #expect(start == "Bre")

        let audit = try await cache.audit([.olderThan(.seconds(30 * 86_400)), .shrinking(to: .gigabytes(1))])
        #expect(audit.removed == 0)

        let list = RetainSet(of: cache)
        list.preserve("bremen")
        try await list.commit()
        #expect(await cache.contains("bremen"))
    }

    @Test func readme() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("Bremen: rain", to: "notes.txt")
        let cache = ValueCache<String>(name: "notes", configuration: CacheConfiguration(root: directory.path))
        let text = try await cache.value(fromFile: directory.file("notes.txt"))
        let again = cache[CacheKey(directory.file("notes.txt"))]
        try await cache.audit(.notAccessed(for: .seconds(30 * 86_400)))
        #expect(text == again)
    }
}

private struct Weather: Sendable {
    func report(_ city: String) async throws -> String { "\(city): rain" }
}

private struct WeatherFetcher: Fetcher {
    let city: String
    var key: CacheKey { CacheKey(city) }
    func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
        FetchResult(value: "\(city): wind", timeToLive: .seconds(600))
    }
}
