import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9111 section 5.2: how directives are written.
struct CacheDirectivesTests {
    @Test func readsNamesInAnyCaseAndIgnoresUnknownOnes() {
        let directives = CacheDirectives(lines: ["foobar, MaX-aGe=3600,,Public", "x=\"y, no-store\", NO-TRANSFORM"])
        #expect(directives.maxAge == 3600)
        #expect(directives.isPublic)
        #expect(!directives.noStore)
    }

    @Test(arguments: [
        ("max-age=3600", 3600), ("max-age=\"3600\"", 3600), ("max-age=003600", 3600), ("max-age=0", 0),
        ("max-age=2147483648", 2_147_483_648), ("max-age=99999999999999999999999999", 2_147_483_648),
        // What tries to say a lifetime and fails says none.
        ("max-age", 0), ("max-age=", 0), ("max-age=-1", 0), ("max-age='3600'", 0), ("max-age=3600.0", 0),
        ("max-age=36 00", 0), ("max-age=a1", 0), ("max-age=1a", 0), ("max-age= 3600", 0), ("max-age=\"", 0),
        // Of several the first.
        ("max-age=1, max-age=1800", 1), ("max-age=1800, max-age=1", 1800), ("max-age=x, max-age=1800", 0),
        ("extension=\"max-age=3600\", max-age=1", 1), ("max-age=1, extension=\"max-age=3600\"", 1),
        ("extension=\"a\\\", max-age=7\", max-age=1", 1),
        // A quote without an end hides nothing.
        ("extension=\"unclosed, max-age=5", 5),
    ])
    func readsLifetimes(_ line: String, _ seconds: Int64) {
        #expect(CacheDirectives(lines: [line]).maxAge == seconds)
    }

    @Test func takesSpaceBeforeTheEqualsSignForAnotherName() {
        #expect(CacheDirectives(lines: ["max-age =3600"]).maxAge == nil)
    }

    @Test func tellsFieldsFromTheWholeResponse() {
        #expect(CacheDirectives(lines: ["no-cache"]).noCache == .everything)
        #expect(CacheDirectives(lines: ["no-cache=\"Set-Cookie, X-Foo\""]).noCache == .fields(["set-cookie", "x-foo"]))
        #expect(CacheDirectives(lines: ["no-cache=Set-Cookie"]).noCache == .fields(["set-cookie"]))
        #expect(CacheDirectives(lines: ["no-cache=\"\""]).noCache == .everything)
        #expect(CacheDirectives(lines: ["private=\"a\"", "private=\"b\""]).isPrivate == .fields(["a", "b"]))
        #expect(CacheDirectives(lines: ["private=\"a\", private"]).isPrivate == .everything)
        #expect(CacheDirectives(lines: ["private, private=\"a\""]).isPrivate == .everything)
        #expect(CacheDirectives(lines: ["max-age=1"]).isPrivate == .nothing)
    }

    @Test func readsThoseOfRequests() {
        let directives = CacheDirectives(lines: ["max-stale, min-fresh=5, only-if-cached"])
        #expect(directives.maxStale == .max)
        #expect(directives.minFresh == 5)
        #expect(directives.onlyIfCached)
        #expect(CacheDirectives(lines: ["max-stale=10"]).maxStale == 10)
        #expect(CacheDirectives(lines: ["max-stale=x, min-fresh=x"]).maxStale == nil)
    }

    @Test func readsHostileLinesInLinearTime() {
        // Quadratic, each of these would take minutes.
        let quotes = String(repeating: "\"\\\"", count: 100_000)
        let commas = String(repeating: ",", count: 100_000)
        let names = String(repeating: "no-cache=\"a\",", count: 50_000)
        #expect(CacheDirectives(lines: [quotes, commas, names, "no-store"]).noStore)
        #expect(CacheDirectives(lines: [String(repeating: "\"", count: 100_001) + ", no-store"]).noStore)
    }
}
