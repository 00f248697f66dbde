import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork

/// What resources are known by.
struct ResourceKeyTests {
    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test func urlsThatMeanTheSameAreTheSame() throws {
        let key = NetworkFetcher<String>(url: try url("http://a.example/x?y=1")).key
        #expect(key == "http://a.example/x?y=1")
        for other in ["HTTP://A.example:80/x?y=1", "http://a.example/x?y=1#part"] {
            #expect(NetworkFetcher<String>(url: try url(other)).key == key)
        }
        for other in ["http://a.example/x?y=2", "https://a.example/x?y=1", "http://a.example:8080/x?y=1"] {
            #expect(NetworkFetcher<String>(url: try url(other)).key != key)
        }
    }

    @Test func fieldsOfTheRequestMakeAnotherResource() throws {
        let url = try url("http://a.example/x")
        func key(_ headers: HTTPHeaders) -> CacheKey {
            NetworkFetcher<String>(request: HTTPRequest(url: url, headers: headers)).key
        }
        let plain = NetworkFetcher<String>(url: url).key
        #expect(key([:]) == plain)
        #expect(key(["Accept": "image/avif"]) != plain)
        #expect(key(["Accept": "image/avif"]) == key(["accept": "image/avif"]))
        #expect(key(["A": "1", "B": "2"]) == key(["B": "2", "A": "1"]))
        #expect(key(["A": "1"]) != key(["A": "2"]))
        // How it is asked for is no part of what it is.
        #expect(key(["Cache-Control": "no-cache", "Pragma": "no-cache", "If-None-Match": "\"1\""]) == plain)
        var part = HTTPRequest(url: url)
        part.range = .toEnd(from: 5)
        #expect(NetworkFetcher<String>(request: part).key != plain)
    }

    @Test func keysHoldNoSecrets() throws {
        var request = HTTPRequest(url: try url("http://user:password@a.example/x"))
        request.headers["Authorization"] = "Bearer token"
        let key = NetworkFetcher<String>(request: request).key
        for secret in ["user", "password", "token"] { #expect(!key.identity.contains(secret)) }
        #expect(key != NetworkFetcher<String>(url: try url("http://other:password@a.example/x")).key)
        let long = NetworkFetcher<String>(url: try url("data:," + String(repeating: "x", count: 100_000))).key
        #expect(long.identity.utf8.count < 100)
    }

    @Test func idsAndIdentitiesReachEveryLevel() async throws {
        let pages = Pages()
        pages["/a?signature=1"] = .init("picture", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        var fixture = try FetchFixture<String>()
        fixture.cache.register(CacheFormat("loud") { $0.uppercased() })
        let first = fixture.fetcher(server.url("/a?signature=1"), id: "avatar")
        let second = fixture.fetcher(server.url("/a?signature=2"), id: "avatar")
        #expect(try await fixture.cache.value(from: first) == "picture")
        #expect(fixture.cache["avatar"] == "picture")
        #expect(try await fixture.cache.value(from: second, format: "loud") == "PICTURE")
        #expect(try await fixture.another().value(from: second) == "picture")
        fixture.options.identity = { $0.path() == "/a" ? "a without signature" : nil }
        pages["/a?signature=3"] = pages["/a?signature=1"]
        #expect(try await fixture.value(server.url("/a?signature=3")) == "picture")
        #expect(try await fixture.value(server.url("/a?signature=4")) == "picture")
        #expect(fixture.cache["a without signature"] == "picture")
        #expect(server.requests.count == 2)
        #expect(fixture.fetcher(server.url("/b")).key == CacheKey(server.url("/b").absoluteString))
    }
}
