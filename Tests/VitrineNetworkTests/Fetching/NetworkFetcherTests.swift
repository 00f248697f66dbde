import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
@_spi(HTTPCacheEngine) import VitrineNetwork

/// What is stored of responses, and for how long.
struct NetworkFetcherTests {
    @Test func loadsOnceAndStoresTheBytesAsTheyCame() async throws {
        let pages = Pages()
        pages["/a.png"] = .init("picture", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let url = server.url("/a.png")
        for _ in 0..<2 { #expect(try await fixture.value(url) == "picture") }
        #expect(try await fixture.another().value(from: fixture.fetcher(url)) == "picture")
        #expect(server.requests.count == 1)
        let key = fixture.fetcher(url).key
        #expect(key == CacheKey(url.absoluteString))
        let info = try #require(try await fixture.cache.info(forKey: key))
        #expect(info.expires == fixture.options.clock.now + .seconds(60))
        let head = try StoredResponse(bytes: info.validator)
        #expect(head.status == 200)
        #expect(head.bodyLength == 7)
        #expect(head.headers["content-type"] == "image/png")
    }

    @Test func whatHasExpiredIsRevalidatedAndNotSentAgain() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let url = server.url("/a")
        _ = try await fixture.value(url)
        fixture.clock.advance(by: .seconds(61))
        #expect(try await fixture.value(url) == "one")
        #expect(server.requests.last?.header("If-None-Match") == "\"1\"")
        // Fresh again.
        #expect(try await fixture.value(url) == "one")
        #expect(server.requests.count == 2)
        fixture.clock.advance(by: .seconds(61))
        pages["/a"] = .init("two", tag: "\"2\"", ["Cache-Control: max-age=60"])
        #expect(try await fixture.value(url) == "two")
        #expect(server.requests.count == 3)
        #expect(try await fixture.another().value(from: fixture.fetcher(url)) == "two")
    }

    @Test func refreshesAskHoweverFresh() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=600"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let url = server.url("/a")
        _ = try await fixture.value(url)
        #expect(try await fixture.cache.refresh(from: fixture.fetcher(url)) == "one")
        #expect(server.requests.last?.header("If-None-Match") == "\"1\"")
        #expect(server.requests.last?.header("Cache-Control") == "no-cache")
        pages["/a"] = .init("two", tag: "\"2\"")
        #expect(try await fixture.cache.refresh(from: fixture.fetcher(url)) == "two")
        server.stop()
        #expect(await networkFailure { _ = try await fixture.cache.refresh(from: fixture.fetcher(url)) } != nil)
        #expect(try await fixture.value(url) == "two")
    }

    @Test func expiringByHandAsksAlthoughTheResponseIsFresh() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=600, stale-while-revalidate=600"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let url = server.url("/a")
        _ = try await fixture.value(url)
        await fixture.cache.expire(fixture.fetcher(url).key)
        #expect(try await fixture.value(url) == "one")
        #expect(server.requests.count == 2)
    }

    @Test func noStoreLeavesNothingAnywhere() async throws {
        let pages = Pages()
        pages["/a"] = .init("secret", ["Cache-Control: no-store"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        let url = server.url("/a"), key = fixture.fetcher(url).key
        for _ in 0..<2 { #expect(try await fixture.value(url) == "secret") }
        #expect(server.requests.count == 2)
        #expect(await fixture.cache.depth(of: key) == .source)
        try await fixture.cache.prefetch(from: fixture.fetcher(url))
        #expect(try await fixture.cache.info(forKey: key) == nil)
        // What may not be stored outdates what was.
        pages["/b"] = .init("open", tag: "\"1\"", ["Cache-Control: max-age=1"])
        _ = try await fixture.value(server.url("/b"))
        fixture.clock.advance(by: .seconds(2))
        pages["/b"] = .init("secret", tag: "\"2\"", ["Cache-Control: no-store"])
        #expect(try await fixture.value(server.url("/b")) == "secret")
        #expect(try await fixture.cache.info(forKey: fixture.fetcher(server.url("/b")).key) == nil)
    }

    @Test func noCacheIsStoredAndAskedAboutEveryTime() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: no-cache, max-age=60"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        for _ in 0..<3 { #expect(try await fixture.value(server.url("/a")) == "one") }
        #expect(server.requests.compactMap { $0.header("If-None-Match") }.count == 2)
    }

    @Test func lifetimesCanBeFixedOrEndless() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", ["Cache-Control: max-age=1"])
        let server = try pages.serve()
        var fixture = try FetchFixture<String>()
        fixture.options.caching.lifetime = .fixed(.seconds(3600))
        _ = try await fixture.value(server.url("/a"))
        fixture.clock.advance(by: .seconds(3599))
        _ = try await fixture.value(server.url("/a"))
        #expect(server.requests.count == 1)
        fixture.clock.advance(by: .seconds(2))
        _ = try await fixture.value(server.url("/a"))
        #expect(server.requests.count == 2)

        var endless = try FetchFixture<String>()
        endless.options.caching.lifetime = .neverRevalidated
        _ = try await endless.value(server.url("/a"))
        endless.clock.advance(by: .seconds(40 * 365 * 86400))
        _ = try await endless.value(server.url("/a"))
        #expect(server.requests.count == 3)
    }

    @Test func variantsOfARequestsFieldsAreKeptApart() async throws {
        let server = try LoopbackServer { request in
            let language = request.header("Accept-Language") ?? "none"
            return [.reply(200, ["Cache-Control: max-age=60", "Vary: Accept-Language"], body: Array(language.utf8))]
        }
        let fixture = try FetchFixture<String>()
        func value(_ language: String?) async throws -> String {
            var request = patient(server.url("/a"))
            if let language { request.headers["Accept-Language"] = language }
            return try await fixture.cache.value(from: NetworkFetcher(request: request, options: fixture.options))
        }
        for language in ["de", "fr", nil, "de", "fr", nil] { #expect(try await value(language) == language ?? "none") }
        #expect(server.requests.count == 3)
        // An id names the resource, and the fields still select the variant.
        var request = patient(server.url("/a"))
        request.headers["Accept-Language"] = "it"
        let id = server.url("/a").absoluteString
        let same = NetworkFetcher<String>(request: request, id: id, options: fixture.options)
        #expect(same.key != fixture.fetcher(server.url("/a")).key)
        fixture.clock.advance(by: .seconds(61))
        #expect(try await fixture.cache.value(from: same) == "it")
    }

    @Test func varyingInEverythingIsNotStored() async throws {
        let pages = Pages()
        pages["/a"] = .init("one", ["Cache-Control: max-age=60", "Vary: *"])
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        for _ in 0..<2 { _ = try await fixture.value(server.url("/a")) }
        #expect(server.requests.count == 2)
    }

    @Test func decodedBodiesAreStoredWithoutTheirCoding() async throws {
        // "picture", by gzip.
        let zipped: [UInt8] = [
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0x2b, 0xc8, 0x4c, 0x2e, 0x29, 0x2d, 0x4a, 5, 0, 0x89, 0x4f, 0xdb, 0x16,
            7, 0, 0, 0,
        ]
        let server = try LoopbackServer { _ in
            [.reply(200, ["Content-Encoding: gzip", "Cache-Control: max-age=60"], body: zipped)]
        }
        let fixture = try FetchFixture<String>()
        let url = server.url("/a")
        #expect(try await fixture.value(url) == "picture")
        let info = try #require(try await fixture.cache.info(forKey: fixture.fetcher(url).key))
        let head = try StoredResponse(bytes: info.validator)
        #expect(!head.headers.contains("Content-Encoding"))
        #expect(!head.headers.contains("Content-Length"))
        #expect(head.bodyLength == 7)
    }

    @Test func headersBeyondMeasureAreStoredShortened() async throws {
        let fields = (0..<90).map { "X-Field-\($0): \(String(repeating: "x", count: 200))" }
        let pages = Pages()
        pages["/a"] = .init("one", tag: "\"1\"", ["Cache-Control: max-age=60"] + fields)
        let server = try pages.serve()
        let fixture = try FetchFixture<String>()
        _ = try await fixture.value(server.url("/a"))
        let info = try #require(try await fixture.cache.info(forKey: fixture.fetcher(server.url("/a")).key))
        #expect(info.validator.count < 1000)
        fixture.clock.advance(by: .seconds(61))
        _ = try await fixture.value(server.url("/a"))
        #expect(server.requests.last?.header("If-None-Match") == "\"1\"")
    }

    @Test func filesAndInlineDataAreNotCopied() async throws {
        let fixture = try FetchFixture<String>()
        try fixture.directory.write("water", to: "lake.txt")
        let file = URL(filePath: fixture.directory.file("lake.txt"))
        fixture.cache.register(CacheFormat("loud") { $0.uppercased() })
        let inline = try #require(URL(string: "data:text/plain,ice"))
        for (url, text) in [(file, "water"), (inline, "ice")] {
            #expect(try await fixture.value(url) == text)
            #expect(try await fixture.value(url, format: "loud") == text.uppercased())
            let key = fixture.fetcher(url).key
            #expect(fixture.cache[key] == text)
            try await fixture.cache.flush()
            #expect(try await fixture.cache.info(forKey: key) == nil)
            #expect(try await fixture.cache.info(forKey: key, format: "loud") == nil)
        }
        let missing = URL(filePath: fixture.directory.file("none"))
        guard case .file(.notFound) = await networkFailure({ _ = try await fixture.value(missing) }) else {
            Issue.record("not told that the file is missing")
            return
        }
    }

    @Test func registeredSchemesAreStored() async throws {
        let loads = Counter()
        let fixture = try FetchFixture<String>()
        fixture.options.loader.register(
            ScriptedLoader { (request, _) throws(NetworkError) in
                loads.add(1)
                return answer(request, 200, [:], "from \(request.url.absoluteString)")
            }, for: "odr")
        let url = try #require(URL(string: "odr://tag/lake"))
        #expect(try await fixture.value(url) == "from odr://tag/lake")
        #expect(try await fixture.another().value(from: fixture.fetcher(url)) == "from odr://tag/lake")
        #expect(loads.value == 1)
    }

    @Test func othersMethodsAreNotKept() async throws {
        let server = try LoopbackServer { request in
            [.reply(200, ["Cache-Control: max-age=60"], body: Array(request.method.utf8))]
        }
        let fixture = try FetchFixture<String>()
        var request = patient(server.url("/a"))
        request.method = "POST"
        request.body = [1, 2]
        let fetcher = NetworkFetcher<String>(request: request, options: fixture.options)
        for _ in 0..<2 { #expect(try await fixture.cache.value(from: fetcher) == "POST") }
        #expect(server.requests.count == 2)
        #expect(try await fixture.value(server.url("/a")) == "GET")
    }
}
