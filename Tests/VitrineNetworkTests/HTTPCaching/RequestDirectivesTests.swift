import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9111 section 5.2.1 and RFC 8246: what requests ask of a cache.
struct RequestDirectivesTests {
    /// A response of 10 seconds, so many seconds old.
    private func decision(_ line: String, age: Int64, _ more: String = "x", name: String = "Cache-Control")
        -> CacheDecision
    {
        var site = Site()
        site.receive(["Cache-Control": "max-age=10, " + more, "ETag": "\"a\""])
        site.now += .seconds(age)
        return site.decide(["X": "y", name: line])
    }

    @Test(arguments: [
        ("no-cache", 1, "x", false), ("No-Cache", 1, "immutable", false), ("max-age=0", 1, "x", false),
        ("max-age=5", 5, "x", true), ("max-age=5", 6, "x", false), ("max-age=x", 1, "x", false),
        ("min-fresh=5", 5, "x", true), ("min-fresh=5", 6, "x", false), ("min-fresh=x", 6, "x", true),
        ("min-fresh=99999999999", 0, "x", false), ("max-stale", 1000, "x", true), ("max-stale=5", 15, "x", true),
        ("max-stale=5", 16, "x", false), ("max-stale=x", 15, "x", false), ("max-stale=99999999999", 1000, "x", true),
        ("max-stale", 1000, "must-revalidate", false), ("max-stale, max-age=5", 15, "x", false),
        ("no-store", 1, "x", true), ("nothing-to-see-here", 1, "x", true),
        // Reloading does not ask for what does not change, as long as it is fresh.
        ("max-age=0", 1, "immutable", true), ("max-age=0", 11, "immutable", false),
        ("x", 11, "immutable", false),
    ])
    func keepsToThem(_ line: String, _ age: Int64, _ more: String, _ isServed: Bool) {
        #expect(decision(line, age: age, more).isServed == isServed)
    }

    @Test func answersOnlyFromTheCacheIfAsked() {
        #expect(Site().decide(["Cache-Control": "only-if-cached"]) == .unavailable)
        #expect(decision("only-if-cached", age: 1).isServed)
        #expect(decision("only-if-cached", age: 11) == .unavailable)
        #expect(decision("only-if-cached, max-stale", age: 11).isServed)
        guard case .serve = decision("only-if-cached", age: 11, "stale-while-revalidate=60") else {
            Issue.record("asks in spite of it")
            return
        }
    }

    @Test func keepsToPragmaOnlyWithoutCacheControl() {
        #expect(!decision("no-cache", age: 1, name: "Pragma").isServed)
        #expect(decision("foo", age: 1, name: "Pragma").isServed)
        var site = Site()
        site.receive(["Cache-Control": "max-age=10"])
        #expect(site.decide(["Pragma": "no-cache", "Cache-Control": "x"]).isServed)
    }
}
