import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork

/// A redirect is not its target: each hop limits how long the answer stands for the URL that was asked for.
struct RedirectFetchTests {
    /// A server whose first address leads to another one, as the page of the first says.
    private func site(
        _ status: Int, _ fields: [String], to target: String
    ) -> (Pages, @Sendable (String, [String]) -> Void) {
        let pages = Pages()
        for (target, text) in [("/1", "one"), ("/2", "two")] {
            pages[target] = .init(text, tag: "\"same\"", ["Cache-Control: max-age=31536000"])
        }
        let lead: @Sendable (String, [String]) -> Void = { target, fields in
            var page = Pages.Page("", ["Location: \(target)"] + fields)
            page.status = status
            pages["/a"] = page
        }
        lead(target, fields)
        return (pages, lead)
    }

    private static let temporary: [(Int, [String])] = [
        (302, []), (303, []), (307, []), (302, ["Cache-Control: no-store"]), (302, ["Cache-Control: no-cache"]),
        (302, ["Cache-Control: max-age=0"]), (301, ["Cache-Control: no-cache"]), (308, ["Cache-Control: max-age=0"]),
    ]

    @Test(arguments: temporary.indices)
    func redirectsWithoutALifetimeAreFollowedAnew(_ index: Int) async throws {
        let (status, fields) = Self.temporary[index]
        let (pages, lead) = site(status, fields, to: "/1")
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        #expect(try await fixture.value(server.url("/a")) == "one")
        // Both targets have the same entity tag, which says nothing about the other one.
        lead("/2", fields)
        #expect(try await fixture.value(server.url("/a")) == "two")
        #expect(try await fixture.another().value(from: fixture.fetcher(server.url("/a"))) == "two")
    }

    @Test func aTargetThatStaysIsOnlyConfirmed() async throws {
        let (pages, _) = site(302, [], to: "/1")
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        for _ in 0..<3 { #expect(try await fixture.value(server.url("/a")) == "one") }
        let requests = server.requests
        #expect(requests.map(\.target) == ["/a", "/1", "/a", "/1", "/a", "/1"])
        // The condition goes to the URL that it belongs to, and to no other.
        #expect(requests.map { $0.header("If-None-Match") } == [nil, nil, nil, "\"same\"", nil, "\"same\""])
    }

    @Test(arguments: [(302, "max-age=60"), (301, "max-age=60"), (307, "private, max-age=60")])
    func redirectsStandAsLongAsTheyAreFresh(_ status: Int, _ line: String) async throws {
        let (pages, lead) = site(status, ["Cache-Control: \(line)"], to: "/1")
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        _ = try await fixture.value(server.url("/a"))
        lead("/2", [])
        fixture.clock.advance(by: .seconds(59))
        #expect(try await fixture.value(server.url("/a")) == "one")
        fixture.clock.advance(by: .seconds(2))
        #expect(try await fixture.value(server.url("/a")) == "two")
    }

    @Test func permanentRedirectsLastAsLongAsTheirTarget() async throws {
        let (pages, lead) = site(301, [], to: "/1")
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        _ = try await fixture.value(server.url("/a"))
        lead("/2", [])
        fixture.clock.advance(by: .seconds(86_400))
        #expect(try await fixture.value(server.url("/a")) == "one")
        #expect(server.requests.count == 2)
    }

    @Test func everyHopCounts() async throws {
        let pages = Pages()
        func lead(_ target: String, to next: String, _ field: String) {
            var page = Pages.Page("", ["Location: \(next)", field])
            page.status = 302
            pages[target] = page
        }
        lead("/a", to: "/b", "Cache-Control: max-age=600")
        lead("/b", to: "/1", "Cache-Control: max-age=60")
        pages["/1"] = .init("one", ["Cache-Control: max-age=6000"])
        pages["/2"] = .init("two", ["Cache-Control: max-age=6000"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        _ = try await fixture.value(server.url("/a"))
        lead("/b", to: "/2", "Cache-Control: max-age=60")
        fixture.clock.advance(by: .seconds(61))
        #expect(try await fixture.value(server.url("/a")) == "two")
    }

    @Test func redirectsThatForbidItAreNotStoredNorUsedWhenStale() async throws {
        let reserved = try ReservedPort()
        for line in ["no-store", "no-cache", "max-age=0, must-revalidate"] {
            let (pages, _) = site(302, ["Cache-Control: \(line)"], to: "/1")
            let server = try pages.serve(port: reserved.number)
            let fixture = try FetchFixture<String>()
            let fetcher = fixture.fetcher(server.url("/a"))
            _ = try await fixture.cache.value(from: fetcher)
            try await fixture.cache.flush()
            if line == "no-store" { #expect(await fixture.cache.contains(fetcher.key, at: .disk) == false) }
            server.stop()
            await server.waitUntilUnused()
            #expect(await networkFailure { _ = try await fixture.cache.value(from: fetcher) } != nil, "\(line)")
        }
    }

    @Test func aDirectResponseIsNotConfirmedByATarget() async throws {
        let (pages, lead) = site(302, [], to: "/1")
        pages["/a"] = .init("direct", tag: "\"same\"", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        #expect(try await fixture.value(server.url("/a")) == "direct")
        fixture.clock.advance(by: .seconds(61))
        lead("/2", [])
        #expect(try await fixture.value(server.url("/a")) == "two")
    }

    @Test func lifetimesOfThePolicyGoBeforeThoseOfRedirects() async throws {
        let (pages, lead) = site(302, [], to: "/1")
        let server = try pages.serve()
        var fixture = try FetchFixture<String>()
        fixture.options.caching.lifetime = .neverRevalidated
        _ = try await fixture.value(server.url("/a"))
        lead("/2", [])
        #expect(try await fixture.value(server.url("/a")) == "one")
        // But what may not be stored is not.
        lead("/1", ["Cache-Control: no-store"])
        let other = try FetchFixture<String>()
        var options = other.options
        options.caching.lifetime = .neverRevalidated
        for _ in 0..<2 {
            _ = try await other.cache.value(from: NetworkFetcher(request: patient(server.url("/a")), options: options))
        }
        #expect(server.requests.count == 6)
    }
}
