import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9111 section 4.2: lifetimes and ages.
struct FreshnessTests {
    private static let site = Site()
    private static func date(_ seconds: Int64) -> String { site.date(seconds) }

    private static let cases: [(HTTPHeaders, Bool)] = [
        ([:], false),
        (["Cache-Control": "max-age=3600"], true), (["Cache-Control": "max-age=2"], false),
        (["Cache-Control": "max-age=3"], false), (["Cache-Control": "max-age=0"], false),
        (["Cache-Control": "max-age=99999999999"], true), (["Cache-Control": "max-age=-3600"], false),
        (["Cache-Control": "max-age=3600", "Expires": date(-7200), "Date": date(0)], true),
        (["Cache-Control": "max-age=3600", "Expires": "0", "Date": date(0)], true),
        (["Cache-Control": "max-age=0", "Expires": date(3600), "Date": date(0)], false),
        // s-maxage is for shared caches.
        (["Cache-Control": "s-maxage=3600"], false), (["Cache-Control": "s-maxage=3600, max-age=1"], false),
        (["Cache-Control": "s-maxage=1, max-age=3600"], true),
        // Age, of the first member of the first line, if it is a number.
        (["Cache-Control": "max-age=3600", "Age": "7200"], false),
        (["Cache-Control": "max-age=3600", "Age": "x"], true),
        (["Cache-Control": "max-age=3600", "Age": "-7200"], true),
        (["Cache-Control": "max-age=3600", "Age": "7200.0"], true),
        (["Cache-Control": "max-age=3600", "Age": "2147483649"], false),
        (["Cache-Control": "max-age=3600", "Age": "99999999999999999999"], false),
        (["Cache-Control": "max-age=3600", "Age": "7200, 0"], false),
        (["Cache-Control": "max-age=3600", "Age": "0, 7200"], true),
        (["Cache-Control": "max-age=3600", "Age": "7200;x=1"], true),
        (["Cache-Control": "max-age=3600", "Age": "0", "age": "7200"], true),
        // The apparent age, from a Date in the past; one in the future makes nothing younger.
        (["Cache-Control": "max-age=3600", "Date": date(-7200)], false),
        (["Cache-Control": "max-age=3600", "Date": date(7200)], true),
        (["Cache-Control": "max-age=2", "Date": date(7200)], false),
        // Expires, from Date.
        (["Expires": date(3600), "Date": date(0)], true), (["Expires": date(-3600), "Date": date(0)], false),
        (["Expires": date(0), "Date": date(0)], false), (["Expires": date(300), "Date": date(400)], false),
        (["Expires": "0", "Date": date(0)], false), (["Expires": "", "Date": date(0)], false),
        (["Expires": date(10), "Date": "foo"], true), (["Expires": date(10)], true),
        (["Expires": date(10), "Date": date(-10), "Age": "25"], false),
        (["Expires": date(20), "Date": date(10), "Age": "15"], false),
        (["Expires": "Fri, 31 Dec 9999 23:59:59 GMT", "Date": "Mon, 01 Jan 0001 00:00:00 GMT"], true),
        (["Expires": "Fri, 31 Dec 9999 23:59:59 GMT", "Date": date(0)], true),
    ]

    @Test(arguments: cases)
    func reusesWhatIsFresh(_ headers: HTTPHeaders, _ isReused: Bool) {
        #expect(Site.reuses(headers) == isReused, "\(headers)")
    }

    @Test(arguments: [
        ("s-maxage=3600", true), ("max-age=3600, s-maxage=1", false), ("s-maxage=1, max-age=3600", false),
        ("max-age=1, s-maxage=3600", true), ("max-age=3600", true), ("s-maxage=x, max-age=3600", false),
    ])
    func prefersSharedLifetimesWhenShared(_ line: String, _ isReused: Bool) {
        #expect(Site.reuses(["Cache-Control": line, "Expires": Self.date(-10)], .shared) == isReused)
    }

    @Test func countsTheTimeOfTheJourneyAsAge() {
        var site = Site()
        site.receive(["Cache-Control": "max-age=60", "Age": "10"], delay: .seconds(20))
        #expect(site.cache.policy.freshness(of: site.stored[0], now: site.now).age == .seconds(30))
        site.now += .seconds(29)
        #expect(site.decide().isServed)
        site.now += .seconds(1)
        #expect(!site.decide().isServed)
    }

    @Test func takesNoFractionOfASecondForAge() {
        var site = Site()
        let date = site.date(0)
        site.now += .milliseconds(999)
        site.receive(["Cache-Control": "max-age=1", "Date": date])
        #expect(site.cache.policy.freshness(of: site.stored[0], now: site.now).age == .zero)
        #expect(site.decide().isServed)
    }

    @Test func doesNotGrowYoungerWhenTheClockGoesBack() {
        var site = Site()
        site.receive(["Cache-Control": "max-age=60", "Age": "50"])
        site.now -= .seconds(1_000_000)
        #expect(site.cache.policy.freshness(of: site.stored[0], now: site.now).age == .seconds(50))
    }

    @Test func whatComesFromTheFutureIsNotFresh() {
        let fixed = HTTPCachePolicy.standard.with { $0.lifetime = .fixed(.seconds(3600)) }
        let reply: HTTPHeaders = ["Cache-Control": "max-age=3600, stale-while-revalidate=3600", "ETag": "\"1\""]
        for policy in [HTTPCachePolicy.standard, .images, .shared, fixed] {
            var site = Site(policy)
            site.receive(reply)
            // What a clock is set right by now and then.
            site.now -= .seconds(2)
            #expect(site.decide().isServed)
            site.now -= .seconds(60)
            let freshness = site.cache.policy.freshness(of: site.stored[0], now: site.now)
            #expect(!freshness.isFresh)
            #expect(freshness.remaining == .zero)
            #expect(site.decide() == .revalidate(0, headers: ["If-None-Match": "\"1\""]))
            #expect(site.decide(["Cache-Control": "max-stale"]).conditions != nil)
            // Confirmed, it is of now.
            site.receive(reply, status: 304, revalidating: 0)
            #expect(site.decide().isServed)
        }
    }

    @Test func datesAtTheEndsOfTimeAreNoTrap() {
        let times = [
            "Mon, 01 Jan 0001 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT",
            "Sunday, 06-Nov-00 08:49:37 GMT", "Sun, 06 Nov 292277026596 15:30:08 GMT",
            "Fri, 99 Foo 99999999999999 99:99:99 GMT", "9223372036854775807", "-1",
        ]
        let ages = ["0", "9223372036854775807", "9223372036854775808", "99999999999999999999999", "-5", ""]
        for date in times {
            for other in times {
                for age in ages {
                    var site = Site(.images)
                    site.receive([
                        "Date": date, "Expires": other, "Last-Modified": other, "Age": age, "ETag": "\"1\"",
                        "Cache-Control": "stale-while-revalidate=\(age), stale-if-error=\(age), max-stale=\(age)",
                        "Content-Type": "image/png", "Content-Length": age,
                    ])
                    for now in [Duration.zero, .seconds(-5), site.now, .seconds(253_402_300_799), .seconds(Int64.max)] {
                        site.now = now
                        _ = site.decide(["Cache-Control": "max-age=\(age), min-fresh=\(age), max-stale=\(age)"])
                        guard let stored = site.stored.first else { continue }
                        _ = site.cache.policy.freshness(of: stored, now: now).remaining
                        _ = site.cache.head(of: stored, for: site.request("GET", ["Range": "bytes=\(age)-\(age)"]), now: now)
                        _ = site.cache.canServeStale(stored, to: site.request(), afterFailureAt: now)
                        _ = ResumableDownload(length: .max, of: stored, comparing: .max)
                        _ = ResumableDownload(length: 1, of: stored)?.continuation(
                            status: 206, headers: ["Content-Range": "bytes 1-\(age)/\(age)"])
                    }
                }
            }
        }
    }

    @Test(arguments: [
        (200, true), (203, true), (204, true), (300, true), (301, true), (308, true), (404, true), (405, true),
        (410, true), (414, true), (501, true), (201, false), (202, false), (302, false), (307, false), (403, false),
        (500, false), (502, false), (503, false), (504, false), (599, false),
    ])
    func guessesForTheStatusesThatAllowIt(_ status: Int, _ isReused: Bool) {
        let headers: HTTPHeaders = ["Last-Modified": Self.date(-86400), "Date": Self.date(0)]
        #expect(Site.reuses(headers, status: status) == isReused)
        var open = headers
        open["Cache-Control"] = "public"
        #expect(Site.reuses(open, status: status))
    }

    @Test func guessesATenthOfTheTimeSinceTheLastChangeUpToADay() {
        let headers: HTTPHeaders = ["Last-Modified": Self.date(-1000), "Date": Self.date(0)]
        #expect(Site.reuses(headers, after: 99))
        #expect(!Site.reuses(headers, after: 100))
        let old: HTTPHeaders = ["Last-Modified": "Mon, 01 Jan 0001 00:00:00 GMT", "Date": Self.date(0)]
        #expect(Site.reuses(old, after: 86399))
        #expect(!Site.reuses(old, after: 86400))
        #expect(!Site.reuses(["Last-Modified": Self.date(1000), "Date": Self.date(0)]))
        #expect(!Site.reuses(["Last-Modified": "foo", "Date": Self.date(0)]))
        let cautious = HTTPCachePolicy.standard.with { $0.heuristicFraction = 0 }
        #expect(!Site.reuses(headers, cautious))
        for wrong in [Double.nan, .infinity, -.infinity, -1] {
            _ = Site.reuses(headers, HTTPCachePolicy.standard.with { $0.heuristicFraction = wrong })
        }
    }

    @Test func doesNotGuessAgainstAnOldFashionedNoCache() {
        let headers: HTTPHeaders = ["Last-Modified": Self.date(-86400), "Pragma": "no-cache"]
        #expect(!Site.reuses(headers))
        #expect(Site.reuses(["Cache-Control": "max-age=60", "Pragma": "no-cache"]))
    }

    @Test(
        arguments: [
            ("max-age=3600", nil, true), ("max-age=2147483648", nil, true), ("foobar, max-age=3600;p=1", nil, true),
            ("max-age=1", "max-age=3600", false), ("max-age=3600", "no-store", true),
            ("no-store", "max-age=3600", false),
            ("private", "max-age=3600", false), ("no-cache", "max-age=3600", false), ("max-age=0", "max-age=9", false),
            ("no-cache=?0, max-age=60", nil, true), ("max-age=1, max-age=60", nil, true),
            ("private=\"a\", max-age=60", nil, true),
            // No dictionary: the field counts as absent.
            ("max-age=3600, &&&", "no-store", false), ("MAX-AGE=3600", "max-age=1", false),
            ("max-age =100", "max-age=1", false),
            ("max-age=3600,", "max-age=1", false), ("max-age=\"", "max-age=1", false), ("", "max-age=60", true),
            // A dictionary whose lifetime is of the wrong type has none.
            ("max-age=\"10000\"", "no-store", false), ("max-age=-5", "max-age=60", false),
            ("max-age=1.5", "max-age=60", false),
        ] as [(String, String?, Bool)])
    func prefersDirectivesMeantForIt(_ targeted: String, _ general: String?, _ isReused: Bool) {
        var headers: HTTPHeaders = ["CDN-Cache-Control": targeted, "Expires": Self.date(-10)]
        if let general { headers["Cache-Control"] = general }
        #expect(Site.reuses(headers, .reverseProxy) == isReused)
    }

    @Test func keepsToAFixedTimeOrToNone() {
        let fixed = HTTPCachePolicy.standard.with { $0.lifetime = .fixed(.seconds(100)) }
        let never = HTTPCachePolicy.standard.with { $0.lifetime = .neverRevalidated }
        for line in ["max-age=0", "no-cache", "max-age=1, must-revalidate", "max-age=999999"] {
            #expect(Site.reuses(["Cache-Control": line], after: 99, fixed))
            #expect(!Site.reuses(["Cache-Control": line], after: 100, fixed))
            #expect(Site.reuses(["Cache-Control": line, "Age": "9999"], after: 1_000_000_000, never))
        }
        #expect(Site.reuses([:], never))
        #expect(!Site.reuses(["Cache-Control": "no-store"], never))
        // An error would stand there for ever.
        #expect(!Site.reuses([:], status: 404, never))
        #expect(!Site.reuses(["Cache-Control": "max-age=1"], status: 500, never))
    }

    @Test func keepsImagesThatSayNothingForAnHourIfToldTo() {
        let image: HTTPHeaders = ["Content-Type": "Image/JPEG"]
        #expect(Site.reuses(image, after: 3599, .images))
        #expect(!Site.reuses(image, after: 3600, .images))
        #expect(!Site.reuses(image))
        #expect(!Site.reuses(["Content-Type": "text/html"], .images))
        #expect(!Site.reuses(["Content-Type": "image/png", "Cache-Control": "max-age=1"], .images))
        #expect(!Site.reuses(image, status: 404, .images))
    }
}
