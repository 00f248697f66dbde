#if os(Linux)
import Foundation
import Glibc
import TestSupport
import Testing
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineWebPages

/// What pages may load: nothing from this machine, unless the user named it.
@Suite(.enabled(if: WebPageSource.isAvailable, "needs Chromium or Google Chrome"), .serialized)
struct WebPagePolicyTests {
    /// Ways of a page to the inner server; each is a promise that is kept when the try has ended.
    static let attempts: [String: String] = [
        "image": "new Promise(d => { let i = new Image(); i.onload = i.onerror = d; i.src = 'http://inner.test/x' })",
        "address": "new Promise(d => { let i = new Image(); i.onload = i.onerror = d; i.src = 'http://127.0.0.1/x' })",
        "localhost": "new Promise(d => { let i = new Image(); i.onload = i.onerror = d; i.src = 'http://localhost/x' })",
        "frame": """
            new Promise(d => { let f = document.createElement('iframe'); f.onload = d; f.src = 'http://inner.test/x'; \
            document.body.append(f) })
            """,
        "form": """
            new Promise(d => { document.body.insertAdjacentHTML('beforeend', '<iframe name=f></iframe>' + \
            '<form target=f method=post action="http://inner.test/x"><input name=a value=b></form>'); \
            document.querySelector('iframe[name=f]').onload = d; document.querySelector('form').submit() })
            """,
        "script": """
            new Promise(d => { let s = document.createElement('script'); s.onload = s.onerror = d; \
            s.src = 'http://inner.test/x'; document.body.append(s) })
            """,
        "fetch": "fetch('http://inner.test/x', {mode: 'no-cors'})",
        "redirected fetch": "fetch('/inner', {mode: 'no-cors'})",
        "request": """
            new Promise(d => { let x = new XMLHttpRequest(); x.onloadend = d; x.open('GET', 'http://inner.test/x'); \
            x.send() })
            """,
        "socket": "new Promise(d => { let w = new WebSocket('ws://inner.test/x'); w.onopen = w.onerror = d })",
        "events": """
            new Promise(d => { let e = new EventSource('http://inner.test/x'); e.onopen = e.onerror = () => \
            { e.close(); d() } })
            """,
        "worker": """
            new Promise(d => { let w = new Worker(URL.createObjectURL(new Blob(["fetch('http://inner.test/x', \
            {mode: 'no-cors'}).finally(() => postMessage(1))"]))); w.onmessage = d })
            """,
        "beacon": "(navigator.sendBeacon('http://inner.test/x', 'x'), fetch('http://inner.test/y', {mode: 'no-cors'}))",
        "prefetch": """
            within(3000, new Promise(d => { let l = document.createElement('link'); l.rel = 'prefetch'; \
            l.onload = l.onerror = d; l.href = 'http://inner.test/x'; document.head.append(l) }))
            """,
    ]

    @Test(arguments: attempts.keys.sorted())
    func pagesReachNothingOfThisMachine(_ attempt: String) throws {
        let script = try #require(Self.attempts[attempt])
        let site = try PageSite([
            "/": PageSite.page(doing: script), "/inner": .redirect(307, to: "http://inner.test/x"),
        ])
        #expect(try site.source().image(PageSite.request).colorName(0.98, 0.98) == "green")
        #expect(site.outer.requests.contains { $0.target == "/done" })
        #expect(site.inner.connectionCount == 0)
    }

    @Test func strangersPagesReachNothingOfThisMachine() throws {
        let all = Self.attempts.filter { $0.key != "redirected fetch" }.map(\.value).joined(separator: ", ")
        let site = try PageSite(["/": PageSite.page(doing: "Promise.allSettled([\(all)])")])
        var page = site.source()
        page.policy = .publicOnly
        #expect(try page.image(PageSite.request).colorName(0.98, 0.98) == "green")
        #expect(site.outer.requests.contains { $0.target == "/done" })
        #expect(site.inner.connectionCount == 0)
    }

    /// Each attempt works where the policy lets it: the tests above see what is refused, not what never happens.
    @Test func attemptsReachThisMachineWhereTheyMay() throws {
        var kinds = Self.attempts
        for (attempt, script) in kinds.sorted(by: { $0.key < $1.key }) {
            let site = try PageSite([
                "/": PageSite.page(doing: script), "/inner": .redirect(307, to: "http://inner.test/x"),
            ])
            var page = site.source()
            page.policy.allowsRedirectsToPrivate = true
            _ = try page.image(PageSite.request)
            if site.inner.connectionCount > 0 { kinds[attempt] = nil }
        }
        #expect(kinds.keys.sorted() == [])
    }

    @Test(arguments: [
        .redirect(302, to: "http://inner.test/"), .redirect(307, to: "http://127.0.0.1/"),
        "<meta http-equiv=refresh content='0;url=http://inner.test/'>",
        "<script>location.href = 'http://inner.test/'</script>",
        "<form method=post action='http://inner.test/'></form><script>document.forms[0].submit()</script>",
        "<script>onload = () => setTimeout(() => location.replace('http://localhost/'))</script>",
    ] as [PageSite.Page])
    func noPageLeadsToThisMachine(_ first: PageSite.Page) throws {
        let site = try PageSite(["/": first])
        for policy in [URLAccessPolicy.userInitiated, .publicOnly] {
            var page = site.source()
            page.policy = policy
            let error = #expect(throws: ImagePipelineError.self) { try page.image(PageSite.request) }
            #expect(error?.caseName == "unsupported", "\(String(describing: error))")
        }
        #expect(site.inner.connectionCount == 0)
    }

    @Test func aNameThatChangesItsAddressReachesNothing() throws {
        let script = """
            Promise.allSettled([fetch('/again'), fetch('http://rebound.test/other', {mode: 'no-cors'})])
            """
        let page = PageSite.page(doing: script).body.replacing("\"/slow\"", with: "http://page.test/slow")
        let site = try PageSite(["/": .init(stringLiteral: page)], rebinds: true)
        for policy in [URLAccessPolicy.userInitiated, .publicOnly] {
            let before = site.resolved.all.count
            var source = site.source(host: "rebound.test")
            source.policy = policy
            if before == 0 { #expect(try source.image(PageSite.request).colorName(0.98, 0.98) == "green") }
        }
        #expect(site.resolved.all.filter { $0 == "rebound.test" }.count > 1)
        #expect(site.inner.connectionCount == 0)
    }

    @Test func aPageOfThisMachineIsDrawnForItsUserOnly() throws {
        let site = try PageSite([:])
        var page = site.source(host: "inner.test")
        #expect(try page.image(PageSite.request).colorName() == "red")
        page.policy = .publicOnly
        let error = #expect(throws: ImagePipelineError.self) { try page.image(PageSite.request) }
        #expect(error?.caseName == "unsupported" && error?.reason.contains("127.0.0.1") == true)
    }

    @Test func datagramsAreNotSent() throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, size) == 0 && getsockname(socket, $0, &size) == 0
            }
        }
        try #require(isBound)
        let script = """
            within(5000, new Promise(async d => { let p = new RTCPeerConnection({iceServers: \
            [{urls: 'stun:127.0.0.1:\(UInt16(bigEndian: address.sin_port))'}]}); p.createDataChannel('x'); \
            p.onicecandidate = e => { if (!e.candidate) d() }; await p.setLocalDescription() }))
            """
        let site = try PageSite(["/": PageSite.page(doing: script)])
        #expect(try site.source().image(PageSite.request).colorName(0.98, 0.98) == "green")
        var byte: UInt8 = 0
        #expect(recv(socket, &byte, 1, Int32(MSG_DONTWAIT)) < 0)
    }

    @Test func aLocalPageReadsItsOwnDirectoryOnly() throws {
        let directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(atPath: directory.file("site/parts"), withIntermediateDirectories: true)
        try directory.write("<body style='margin:0;background:red'>", to: "outside.html")
        try directory.write("<body style='margin:0;background:lime'>", to: "site/parts/inside.html")
        try FileManager.default.createSymbolicLink(
            atPath: directory.file("site/link.html"), withDestinationPath: directory.file("outside.html"))
        let frames = ["../outside.html", "link.html", "parts/inside.html"].map {
            "<iframe src='\($0)' style='display:block;border:0;width:100%;height:100px'></iframe>"
        }
        try directory.write("<body style='margin:0;background:blue'>" + frames.joined(), to: "site/page.html")
        var page = WebPageSource(url: "file://" + directory.file("site/page.html"))
        page.allowedSchemes = [.file]
        page.usesSandbox = false
        page.timeLimit = 120
        var request = PageSite.request
        request.size = PixelSize(300)
        let image = try page.image(request)
        #expect(image.colorName(0.5, 0.16) != "red" && image.colorName(0.5, 0.5) != "red")
        #expect(image.colorName(0.5, 0.83) == "green")
    }

    @Test func aPageOfTheWebReadsNoFiles() throws {
        let directory = try TemporaryDirectory()
        try directory.write(PageSite.red, to: "file.html")
        let path = directory.file("file.html")
        let site = try PageSite(["/": .redirect(302, to: "file://\(path)")])
        var page = site.source()
        page.allowedSchemes = [.http, .file]
        let error = #expect(throws: ImagePipelineError.self) { try page.image(PageSite.request) }
        #expect(["unsupported", "unreadable"].contains(error?.caseName))
    }
}

extension PageSite.Page: CustomTestStringConvertible {
    var testDescription: String { fields.first ?? body }
}
#endif
