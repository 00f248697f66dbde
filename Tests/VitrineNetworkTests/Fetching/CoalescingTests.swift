import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork

/// One request for a resource, whoever wants it how.
struct CoalescingTests {
    private static let decodes = Counter()

    private struct Picture: CacheableValue {
        let text: String
        init(_ text: String) { self.text = text }
        init(cacheBytes: [UInt8]) throws {
            text = try String(cacheBytes: cacheBytes)
            decodes.add(1)
        }
        func cacheBytes() -> [UInt8] { Array(text.utf8) }
        var cacheCost: Int { text.utf8.count }
    }

    @Test func aThousandWhoWantOneURLMakeOneRequest() async throws {
        let barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { _ in
            [.wait(barrier), .reply(200, ["Cache-Control: max-age=60"], body: Array("picture".utf8))]
        }
        defer { barrier.open() }
        let fixture = try FetchFixture<Picture>()
        let cache = fixture.cache
        let transforms = Counter()
        for name in ["small", "large"] {
            cache.register(
                CacheFormat(FormatName(name)) { value in
                    transforms.add(1)
                    return Picture(name + value.text)
                })
        }
        let url = server.url("/a"), key = fixture.fetcher(url).key
        let formats: [FormatName] = [.original, "small", "large"]
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<1000 {
                group.addTask {
                    let priority = RequestPriority.allCases[number % 5]
                    let levels: CacheLevels = number % 7 == 0 ? .writeOnly : .all
                    let fetcher = NetworkFetcher<Picture>(
                        request: patient(url), options: fixture.options)
                    return try await cache.value(
                        from: fetcher, format: formats[number % 3], levels: levels, priority: priority
                    ).text
                }
            }
            // Everybody waits, in three formats with two sets of levels, and these for the source.
            func waiters() -> Int {
                formats.reduce(0) { sum, format in
                    sum + cache.waiters(for: key, format: format, levels: .all)
                        + cache.waiters(for: key, format: format, levels: .writeOnly)
                }
            }
            while waiters() < 1000 || cache.sourceWaiters(for: key) < 6 { await Task.yield() }
            barrier.open()
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(texts == ["picture", "smallpicture", "largepicture"])
        #expect(server.requests.count == 1)
        #expect(server.connectionCount == 1)
        #expect(Self.decodes.value == 1)
        // Each size once for each set of levels.
        #expect(transforms.value <= 4)
    }

    @Test func prefetchesAndRequestsShareOneRequest() async throws {
        let barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { _ in [.wait(barrier), .reply(200, [], body: Array("text".utf8))] }
        defer { barrier.open() }
        let fixture = try FetchFixture<String>()
        let cache = fixture.cache, fetcher = fixture.fetcher(server.url("/a"))
        async let disk: Void = cache.prefetch(from: fetcher)
        while cache.sourceWaiters(for: fetcher.key) < 1 { await Task.yield() }
        async let urgent = cache.value(from: fetcher, priority: .high)
        async let value = cache.value(from: fetcher, levels: .none)
        while cache.sourceWaiters(for: fetcher.key) < 3 { await Task.yield() }
        barrier.open()
        #expect(try await [value, urgent] == ["text", "text"])
        try await disk
        #expect(server.requests.count == 1)
    }

    @Test func theLastWhoLeavesEndsTheRequest() async throws {
        let server = try LoopbackServer { _ in [.hang] }
        let fixture = try FetchFixture<String>()
        let cache = fixture.cache, fetcher = fixture.fetcher(server.url("/a"))
        let first = Task { try await cache.value(from: fetcher) }, second = Task { try await cache.value(from: fetcher) }
        while cache.waiters(for: fetcher.key) < 2 || server.requests.isEmpty { await Task.yield() }
        first.cancel()
        #expect(cache.sourceWaiters(for: fetcher.key) == 1)
        second.cancel()
        // The connection is closed, as nobody wants what comes.
        await server.waitUntilUnused()
        #expect(await cacheCode { _ = try await second.value } == -540)
    }
}
