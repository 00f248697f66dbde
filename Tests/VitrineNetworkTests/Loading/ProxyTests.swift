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
        #expect(!loader.capabilities.contains(.addressPolicy))
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
}
#endif
