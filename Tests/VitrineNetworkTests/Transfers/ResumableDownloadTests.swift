import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// RFC 9110 sections 13.1.5 and 14: going on with what broke off.
struct PartialDownloadTests {
    private func partial(_ headers: HTTPHeaders, length: Int = 50) throws -> ResumableDownload? {
        var site = Site()
        site.receive(headers)
        return ResumableDownload(length: length, of: try #require(site.stored.first))
    }

    private static let old = Site().date(-1000)

    private static let validators: [(HTTPHeaders, String?)] = [
        (["ETag": "\"a\""], "\"a\""), (["ETag": "\"a\"", "Last-Modified": old], "\"a\""),
        (["Last-Modified": old, "Date": Site().date(0)], old),
        // Weak, doubtful, or nothing.
        (["ETag": "W/\"a\""], nil), (["ETag": "a"], nil), (["ETag": ""], nil), ([:], nil),
        (["ETag": "W/\"a\"", "Last-Modified": old, "Date": Site().date(0)], nil), (["Last-Modified": old], nil),
        (["Last-Modified": Site().date(-59), "Date": Site().date(0)], nil),
        (["Last-Modified": "foo", "Date": Site().date(0)], nil),
        (["ETag": "\"a\"", "Content-Encoding": "gzip"], nil), (["ETag": "\"a\"", "Accept-Ranges": "none"], nil),
        (["ETag": "\"a\"", "Content-Length": "49"], nil),
    ]

    @Test(arguments: validators.indices)
    func goesOnOnlyUnderAStrongValidator(_ index: Int) throws {
        let (headers, validator) = Self.validators[index]
        #expect(try partial(headers)?.validator == validator)
    }

    private static let weak: HTTPHeaders = ["ETag": "W/\"a\"", "Content-Length": "100"]

    private func compared(_ headers: HTTPHeaders, length: Int = 50, overlap: Int = 10) throws -> ResumableDownload? {
        var site = Site()
        site.receive(headers)
        return ResumableDownload(length: length, of: try #require(site.stored.first), comparing: overlap)
    }

    @Test func withoutAStrongValidatorTheEndIsAskedForAgain() throws {
        let partial = try #require(try compared(Self.weak))
        #expect(partial.validator == nil && partial.start == 40)
        #expect(partial.requestHeaders([:]) == ["Range": "bytes=40-", "Accept-Encoding": "identity"])
        // What is strong needs none of it; what is short, of unknown length or in no parts cannot have it.
        #expect(try compared(["ETag": "\"a\"", "Content-Length": "100"])?.overlap == 0)
        #expect(try compared(Self.weak, length: 10) == nil)
        #expect(try compared(["ETag": "W/\"a\""]) == nil)
        #expect(try compared(["Content-Length": "100", "Accept-Ranges": "none"]) == nil)
        #expect(try compared(["Content-Length": "49"]) == nil)
    }

    private static let answers: [(Int, HTTPHeaders, ResumableDownload.Continuation)] = [
        (206, ["Content-Range": "bytes 40-99/100", "ETag": "W/\"a\""], .append(total: 100)),
        (206, ["Content-Range": "bytes 40-99/100", "ETag": "W/\"b\""], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 40-99/100"], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 50-99/100", "ETag": "W/\"a\""], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 40-98/99", "ETag": "W/\"a\""], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 40-99/*", "ETag": "W/\"a\""], .failed(discarding: true)),
        (200, ["ETag": "W/\"a\""], .restart), (416, ["Content-Range": "bytes */50"], .failed(discarding: true)),
    ]

    @Test(arguments: answers.indices)
    func whatComesToBeComparedMustLookTheSame(_ index: Int) throws {
        let (status, headers, expected) = Self.answers[index]
        let partial = try #require(try compared(Self.weak))
        #expect(partial.continuation(status: status, headers: headers) == expected)
    }

    @Test func asksForTheRest() throws {
        let partial = try #require(try partial(["ETag": "\"a\"", "Content-Length": "100"]))
        #expect(
            partial.requestHeaders(["X": "y", "Range": "z", "Accept-Encoding": "gzip"]) == [
                "X": "y", "Range": "bytes=50-", "Accept-Encoding": "identity", "If-Range": "\"a\"",
            ])
        #expect(try self.partial(["ETag": "\"a\""], length: 0) == nil)
    }

    private static let continuations: [(Int, HTTPHeaders, ResumableDownload.Continuation)] = [
        (206, ["Content-Range": "bytes 50-99/100"], .unconfirmed), (206, ["Content-Range": "bytes 50-99/*"], .unconfirmed),
        (206, ["Content-Range": "bytes 50-99/*", "ETag": "\"a\""], .append(total: 100)),
        (206, ["Content-Range": "bytes 50-99/100", "ETag": "\"a\""], .append(total: 100)),
        (206, ["Content-Range": "bytes 50-99/100", "ETag": "\"b\""], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 50-99/100", "ETag": "W/\"a\""], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 49-99/100"], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 51-99/100"], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 0-99/100"], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 50-100/101"], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 50-99/99"], .failed(discarding: true)),
        (206, ["Content-Range": "bytes */100"], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 50-99/100", "content-range": "bytes 50-99/100"], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 50-99/100", "Content-Encoding": "gzip"], .failed(discarding: true)),
        (206, ["Content-Range": "bytes 50-99999999999999999999/*"], .failed(discarding: true)),
        (206, [:], .failed(discarding: true)),
        (200, ["ETag": "\"b\""], .restart), (416, ["Content-Range": "bytes */100"], .failed(discarding: true)),
        (503, [:], .failed(discarding: false)), (404, [:], .failed(discarding: true)),
        (302, [:], .failed(discarding: false)),
    ]

    @Test(arguments: continuations.indices)
    func neverSplicesInSilence(_ index: Int) throws {
        let (status, headers, expected) = Self.continuations[index]
        let partial = try #require(try partial(["ETag": "\"a\"", "Content-Length": "100"]))
        #expect(partial.continuation(status: status, headers: headers) == expected)
    }

    @Test func knowsThatItWasComplete() throws {
        let partial = try #require(try partial(["ETag": "\"a\"", "Content-Length": "100"], length: 100))
        #expect(partial.continuation(status: 416, headers: ["Content-Range": "bytes */100"]) == .complete)
        #expect(
            partial.continuation(status: 416, headers: ["Content-Range": "bytes */101"]) == .failed(discarding: true))
        #expect(partial.continuation(status: 416, headers: [:]) == .failed(discarding: true))
    }

    @Test func withoutALengthItIsCompleteIfTheServerConfirmsTheVersion() throws {
        let partial = try #require(try partial(["ETag": "\"a\""], length: 100))
        let range = "bytes */100"
        #expect(partial.continuation(status: 416, headers: ["Content-Range": range, "ETag": "\"a\""]) == .complete)
        for headers: HTTPHeaders in [
            ["Content-Range": range], ["Content-Range": range, "ETag": "\"b\""],
            ["Content-Range": "bytes */101", "ETag": "\"a\""], ["ETag": "\"a\""],
        ] { #expect(partial.continuation(status: 416, headers: headers) == .failed(discarding: true)) }
    }

    @Test(arguments: [
        "", "bytes", "bytes 0-1", "bytes 1-0/5", "bytes 0-5/5", "bytes -1/5", "bytes 0-/5", "bytes */*",
        "bytes 0-1/5/6",
        "bytes a-b/c", "items 0-1/5", "bytes=0-1/5", "bytes 0-9223372036854775807/*", "bytes 0-1/99999999999999999999",
    ])
    func refusesRangesThatCannotBe(_ text: String) {
        #expect(ContentRange(text) == nil)
    }
}
