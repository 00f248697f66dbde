import Foundation
import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9111 sections 4.3.5 and 4.4: what other methods do to what is stored.
struct InvalidationTests {
    private func site() -> Site {
        var site = Site()
        site.receive(["Cache-Control": "max-age=60", "ETag": "\"a\"", "X": "1"])
        return site
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "anything"])
    func forgetsWhatAnUnsafeMethodMayHaveChanged(_ method: String) {
        for (status, remains) in [(200, 0), (204, 0), (302, 0), (404, 1), (500, 1), (100, 1)] {
            var site = site()
            site.receive([:], status: status, to: site.request(method))
            #expect(site.stored.count == remains, "\(status)")
        }
    }

    @Test(arguments: ["GET", "HEAD", "OPTIONS", "TRACE"])
    func keepsAllThroughSafeMethods(_ method: String) {
        var site = site()
        site.receive([:], status: 403, to: site.request(method))
        #expect(site.stored.count == 1)
    }

    @Test func neverAnswersOtherMethods() {
        let site = site()
        for method in ["POST", "OPTIONS", "get"] {
            #expect(site.cache.decide(site.request(method), stored: site.stored, now: site.now) == .forward)
        }
    }

    @Test func forgetsTheURLsThatAreNamedOfTheSameOrigin() {
        var site = site()
        let update = site.receive(
            ["Location": "/b.jpg", "Content-Location": "http://EXAMPLE.org:80/c.jpg"], status: 201,
            to: site.request("POST"))
        #expect(update.invalidated.map(HTTPCache.identity) == ["http://example.org/b.jpg", "http://example.org/c.jpg"])
    }

    @Test(arguments: [
        "http://other.org/b.jpg", "https://example.org/b.jpg", "http://example.org:8080/b.jpg", "//other.org/b",
        "http://[::1]/x", "http://[", String(repeating: "x", count: 100_000), "/a.jpg", "http://example.org/a.jpg#x",
        "mailto:a@b",
    ])
    func forgetsNothingElse(_ reference: String) {
        var site = site()
        #expect(site.receive(["Location": reference], to: site.request("PUT")).invalidated.isEmpty)
    }

    @Test func updatesFromAHead() {
        var site = site()
        site.now += .seconds(100)
        #expect(site.cache.decide(site.request("HEAD"), stored: site.stored, now: site.now) == .forward)
        let update = site.receive(
            ["Cache-Control": "max-age=60", "X": "2", "Content-Length": "1000"],
            to: site.request("HEAD"))
        #expect(update.answer == .response)
        #expect(site.stored[0].headers["X"] == "2")
        #expect(site.stored[0].headers["ETag"] == "\"a\"")
        #expect(site.decide().isServed)
    }

    @Test(
        arguments: [
            ["ETag": "\"b\""], ["Content-Length": "999"], ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"],
        ] as [HTTPHeaders])
    func doubtsWhatAHeadContradicts(_ headers: HTTPHeaders) {
        var site = site()
        site.receive(headers, to: site.request("HEAD"))
        #expect(!site.decide().isServed)
        #expect(site.decide().conditions == ["If-None-Match": "\"a\""])
    }

    @Test(arguments: [
        ("HTTP://Example.ORG:80/a?b#c", "http://example.org/a?b"), ("https://example.org:443", "https://example.org/"),
        ("https://example.org:80/", "https://example.org:80/"),
        ("http://example.org/A%20b", "http://example.org/A%20b"),
        ("http://example.org/?a=1&b=2", "http://example.org/?a=1&b=2"),
        ("http://example.org/a:80/b?c#d", "http://example.org/a:80/b?c"),
        ("http://example.org:8080/A", "http://example.org:8080/A"), ("http://EXAMPLE.org/A", "http://example.org/A"),
        ("http://user@example.org/", "http://user@example.org/"), ("http://[::1]:80/", "http://[::1]/"),
    ])
    func namesEqualURLsEqually(_ text: String, _ identity: String) throws {
        #expect(HTTPCache.identity(of: try #require(URL(string: text))) == identity)
    }
}
