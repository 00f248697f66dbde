import Foundation
import TestSupport
import Testing
@_spi(HTTPCacheEngine) import VitrineCache
import VitrineCore
import VitrineNetwork

/// What a response says about stored values is done: what is outdated, gone or forbidden does not come back.
struct ConsequenceTests {
    private func isStored(_ key: CacheKey, in fixture: FetchFixture<String>) async throws -> Bool {
        try await fixture.cache.flush()
        for format in fixture.cache.formatNames {
            if await fixture.cache.contains(key, format: format, at: .disk) { return true }
            if await fixture.cache.contains(key, format: format, at: .memory) { return true }
        }
        return false
    }

    /// A value in two formats that has expired.
    private func stale(
        _ pages: Pages, _ server: LoopbackServer, _ change: (inout CacheConfiguration) -> Void = { _ in }
    ) async throws -> (FetchFixture<String>, NetworkFetcher<String>) {
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=60"])
        let fixture = try FetchFixture<String>(change)
        fixture.cache.register(CacheFormat("loud") { $0.uppercased() })
        let fetcher = fixture.fetcher(server.url("/a"))
        #expect(try await fixture.cache.value(from: fetcher, format: "loud") == "ONE")
        #expect(try await fixture.cache.value(from: fetcher) == "one")
        #expect(try await isStored(fetcher.key, in: fixture))
        fixture.clock.advance(by: .seconds(61))
        return (fixture, fetcher)
    }

    @Test func aConfirmationWithNoStoreRemovesTheValue() async throws {
        let pages = Pages(), server = try pages.serve()
        let (fixture, fetcher) = try await stale(pages, server)
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: no-store"])
        #expect(try await fixture.cache.value(from: fetcher) == "one")
        #expect(try await isStored(fetcher.key, in: fixture) == false)
        // Each request goes to the server again.
        let before = server.requests.count
        #expect(try await fixture.cache.value(from: fetcher) == "one")
        #expect(try await fixture.another().value(from: fetcher) == "one")
        #expect(server.requests.count == before + 2)
        #expect(server.requests.last?.header("If-None-Match") == nil)
    }

    @Test func aNewResponseWithNoStoreRemovesTheValue() async throws {
        let pages = Pages(), server = try pages.serve()
        let (fixture, fetcher) = try await stale(pages, server)
        pages["/a"] = .init("two", tag: "\"2\"", ["Cache-Control: no-store"])
        #expect(try await fixture.cache.value(from: fetcher, format: "loud") == "TWO")
        #expect(try await isStored(fetcher.key, in: fixture) == false)
    }

    @Test(arguments: [(404, ""), (410, ""), (404, "Cache-Control: max-age=60"), (403, "Cache-Control: max-age=60")])
    func whatIsGoneDoesNotComeBackOffline(_ status: Int, _ field: String) async throws {
        let pages = Pages(), reserved = try ReservedPort()
        let server = try pages.serve(port: reserved.number)
        // Even where the cache itself may return expired values.
        let (fixture, fetcher) = try await stale(pages, server) { $0.servesStale = true }
        var page = Pages.Page("gone", field.isEmpty ? [] : [field])
        page.status = status
        pages["/a"] = page
        let error = await networkFailure { _ = try await fixture.cache.value(from: fetcher) }
        guard case .status(_, let head) = error, head.status == status else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(try await isStored(fetcher.key, in: fixture) == false)
        server.stop()
        await server.waitUntilUnused()
        #expect(await networkFailure { _ = try await fixture.cache.value(from: fetcher) } != nil)
        let another = try await fixture.another()
        another.register(CacheFormat("loud") { $0.uppercased() })
        #expect(await networkFailure { _ = try await another.value(from: fetcher, format: "loud") } != nil)
    }

    @Test(arguments: [500, 503, 429, 401])
    func failuresOfTheServerLeaveTheValue(_ status: Int) async throws {
        let pages = Pages(), server = try pages.serve()
        let (fixture, fetcher) = try await stale(pages, server)
        var page = Pages.Page("failed")
        page.status = status
        pages["/a"] = page
        _ = try? await fixture.cache.value(from: fetcher)
        try await fixture.cache.flush()
        #expect(await fixture.cache.storedSize(forKey: fetcher.key) != nil)
    }

    @Test func unsafeRequestsRemoveTheValuesThatTheyChange() async throws {
        let pages = Pages(), server = try pages.serve()
        let (fixture, fetcher) = try await stale(pages, server)
        pages["/b"] = .init("other", ["Cache-Control: max-age=6000"])
        pages["/c"] = .init("unchanged", ["Cache-Control: max-age=6000"])
        let other = fixture.fetcher(server.url("/b")), unchanged = fixture.fetcher(server.url("/c"))
        for fetcher in [other, unchanged] { _ = try await fixture.cache.value(from: fetcher) }
        pages["/a"] = .init("done", ["Location: /b"])
        var request = patient(server.url("/a"))
        request.method = "POST"
        request.body = [1]
        let change = NetworkFetcher<String>(request: request, options: fixture.options)
        #expect(try await fixture.cache.value(from: change) == "done")
        #expect(try await isStored(fetcher.key, in: fixture) == false)
        #expect(try await isStored(other.key, in: fixture) == false)
        #expect(try await isStored(unchanged.key, in: fixture))
    }

    @Test func fetchersOfOthersCanSayThatAValueIsGone() async throws {
        let fixture = try FetchFixture<String>()
        try await fixture.cache.set("old", forKey: "a")
        struct Gone: Error {}
        let fetcher = ValueFetcher<String>(key: "a") { _ in .gone(Gone()) }
        let error = await #expect(throws: CacheError.self) { try await fixture.cache.refresh(from: fetcher) }
        #expect(error?.underlying is Gone)
        #expect(try await fixture.cache.value(forKey: "a") == nil)
    }
}
