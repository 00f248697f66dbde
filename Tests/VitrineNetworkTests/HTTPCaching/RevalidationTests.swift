import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9111 section 4.3: asking, and what a 304 does.
struct RevalidationTests {
    private func stale(_ headers: HTTPHeaders, _ policy: HTTPCachePolicy = .standard) -> Site {
        var site = Site(policy)
        var all: HTTPHeaders = ["Cache-Control": "max-age=2"]
        all.append(contentsOf: headers)
        site.receive(all)
        site.now += .seconds(3)
        return site
    }

    @Test func asksWithAllValidators() {
        let date = Site().date(-100)
        let site = stale(["ETag": "W/\"a\"", "Last-Modified": date])
        let headers = site.decide(["X": "y"]).conditions
        #expect(headers == ["X": "y", "If-None-Match": "W/\"a\"", "If-Modified-Since": date])
        #expect(stale(["Last-Modified": "foo"]).decide(["X": "y"]) == .revalidate(0, headers: ["X": "y"]))
        #expect(stale(["ETag": "unquoted"]).decide().conditions == ["If-None-Match": "unquoted"])
    }

    @Test func asksInPlaceOfTheRequester() {
        let site = stale(["ETag": "\"a\""])
        let own: HTTPHeaders = ["If-None-Match": "\"b\"", "If-Modified-Since": "x", "Range": "bytes=0-1"]
        #expect(site.decide(own).conditions == ["Range": "bytes=0-1", "If-None-Match": "\"a\""])
        // Without a validator of our own its conditions are as good as any.
        #expect(stale([:]).decide(own) == .revalidate(0, headers: own))
        #expect(Site().decide(own) == .forward)
    }

    @Test(arguments: ["no-cache", "max-age=1000, No-CaChE", "no-cache, immutable, max-age=1000"])
    func asksAlwaysWhenTold(_ line: String) {
        var site = Site()
        site.receive(["Cache-Control": line, "Expires": site.date(1000), "ETag": "\"a\""])
        #expect(site.decide() == .revalidate(0, headers: ["If-None-Match": "\"a\""]))
    }

    @Test func refreshesWhatIsConfirmed() {
        var site = stale([
            "ETag": "\"a\"", "X-Old": "1", "X-Both": "1", "Content-Length": "5", "Age": "7",
            "Content-Encoding": "gzip",
        ])
        let update = site.receive(
            [
                "ETag": "\"a\"", "X-Both": "2", "x-both": "3", "X-New": "4", "Cache-Control": "max-age=60",
                "Content-Length": "10", "Content-Encoding": "br", "Content-Range": "bytes 0-1/2",
                "Connection": "X-Hop", "X-Hop": "5",
            ],
            status: 304, revalidating: 0)
        #expect(update.answer == .confirmed(0))
        let headers = site.stored[0].headers
        #expect(headers.all("X-Both") == ["2", "3"])
        #expect(headers["X-Old"] == "1")
        #expect(headers["X-New"] == "4")
        #expect(headers["Content-Length"] == "5")
        #expect(headers["Content-Encoding"] == "gzip")
        for name in ["Age", "Content-Range", "X-Hop", "Connection"] { #expect(!headers.contains(name)) }
        #expect(site.stored[0].bodyLength == 1000)
        site.now += .seconds(59)
        #expect(site.decide().isServed)
        site.now += .seconds(1)
        #expect(!site.decide().isServed)
    }

    private static let confirmations: [(HTTPHeaders, HTTPHeaders, Bool)] = [
        (["ETag": "\"a\""], ["ETag": "\"a\""], true), (["ETag": "\"a\""], [:], true),
        (["ETag": "\"a\""], ["ETag": "W/\"a\""], true), (["ETag": "W/\"a\""], ["ETag": "\"a\""], true),
        (["ETag": "\"a\""], ["ETag": "\"b\""], false), (["ETag": "\"a\""], ["ETag": "\"A\""], false),
        (["Last-Modified": Site().date(-5)], ["Last-Modified": Site().date(-5)], true),
        (["Last-Modified": Site().date(-5)], ["Last-Modified": Site().date(-4)], false),
        (["Last-Modified": Site().date(-5)], [:], true), (["Last-Modified": Site().date(-5)], ["ETag": "\"a\""], false),
        (
            ["ETag": "\"a\"", "Last-Modified": Site().date(-5)], ["ETag": "\"a\"", "Last-Modified": Site().date(-4)],
            true
        ),
    ]

    @Test(arguments: confirmations.indices)
    func believesConfirmationsOfWhatItHas(_ index: Int) {
        let (stored, answer, isBelieved) = Self.confirmations[index]
        var site = stale(stored)
        let update = site.receive(answer, status: 304, revalidating: 0)
        #expect(update.answer == (isBelieved ? .confirmed(0) : .repetition))
        #expect(site.stored.isEmpty == !isBelieved)
    }

    @Test func refreshesAllThatHaveTheSameStrongTag() {
        for (tag, count) in [("\"a\"", 2), ("W/\"a\"", 1), ("a", 1)] {
            var site = Site()
            for value in ["1", "2"] {
                site.receive(
                    ["Cache-Control": "max-age=2", "Vary": "Foo", "ETag": tag],
                    to: site.request("GET", ["Foo": value]))
            }
            site.now += .seconds(3)
            site.receive(
                ["ETag": tag, "Cache-Control": "max-age=60"], status: 304,
                to: site.request("GET", ["Foo": "1"]), revalidating: 0)
            #expect(["1", "2"].filter { site.decide(["Foo": $0]).isServed }.count == count)
        }
    }

    @Test func takesAConfirmationNobodyAskedForAsIs() {
        var site = stale(["ETag": "\"a\""])
        #expect(site.receive(["ETag": "\"a\""], status: 304).answer == .response)
        var exchange = CacheExchange(
            request: site.request(), status: 304, headers: [:], requestTime: .zero, responseTime: .zero,
            stored: site.stored)
        exchange.revalidated = 99
        #expect(Site().cache.update(after: exchange).answer == .response)
    }

    @Test func takesTheAnswerToTheRequestersConditionAsIs() {
        var site = stale([:])
        #expect(site.decide(["If-None-Match": "\"x\""]).conditions == ["If-None-Match": "\"x\""])
        let update = site.receive(["ETag": "\"x\""], status: 304, revalidating: 0)
        #expect(update.answer == .response)
        #expect(update.refreshed.isEmpty)
    }

    @Test func removesWhatIsConfirmedButMayNotBeKept() {
        var site = stale(["ETag": "\"a\""])
        let update = site.receive(["Cache-Control": "no-store"], status: 304, revalidating: 0)
        #expect(update.answer == .confirmed(0))
        #expect(update.refreshed[0] != nil)
        #expect(site.stored.isEmpty)
    }

    @Test func replacesWhatHasChanged() {
        var site = stale(["ETag": "\"a\""])
        let update = site.receive(["ETag": "\"b\"", "Cache-Control": "max-age=60"], revalidating: 0)
        #expect(update.removed == [0])
        #expect(site.stored.map(\.entityTag) == ["\"b\""])
    }

    @Test func takesAPartOfSomethingElseForAChange() {
        var site = stale(["ETag": "\"a\""])
        site.receive(["ETag": "\"a\"", "Content-Range": "bytes 0-1/5"], status: 206, revalidating: 0)
        #expect(site.stored.count == 1)
        let update = site.receive(["ETag": "\"b\"", "Content-Range": "bytes 0-1/5"], status: 206, revalidating: 0)
        #expect(update.answer == .response)
        #expect(site.stored.isEmpty)
    }

    @Test func asksOnceInvalidated() {
        var site = Site()
        site.receive(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        site.stored[0] = site.stored[0].invalidated()
        #expect(!site.decide().isServed)
        site.receive(["ETag": "\"a\""], status: 304, revalidating: 0)
        #expect(site.decide().isServed)
    }

    private static let unsendable = [
        "\"a\u{7F}\"", "\"a\u{1}b\"", "\"a\u{9}b\u{B}\"", "\"\u{1F600}\u{0}\"", "\"a\rb\"", "\"a\nb: c\"",
        "\"" + String(repeating: "e", count: 60_000) + "\"",
    ]

    /// What cannot be sent as it came cannot be asked about.
    @Test(arguments: unsendable) func validatorsThatCannotBeSentAreNotStored(_ tag: String) throws {
        var site = Site()
        site.receive(["ETag": tag, "Cache-Control": "max-age=60"])
        let stored = try #require(site.stored.first)
        #expect(!stored.headers.contains("ETag"))
        #expect(ResumableDownload(length: 5, of: stored) == nil)
        // Nor do they come with a confirmation.
        site.receive(["ETag": "\"1\"", "Cache-Control": "max-age=60"])
        site.receive(["ETag": tag, "Cache-Control": "max-age=60"], status: 200)
        site.now += .seconds(61)
        #expect(site.decide().conditions == [:])
    }

    /// Earlier versions kept them.
    @Test(arguments: unsendable) func storedValidatorsThatCannotBeSentAreLeftOut(_ tag: String) throws {
        var site = Site()
        let placeholder = "\"" + String(repeating: "x", count: tag.utf8.count) + "\""
        site.receive(["Cache-Control": "max-age=60", "X-Placeholder": placeholder, "Last-Modified": site.date(-500)])
        // As one stored by an earlier version: the same bytes under another name.
        var bytes = try #require(site.stored.first).bytes()
        let name = Array("X-Placeholder".utf8)
        let place = try #require(bytes.firstRange(of: name))
        bytes.replaceSubrange((place.lowerBound - 1)..<place.upperBound, with: [4] + Array("ETag".utf8))
        let value = try #require(bytes.firstRange(of: Array(placeholder.utf8)))
        // The text's length stands before it, in one byte up to 127 and in more above that.
        var length: [UInt8] = [], rest = tag.utf8.count
        while rest >= 0x80 {
            length.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        length.append(UInt8(rest))
        var old: [UInt8] = []
        rest = placeholder.utf8.count
        while rest >= 0x80 {
            old.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        old.append(UInt8(rest))
        bytes.replaceSubrange((value.lowerBound - old.count)..<value.upperBound, with: length + Array(tag.utf8))
        site.stored = [try StoredResponse(bytes: bytes)]
        #expect(site.stored[0].headers["ETag"] == tag)
        site.now += .seconds(61)
        #expect(site.decide().conditions == ["If-Modified-Since": site.date(-561)])
    }
}
