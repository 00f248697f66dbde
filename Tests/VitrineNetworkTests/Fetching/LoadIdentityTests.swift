import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
@_spi(HTTPCacheEngine) import VitrineNetwork

/// Everything that can change the answer of a load is a part of its identity: in memory, on disk, in flight and in part
/// files. The pairs are those of `Documentation/Design/Identities.md`.
struct LoadIdentityTests {
    private static let url = URL(string: "http://a.example/me.png")!

    private static func loader(_ change: (inout NetworkLoader.Configuration) -> Void = { _ in }) -> NetworkLoader {
        var configuration = NetworkLoader.Configuration()
        change(&configuration)
        return NetworkLoader(makeLoader(), configuration)
    }

    private static func key(
        _ loader: NetworkLoader = plain, id: String? = nil, _ change: (inout FetchOptions) -> Void = { _ in },
        request: (inout HTTPRequest) -> Void = { _ in }
    ) -> CacheKey {
        var options = FetchOptions(loader: loader), wanted = HTTPRequest(url: url)
        change(&options)
        request(&wanted)
        return NetworkFetcher<String>(request: wanted, id: id, options: options).key
    }

    private static let plain = loader()

    /// A transport that acts for somebody.
    private struct Member: HTTPTransport {
        let identity: String?
        func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
            HTTPResponse(head: HTTPResponseHead(url: request.url), body: ResponseBody([]))
        }
    }

    @Test func plainLoadsHaveTheURLAsTheirKey() {
        #expect(Self.key() == "http://a.example/me.png")
        #expect(Self.key(Self.loader { $0.retries.limit = 9 }) == Self.key())
        #expect(Self.key { $0.totalTimeout = .seconds(1) } == Self.key())
    }

    private static let parts: [(name: String, make: @Sendable (String) -> CacheKey)] = [
        ("field of the request", { value in key(request: { $0.headers["X-User"] = value }) }),
        ("field of the loader", { value in key(loader { $0.headers["Authorization"] = value }) }),
        ("identity of the loader", { value in key(loader { $0.identity = value }) }),
        ("transport", { key(NetworkLoader(Member(identity: $0))) }),
        ("client certificate", { value in
            key(NetworkLoader(makeLoader { $0.clientCertificate = .init(certificate: value) }))
        }),
        ("proxy", { value in key(NetworkLoader(makeLoader { $0.proxy = .url(value) })) }),
        ("user agent", { value in key(NetworkLoader(makeLoader { $0.userAgent = value })) }),
        ("password in the URL", { value in
            key(request: { $0.url = URL(string: "http://a:\(value)@a.example/me.png")! })
        }),
        ("method", { value in key(request: { $0.method = value }) }),
        ("body", { value in key(request: { $0.body = Array(value.utf8) }) }),
        ("range", { value in key(request: { $0.range = 0..<value.utf8.count }) }),
        ("accepted types", { value in key { $0.contentTypes = [value] } }),
        ("limit of the body", { value in key { $0.maximumBodySize = ByteCount(value.utf8.count) } }),
        ("limit of the request's body", { value in
            key(request: { $0.maximumBodySize = ByteCount(value.utf8.count) })
        }),
        ("rules of caching", { value in key { $0.caching.lifetime = .fixed(.seconds(value.utf8.count)) } }),
        ("permitted hosts", { value in key(loader { $0.policy.hosts = [value] }) }),
        ("types of the policy", { value in key(loader { $0.policy.contentTypes = [value] }) }),
        ("number of redirects", { value in key(loader { $0.policy.maximumRedirects = value.utf8.count }) }),
        ("private addresses", { value in
            key(loader {
                $0.policy = .publicOnly
                $0.policy.trustsProxy = value == "one"
            })
        }),
        ("id", { key(id: $0) }),
        ("identity of the URL", { value in key { $0.identity = { _ in value } } }),
    ]

    @Test(arguments: parts.indices)
    func eachPartMakesAnotherKey(_ index: Int) {
        let part = Self.parts[index]
        let (one, three) = (part.make("one"), part.make("three"))
        #expect(one != three, "\(part.name)")
        #expect(one != Self.key() && three != Self.key(), "\(part.name)")
        #expect(one == part.make("one"), "\(part.name)")
    }

    @Test func loadersWithClosuresShareWithNobodyUnlessTheyHaveAnIdentity() {
        func member(_ identity: String?) -> NetworkLoader {
            Self.loader { configuration in
                configuration.identity = identity
                configuration.modifiers = [{ $0 }]
            }
        }
        let one = member(nil)
        #expect(Self.key(one) == Self.key(one))
        #expect(Self.key(one) != Self.key(member(nil)))
        #expect(Self.key(one) != Self.key())
        #expect(Self.key(member("5")) == Self.key(member("5")))
        #expect(Self.key(Self.loader { $0.authentication = { request, _ in request } }) != Self.key())
    }

    @Test func idsReplaceTheURLAndNothingElse() {
        let tokens = ["A", "B"].map { token in Self.loader { $0.headers["Authorization"] = token } }
        #expect(Self.key(tokens[0], id: "avatar") != Self.key(tokens[1], id: "avatar"))
        #expect(Self.key(id: "avatar") == "avatar")
    }

    @Test func identitiesThatArePathsBelongToTheirOrigin() {
        func key(_ text: String) -> CacheKey {
            Self.key { $0.identity = { $0.path() } } request: { $0.url = URL(string: text)! }
        }
        #expect(key("http://a.example/x?sig=1") == key("http://a.example/x?sig=2"))
        #expect(key("http://a.example/x") != key("http://b.example/x"))
        #expect(key("http://a.example/x") != key("https://a.example/x"))
        #expect(key("http://a.example/x") != key("http://a.example:8080/x"))
        #expect(key("http://a:b@a.example/x") != key("http://a:c@a.example/x"))
    }

    @Test func keysHoldNoSecretsOfLoaders() {
        let loader = NetworkLoader(
            makeLoader { $0.proxy = .url("http://user:secret@127.0.0.1:1") },
            {
                var configuration = NetworkLoader.Configuration()
                configuration.headers["Authorization"] = "Bearer secret"
                configuration.identity = "secret session"
                return configuration
            }())
        #expect(!Self.key(loader).identity.contains("secret"))
    }

    // MARK: The levels

    private static let tokens = ["Bearer A", "Bearer B"]

    /// Two loaders of one cache, each with a token of its own, and a server that answers each with its token.
    private func members(
        _ fields: [String], gate: LoopbackServer.Barrier? = nil
    ) throws -> (fixture: FetchFixture<String>, options: [FetchOptions], server: LoopbackServer) {
        let server = try LoopbackServer { request in
            let token = request.header("Authorization") ?? "-"
            let reply = LoopbackServer.Step.reply(200, fields, body: Array(token.utf8))
            return gate.map { [.wait($0), reply] } ?? [reply]
        }
        let fixture = try FetchFixture<String>()
        let options = Self.tokens.map { token in
            var options = fixture.options
            options.loader = Self.loader { configuration in
                configuration.retries.limit = 0
                configuration.headers["Authorization"] = token
            }
            return options
        }
        return (fixture, options + [fixture.options], server)
    }

    @Test(arguments: ["private, max-age=3600", "max-age=3600", "no-store"])
    func twoTokensNeverShareAStoredValue(_ line: String) async throws {
        let (fixture, options, server) = try members(["Cache-Control: \(line)", "Vary: Authorization"])
        let url = server.url("/me")
        for _ in 0..<2 {
            for (index, options) in options.enumerated() {
                let fetcher = NetworkFetcher<String>(request: patient(url), options: options)
                let wanted = index < 2 ? Self.tokens[index] : "-"
                #expect(try await fixture.cache.value(from: fetcher) == wanted)
                #expect(try await fixture.another().value(from: fetcher) == wanted)
            }
        }
    }

    @Test func twoTokensNeverShareATransfer() async throws {
        let gate = LoopbackServer.Barrier()
        defer { gate.open() }
        let (fixture, options, server) = try members(["Cache-Control: no-store"], gate: gate)
        let url = server.url("/me")
        let fetches = options.map { options in
            Task { try await fixture.cache.value(from: NetworkFetcher(request: patient(url), options: options)) }
        }
        while server.requests.count < 3 { await Task.yield() }
        gate.open()
        var texts: [String] = []
        for fetch in fetches { texts.append(try await fetch.value) }
        #expect(texts == Self.tokens + ["-"])
    }

    @Test func aLoadDoesNotJoinOneWithOtherBounds() async throws {
        let gate = LoopbackServer.Barrier()
        defer { gate.open() }
        let body = [UInt8](repeating: 65, count: 1000)
        let server = try LoopbackServer { _ in [.wait(gate), .reply(200, ["Content-Type: image/png"], body: body)] }
        let fixture = try FetchFixture<String>()
        func fetcher(_ change: (inout FetchOptions) -> Void) -> NetworkFetcher<String> {
            var options = fixture.options
            change(&options)
            return NetworkFetcher(request: patient(server.url("/a")), options: options)
        }
        func fetch(_ fetcher: NetworkFetcher<String>) -> Task<String, any Error> {
            Task { try await fixture.cache.value(from: fetcher) }
        }
        let bounded = [
            fetch(fetcher { $0.maximumBodySize = ByteCount(20) }),
            fetch(fetcher { $0.contentTypes = ["image/jpeg"] }),
        ]
        let hurriedFetcher = fetcher { $0.totalTimeout = .seconds(3000) }, freeFetcher = fetcher { _ in }
        let hurried = fetch(hurriedFetcher), free = fetch(freeFetcher)
        while server.requests.count < 4 { await Task.yield() }
        // The limit of time is no part of the key: the value is the same.
        #expect(hurriedFetcher.key == freeFetcher.key)
        hurried.cancel()
        gate.open()
        #expect(try await free.value.utf8.count == 1000)
        for fetch in bounded { #expect(await networkFailure { _ = try await fetch.value } != nil) }
    }

    @Test func aPartOfOneTokenIsNotResumedWithAnother() async throws {
        let directory = try TemporaryDirectory(), path = directory.file("file")
        let server = try LoopbackServer { request in
            let token = request.header("Authorization") ?? "-"
            let body = Array(String(repeating: String(token.last ?? "-"), count: 10_000).utf8)
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\nETag: \"1\"\r\nAccept-Ranges: bytes\r\n\r\n"
            guard token.hasSuffix("A") else {
                let start = request.header("Range").flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
                if start == 0 { return [.text(head), .bytes(body)] }
                let fields = ["Content-Range: bytes \(start)-9999/10000", "ETag: \"1\""]
                return [.reply(206, fields, body: Array(body[start...]))]
            }
            return [.text(head), .bytes(Array(body.prefix(4000))), .close]
        }
        func download(_ token: String) async throws -> DownloadedFile {
            var request = patient(server.url("/file"))
            request.headers["Authorization"] = token
            return try await Self.loader { $0.retries.limit = 0 }.download(request, to: path)
        }
        #expect(await failure { _ = try await download("Bearer A") } != nil)
        _ = try await download("Bearer B")
        let bytes = Array(try Data(contentsOf: URL(filePath: path)))
        #expect(bytes == [UInt8](repeating: UInt8(ascii: "B"), count: 10_000))
        #expect(server.requests.last?.header("Range") == nil)
    }

    @Test(arguments: [true, false])
    func sharedCachesDoNotStoreWhatCredentialsOfTheLoaderGot(_ hasCredentials: Bool) async throws {
        let server = try LoopbackServer { _ in [.reply(200, ["Cache-Control: max-age=60"], body: Array("x".utf8))] }
        var fixture = try FetchFixture<String>(loading: { configuration in
            configuration.identity = "5"
            if hasCredentials {
                configuration.modifiers = [{ request in
                    var request = request
                    request.headers["Authorization"] = "Bearer"
                    return request
                }]
            }
        })
        fixture.options.caching = .reverseProxy
        let fetcher = fixture.fetcher(server.url("/a"))
        _ = try await fixture.cache.value(from: fetcher)
        try await fixture.cache.flush()
        #expect(await fixture.cache.contains(fetcher.key, at: .disk) == !hasCredentials)
    }
}
