import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork

/// Answers from a table, so that what is tested is what the loader above makes of it.
final class ScriptedLoader: FilteringTransport {
    typealias Script = @Sendable (HTTPRequest, Int) throws(NetworkError) -> HTTPResponse

    let requests = Recorder<HTTPRequest>()
    private let showsAddresses: Bool
    private let script: Script
    private let remoteAddress: @Sendable (String) -> String?

    /// - Parameter addresses: The address of each host, shown to the guardian before it is "connected" to.
    init(
        showsAddresses: Bool = true,
        addresses: @escaping @Sendable (String) -> String? = { _ in "93.184.216.34" }, _ script: @escaping Script
    ) {
        self.showsAddresses = showsAddresses
        remoteAddress = addresses
        self.script = script
    }

    func showsAddresses(for url: URL) -> Bool { showsAddresses }

    func load(_ request: HTTPRequest, allowing guardian: ConnectFilter?) async throws(NetworkError) -> HTTPResponse {
        let address = remoteAddress(request.url.host() ?? "")
        if let guardian, let address = address.flatMap({ IPAddress($0) }), let violation = guardian(address) {
            throw .refused(url: request.url.absoluteString, violation)
        }
        requests.add(request)
        var response = try script(request, requests.all.count)
        response.head.remoteAddress = address
        return response
    }
}

func answer(
    _ request: HTTPRequest, _ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = ""
) -> HTTPResponse {
    HTTPResponse(
        head: HTTPResponseHead(status: status, headers: headers, url: request.url), body: ResponseBody(Array(body.utf8)))
}

struct NetworkLoaderTests {
    private func request(_ text: String) throws -> HTTPRequest { HTTPRequest(url: try #require(URL(string: text))) }

    // MARK: Redirects

    @Test func followsRedirectsHopByHopAndRewritesMethods() async throws {
        let cases: [(Int, String, String)] = [
            (301, "GET", "GET"), (302, "HEAD", "HEAD"), (301, "POST", "GET"), (302, "POST", "GET"),
            (303, "POST", "GET"),
            (303, "PUT", "GET"), (303, "HEAD", "HEAD"), (307, "POST", "POST"), (308, "PUT", "PUT"), (301, "PUT", "PUT"),
        ]
        for (status, method, expected) in cases {
            let http = ScriptedLoader { (request, count) throws(NetworkError) in
                count == 1 ? answer(request, status, ["Location": "../b?x"]) : answer(request, 200, [:], "done")
            }
            var request = try request("http://a.example/x/y")
            request.method = method
            request.body = method == "POST" || method == "PUT" ? [1] : nil
            request.headers = ["Content-Type": "text/plain", "Accept": "image/*"]
            let response = try await NetworkLoader(http).load(request)
            let last = try #require(http.requests.all.last)
            #expect(last.url.absoluteString == "http://a.example/b?x")
            #expect(last.method == expected, "\(status) \(method)")
            let keepsBody = expected == "POST" || expected == "PUT"
            #expect((last.body == nil) != keepsBody)
            let keepsType = expected == method
            #expect(last.headers.contains("Content-Type") == keepsType)
            #expect(response.head.url == last.url)
            let body = try await response.body.collect()
            #expect(body == Array("done".utf8))
        }
    }

    @Test func secretsStayWithTheirSite() async throws {
        let http = ScriptedLoader { (request, count) throws(NetworkError) in
            switch count {
            case 1: answer(request, 302, ["Location": "/same"])
            case 2: answer(request, 302, ["Location": "https://a.example/other-port"])
            default: answer(request)
            }
        }
        var request = try request("http://me:pa%20ss@a.example/")
        request.headers = ["Cookie": "c", "X-Api-Key": "k", "Accept": "image/*", "Referer": "r"]
        _ = try await NetworkLoader(http).load(request)
        let sent = http.requests.all
        #expect(sent[0].headers["Authorization"] == "Basic " + Data("me:pa ss".utf8).base64EncodedString())
        #expect(sent[1].headers["X-Api-Key"] == "k")
        #expect(sent[1].headers.contains("Authorization"))
        #expect(sent[2].headers.map(\.name) == ["Accept"])
    }

    @Test func stopsLoopsAndLongChains() async throws {
        let loop = ScriptedLoader { (request, _) throws(NetworkError) in
            answer(request, 302, ["Location": request.url.path() == "/a" ? "/b" : "/a"])
        }
        let error = await failure { _ = try await NetworkLoader(loop).load(try request("http://h/a")) }
        guard case .tooManyRedirects(_, "the redirects form a loop") = error else { Issue.record("\(String(describing: error))"); return }
        #expect(loop.requests.all.count == 2)
        let chain = ScriptedLoader { (request, count) throws(NetworkError) in
            answer(request, 302, ["Location": "/\(count)"])
        }
        let long = await failure { _ = try await NetworkLoader(chain).load(try request("http://h/")) }
        guard case .tooManyRedirects(_, "there are more than 10 redirects") = long else { Issue.record("\(String(describing: long))"); return }
        #expect(chain.requests.all.count == 11)
    }

    @Test(arguments: [
        ("https://a.example/", "http://a.example/x", PolicyViolation.redirectToInsecure),
        ("http://a.example/", "http://u:p@a.example/x", .userInformation),
        ("http://a.example/", "file:///etc/passwd", .scheme("file")), ("http://a.example/", "data:,x", .scheme("data")),
        ("http://a.example/", "http://10.0.0.1/x", .redirectToPrivate("10.0.0.1")),
        ("http://a.example/", "http://[::ffff:7f00:1]/", .redirectToPrivate("::ffff:127.0.0.1")),
        ("http://a.example/", "http://inside.example/", .redirectToPrivate("192.168.0.1")),
    ])
    func refusesRedirects(_ from: String, _ to: String, _ violation: PolicyViolation) async throws {
        let http = ScriptedLoader(addresses: { $0 == "inside.example" ? "192.168.0.1" : "93.184.216.34" }) {
            (request, _) throws(NetworkError) in answer(request, 302, ["Location": to])
        }
        let error = await failure { _ = try await NetworkLoader(http).load(try request(from)) }
        guard case .refused(_, violation.description) = error else { Issue.record("\(String(describing: error))"); return }
        #expect(http.requests.all.count == 1)
    }

    @Test func privateAddressesMayRedirectAmongThemselves() async throws {
        let http = ScriptedLoader(addresses: { _ in "192.168.0.1" }) { (request, count) throws(NetworkError) in
            count == 1 ? answer(request, 302, ["Location": "http://10.0.0.1/"]) : answer(request)
        }
        #expect(try await NetworkLoader(http).load(try request("http://nas/")).head.status == 200)
    }

    // MARK: Policy

    @Test(arguments: [
        "http://127.0.0.1/", "http://[::1]/", "http://localhost/", "http://a.localhost/", "http://169.254.169.254/",
        "http://[64:ff9b::a00:1]/", "http://inside.example/", "http://a.example:8080/", "http://u@a.example/",
        "file:///etc/passwd", "data:,x", "http://127.1/", "http://[2002:7f00:1::]/",
    ])
    func publicOnlyKeepsOut(_ text: String) async throws {
        let http = ScriptedLoader(addresses: { $0 == "inside.example" ? "10.0.0.7" : "93.184.216.34" }) {
            (request, _) throws(NetworkError) in answer(request)
        }
        var configuration = NetworkLoader.Configuration()
        configuration.policy = .publicOnly
        let loader = NetworkLoader(http, configuration)
        switch await failure({ _ = try await loader.load(try request(text)) }) {
        case .refused, .invalidURL: break
        case let error: Issue.record("\(String(describing: error))")
        }
        #expect(http.requests.all.isEmpty)
        #expect(try await loader.load(try request("https://a.example/")).head.status == 200)
    }

    @Test func publicOnlyNeedsALoaderThatShowsAddresses() async throws {
        let http = ScriptedLoader(showsAddresses: false) { (request, _) throws(NetworkError) in answer(request) }
        var configuration = NetworkLoader.Configuration()
        configuration.policy = .publicOnly
        let error = await failure { _ = try await NetworkLoader(http, configuration).load(try request("http://a/")) }
        guard case .refused(_, PolicyViolation.addressesUnknown.description) = error else { Issue.record("\(String(describing: error))"); return }
        configuration.policy.trustsProxy = true
        #expect(try await NetworkLoader(http, configuration).load(try request("http://a/")).head.status == 200)
    }

    // MARK: Checks

    @Test func errorsArriveWithoutABody() async throws {
        let table: [(Int, HTTPHeaders, Int)] = [
            (404, ["Content-Type": "image/png"], -402), (500, ["Content-Type": "image/png"], -402), (304, [:], -402),
            (200, ["Content-Type": "text/html"], -400), (200, [:], -400),
            (206, ["Content-Type": "image/png", "Content-Range": "bytes 0-9/10"], -430),
        ]
        for (status, headers, code) in table {
            let http = ScriptedLoader { (request, _) throws(NetworkError) in answer(request, status, headers, "image") }
            var configuration = NetworkLoader.Configuration()
            configuration.policy.contentTypes = ["image/*"]
            configuration.retries.limit = 0
            let loader = NetworkLoader(http, configuration)
            let error = await failure { _ = try await loader.load(try request("http://h/a.jpg")) }
            #expect(error?.code == code, "\(status) \(headers)")
        }
    }

    @Test func partsMustBeThoseAskedFor() async throws {
        let table: [(String?, Bool)] = [
            ("bytes 100-199/1000", true), ("bytes 100-149/*", true), ("bytes 0-99/1000", false),
            ("bytes 100-299/1000", false), ("bytes 100-199/150", false), (nil, false), ("items 100-199/1000", false),
        ]
        for (value, isRight) in table {
            let http = ScriptedLoader { (request, _) throws(NetworkError) in
                answer(request, 206, value.map { ["Content-Range": $0] } ?? [:])
            }
            var request = try request("http://h/")
            request.range = 100..<200
            let error = await failure { [request] in _ = try await NetworkLoader(http).load(request) }
            #expect((error == nil) == isRight, "\(value ?? "nothing")")
        }
    }

    @Test(arguments: [0..<0, 100..<100, -1..<5, -5 ..< -1])
    func emptyAndNegativeRangesAreNotSent(range: Range<Int>) async throws {
        let http = ScriptedLoader { (request, _) throws(NetworkError) in answer(request, 200) }
        var request = try request("http://h/")
        request.range = range
        let error = await failure { [request] in _ = try await NetworkLoader(http).load(request) }
        guard case .invalidRequest(_, let reason)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason == "its range is empty or negative" && error?.code == -411)
        #expect(http.requests.all.isEmpty)
    }

    @Test func everyErrorHasACodeOfItsOwn() {
        let url = "http://h/", bytes = ByteCount(1)
        let errors: [NetworkError] = [
            .invalidURL(url: url, reason: ""), .invalidRequest(url: url, reason: ""), .refused(url: url, reason: ""),
            .unsupportedScheme(url: url, scheme: ""), .handler(url: url, underlying: CancellationError()),
            .nameNotResolved(url: url, host: ""), .notConnected(url: url, reason: ""), .insecure(url: url, reason: ""),
            .timedOut(url: url, .connect), .tookTooLong(url: url), .truncated(url: url, received: bytes, reason: ""),
            .invalidResponse(url: url, reason: ""), .headerTooLarge(url: url), .bodyTooLarge(url: url, limit: bytes),
            .status(url: url, HTTPResponseHead(status: 404, headers: [:], url: URL(filePath: "/"))),
            .contentType(url: url, type: nil), .tooManyRedirects(url: url, reason: ""),
            .file(.notFound(path: "/")), .busy(url: url, path: ""), .cancelled(url: url),
            .unavailable(url: url, reason: ""),
        ]
        #expect(Set(errors.map(\.code)).count == errors.count)
        #expect(NetworkError.timedOut(url: url, .idle).code == -423)
        #expect(NetworkError.timedOut(url: url, .total).code == -424)
        #expect(NetworkError.tooManyRedirects(url: url, reason: "a loop").code == -440)
    }

    @Test func codesOfResponsesNeverChangeAndPassThroughCaches() async throws {
        let url = "http://h/"
        let head = HTTPResponseHead(status: 404, headers: [:], url: URL(filePath: "/"))
        let errors: [NetworkError] = [
            .contentType(url: url, type: "text/html"), .truncated(url: url, received: ByteCount(1), reason: "it ended"),
            .status(url: url, head),
        ]
        #expect(errors.map(\.code) == [-400, -401, -402])
        let cache = ValueCache<String>(name: "none", configuration: CacheConfiguration(root: "/nonexistent"))
        for error in errors {
            let outer = await #expect(throws: CacheError.self) {
                _ = try await cache.value(forKey: "lake", levels: []) { throw error }
            }
            #expect(outer?.code == -530 && (outer?.underlying as? NetworkError)?.code == error.code)
            #expect(outer?.localizedDescription.contains(error.localizedDescription) == true)
            #expect(error.localizedDescription.contains(url))
        }
    }

    @Test func conditionalRequestsGetTheir304() async throws {
        let http = ScriptedLoader { (request, _) throws(NetworkError) in answer(request, 304, ["ETag": "\"a\""]) }
        var request = try request("http://h/")
        request.headers["If-None-Match"] = "\"a\""
        #expect(try await NetworkLoader(http).load(request).head.status == 304)
    }

    // MARK: Trying again

    @Test func repeatsWithBackoffAndJitter() async throws {
        let clock = ManualClock()
        let http = ScriptedLoader { (request, count) throws(NetworkError) in
            if count == 1 { throw .notConnected(url: "", reason: "refused") }
            return answer(request, count == 2 ? 503 : 200)
        }
        var configuration = NetworkLoader.Configuration()
        configuration.retries.base = .seconds(4)
        configuration.retries.jitter = { 0.5 }
        let loader = NetworkLoader(http, configuration, clock: clock)
        let progress = TransferProgress()
        let task = Task { try await loader.load(try request("http://h/"), progress: progress) }
        await clock.waitForSleepers()
        clock.advance(by: .milliseconds(1999))
        #expect(clock.sleeperCount == 1)
        clock.advance(by: .milliseconds(1))
        await clock.waitForSleepers()
        #expect(http.requests.all.count == 2)
        clock.advance(by: .seconds(4))
        #expect(try await task.value.head.status == 200)
        #expect(progress.current.retries == 2)
    }

    @Test(arguments: ["30", "Thu, 01 Jan 1970 00:01:30 GMT"])
    func waitsAsLongAsTheServerSays(_ value: String) async throws {
        let clock = ManualClock()
        let http = ScriptedLoader { (request, count) throws(NetworkError) in
            count == 1 ? answer(request, 429, ["Retry-After": value]) : answer(request)
        }
        let loader = NetworkLoader(http, clock: clock, wallClock: .following(clock, from: .seconds(60)))
        let first = Task { try await loader.load(try request("http://h/1")) }
        await clock.waitForSleepers()
        // Whoever else wants something of the site waits as well; other sites do not.
        let second = Task { try await loader.load(try request("http://h/2")) }
        await clock.waitForSleepers(2)
        #expect(try await loader.load(try request("http://other/")).head.status == 200)
        clock.advance(by: .seconds(29))
        #expect(http.requests.all.count == 2)
        clock.advance(by: .seconds(1))
        #expect(try await first.value.head.status == 200)
        #expect(try await second.value.head.status == 200)
    }

    @Test func doesNotRepeatWhatMustNotBe() async throws {
        for (method, value) in [("POST", nil), ("GET", "3600")] as [(String, String?)] {
            let http = ScriptedLoader { (request, _) throws(NetworkError) in
                answer(request, 503, value.map { ["Retry-After": $0] } ?? [:])
            }
            var request = try request("http://h/")
            request.method = method
            let error = await failure { [request] in
                _ = try await NetworkLoader(http, clock: ManualClock()).load(request)
            }
            #expect(error?.code == -402)
            #expect(http.requests.all.count == 1)
        }
    }

    // MARK: Requests

    @Test func modifiersAndAuthenticationChangeRequests() async throws {
        let http = ScriptedLoader { (request, _) throws(NetworkError) in
            answer(request, request.headers.contains("Authorization") ? 200 : 401)
        }
        var configuration = NetworkLoader.Configuration()
        configuration.headers = ["Accept": "image/*", "X-All": "1"]
        configuration.modifiers = [{ request in
            var request = request
            request.headers["X-Signed"] = request.url.path()
            return request
        }]
        configuration.authentication = { request, head in
            var request = request
            request.headers["Authorization"] = "Bearer \(head.status)"
            return request
        }
        var request = try request("http://h/p")
        request.headers["accept"] = "*/*"
        _ = try await NetworkLoader(http, configuration).load(request)
        let sent = http.requests.all
        #expect(sent.count == 2)
        #expect(sent[0].headers == ["accept": "*/*", "X-All": "1", "X-Signed": "/p"])
        #expect(sent[1].headers["Authorization"] == "Bearer 401")
        configuration.modifiers = [{ _ in throw CancellationError() }]
        let loader = NetworkLoader(http, configuration)
        let refused = await failure { _ = try await loader.load(try self.request("http://h/")) }
        #expect(refused?.code == -414)
    }

    @Test func otherSchemesGoToTheirLoaders() async throws {
        let http = ScriptedLoader { (request, _) throws(NetworkError) in answer(request) }
        let loader = NetworkLoader(http)
        let tagged = ScriptedLoader { (request, _) throws(NetworkError) in answer(request, 200, [:], "tagged") }
        let unknown = await failure { _ = try await loader.load(try request("odr://tag/name")) }
        #expect(unknown?.code == -413)
        loader.register(tagged, for: "ODR")
        let response = try await loader.load(try request("odr://tag/name"))
        #expect(try await response.body.collect() == Array("tagged".utf8))
        #expect(http.requests.all.isEmpty)
    }

    @Test func inlineDataAreDecoded() async throws {
        let loader = NetworkLoader(ScriptedLoader { (request, _) throws(NetworkError) in answer(request) })
        let table: [(String, String, String?)] = [
            ("data:,a%20b", "a b", "text/plain"), ("data:image/png;base64,aGk=", "hi", "image/png"),
            ("data:image/svg+xml;charset=utf-8,%3Csvg/%3E", "<svg/>", "image/svg+xml"),
        ]
        for (text, body, type) in table {
            let response = try await loader.load(try request(text))
            #expect(try await response.body.collect() == Array(body.utf8))
            #expect(response.head.contentType == type)
        }
        for text in ["data:nothing", "data:;base64,a*b", "data:,%zz"] {
            guard let url = URL(string: text) else { continue }
            let error = await failure { _ = try await loader.load(HTTPRequest(url: url)) }
            // Foundation may have repaired the percent sign.
            #expect(error?.code == -410 || text.hasSuffix("zz"))
        }
    }

    @Test func filesAreReadInPlace() async throws {
        let directory = try TemporaryDirectory()
        try Data(pattern(600_000)).write(to: URL(filePath: directory.file("a b.bin")))
        let url = URL(filePath: directory.file("a b.bin"))
        let loader = NetworkLoader(ScriptedLoader { (request, _) throws(NetworkError) in answer(request) })
        var request = HTTPRequest(url: url)
        let whole = try await loader.load(request)
        #expect(try await whole.body.collect() == pattern(600_000))
        #expect(whole.head.url == url)
        request.range = 100..<300_000
        var part: [UInt8] = []
        for try await chunk in try await loader.load(request).body { part += chunk }
        #expect(part == Array(pattern(600_000)[100..<300_000]))
        request.range = nil
        request.maximumBodySize = .kilobytes(100)
        let large = await failure { [request] in _ = try await loader.load(request) }
        #expect(large?.code == -432)
        for text in ["file://elsewhere/x", "file://\(directory.path)/missing", "file://\(directory.path)"] {
            let error = await failure { _ = try await loader.load(try self.request(text)) }
            #expect(error != nil, "\(text)")
        }
    }

    // MARK: Progress

    @Test func progressReplaysItsEnd() async throws {
        let http = ScriptedLoader { (request, _) throws(NetworkError) in
            answer(request, 200, ["Content-Length": "5"], "hello")
        }
        let progress = TransferProgress()
        let response = try await NetworkLoader(http).load(try request("http://h/"), progress: progress)
        #expect(progress.current.total == 5)
        _ = try await response.body.collect()
        for _ in 0..<2 {
            var steps: [TransferProgress.Step] = []
            for await step in progress { steps.append(step) }
            #expect(steps.last?.isComplete == true)
            #expect(steps.last?.received == 5)
        }
    }

    @Test func inlineDataAreReadAsBrowsersDo() async throws {
        let loader = NetworkLoader(ScriptedLoader { (request, _) throws(NetworkError) in answer(request) })
        let table = [
            "data:;base64,YWJjZA==", "data:;base64,YWJj%0AZA==", "data:;base64,YWJj%20ZA%3D%3D", "data:;base64,YWJjZA",
            "data:;BASE64,YWJjZA==", "data:text/plain;%20base64%20,YWJjZA==",
        ]
        for text in table {
            let response = try await loader.load(try request(text))
            #expect(try await response.body.collect() == Array("abcd".utf8), "\(text)")
        }
        for text in ["data:;base64,YWJjZ", "data:;base64,YWJjZA=", "data:;base64,YW=JjZA", "data:;base64,YWJj===="] {
            #expect(await failure { _ = try await loader.load(try request(text)) }?.code == -410, "\(text)")
        }
    }

    @Test func errorsNameABoundedPartOfTheURL() async throws {
        let url = "data:text/plain;base64," + String(repeating: "x", count: 300_001)
        let loader = NetworkLoader(ScriptedLoader { (request, _) throws(NetworkError) in answer(request) })
        let invalid = await failure { _ = try await loader.load(try request(url)) }
        #expect((invalid?.description.utf8.count ?? 1000) < 300)
        let long = "http://a.example/" + String(repeating: "x", count: 5000)
        let error = NetworkError.contentType(url: long, type: "text/html")
        #expect(error.description.utf8.count < 300)
        #expect(error.url == long)
    }

    // MARK: Bodies of other transports

    /// Loads a body in chunks from a transport that declares a length.
    private func measured(_ declared: String, _ chunks: [[UInt8]], limit: Int = 1000) async throws -> [UInt8] {
        let loader = NetworkLoader(
            ScriptedLoader { (request, _) throws(NetworkError) in
                let rest = Locked(chunks)
                return HTTPResponse(
                    head: HTTPResponseHead(headers: ["Content-Length": declared], url: request.url),
                    body: ResponseBody { () async throws(NetworkError) in
                        rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                    })
            })
        var request = try request("http://a.example/")
        request.maximumBodySize = ByteCount(limit)
        return try await loader.load(request).body.collect()
    }

    @Test func bodiesOfAnyTransportHaveTheirDeclaredLength() async throws {
        #expect(try await measured("5", [[1, 2], [3, 4, 5]]) == [1, 2, 3, 4, 5])
        let short = await failure { _ = try await measured("200", [[UInt8](repeating: 65, count: 100)]) }
        guard case .truncated = short else { Issue.record("\(String(describing: short))"); return }
        let long = await failure { _ = try await measured("3", [[1, 2], [3, 4, 5]]) }
        guard case .invalidResponse = long else { Issue.record("\(String(describing: long))"); return }
        let large = await failure { _ = try await measured("", [[1, 2], [3, 4, 5]], limit: 4) }
        guard case .bodyTooLarge = large else { Issue.record("\(String(describing: large))"); return }
    }

    @Test func aPartWithStatus200IsNeverTheWhole() async throws {
        func load(_ range: String, _ count: Int) async throws -> [UInt8] {
            let loader = NetworkLoader(
                ScriptedLoader { (request, _) throws(NetworkError) in
                    answer(request, 200, ["Content-Range": range], String(repeating: "x", count: count))
                })
            return try await loader.load(try request("http://a.example/")).body.collect()
        }
        #expect(await failure { _ = try await load("bytes 50-99/100", 50) }?.code == -430)
        #expect(await failure { _ = try await load("bytes 0-49/100", 50) }?.code == -430)
        // Parts that are the whole, and fields that say nothing.
        #expect(try await load("bytes 0-99/100", 100).count == 100)
        #expect(try await load("none", 100).count == 100)
    }
}
