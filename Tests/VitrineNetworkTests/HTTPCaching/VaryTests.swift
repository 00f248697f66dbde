import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9111 section 4.1: which requests a stored response answers.
struct VaryTests {
    private func reuses(_ vary: HTTPHeaders, _ first: HTTPHeaders, _ second: HTTPHeaders) -> Bool {
        var site = Site()
        var headers: HTTPHeaders = ["Cache-Control": "max-age=60"]
        headers.append(contentsOf: vary)
        site.receive(headers, to: site.request("GET", first))
        return site.decide(second).isServed
    }

    private static let cases: [(HTTPHeaders, HTTPHeaders, HTTPHeaders, Bool)] = [
        (["Vary": "Foo"], ["Foo": "1"], ["Foo": "1"], true), (["Vary": "foo"], ["FOO": "1"], ["fOO": "1"], true),
        (["Vary": "Foo"], ["Foo": "1"], ["Foo": "2"], false), (["Vary": "Foo"], ["Foo": "a"], ["Foo": "A"], false),
        (["Vary": "Foo"], ["Foo": "1"], [:], false), (["Vary": "Foo"], [:], ["Foo": "1"], false),
        (["Vary": "Foo"], [:], ["Foo": ""], false), (["Vary": "Foo"], [:], [:], true),
        (["Vary": "Foo"], ["Foo": "1", "Bar": "x"], ["Foo": "1", "Bar": "y"], true),
        (["Vary": "Foo, Bar"], ["Foo": "1", "Bar": "x"], ["Bar": "x", "Foo": "1"], true),
        (["Vary": "Foo, Bar"], ["Foo": "1", "Bar": "x"], ["Foo": "1", "Bar": "y"], false),
        (["Vary": "Foo, Bar"], ["Foo": "1", "Bar": "x"], ["Foo": "1"], false),
        (["Vary": "Foo", "vary": "Bar"], ["Foo": "1", "Bar": "x"], ["Foo": "1", "Bar": "y"], false),
        // Lines are joined, white space between elements does not count.
        (["Vary": "Foo"], ["Foo": "1, 2"], ["Foo": "1", "foo": "2"], true),
        (["Vary": "Foo"], ["Foo": "1,2"], ["Foo": " 1 ,  2 "], true),
        (["Vary": "Foo"], ["Foo": "1, 2"], ["Foo": "2, 1"], false),
        (["Vary": "Foo"], ["Foo": "\"1, 2\""], ["Foo": "\"1,2\""], false),
        // What is accepted has no order and no case.
        (["Vary": "Accept-Language"], ["Accept-Language": "en, de"], ["Accept-Language": "De,eN"], true),
        (["Vary": "Accept-Language"], ["Accept-Language": "en, de"], ["Accept-Language": "en, de;q=0.5"], false),
        (["Vary": "Accept"], ["Accept": "image/avif, */*;q=0.8"], ["Accept": "*/*; Q=0.80 , image/avif;q=1"], true),
        (["Vary": "Accept"], ["Accept": "image/avif, image/*"], ["Accept": "image/webp, image/*"], false),
        (["Vary": "Accept"], ["Accept": "image/*;q=2"], ["Accept": "image/*;q=x"], true),
        // A response in the one language that is liked best.
        (
            ["Vary": "Accept-Language", "Content-Language": "de"], ["Accept-Language": "en, de"],
            ["Accept-Language": "fr;q=0.5, DE;q=1.0"], true
        ),
        (
            ["Vary": "Accept-Language", "Content-Language": "de"], ["Accept-Language": "en, de"],
            ["Accept-Language": "fr, de"], false
        ),
        (
            ["Vary": "Accept-Language", "Content-Language": "de"], ["Accept-Language": "en, de"],
            ["Accept-Language": "de;q=0"], false
        ),
        // Everything else.
        (["Vary": "*"], [:], [:], false), (["Vary": "*, *"], [:], [:], false), (["Vary": ", *"], [:], [:], false),
        (["Vary": "", "vary": "*"], [:], [:], false), (["Vary": "*, Foo"], [:], [:], false),
        (["Vary": "Foo, *"], [:], [:], false), (["Vary": ""], [:], [:], true), (["Vary": ","], [:], [:], true),
    ]

    @Test(arguments: cases.indices)
    func tellsVariantsApart(_ index: Int) {
        let (vary, first, second, isReused) = Self.cases[index]
        #expect(reuses(vary, first, second) == isReused, "\(Self.cases[index])")
    }

    @Test func choosesTheOneMadeLast() {
        var site = Site()
        site.receive(
            ["Cache-Control": "max-age=600", "Vary": "Foo", "Date": site.date(0), "N": "1"],
            to: site.request("GET", ["Foo": "1"]))
        site.now += .seconds(10)
        // Of a server further away, older.
        site.receive(
            ["Cache-Control": "max-age=600", "Vary": "Bar", "Date": site.date(-100), "N": "2"],
            to: site.request("GET", ["Foo": "2", "Bar": "1"]))
        let wanted: HTTPHeaders = ["Foo": "1", "Bar": "1"]
        guard case .serve(let index, _) = site.decide(wanted) else {
            Issue.record("not served")
            return
        }
        #expect(site.stored[index].headers["N"] == "1")
    }

    @Test func storesNoCredentials() {
        var site = Site()
        let secret = "Bearer hunter2, and more"
        site.receive(
            ["Cache-Control": "max-age=60", "Vary": "Authorization, Cookie"],
            to: site.request("GET", ["Authorization": secret, "Cookie": "session=hunter2"]))
        #expect(!String(decoding: site.stored[0].bytes(), as: UTF8.self).contains("hunter2"))
        #expect(site.decide(["Authorization": secret, "Cookie": "session=hunter2"]).isServed)
        #expect(!site.decide(["Authorization": "Bearer other", "Cookie": "session=hunter2"]).isServed)
    }

    @Test func takesTooManyNamesForAll() {
        let names = (0..<10_000).map { "X-\($0)" }.joined(separator: ",")
        #expect(!reuses(["Vary": names], [:], [:]))
        #expect(reuses(["Vary": (0..<10_000).map { _ in "Foo" }.joined(separator: ",")], ["Foo": "1"], ["Foo": "1"]))
        let long = String(repeating: "x", count: 1_000_000)
        #expect(reuses(["Vary": "Foo"], ["Foo": long], ["Foo": long]))
        #expect(!reuses(["Vary": "Foo"], ["Foo": long], ["Foo": long + "y"]))
    }
}
