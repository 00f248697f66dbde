import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Synchronization
import Testing
import VitrineImaging
import VitrineServer

@Suite struct HTTPServiceTests {
    private static let lake = "/insecure/w:200/plain/lake.jpg"

    // MARK: Routes

    @Test func imageIsMadeOnceAndThenSentFromMemory() async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.router(backend) { client async throws in
            let first = try await client.execute(uri: Self.lake, method: .get)
            #expect(first.status == .ok)
            #expect(first.headers[.contentType] == "image/jpeg")
            #expect(first.headers[.cacheStatus] == "vitrine; fwd=uri-miss; stored")
            let second = try await client.execute(uri: Self.lake, method: .get)
            #expect(second.body == first.body)
            #expect(second.headers[.cacheStatus] == "vitrine; hit; detail=memory")
            #expect(second.headers[.eTag] == first.headers[.eTag])
            #expect(second.headers[.contentLength] == String(second.body.readableBytes))
            #expect(backend.renders == 1 && backend.parses == 1)
        }
    }

    @Test func signatureIsMadeOfThePathAsSent() async throws {
        let backend = MemoryBackend(signs: true)
        try await HTTPTestServer.router(backend, at: "/images") { client async throws in
            for rest in [
                "/w:1/plain/a%2Fb.jpg", "/w:1/plain/a%2fb.jpg", "/w:1/plain/../x//y/./z.jpg", "/w:1/plain/http://h/%20",
                "/w:1/plain/%F0%9F%8C%84;a=1,2", "/plain/K",
            ] {
                let signed = "/images/" + MemoryBackend.signature(of: rest) + rest
                #expect(try await client.execute(uri: signed, method: .get).status == .ok)
                // Known targets are verified like unknown ones.
                #expect(try await client.execute(uri: signed, method: .get).status == .ok)
                let other = try await client.execute(uri: signed + "x", method: .get)
                #expect(other.status == .forbidden)
                #expect(other.text.contains(#""code":"bad-signature","status":403"#))
            }
            // U+212A is canonically equivalent to K.
            let signature = MemoryBackend.signature(of: "/plain/K")
            let kelvin = try await client.execute(uri: "/images/\(signature)/plain/\u{212A}", method: .get)
            #expect(kelvin.status == .forbidden)
        }
    }

    @Test func mountPassesOnWhatIsNotBelowIt() async throws {
        try await HTTPTestServer.router(at: "/images/") { client async throws in
            #expect(try await client.execute(uri: "/own", method: .get).text == "own")
            #expect(try await client.execute(uri: "/later", method: .get).text == "later")
            #expect(try await client.execute(uri: "/imagesx/insecure/plain/a", method: .get).status == .notFound)
            #expect(try await client.execute(uri: "/images" + Self.lake, method: .get).status == .ok)
            #expect(try await client.execute(uri: "/images/health", method: .get).status == .ok)
            for path in ["/images", "/images/", "/images?a"] {
                let answer = try await client.execute(uri: path, method: .get)
                #expect(answer.status == .notFound)
                #expect(answer.text.contains(#""code":"not-found""#))
            }
        }
        try await HTTPTestServer.router(at: "/") { client async throws in
            #expect(try await client.execute(uri: "/own", method: .get).text == "own")
            #expect(try await client.execute(uri: "/later", method: .get).status == .badRequest)
        }
    }

    @Test func thumborRouteKeepsItsQuery() async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.router(backend) { client async throws in
            for path in ["/thumbor/unsafe/a.jpg", "/thumbor/unsafe/a.jpg?v=1", "/thumbor/unsafe/a.jpg?v=2"] {
                #expect(try await client.execute(uri: path, method: .get).status == .ok)
            }
            #expect(backend.renders == 3)
            // The native grammar has no query.
            for path in [Self.lake, Self.lake + "?v=1", Self.lake + "?v=2"] {
                #expect(try await client.execute(uri: path, method: .get).status == .ok)
            }
            #expect(backend.renders == 4)
        }
        try await HTTPTestServer.router(backend, { $0.thumborPrefix = "/t" }) { client async throws in
            #expect(try await client.execute(uri: "/t/unsafe/a.jpg", method: .get).status == .ok)
            #expect(try await client.execute(uri: "/thumbor/unsafe/a.jpg", method: .get).status == .badRequest)
        }
        try await HTTPTestServer.router(backend, { $0.thumborPrefix = nil }) { client async throws in
            #expect(try await client.execute(uri: "/thumbor/unsafe/a.jpg", method: .get).status == .notFound)
        }
    }

    @Test func informationIsJSON() async throws {
        let backend = MemoryBackend(signs: true)
        try await HTTPTestServer.router(backend) { client async throws in
            let rest = "/plain/lake.jpg"
            let path = "/info/" + MemoryBackend.signature(of: rest) + rest
            let answer = try await client.execute(uri: path, method: .get)
            #expect(answer.status == .ok && answer.text == #"{"width":640}"#)
            #expect(answer.headers[.contentType] == "application/json")
            #expect(answer.headers[.vary] == nil)
            let same = try await client.execute(uri: path, method: .get, headers: [.ifNoneMatch: "\"info\""])
            #expect(same.status == .notModified)
            #expect(try await client.execute(uri: "/info/x/plain/lake.jpg", method: .get).status == .forbidden)
        }
    }

    @Test func healthAnswersWithoutTheBackend() async throws {
        let backend = MemoryBackend(signs: true)
        try await HTTPTestServer.router(backend) { client async throws in
            let answer = try await client.execute(uri: "/health", method: .get)
            #expect(answer.status == .ok && answer.text == "{\"status\":\"ok\"}\n")
            #expect(answer.headers[.cacheControl] == "no-store")
            #expect(try await client.execute(uri: "/health", method: .head).body.readableBytes == 0)
            #expect(backend.parses == 0)
        }
    }

    // MARK: Methods and bodies

    @Test func headHasTheFieldsOfGet() async throws {
        try await HTTPTestServer.router { client async throws in
            let get = try await client.execute(uri: Self.lake, method: .get)
            let head = try await client.execute(uri: Self.lake, method: .head)
            #expect(head.body.readableBytes == 0)
            for name in [HTTPField.Name.contentLength, .contentType, .eTag, .cacheControl, .vary, .lastModified] {
                #expect(head.headers[name] == get.headers[name] && get.headers[name] != nil)
            }
            let error = try await client.execute(uri: "/insecure/plain/missing", method: .head)
            #expect(error.status == .notFound && error.body.readableBytes == 0)
            #expect(error.headers[.contentLength] != "0")
        }
    }

    @Test(arguments: [HTTPRequest.Method.post, .put, .delete, .patch, .trace, .connect])
    func otherMethodsAreNotAllowed(method: HTTPRequest.Method) async throws {
        try await HTTPTestServer.router { client async throws in
            let answer = try await client.execute(uri: Self.lake, method: method)
            #expect(answer.status == .methodNotAllowed)
            #expect(answer.headers[.allow] == "GET, HEAD, OPTIONS")
            #expect(answer.text.contains(#""code":"method-not-allowed""#))
        }
    }

    @Test func bodyOfAGetIsRefused() async throws {
        try await HTTPTestServer.router { client async throws in
            let body = ByteBuffer(string: "x")
            let answer = try await client.execute(uri: Self.lake, method: .get, body: body)
            #expect(answer.status == .contentTooLarge)
            #expect(answer.headers[.connection] == "close")
            #expect(answer.text.contains(#""code":"body-not-allowed""#))
            let empty = try await client.execute(uri: Self.lake, method: .get, headers: [.contentLength: "0"])
            #expect(empty.status == .ok)
            let chunked = try await client.execute(
                uri: Self.lake, method: .get, headers: [.transferEncoding: "chunked"])
            #expect(chunked.status == .contentTooLarge)
        }
    }

    @Test func optionsTellsWhatIsAllowed() async throws {
        try await HTTPTestServer.router { client async throws in
            let answer = try await client.execute(uri: Self.lake, method: .options)
            #expect(answer.status == .noContent)
            #expect(answer.headers[.allow] == "GET, HEAD, OPTIONS")
            #expect(answer.headers[.accessControlAllowOrigin] == nil)
        }
    }

    @Test func originsAreAllowedByConfiguration() async throws {
        let name = HTTPField.Name.accessControlAllowOrigin
        try await HTTPTestServer.router(MemoryBackend(), { $0.allowedOrigins = ["*"] }) { client async throws in
            let answer = try await client.execute(uri: Self.lake, method: .get)
            #expect(answer.headers[name] == "*" && answer.headers[.vary] == "Accept")
            let preflight = try await client.execute(uri: Self.lake, method: .options)
            #expect(preflight.headers[name] == "*")
            #expect(preflight.headers[.accessControlAllowMethods] == "GET, HEAD, OPTIONS")
            let error = try await client.execute(uri: "/insecure/plain/missing", method: .get)
            #expect(error.headers[name] == "*")
        }
        let change: (inout ImageHTTPConfiguration) -> Void = { $0.allowedOrigins = ["https://a.example"] }
        try await HTTPTestServer.router(MemoryBackend(), change) { client async throws in
            for _ in 0..<2 {
                let good = try await client.execute(
                    uri: Self.lake, method: .get, headers: [.origin: "https://a.example"])
                #expect(good.headers[name] == "https://a.example" && good.headers[.vary] == "Accept, Origin")
                let bad = try await client.execute(
                    uri: Self.lake, method: .get, headers: [.origin: "https://b.example"])
                #expect(bad.headers[name] == nil && bad.headers[.vary] == "Accept, Origin")
            }
            let error = try await client.execute(uri: "/insecure/plain/missing", method: .get)
            #expect(error.headers[.vary] == "Origin")
        }
    }

    // MARK: Negotiation

    @Test func formatFollowsAcceptAndVarySaysSo() async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.router(backend) { client async throws in
            for (accept, type) in [
                ("image/avif,image/webp,*/*", "image/avif"), ("image/webp,*/*", "image/webp"), ("*/*", "image/jpeg"),
                ("image/png", "image/png"), ("text/plain", "image/jpeg"),
            ] {
                for _ in 0..<2 {
                    let answer = try await client.execute(uri: Self.lake, method: .get, headers: [.accept: accept])
                    #expect(answer.headers[.contentType] == type)
                    #expect(answer.headers[.vary] == "Accept")
                    #expect(answer.text.hasPrefix(type.dropFirst(6)))
                }
            }
            #expect(try await client.execute(uri: Self.lake, method: .get).headers[.vary] == "Accept")
            let fixed = try await client.execute(
                uri: Self.lake + "@webp", method: .get, headers: [.accept: "image/avif"])
            #expect(fixed.headers[.contentType] == "image/webp" && fixed.headers[.vary] == nil)
            let raw = try await client.execute(
                uri: "/insecure/raw:1/plain/lake.jpg", method: .get, headers: [.accept: "image/avif"])
            #expect(raw.headers[.contentType] == "image/jpeg" && raw.headers[.vary] == nil)
        }
        let off: (inout ImageHTTPConfiguration) -> Void = { $0.negotiation = FormatNegotiation(formats: []) }
        try await HTTPTestServer.router(backend, off) { client async throws in
            let answer = try await client.execute(uri: Self.lake, method: .get, headers: [.accept: "image/avif"])
            #expect(answer.headers[.contentType] == "image/jpeg" && answer.headers[.vary] == nil)
        }
    }

    @Test func clientThatAcceptsNothingIsRefusedIfConfigured() async throws {
        try await HTTPTestServer.router(MemoryBackend(), { $0.refusesUnacceptable = true }) { client async throws in
            let answer = try await client.execute(uri: Self.lake, method: .get, headers: [.accept: "text/html"])
            #expect(answer.status == .notAcceptable)
            #expect(answer.headers[.vary] == "Accept" && answer.headers[.cacheControl] == "no-store")
            let fixed = try await client.execute(uri: Self.lake + "@png", method: .get, headers: [.accept: "text/html"])
            #expect(fixed.status == .ok)
        }
    }

    @Test func hintsMakeResultsOfTheirOwn() async throws {
        let backend = MemoryBackend()
        let dpr = HTTPField.Name("Sec-CH-DPR")!, width = HTTPField.Name("Sec-CH-Width")!
        try await HTTPTestServer.router(backend, { $0.clientHints = ClientHints() }) { client async throws in
            let plain = try await client.execute(uri: "/insecure/plain/a", method: .get)
            #expect(plain.headers[.vary] == "Accept, Sec-CH-DPR, DPR, Sec-CH-Width, Width, Save-Data")
            #expect(plain.headers[.acceptCH] == "Sec-CH-DPR, DPR, Sec-CH-Width, Width, Save-Data")
            #expect(plain.text.contains("a w0 q0 d1.0"))
            for value in ["1.9", "2", "1.6"] {
                let hinted = try await client.execute(
                    uri: "/insecure/plain/a", method: .get, headers: [dpr: value, width: "600"])
                #expect(hinted.text.contains("a w320 q0 d2.0"))
            }
            #expect(backend.renders == 2)
            let again = try await client.execute(uri: "/insecure/plain/a", method: .get)
            #expect(again.text == plain.text)
        }
        try await HTTPTestServer.router(backend) { client async throws in
            let ignored = try await client.execute(uri: "/insecure/plain/a", method: .get, headers: [dpr: "2"])
            #expect(ignored.text.contains("d1.0") && ignored.headers[.acceptCH] == nil)
        }
    }

    // MARK: Conditions and ranges

    @Test func unchangedImageIsNotSentAgain() async throws {
        try await HTTPTestServer.router { client async throws in
            let first = try await client.execute(uri: Self.lake, method: .get)
            let tag = try #require(first.headers[.eTag])
            #expect(tag.hasPrefix("\"") && tag.hasSuffix("\""))
            for condition in [tag, "W/" + tag, "\"x\", " + tag, "*"] {
                for method in [HTTPRequest.Method.get, .head] {
                    let answer = try await client.execute(
                        uri: Self.lake, method: method, headers: [.ifNoneMatch: condition])
                    #expect(answer.status == .notModified && answer.body.readableBytes == 0)
                    for name in [HTTPField.Name.eTag, .cacheControl, .vary] {
                        #expect(answer.headers[name] == first.headers[name])
                    }
                    #expect(answer.headers[.contentLength] == nil && answer.headers[.contentType] == nil)
                }
            }
            let date: HTTPFields = [.ifModifiedSince: try #require(first.headers[.lastModified])]
            #expect(try await client.execute(uri: Self.lake, method: .get, headers: date).status == .notModified)
            let changed = try await client.execute(uri: Self.lake, method: .get, headers: [.ifNoneMatch: "\"x\""])
            #expect(changed.status == .ok && changed.body == first.body)
            let webp = try await client.execute(
                uri: Self.lake, method: .get, headers: [.ifNoneMatch: tag, .accept: "image/webp"])
            #expect(webp.status == .ok && webp.headers[.contentType] == "image/webp")
        }
    }

    @Test func partIsSent() async throws {
        try await HTTPTestServer.router { client async throws in
            let whole = try await client.execute(uri: Self.lake, method: .get)
            let count = whole.body.readableBytes
            #expect(whole.headers[.acceptRanges] == "bytes")
            let part = try await client.execute(uri: Self.lake, method: .get, headers: [.range: "bytes=3-6"])
            #expect(part.status == .partialContent && part.text == String(whole.text.dropFirst(3).prefix(4)))
            #expect(part.headers[.contentRange] == "bytes 3-6/\(count)")
            #expect(part.headers[.contentLength] == "4" && part.headers[.eTag] == whole.headers[.eTag])
            let end = try await client.execute(uri: Self.lake, method: .get, headers: [.range: "bytes=-5"])
            #expect(end.text == String(whole.text.suffix(5)))
            let beyond = try await client.execute(uri: Self.lake, method: .get, headers: [.range: "bytes=5000-"])
            #expect(beyond.status == .rangeNotSatisfiable && beyond.headers[.contentRange] == "bytes */\(count)")
            for text in ["bytes=0-1,3-4", "bytes=x", "lines=0-1"] {
                let answer = try await client.execute(uri: Self.lake, method: .get, headers: [.range: text])
                #expect(answer.status == .ok && answer.body == whole.body)
            }
            let old = try await client.execute(
                uri: Self.lake, method: .get, headers: [.range: "bytes=0-1", .ifRange: "\"old\""])
            #expect(old.status == .ok)
            let head = try await client.execute(uri: Self.lake, method: .head, headers: [.range: "bytes=0-1"])
            #expect(head.status == .ok && head.headers[.contentLength] == String(count))
            let same = try await client.execute(
                uri: Self.lake, method: .get,
                headers: [.range: "bytes=0-1", .ifNoneMatch: try #require(whole.headers[.eTag])])
            #expect(same.status == .notModified)
        }
    }

    // MARK: Cache fields

    @Test func lifetimeIsThatOfTheConfiguration() async throws {
        try await HTTPTestServer.router(MemoryBackend(), {
            $0.cacheControl.maximumAge = 600
            $0.cacheControl.isImmutable = true
        }) { client async throws in
            for _ in 0..<2 {
                let answer = try await client.execute(uri: Self.lake, method: .get)
                #expect(answer.headers[.cacheControl] == "public, max-age=600, immutable")
            }
            let stale = try await client.execute(uri: "/insecure/plain/stale", method: .get)
            #expect(stale.headers[.cacheControl] == "public, max-age=10")
            #expect(stale.headers[.cacheStatus] == "vitrine; hit; detail=stale")
            let disk = try await client.execute(uri: "/insecure/plain/disk", method: .get)
            #expect(disk.headers[.cacheStatus] == "vitrine; hit; detail=disk")
        }
    }

    @Test func lifetimeFollowsTheSourceIfConfigured() async throws {
        try await HTTPTestServer.router(MemoryBackend(), { $0.cacheControl.followsSource = true }) { client async throws in
            func control(_ source: String) async throws -> String? {
                try await client.execute(uri: "/insecure/plain/\(source)", method: .get).headers[.cacheControl]
            }
            #expect(try await control("fresh") == "public, max-age=600")
            #expect(try await control("private") == "private, max-age=31536000")
            #expect(try await control("secret") == "no-store")
            #expect(try await control("lake.jpg") == "public, max-age=31536000")
        }
    }

    @Test func lifetimeEndsWithTheURL() async throws {
        try await HTTPTestServer.router { client async throws in
            let live = try await client.execute(uri: "/insecure/exp:1000090/plain/a", method: .get)
            #expect(live.headers[.cacheControl] == "public, max-age=90")
            for end in ["1000000", "999999", "0"] {
                let answer = try await client.execute(uri: "/insecure/exp:\(end)/plain/a", method: .get)
                #expect(answer.status == .notFound && answer.text.contains(#""code":"expired""#))
            }
        }
    }

    @Test func remainingLifetimeIsCountedAnewEachSecond() async throws {
        let clock = Mutex(HTTPTestServer.now)
        var configuration = ImageHTTPConfiguration()
        configuration.cacheControl.followsSource = true
        let service = ImageService(MemoryBackend(), configuration: configuration, now: { clock.withLock { $0 } })
        let application = Application(responder: ImageResponder(service, context: BasicRequestContext.self))
        try await application.test(.router) { client async throws in
            for (time, age) in [(0, 600), (0, 600), (1, 599), (599, 1), (700, 0)] {
                clock.withLock { $0 = HTTPTestServer.now + Int64(time) }
                let answer = try await client.execute(uri: "/insecure/plain/fresh", method: .get)
                #expect(answer.headers[.cacheControl] == "public, max-age=\(age)")
            }
        }
    }

    @Test func fieldsOfMemoryHitsAreThoseOfTheResult() async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.router(backend) { client async throws in
            let first = try await client.execute(uri: "/insecure/fn:one/plain/a", method: .get)
            #expect(first.headers[.contentDisposition] == "inline; filename=\"one.jpg\"")
            let hit = try await client.execute(uri: "/insecure/fn:one/plain/a", method: .get)
            let other = try await client.execute(uri: "/insecure/fn:two/plain/a", method: .get)
            #expect(hit.headers[.contentDisposition] == "inline; filename=\"one.jpg\"")
            #expect(other.headers[.contentDisposition] == "inline; filename=\"two.jpg\"")
            backend.removeAll()
            let again = try await client.execute(uri: "/insecure/fn:two/plain/a", method: .get)
            #expect(again.headers[.cacheStatus] == "vitrine; fwd=uri-miss; stored")
        }
    }

    @Test(arguments: [
        ("fn:cat", "inline; filename=\"cat.jpg\""),
        ("att:1", "attachment; filename=\"image.jpg\""),
        ("att:1/fn:a%20b", "attachment; filename=\"a b.jpg\""),
        ("fn:%C3%A9t%C3%A9", "inline; filename=\"_t_.jpg\"; filename*=UTF-8''%C3%A9t%C3%A9.jpg"),
        ("fn:a%22%3B%20x%3D%22b", "inline; filename=\"a_; x=_b.jpg\""),
        ("fn:..%2F..%2Fetc%5Cpasswd", "inline; filename=\".._.._etc_passwd.jpg\""),
        ("fn:a%0D%0ASet-Cookie%3A%20x", "inline; filename=\"a__Set-Cookie: x.jpg\""),
        ("fn:100%25", "inline; filename=\"100_.jpg\"; filename*=UTF-8''100%25.jpg"),
    ])
    func nameIsSent(options: String, value: String) async throws {
        try await HTTPTestServer.router { client async throws in
            let answer = try await client.execute(uri: "/insecure/\(options)/plain/a", method: .get)
            #expect(answer.headers[.contentDisposition] == value)
        }
    }

    @Test func sourcesCannotRunScripts() async throws {
        try await HTTPTestServer.router { client async throws in
            let image = try await client.execute(uri: Self.lake, method: .get)
            #expect(image.headers[.contentSecurityPolicy]?.hasPrefix("sandbox;") == true)
            #expect(image.headers[.xContentTypeOptions] == "nosniff")
            #expect(image.headers[.contentDisposition] == nil)
            for path in ["/insecure/raw:1/plain/a.svg", "/insecure/plain/a.svg", "/insecure/raw:1/plain/lake.jpg"] {
                let answer = try await client.execute(uri: path, method: .get)
                #expect(answer.headers[.contentSecurityPolicy]?.hasPrefix("sandbox;") == true)
                #expect(answer.headers[.xContentTypeOptions] == "nosniff")
            }
            let page = try await client.execute(uri: "/insecure/raw:1/plain/page.html", method: .get)
            #expect(page.headers[.contentType] == "application/octet-stream")
        }
    }

    @Test func timingIsSentIfConfigured() async throws {
        try await HTTPTestServer.router(MemoryBackend(), { $0.sendsServerTiming = true }) { client async throws in
            let answer = try await client.execute(uri: Self.lake, method: .get)
            let timing = try #require(answer.headers[.serverTiming])
            #expect(timing.hasPrefix("fetch;dur=1.500, encode;dur=20.000, total;dur="))
        }
        try await HTTPTestServer.router { client async throws in
            #expect(try await client.execute(uri: Self.lake, method: .get).headers[.serverTiming] == nil)
        }
    }

    @Test func noOtherExperimentalFieldIsSent() async throws {
        try await HTTPTestServer.router { client async throws in
            for path in [Self.lake, Self.lake, "/insecure/plain/missing", "/health"] {
                let names = try await client.execute(uri: path, method: .get).headers.map(\.name.canonicalName)
                let own = Set(names.filter { $0.hasPrefix("x-") })
                #expect(own.isSubset(of: ["x-request-id", "x-content-type-options"]))
                #expect(Set(names).count == names.count)
            }
        }
    }

    // MARK: Request identifiers

    @Test func requestIdentifierIsPassedOnIfValid() async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.router(backend) { client async throws in
            let good = "0af7651916cd43dd-8448/eb=_:.+"
            let answer = try await client.execute(uri: Self.lake, method: .get, headers: [.requestID: good])
            #expect(answer.headers[.requestID] == good && backend.identifiers == [good])
            for bad in ["", "a b", "a\"b", "<script>", String(repeating: "a", count: 129), "é"] {
                let answer = try await client.execute(uri: Self.lake, method: .get, headers: [.requestID: bad])
                let identifier = try #require(answer.headers[.requestID])
                #expect(identifier != bad && identifier.utf8.count >= 16)
            }
            let error = try await client.execute(
                uri: "/insecure/plain/missing", method: .get, headers: [.requestID: good])
            #expect(error.text.contains(#""requestID":"0af7651916cd43dd-8448/eb=_:.+""#))
            #expect(error.headers[.requestID] == good)
        }
        try await HTTPTestServer.router(backend, { $0.sendsRequestID = false }) { client async throws in
            #expect(try await client.execute(uri: Self.lake, method: .get).headers[.requestID] == nil)
        }
    }

    // MARK: Errors

    @Test(arguments: [
        ("missing", 404, "source-not-found", "public, max-age=10", nil as String?),
        ("broken", 422, "not-an-image", "public, max-age=10", nil),
        ("down", 502, "source-failed", "public, max-age=2", nil),
        ("busy", 503, "overloaded", "no-store", "7"),
        ("crash", 500, "internal", "no-store", nil),
    ])
    func errorsAreJSON(source: String, status: Int, code: String, cache: String, retryAfter: String?) async throws {
        struct Body: Decodable {
            var code: String
            var status: Int
            var reason: String
            var requestID: String
        }
        try await HTTPTestServer.router { client async throws in
            let answer = try await client.execute(uri: "/insecure/plain/\(source)", method: .get)
            #expect(answer.status.code == status)
            #expect(answer.headers[.contentType] == "application/json")
            #expect(answer.headers[.cacheControl] == cache)
            #expect(answer.headers[.retryAfter] == retryAfter)
            #expect(answer.headers[.cacheStatus] == "vitrine; fwd=miss; fwd-status=\(status)")
            let body = try JSONDecoder().decode(Body.self, from: Data(answer.text.utf8))
            #expect(body.code == code && body.status == status)
            #expect(body.requestID == answer.headers[.requestID])
            #expect(!answer.text.contains("hidden.internal") && !answer.text.contains(source + "\""))
        }
    }

    @Test func reasonIsEscaped() throws {
        let error = RequestError(400, code: "x", reason: "a\"b\\c\n\u{1}<script>&é\u{2028}")
        let text = ErrorAnswer.json(error, requestID: "r")
        #expect(!text.contains("<") && !text.contains("\u{1}") && !text.dropLast().contains("\n"))
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(object?["reason"] as? String == error.reason)
    }

    @Test func wrongURLsAreNotKept() async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.router(backend) { client async throws in
            for _ in 0..<2 {
                let answer = try await client.execute(uri: "/insecure/zoom:9/plain/a", method: .get)
                #expect(answer.status == .badRequest && answer.headers[.cacheControl] == "no-store")
            }
            #expect(backend.parses == 2)
            let long = try await client.execute(
                uri: "/insecure/plain/" + String(repeating: "a", count: 16_384), method: .get)
            #expect(long.status == .uriTooLong && backend.parses == 2)
        }
    }

    private static let fallback = ImageHTTPConfiguration.Fallback(
        bytes: ByteBuffer(string: "fallback"), mediaType: "image/png")

    @Test func fallbackReplacesChosenErrors() async throws {
        try await HTTPTestServer.router(MemoryBackend(), {
            var fallback = Self.fallback
            fallback.statuses = [404, 502]
            fallback.lifetime = 30
            $0.fallback = fallback
        }) { client async throws in
            let missing = try await client.execute(uri: "/insecure/plain/missing", method: .get)
            #expect(missing.status == .notFound && missing.text == "fallback")
            #expect(missing.headers[.contentType] == "image/png")
            #expect(missing.headers[.cacheControl] == "public, max-age=30")
            #expect(missing.headers[.cacheStatus] == "vitrine; fwd=miss; fwd-status=404; detail=fallback")
            let head = try await client.execute(uri: "/insecure/plain/missing", method: .head)
            #expect(head.headers[.contentLength] == "8" && head.body.readableBytes == 0)
            #expect(try await client.execute(uri: "/insecure/plain/broken", method: .get).text.contains("not-an-image"))
            let info = try await client.execute(uri: "/info/x/plain/missing", method: .get)
            #expect(info.text.contains("source-not-found"))
            #expect(try await client.execute(uri: "/nothing", method: .get).text.contains("bad-url"))
        }
        try await HTTPTestServer.router(MemoryBackend(), {
            var fallback = Self.fallback
            fallback.status = 200
            $0.fallback = fallback
        }) { client async throws in
            #expect(try await client.execute(uri: "/insecure/plain/down", method: .get).status == .ok)
            #expect(try await client.execute(uri: "/insecure/zoom:1/plain/a", method: .get).status == .badRequest)
        }
    }

    @Test func answersAreObserved() async throws {
        let records = Mutex<[AnswerRecord]>([])
        try await HTTPTestServer.router(MemoryBackend(), {
            $0.observe = { record in records.withLock { $0.append(record) } }
        }) { client async throws in
            for path in [
                Self.lake, Self.lake, "/insecure/plain/missing", "/health", "/info/x/plain/a", "/thumbor/unsafe/a",
            ] {
                _ = try await client.execute(uri: path, method: .get)
            }
            _ = try await client.execute(uri: Self.lake, method: .post)
        }
        let all = records.withLock { $0 }
        #expect(all.map(\.route) == [.native, .native, .native, .health, .information, .thumbor, .other])
        #expect(all.map(\.status) == [200, 200, 404, 200, 200, 200, 405])
        #expect(all.map(\.origin) == [.made, .memory, nil, nil, .made, .made, nil])
        #expect(all[0].stages.map(\.name) == ["fetch", "encode"] && all[1].stages.isEmpty)
        #expect(all[0].bytes > 100 && all[0].mediaType == "image/jpeg" && all[0].duration > .zero)
        #expect(all[2].errorCode == "source-not-found")
    }

    @Test func knownTargetsAreLimitedAndForgotten() {
        let targets = KnownTargets<Int>(capacity: 100)
        func key(_ number: Int) -> TargetKey { TargetKey(target: "/\(number)") }
        for number in 0..<1000 {
            let url = ImageURL(grammar: .native, options: ProcessingOptions(), source: "")
            targets[key(number)] = KnownTarget(route: .native, url: url, plan: number, slots: 1)
            // The first one is used all the time.
            #expect(targets[key(0)] != nil)
        }
        #expect(targets[key(999)]?.plan == 999)
        #expect((0..<1000).count { targets[key($0)] != nil } <= 101)
        targets.removeAll()
        #expect(targets[key(0)] == nil && targets[key(999)] == nil)
    }
}
