import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9111 section 4.2.4 and RFC 5861: using what is stale.
struct StaleTests {
    /// A response stale by 3 seconds.
    private func stale(_ line: String, _ policy: HTTPCachePolicy = .standard) -> Site {
        var site = Site(policy)
        site.receive(["Cache-Control": "max-age=2, " + line, "ETag": "\"a\""])
        site.now += .seconds(5)
        return site
    }

    private func serves(_ line: String, _ policy: HTTPCachePolicy = .standard, _ request: HTTPHeaders = [:]) -> Bool {
        let site = stale(line, policy)
        return site.cache.canServeStale(site.stored[0], to: site.request("GET", request), afterFailureAt: site.now)
    }

    @Test(arguments: [
        ("x", true, true), ("must-revalidate", false, false), ("no-cache", false, false),
        ("proxy-revalidate", true, false),
        ("s-maxage=2", true, false), ("stale-if-error=2", true, true),
        ("must-revalidate, stale-if-error=60", false, false),
    ])
    func servesWithoutAConnectionUnlessForbidden(_ line: String, _ forOne: Bool, _ shared: Bool) {
        #expect(serves(line) == forOne)
        #expect(serves(line, .shared) == shared)
        #expect(!serves(line, .standard, ["Cache-Control": "no-cache"]))
    }

    @Test func servesWithoutAConnectionOnlyIfWanted() {
        let strict = HTTPCachePolicy.standard.with { $0.servesStaleWhenUnreachable = false }
        #expect(!serves("x", strict))
        #expect(serves("stale-if-error=3", strict))
        #expect(!serves("stale-if-error=2", strict))
        #expect(!serves("stale-if-error=x", strict))
        #expect(serves("x", strict, ["Cache-Control": "stale-if-error=3"]))
        #expect(!serves("stale-if-error=3", strict.with { $0.honoursStaleIfError = false }))
    }

    @Test(arguments: [
        ("x", 503, false), ("stale-if-error=60", 500, true), ("stale-if-error=60", 502, true),
        ("stale-if-error=60", 503, true), ("stale-if-error=60", 504, true), ("stale-if-error=60", 501, false),
        ("stale-if-error=60", 404, false), ("stale-if-error=1", 503, false),
        ("stale-if-error=60, must-revalidate", 503, false),
    ])
    func servesInPlaceOfAFailure(_ line: String, _ status: Int, _ isServed: Bool) {
        var site = stale(line)
        #expect(site.receive([:], status: status, revalidating: 0).answer == (isServed ? .stale(0) : .response))
    }

    @Test func keepsImagesThroughTheServersFailures() {
        var site = stale("x", .images)
        #expect(site.receive(["Content-Type": "text/html"], status: 503, revalidating: 0).answer == .stale(0))
        #expect(site.stored.count == 1)
        site = stale("must-revalidate", .images)
        #expect(site.receive([:], status: 503, revalidating: 0).answer == .response)
        #expect(site.stored.count == 1)
    }

    @Test(arguments: [500, 503, 599, 408, 425, 429])
    func keepsWhatWasGoodThroughAFailedRefresh(_ status: Int) {
        var site = stale("x")
        let refresh = site.request("GET", ["Cache-Control": "no-cache"])
        let update = site.receive(["Cache-Control": "max-age=60"], status: status, to: refresh, revalidating: 0)
        #expect(update.answer == .response)
        #expect(site.stored.map(\.status) == [200])
    }

    @Test(arguments: [
        ("stale-while-revalidate=60", true), ("stale-while-revalidate=3", true), ("stale-while-revalidate=2", false),
        ("stale-while-revalidate=x", false), ("stale-while-revalidate", false),
        ("stale-while-revalidate=99999999999999", true), ("stale-while-revalidate=60, must-revalidate", false),
        ("stale-while-revalidate=60, no-cache", false),
    ])
    func servesWhileItAsks(_ line: String, _ isServed: Bool) {
        let decision = stale(line).decide()
        #expect(decision.isServed == isServed)
        // It is asked about in any case.
        #expect(decision.conditions == ["If-None-Match": "\"a\""])
        #expect(
            !stale(line, HTTPCachePolicy.standard.with { $0.honoursStaleWhileRevalidate = false }).decide().isServed)
    }
}
