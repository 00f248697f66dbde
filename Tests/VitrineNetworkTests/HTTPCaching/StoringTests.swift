import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9111 section 3: what may be stored, and which of its fields.
struct StoringTests {
    private let fresh: HTTPHeaders = ["Cache-Control": "max-age=60"]

    @Test(arguments: [
        (200, true), (203, true), (204, true), (299, true), (301, true), (302, true), (303, true), (307, true),
        (308, true), (400, true), (404, true), (410, true), (499, true), (500, true), (503, true), (599, true),
        // A part is not the whole, and a 304 is nothing by itself.
        (206, false), (304, false), (416, false), (100, false), (103, false), (600, false), (999, false), (0, false),
        (-1, false),
    ])
    func storesEveryFinalStatusThatSaysHowLongItIsFresh(_ status: Int, _ isStored: Bool) {
        #expect(Site.stores(fresh, status: status) == isStored)
    }

    @Test func leavesFailuresThatSayNothing() {
        for status in [302, 400, 403, 404, 410, 500, 502, 503] { #expect(!Site.stores([:], status: status)) }
        #expect(!Site.stores(["Cache-Control": "max-age=0"], status: 404))
        #expect(!Site.stores(["ETag": "\"a\""], status: 404))
        // What is there can be revalidated, or serve without a connection.
        #expect(Site.stores([:]))
        #expect(Site.stores(["Cache-Control": "no-cache"]))
    }

    @Test(arguments: ["no-store", "No-StOrE", "max-age=60, no-store", "no-store=1", "no-store, public, private"])
    func keepsToNoStore(_ line: String) {
        #expect(!Site.stores(["Cache-Control": line]))
        #expect(!Site.stores(["Cache-Control": line], .shared))
    }

    @Test func keepsToNoStoreOfRequests() {
        let request = Site().request("GET", ["Cache-Control": "no-store"])
        #expect(!Site.stores(fresh, to: request))
    }

    @Test func storesWhatMustBeUnderstoodIfItIs() {
        let headers: HTTPHeaders = ["Cache-Control": "max-age=60, no-store, must-understand"]
        #expect(Site.stores(headers))
        #expect(!Site.stores(headers, status: 599))
        #expect(!Site.stores(["Cache-Control": "max-age=60, must-understand"], status: 299))
    }

    @Test func leavesPrivateResponsesToPrivateCaches() {
        #expect(Site.stores(["Cache-Control": "private, max-age=60"]))
        #expect(!Site.stores(["Cache-Control": "private, max-age=60"], .shared))
        #expect(Site.stores(["Cache-Control": "private"], status: 299))
    }

    @Test(arguments: [
        ("max-age=60", false), ("max-age=60, public", true), ("max-age=60, must-revalidate", true),
        ("s-maxage=60", true),
        ("max-age=60, proxy-revalidate", false),
    ])
    func sharesWhatCredentialsBroughtOnlyIfAllowed(_ line: String, _ isStored: Bool) {
        let request = Site().request("GET", ["Authorization": "Basic eA=="])
        #expect(Site.stores(["Cache-Control": line], to: request, .shared) == isStored)
        #expect(Site.stores(["Cache-Control": "max-age=60"], to: request))
    }

    @Test func storesAnswersToGetOnly() {
        for method in ["HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "M-SEARCH", "get", ""] {
            #expect(!Site.stores(fresh, to: Site().request(method)))
        }
    }

    @Test func storesAPostThatSaysItIsWhatAGetWouldBring() {
        let post = Site().request("POST")
        let url = "http://example.org/a.jpg"
        #expect(Site.stores(["Cache-Control": "max-age=60", "Content-Location": url], to: post))
        #expect(Site.stores(["Expires": Site().date(60), "Content-Location": "/a.jpg"], to: post))
        #expect(Site.stores(["Cache-Control": "max-age=60", "Content-Location": ""], to: post))
        #expect(!Site.stores(["Cache-Control": "max-age=60", "Content-Location": "/b.jpg"], to: post))
        #expect(!Site.stores(["Cache-Control": "max-age=60"], to: post))
        #expect(!Site.stores(["Content-Location": url], to: post))
        #expect(!Site.stores(["Cache-Control": "max-age=60", "Content-Location": url], status: 201, to: post))
    }

    @Test func leavesOutTheFieldsOfTheConnection() {
        var site = Site()
        site.receive([
            "Cache-Control": "max-age=60", "Connection": "X-One, X-Two, close", "X-One": "1", "x-two": "2",
            "X-Three": "3",
            "Keep-Alive": "x", "Proxy-Connection": "x", "Proxy-Authenticate": "x", "Proxy-Authentication-Info": "x",
            "Proxy-Authorization": "x", "TE": "x", "Trailer": "x", "Transfer-Encoding": "x", "Upgrade": "x",
            "Set-Cookie": "a=b", "Content-Length": "1000",
        ])
        let names = Set(site.stored[0].headers.map(\.name))
        #expect(names == ["Cache-Control", "X-Three", "Set-Cookie", "Content-Length"])
    }

    @Test func doesNotLetConnectionTakeAwayTheLimits() {
        var site = Site()
        site.receive(["Cache-Control": "max-age=2", "Connection": "cache-control, vary, date", "Vary": "X"])
        #expect(site.stored[0].headers["Cache-Control"] == "max-age=2")
        #expect(site.stored[0].headers["Vary"] == "X")
    }

    @Test func leavesOutTheFieldsThatAreKeptBack() {
        let headers: HTTPHeaders = [
            "Cache-Control": "max-age=60, no-cache=\"A, b\", private=\"c\"", "a": "1", "B": "2", "C": "3", "D": "4",
        ]
        var site = Site()
        site.receive(headers)
        #expect(site.stored[0].headers.map(\.name) == ["Cache-Control", "C", "D"])
        #expect(site.decide().isServed)
        site = Site(.shared)
        site.receive(headers)
        #expect(site.stored[0].headers.map(\.name) == ["Cache-Control", "D"])
    }

    @Test func replacesWhatWasStoredAndKeepsOtherVariants() {
        var site = Site()
        let varying: HTTPHeaders = ["Cache-Control": "max-age=60", "Vary": "Foo"]
        for value in ["1", "2", "1"] { site.receive(varying, to: site.request("GET", ["Foo": value])) }
        #expect(site.stored.count == 2)
        // What may not be stored takes its predecessor along; failures do not.
        site.receive(["Vary": "Foo"], status: 403, to: site.request("GET", ["Foo": "1"]))
        #expect(site.stored.count == 2)
        site.receive(["Cache-Control": "no-store"], to: site.request("GET", ["Foo": "1"]))
        #expect(site.stored.count == 1)
        #expect(!site.decide(["Foo": "1"]).isServed)
        #expect(site.decide(["Foo": "2"]).isServed)
    }

    @Test func keepsSoManyVariants() {
        var site = Site(HTTPCachePolicy.standard.with { $0.variantLimit = 3 })
        for value in 0..<10 {
            site.receive(["Cache-Control": "max-age=60", "Vary": "Foo"], to: site.request("GET", ["Foo": "\(value)"]))
            site.now += .seconds(1)
        }
        #expect(site.stored.count == 3)
        for value in 0..<10 { #expect(site.decide(["Foo": "\(value)"]).isServed == (value >= 7)) }
    }
}
