import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineNetwork

/// The forms with URLs.
struct CacheURLTests {
    @Test func valuesAndPrefetchesTakeURLs() async throws {
        let pages = Pages()
        for name in ["/a", "/b", "/c"] { pages[name] = .init(name, ["Cache-Control: max-age=60"]) }
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let cache = fixture.cache, options = fixture.options
        cache.register(CacheFormat("loud") { $0.uppercased() })
        #expect(try await cache.value(from: server.url("/a"), options: options) == "/a")
        #expect(try await cache.value(from: server.url("/b"), format: "loud", options: options) == "/B")
        try await cache.prefetch(from: fixture.fetcher(server.url("/c")))
        #expect(await cache.depth(of: fixture.fetcher(server.url("/c")).key) == .disk)
        try await cache.prefetch(from: fixture.fetcher(server.url("/c")), to: .memory)
        #expect(cache[fixture.fetcher(server.url("/c")).key] == "/c")
        pages["/c"] = .init("new")
        #expect(try await cache.refresh(from: fixture.fetcher(server.url("/c"))) == "new")
        var updates: [String] = []
        for try await value in cache.updates(from: fixture.fetcher(server.url("/c"))) { updates.append(value) }
        #expect(updates == ["new"])
        #expect(await cacheCode { _ = try await cache.value(from: server.url("/none"), options: options) } == -530)
    }

    @Test func listedURLsStay() async throws {
        let pages = Pages()
        for name in ["/a", "/b", "/c"] { pages[name] = .init(name, ["Cache-Control: max-age=60"]) }
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let cache = fixture.cache, options = fixture.options
        for name in ["/a", "/b"] { _ = try await cache.value(from: server.url(name), options: options) }
        _ = try await cache.value(from: server.url("/c"), id: "mine", options: options)
        let list = RetainSet(of: cache)
        list.preserve(server.url("/b"), options: options)
        list.preserve(server.url("/other"), id: "mine", options: options)
        #expect(try await list.commit(sparesMemory: false).removed == 1)
        cache.clearMemory()
        #expect(await cache.depth(of: fixture.fetcher(server.url("/a")).key) == .source)
        #expect(await cache.depth(of: fixture.fetcher(server.url("/b")).key) == .disk)
        #expect(await cache.depth(of: NetworkFetcher<String>(url: server.url("/c"), id: "mine", options: options).key) == .disk)
    }

    @Test func updatesSwapWhatHasChanged() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let url = server.url("/a")
        _ = try await fixture.value(url)
        fixture.clock.advance(by: .seconds(61))
        func updates() async throws -> [String] {
            try await fixture.cache.updates(from: fixture.fetcher(url)).reduce(into: []) { $0.append($1) }
        }
        #expect(try await updates() == ["one"])
        #expect(server.requests.count == 2)
        fixture.clock.advance(by: .seconds(61))
        pages["/a"] = .init("two", tag: "\"2\"")
        #expect(try await updates() == ["one", "two"])
    }

    @Test func progressIsToldToTheEnd() async throws {
        let pages = Pages()
        pages["/a"] = .init("0123456789", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let first = TransferProgress()
        _ = try await fixture.cache.value(from: server.url("/a"), options: fixture.options, progress: first)
        #expect(first.current.received == 10)
        #expect(first.current.isComplete)
        // From memory: nothing to transfer, and still an end.
        let second = TransferProgress(), third = TransferProgress()
        _ = try await fixture.cache.value(from: server.url("/a"), options: fixture.options, progress: second)
        #expect(second.current.isComplete)
        for await _ in second {}
        _ = try? await fixture.cache.value(from: server.url("/none"), options: fixture.options, progress: third)
        #expect(third.current.isFinished)
        #expect(!third.current.isComplete)
    }
}
