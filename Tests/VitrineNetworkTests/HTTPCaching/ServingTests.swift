import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9111 section 4, RFC 9110 sections 13 and 14: answers made from what is stored.
struct ServingTests {
    private let date = Site().date(-1000)

    private func serve(
        _ request: HTTPHeaders, _ stored: HTTPHeaders = [:], status: Int = 200, method: String = "GET",
        length: Int? = 11
    ) -> ServedHead {
        var site = Site()
        var headers: HTTPHeaders = ["Cache-Control": "max-age=60", "Content-Type": "image/png", "Content-Length": "11"]
        headers.append(contentsOf: stored)
        site.receive(headers, status: status, bodyLength: length)
        site.now += .seconds(5)
        return site.cache.head(of: site.stored[0], for: site.request(method, request), now: site.now)
    }

    @Test func tellsItsAge() {
        #expect(serve([:]).headers["Age"] == "5")
        #expect(serve([:], ["Age": "30", "age": "1"]).headers.all("Age") == ["35"])
        #expect(serve([:], ["Date": Site().date(0)]).headers["Date"] == Site().date(0))
        #expect(serve([:], ["Age": "99999999999999"]).headers["Age"] == "2147483648")
    }

    @Test(arguments: [
        ("\"a\"", "\"a\"", 304), ("\"b\", W/\"a\" ,\"c\"", "\"a\"", 304), ("W/\"a\"", "W/\"a\"", 304),
        ("*", "\"a\"", 304),
        ("\"a,b\"", "\"a,b\"", 304), ("a", "a", 304), ("\"é\"", "\"é\"", 304), ("\"b\"", "\"a\"", 200),
        ("a", "\"a\"", 200), ("\"a\"", "a", 200), ("\"A\"", "\"a\"", 200), ("", "\"a\"", 200), (",", "\"a\"", 200),
    ])
    func comparesTags(_ wanted: String, _ tag: String, _ status: Int) {
        // The tag goes before the date, whatever that says.
        for since in [date, Site().date(0)] {
            let head = serve(
                ["If-None-Match": wanted, "If-Modified-Since": since],
                ["ETag": tag, "Last-Modified": Site().date(-500)])
            #expect(head.status == status)
            #expect(head.body == (status == 304 ? .none : .whole))
        }
    }

    @Test func comparesDates() {
        let stored: HTTPHeaders = ["Last-Modified": date, "Date": Site().date(-900)]
        #expect(serve(["If-Modified-Since": date], stored).status == 304)
        #expect(serve(["If-Modified-Since": Site().date(-999)], stored).status == 304)
        #expect(serve(["If-Modified-Since": Site().date(-1001)], stored).status == 200)
        #expect(serve(["If-Modified-Since": "foo"], stored).status == 200)
        // Without a time of change the time it was made counts.
        #expect(serve(["If-Modified-Since": Site().date(-900)], ["Date": Site().date(-900)]).status == 304)
        #expect(serve(["If-Modified-Since": Site().date(-901)], ["Date": Site().date(-900)]).status == 200)
    }

    @Test func saysLittleWhenNothingChanged() {
        let head = serve(["If-None-Match": "\"a\""], ["ETag": "\"a\"", "Vary": "X", "X-Other": "1"])
        #expect(Set(head.headers.map(\.name)) == ["Cache-Control", "ETag", "Vary", "Age"])
        #expect(serve(["If-None-Match": "*"], status: 404).status == 404)
    }

    @Test(
        arguments: [
            ("bytes=0-1", 206, 0..<2, "bytes 0-1/11"), ("bytes=1-", 206, 1..<11, "bytes 1-10/11"),
            ("bytes=-1", 206, 10..<11, "bytes 10-10/11"), ("Bytes=0-999", 206, 0..<11, "bytes 0-10/11"),
            ("bytes=-999", 206, 0..<11, "bytes 0-10/11"),
            ("bytes=10-9223372036854775807", 206, 10..<11, "bytes 10-10/11"),
            ("bytes=11-", 416, nil, "bytes */11"), ("bytes=11-20", 416, nil, "bytes */11"),
            ("bytes=-0", 416, nil, "bytes */11"),
            ("bytes=2-1", 200, nil, nil), ("bytes=", 200, nil, nil), ("bytes=-", 200, nil, nil),
            ("bytes=0-1,3-4", 200, nil, nil),
            ("bytes=a-b", 200, nil, nil), ("lines=0-1", 200, nil, nil), ("bytes=0-99999999999999999999", 200, nil, nil),
            ("bytes=--1", 200, nil, nil), ("bytes=1--1", 200, nil, nil),
        ] as [(String, Int, Range<Int>?, String?)])
    func givesParts(_ range: String, _ status: Int, _ part: Range<Int>?, _ contentRange: String?) {
        let head = serve(["Range": range])
        #expect(head.status == status)
        #expect(head.body == (part.map(ServedHead.Body.part) ?? (status == 416 ? .none : .whole)))
        #expect(head.headers["Content-Range"] == contentRange)
        if let part { #expect(head.headers["Content-Length"] == String(part.count)) }
    }

    @Test func givesPartsOfWhatIsKnown() {
        #expect(serve(["Range": "bytes=0-1"], length: nil).body == .whole)
        #expect(serve(["Range": "bytes=0-1"], length: 0).status == 416)
        #expect(serve(["Range": "bytes=0-1"], status: 404).body == .whole)
        #expect(serve(["Range": "bytes=0-1"], method: "HEAD").body == .none)
        #expect(serve([:], method: "HEAD").status == 200)
        #expect(serve(["Range": "bytes=0-1"], ["A": "1"]).headers["A"] == "1")
    }

    @Test func givesPartsOnlyOfWhatTheRequesterHas() {
        func status(_ condition: String, _ stored: HTTPHeaders) -> Int {
            serve(["Range": "bytes=0-1", "If-Range": condition], stored).status
        }
        #expect(status("\"a\"", ["ETag": "\"a\""]) == 206)
        #expect(status("\"b\"", ["ETag": "\"a\""]) == 200)
        #expect(status("W/\"a\"", ["ETag": "W/\"a\""]) == 200)
        #expect(status(date, ["Last-Modified": date]) == 206)
        #expect(status(Site().date(0), ["Last-Modified": date]) == 200)
        #expect(status("\"a\"", [:]) == 200)
    }
}
