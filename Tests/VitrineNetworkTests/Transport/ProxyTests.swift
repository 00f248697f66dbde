#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineNetwork

/// Who connects in the loader's place, and to whom not.
struct ProxyTests {
    private static let proxy = "http://proxy.example:3128"

    private func proxy(for url: String, _ environment: [String: String]) throws -> String? {
        ProxySettings { environment[$0] }.proxy(for: try SourceURL(url))
    }

    @Test(arguments: [
        // A name is the host and all in it, whether or not a dot stands before it.
        ("example.org", "http://example.org/", true), ("example.org", "http://a.b.example.org/", true),
        (".example.org", "http://example.org/", true), (".example.org", "http://a.example.org/", true),
        ("example.org", "http://badexample.org/", false), ("example.org", "http://example.org.evil.example/", false),
        ("EXAMPLE.org", "http://Example.ORG/", true), ("org", "http://example.org/", true),
        ("localhost", "http://localhost:8080/", true), ("localhost", "http://127.0.0.1/", false),
        // Addresses and networks.
        ("127.0.0.1", "http://127.0.0.1:8080/", true), ("127.0.0.1", "http://127.0.0.2/", false),
        ("10.0.0.0/8", "http://10.200.3.4/", true), ("10.0.0.0/8", "http://11.0.0.1/", false),
        ("::1", "http://[::1]/", true), ("fd00::/8", "http://[fd12::1]/", true),
        ("fd00::/8", "http://[fe80::1]/", false),
        ("10.0.0.0/8", "http://10.example.org/", false), ("1.2.3.4/99", "http://1.2.3.4/", false),
        // Lists, and everything.
        ("a.example, b.example c.example", "http://b.example/", true),
        ("a.example, b.example c.example", "http://x.c.example/", true),
        ("a.example,,, ,", "http://b.example/", false), ("*", "http://anything.example/", true),
        ("*", "http://1.2.3.4/", true), ("", "http://a.example/", false), (".", "http://a.example/", false),
    ])
    func exceptionsAreKeptTo(_ list: String, _ url: String, _ isDirect: Bool) throws {
        for name in ["no_proxy", "NO_PROXY"] {
            let found = try proxy(for: url, ["http_proxy": Self.proxy, name: list])
            #expect(found == (isDirect ? nil : Self.proxy))
        }
    }

    @Test func schemesHaveTheirOwn() throws {
        let all = ["http_proxy": "http://a", "https_proxy": "http://b"]
        #expect(try proxy(for: "http://h/", all) == "http://a")
        #expect(try proxy(for: "https://h/", all) == "http://b")
        #expect(try proxy(for: "https://h/", ["all_proxy": "socks5h://c"]) == "socks5h://c")
        #expect(try proxy(for: "https://h/", ["HTTPS_PROXY": "http://d", "ALL_PROXY": "http://e"]) == "http://d")
        #expect(try proxy(for: "http://h/", ["https_proxy": "http://b"]) == nil)
        // A web server passes the client's own `Proxy:` field on by this name.
        #expect(try proxy(for: "http://h/", ["HTTP_PROXY": "http://evil"]) == nil)
        #expect(try proxy(for: "http://h/", ["http_proxy": "", "all_proxy": "http://c"]) == "http://c")
    }

    @Test func aProxyIsAskedForTheWholeAddress() async throws {
        let server = try LoopbackServer { _ in [.reply(body: [1])] }
        let loader = makeLoader { $0.proxy = .url("http://127.0.0.1:\(server.port)") }
        let url = try #require(URL(string: "http://no-such-host.invalid/a?b"))
        #expect(try await loader.whole(patient(url)).1 == [1])
        #expect(server.requests.first?.target == "http://no-such-host.invalid/a?b")
        #expect(server.requests.first?.header("Host") == "no-such-host.invalid")
        // What it connects to is its own business, so nobody can vouch for it.
        #expect(!loader.showsAddresses(for: url))
    }

    @Test func anEncryptedAddressIsReachedThroughATunnel() async throws {
        let server = try LoopbackServer { _ in [.reply(407)] }
        let loader = makeLoader { $0.proxy = .url("http://127.0.0.1:\(server.port)") }
        let url = try #require(URL(string: "https://no-such-host.invalid/"))
        let error = await failure { _ = try await loader.load(patient(url)) }
        switch error {
        case .notConnected, .truncated: break
        default: Issue.record("\(String(describing: error))")
        }
        #expect(server.requests.first?.method == "CONNECT")
        #expect(server.requests.first?.target == "no-such-host.invalid:443")
    }

    // MARK: Policies

    /// A proxy that answers for every host, and the loader that asks it.
    private func proxied(
        _ policy: URLAccessPolicy, to location: String
    ) throws -> (LoopbackServer, NetworkLoader) {
        let server = try LoopbackServer { request in
            request.target.hasPrefix("http://outside.example")
                ? [.reply(302, ["Location: \(location)"])] : [.reply(body: Array("secret".utf8))]
        }
        var configuration = NetworkLoader.Configuration()
        configuration.policy = policy
        configuration.retries.limit = 0
        return (server, NetworkLoader(makeLoader { $0.proxy = .url("http://127.0.0.1:\(server.port)") }, configuration))
    }

    private static let literals = [
        "http://10.0.0.1/x", "http://127.0.0.1/x", "http://[::1]/x", "http://169.254.169.254/x", "http://[fc00::1]/x",
        "http://[::ffff:10.0.0.1]/x", "http://[4000::1]/x", "http://localhost/x",
    ]

    /// The proxy's own address, which is private here, says nothing about where a redirect comes from.
    @Test(arguments: literals) func redirectsToPrivateAddressesAreRefusedBehindAProxy(_ location: String) async throws {
        var trusting = URLAccessPolicy.publicOnly
        trusting.trustsProxy = true
        for policy in [trusting, .userInitiated] {
            let (server, loader) = try proxied(policy, to: location)
            let url = try #require(URL(string: "http://outside.example/"))
            let error = await failure { _ = try await loader.load(patient(url)) }
            guard case .refused = error else { Issue.record("\(String(describing: error))"); continue }
            #expect(server.requests.count == 1)
        }
    }

    @Test(arguments: literals) func privateAddressesAreRefusedBehindAProxy(_ location: String) async throws {
        var trusting = URLAccessPolicy.publicOnly
        trusting.trustsProxy = true
        let (server, loader) = try proxied(trusting, to: "/")
        let url = try #require(URL(string: location))
        let error = await failure { _ = try await loader.load(patient(url)) }
        guard case .refused = error else { Issue.record("\(String(describing: error))"); return }
        #expect(server.requests.isEmpty)
    }

    /// What goes to no proxy is connected to directly, and checked.
    @Test(arguments: [
        ["https_proxy": "http://proxy.example:3128"],
        ["http_proxy": "http://proxy.example:3128", "no_proxy": "direct.invalid,127.0.0.1"],
        ["all_proxy": "http://proxy.example:3128", "no_proxy": "*"],
    ] as [[String: String]])
    func whatGoesPastTheProxyIsChecked(_ environment: [String: String]) async throws {
        var settings = CurlLoader.Configuration()
        settings.proxy = .environment
        let http = CurlLoader(settings, environment: { environment[$0] })
        var configuration = NetworkLoader.Configuration()
        configuration.policy = .publicOnly
        configuration.retries.limit = 0
        let loader = NetworkLoader(http, configuration)
        let direct = try #require(URL(string: "http://direct.invalid/"))
        #expect(http.showsAddresses(for: direct))
        let error = await failure { _ = try await loader.load(patient(direct)) }
        guard case .nameNotResolved = error else { Issue.record("\(String(describing: error))"); return }
        let server = try LoopbackServer { _ in [.reply(body: [1])] }
        let refused = await failure { _ = try await http.load(patient(server.url("/")), allowing: { .address("\($0)") }) }
        guard case .refused(_, let reason) = refused, reason.hasSuffix("is not public") else { Issue.record("\(String(describing: refused))"); return }
        #expect(server.connectionCount == 0)
    }

    @Test func whatGoesThroughAProxyCannotBeChecked() async throws {
        let environment = ["https_proxy": Self.proxy]
        let http = CurlLoader(CurlLoader.Configuration(), environment: { environment[$0] })
        var configuration = NetworkLoader.Configuration()
        configuration.policy = .publicOnly
        let url = try #require(URL(string: "https://outside.invalid/"))
        #expect(!http.showsAddresses(for: url))
        let error = await failure { _ = try await NetworkLoader(http, configuration).load(patient(url)) }
        guard case .refused(_, PolicyViolation.addressesUnknown.description) = error else { Issue.record("\(String(describing: error))"); return }
    }
}
#endif
