import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork

/// What is given when the server is slow, failing or gone.
struct StaleFetchTests {
    @Test func givesTheStaleResponseAndRevalidatesBehindIt() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=60, stale-while-revalidate=600"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let url = server.url("/a")
        _ = try await fixture.value(url)
        fixture.clock.advance(by: .seconds(61))
        pages["/a"] = .init("two", tag: "\"2\"", ["Cache-Control: max-age=60, stale-while-revalidate=600"])
        #expect(try await fixture.value(url) == "one")
        await fixture.settle()
        #expect(server.requests.last?.header("If-None-Match") == "\"1\"")
        #expect(server.requests.last?.header("Cache-Control") == nil)
        #expect(try await fixture.value(url) == "two")
        #expect(server.requests.count == 2)
        // Beyond the time it may be stale it is waited for.
        fixture.clock.advance(by: .seconds(661))
        pages["/a"] = .init("three", tag: "\"3\"")
        #expect(try await fixture.value(url) == "three")
    }

    @Test func oneRequestGoesOutBehindAStaleResponse() async throws {
        let barrier = LoopbackServer.Barrier(), count = Counter()
        let fields = ["Cache-Control: max-age=60, stale-while-revalidate=600"]
        let server = try LoopbackServer { _ in
            count.add(1) == 1
                ? [.reply(200, fields, body: Array("one".utf8))]
                : [.wait(barrier), .reply(200, fields, body: Array("two".utf8))]
        }
        defer { barrier.open() }
        let fixture = try FetchFixture<String>()
        fixture.cache.register(CacheFormat("loud") { $0.uppercased() })
        let url = server.url("/a")
        _ = try await fixture.value(url)
        fixture.clock.advance(by: .seconds(61))
        for _ in 0..<5 {
            #expect(try await fixture.value(url) == "one")
            #expect(try await fixture.value(url, format: "loud") == "ONE")
        }
        barrier.open()
        await fixture.settle()
        #expect(try await fixture.value(url) == "two")
        #expect(count.value == 2)
    }

    @Test func givesWhatIsStoredWhileThereIsNoNetwork() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=60"])
        pages["/b"] = .init("strict", ["Cache-Control: max-age=60, must-revalidate"])
        let reserved = try ReservedPort(), port = reserved.number
        let server = try pages.serve(port: port)
        let fixture = try FetchFixture<String>()
        let a = server.url("/a"), b = server.url("/b")
        _ = try await fixture.value(a)
        _ = try await fixture.value(b)
        server.stop()
        await server.waitUntilUnused()
        fixture.clock.advance(by: .seconds(61))
        #expect(try await fixture.value(a) == "one")
        #expect(try await fixture.another().value(from: fixture.fetcher(a)) == "one")
        #expect(await networkFailure { _ = try await fixture.value(b) } != nil)
        #expect(await networkFailure { _ = try await fixture.value(server.url("/c")) } != nil)
        var updates = fixture.cache.updates(from: fixture.fetcher(a)).makeAsyncIterator()
        #expect(try await updates.next() == "one")
        #expect(await cacheCode { _ = try await updates.next() } == -530)
        // The network is back: the very next request finds out.
        pages["/a"] = .init("two", tag: "\"2\"")
        pages["/c"] = .init("new")
        let again = try pages.serve(port: port)
        #expect(try await fixture.value(a) == "two")
        #expect(try await fixture.value(b) == "strict")
        #expect(try await fixture.value(server.url("/c")) == "new")
        again.stop()
        withExtendedLifetime(reserved) {}
    }

    @Test func serversFailuresDoNotTakeAwayWhatIsThere() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        var fixture = try FetchFixture<String>()
        let url = server.url("/a")
        _ = try await fixture.value(url)
        fixture.clock.advance(by: .seconds(61))
        for status in [500, 502, 503, 504] {
            pages["/a"]?.tag = nil
            pages["/a"]?.status = status
            #expect(try await fixture.value(url) == "one")
            // Who demands an answer gets it.
            guard case .status(_, let head) = await networkFailure({
                _ = try await fixture.cache.refresh(from: fixture.fetcher(url))
            }) else {
                Issue.record("no failure")
                return
            }
            #expect(head.status == status)
        }
        // By the letter of the RFC only what says so may stand in.
        fixture.options.caching = .standard
        #expect(await networkFailure { _ = try await fixture.value(url) } != nil)
        pages["/a"]?.status = 200
        pages["/a"]?.fields = ["Cache-Control: max-age=60, stale-if-error=600"]
        #expect(try await fixture.value(url) == "one")
        fixture.clock.advance(by: .seconds(61))
        pages["/a"]?.status = 500
        #expect(try await fixture.value(url) == "one")
        fixture.clock.advance(by: .seconds(600))
        #expect(await networkFailure { _ = try await fixture.value(url) } != nil)
    }

    @Test func refusalsAreNoFailures() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let url = server.url("/a")
        _ = try await fixture.value(url)
        fixture.clock.advance(by: .seconds(61))
        for status in [403, 404, 410] {
            pages["/a"]?.tag = nil
            pages["/a"]?.status = status
            #expect(await networkFailure { _ = try await fixture.value(url) } != nil)
        }
    }

    @Test func anAnswerThatBreaksOffLeavesWhatIsStored() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let url = server.url("/a")
        _ = try await fixture.value(url)
        fixture.clock.advance(by: .seconds(61))
        pages["/a"] = .init(steps: [.text("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nETag: \"2\"\r\n\r\nhalf"), .close])
        #expect(try await fixture.value(url) == "one")
        pages["/a"] = .init("two", tag: "\"2\"")
        #expect(try await fixture.value(url) == "two")
    }

    @Test func onlyWhatIsStoredIfTheRequestWantsNoMore() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        var request = patient(server.url("/a"))
        request.headers["Cache-Control"] = "only-if-cached, max-stale=30"
        let stored = NetworkFetcher<String>(request: request, options: fixture.options)
        #expect(await cacheCode { _ = try await fixture.cache.value(from: stored) } == -530)
        #expect(server.requests.isEmpty)
        _ = try await fixture.value(server.url("/a"))
        fixture.clock.advance(by: .seconds(80))
        #expect(try await fixture.cache.value(from: stored) == "one")
        fixture.clock.advance(by: .seconds(80))
        #expect(await cacheCode { _ = try await fixture.cache.value(from: stored) } == -530)
        #expect(server.requests.count == 1)
    }
}
