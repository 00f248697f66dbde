#if os(Linux)
import Foundation
import TestSupport
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineWebPages

/// A web of two hosts: `page.test` has a public address, `inner.test` that of this machine. Both are loopback servers.
final class PageSite: Sendable {
    /// An address that is public by its number; connections to it go to ``outer``.
    static let publicAddress = IPAddress.v4(0x5DB8_D822)
    static let loopback = IPAddress.v4(0x7F00_0001)

    let outer: LoopbackServer
    /// What pages of ``outer`` must not reach.
    let inner: LoopbackServer
    /// Names that were resolved, in order.
    let resolved = Recorder<String>()
    private let again: Bool

    /// - Parameters:
    ///   - pages: The bodies or whole answers of `page.test`, by path. `/done` opens what `/slow` waits for.
    ///   - rebinds: Whether `page.test` has this machine's address after the first time.
    init(_ pages: [String: Page], rebinds: Bool = false) throws {
        again = rebinds
        let isDone = LoopbackServer.Barrier()
        inner = try LoopbackServer { _ in
            [.reply(200, ["Content-Type: text/html", "Access-Control-Allow-Origin: *"], body: Array(PageSite.red.utf8))]
        }
        outer = try LoopbackServer { request in
            let close = LoopbackServer.Step.close
            switch request.target {
            case "/done":
                isDone.open()
                return [.reply(204), close]
            case "/slow": return [.wait(isDone), .reply(404), close]
            default:
                guard let page = pages[request.target] else { return [.reply(404), close] }
                return [.reply(page.status, page.fields + ["Content-Type: text/html"], body: Array(page.body.utf8)), close]
            }
        }
    }

    struct Page: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
        var status = 200
        var fields: [String] = []
        var body = ""

        init(stringLiteral value: String) { body = value }

        static func redirect(_ status: Int, to location: String) -> Page {
            var page: Page = ""
            page.status = status
            page.fields = ["Location: \(location)"]
            return page
        }
    }

    static let red = "<!doctype html><body bgcolor=red>"
    static let green = "<!doctype html><body bgcolor=lime>"

    /// A green page that is loaded when a promise of its script has been kept.
    static func page(doing script: String) -> Page {
        """
        \(green)<style>iframe { position: absolute; left: 0; top: 0; width: 9px; height: 9px }</style>
        <img src="/slow"><script>
        const within = (t, p) => Promise.race([p, new Promise(d => setTimeout(d, t))]);
        (async () => { try { await \(script) } catch (e) {} await fetch('http://page.test/done', {mode: 'no-cors'}) })()
        </script>
        """
    }

    /// Where `page.test` and the inner server are found.
    var network: PageNetwork {
        let (outer, inner) = (outer.port, inner.port)
        let (resolved, again) = (resolved, again)
        return PageNetwork(
            resolve: { name in
                let isFirst = !resolved.all.contains(name)
                resolved.add(name)
                switch name {
                case "page.test": return [Self.publicAddress]
                case "rebound.test": return [isFirst || !again ? Self.publicAddress : Self.loopback]
                case "inner.test", "localhost": return [Self.loopback]
                default: return []
                }
            },
            connect: { address, port throws(PageNetwork.Unreachable) in
                switch (address, port) {
                case (Self.publicAddress, 80): try PageSocket.connect(Self.loopback, port: outer)
                case (Self.loopback, 80): try PageSocket.connect(Self.loopback, port: inner)
                case (Self.loopback, inner): try PageSocket.connect(Self.loopback, port: inner)
                default: throw PageNetwork.Unreachable(code: ECONNREFUSED)
                }
            },
            proxies: ProxySettings { _ in nil })
    }

    /// A page of `page.test`.
    func source(_ path: String = "/", host: String = "page.test") -> WebPageSource {
        var page = WebPageSource(url: "http://\(host)\(path)")
        page.network = network
        page.usesSandbox = false
        page.timeLimit = 120
        return page
    }

    static var request: RenderRequest {
        var request = RenderRequest(size: PixelSize(80))
        request.limits.deadline = 120
        return request
    }
}
#endif
